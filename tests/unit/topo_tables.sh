#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What hoop-topo prints for recorded machines against answer tables, cell by cell, where a collection of them is at hand: in
# $HOOP_TOPOLOGIES, or shared/topologies beside the source folder. hwloc/NAME is shown with -mp, nccl/NAME and rccl/NAME with
# --nccl; the rows "M" of expected/FOLDER.NAME.tsv are the right matrix. Prints a table of what agrees.
set -u
tool=${HOOP_TOPO:-$TEST_BUILD/tools/topo/hoop-topo}
folder=${HOOP_TOPOLOGIES:-$TEST_SOURCE/../shared/topologies}
if ! ls "$folder"/expected/*.tsv >/dev/null 2>&1; then
    echo "no recorded machines: $folder/expected does not exist; set HOOP_TOPOLOGIES to the folder that has them"
    exit 77
fi
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0
export LC_ALL=C

# The matrix that the tool printed, in the form of the answers: no columns of affinity, no blanks around X.
printed() {
    awk -F '\t' 'NF == 0 { exit }
        NR == 1 { for (i = 2; i <= NF; i++) if ($i ~ /^(GPU|NIC|NET)[0-9]+$/) columns = i }
        { line = "M"; for (i = NR == 1 ? 2 : 1; i <= columns; i++) { gsub(/ /, "", $i); line = line "\t" $i } print line }'
}

for table in "$folder"/expected/*.tsv; do
    name=${table##*/}
    name=${name%.tsv}
    kind=${name%%.*}
    file=$folder/$kind/${name#*.}
    grep '^M' "$table" >"$scratch/right"
    option=--nccl
    [ "$kind" = hwloc ] && option=-mp
    if ! "$tool" --input "$file" "$option" >"$scratch/out" 2>"$scratch/err"; then
        if [[ $file == *.v3.xml ]] && grep -q 'format 3' "$scratch/err"; then
            printf '%-44s refused, as it should be by this hwloc: format 3\n' "$name"
            continue
        fi
        echo "failed: $name: $(cat "$scratch/err")"
        failed=1
        continue
    fi
    printed <"$scratch/out" >"$scratch/got"
    # Exported for NCCL and read again it is the same machine. (Devices without a number of NCCL's are numbered anew.)
    "$tool" --input "$file" --nccl >"$scratch/paths"
    "$tool" --input "$file" --export nccl >"$scratch/again.xml"
    if { [ "$kind" = hwloc ] || grep -q '<gpu' "$file"; } && ! diff <(sed '/^$/q' "$scratch/paths") <("$tool" --input "$scratch/again.xml" --nccl | sed '/^$/q') >"$scratch/diff"; then
        printf 'failed: %s: exported for NCCL it reads as another machine\n' "$name"
        cat "$scratch/diff"
        failed=1
    fi
    # In hoop's own form it is the same machine to the last fact.
    "$tool" --input "$file" --export hoop >"$scratch/own.xml"
    if ! diff <("$tool" --input "$file" --json | sed '1s/"origin": "[^"]*"//') <("$tool" --input "$scratch/own.xml" --json | sed '1s/"origin": "[^"]*"//') >"$scratch/diff"; then
        printf 'failed: %s: in the form of hoop it reads as another machine\n' "$name"
        head -c 2000 "$scratch/diff"
        failed=1
    fi
    # And in XML of hwloc, but for the order of its cores.
    "$tool" --input "$file" --export hwloc >"$scratch/hwloc.xml" && "$tool" --input "$scratch/hwloc.xml" --export hoop >"$scratch/own2.xml"
    if ! diff <(sed 's/ origin="[^"]*"//' "$scratch/own.xml" | sort) <(sed 's/ origin="[^"]*"//' "$scratch/own2.xml" | sort) >"$scratch/diff"; then
        printf 'failed: %s: in XML of hwloc it reads as another machine\n' "$name"
        head -c 2000 "$scratch/diff"
        failed=1
    fi
    cells=$(awk -F '\t' 'NR > 1 { cells += NF - 2 } END { print cells + 0 }' "$scratch/right")
    if [ "$cells" -gt 0 ] && diff -u "$scratch/right" "$scratch/got" >"$scratch/diff"; then
        printf '%-44s %5d cells agree\n' "$name" "$cells"
    else
        printf 'failed: %s: of %d cells\n' "$name" "$cells"
        cat "$scratch/diff"
        failed=1
    fi
done
exit $failed
