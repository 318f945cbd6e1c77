#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hoop-plan: every command, its exit codes, and what it says about wrong use.
set -u
tool=${HOOP_PLAN:-$TEST_BUILD/tools/plan/hoop-plan}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0
export LC_ALL=C

fail() {
    echo "failed: $*"
    failed=1
}

# run CODE ARGUMENTS…: output in $scratch/out, errors in $scratch/err.
run() {
    local want=$1 got
    shift
    "$tool" "$@" >"$scratch/out" 2>"$scratch/err"
    got=$?
    [ "$got" -eq "$want" ] || fail "hoop-plan $*: exit $got, not $want: $(head -c 300 "$scratch/err")"
}

# says FILE PATTERN
says() { grep -Eq -- "$2" "$scratch/$1" || fail "no line of $1 matches \"$2\": $(head -c 300 "$scratch/$1")"; }

run 0 list
while read -r name; do
    says out "^$name  *[a-z]"
done < <(sed -nE 's/^ALGO\(([a-z]+),.*/\1/p' "$TEST_SOURCE/lib/algo/algos.def")

says out '^         all_reduce reduce reduce_scatter \(sums in rank order\) broadcast ' # flat
says out '^         all_reduce reduce_scatter \(sums in rank order\)$'                 # twoshot
says out '^         all_to_all$'                                                      # pairwise

run 0 print all_reduce --algo ring -n 4 --rank 1
says out '^plan ring all_reduce ranks 4 rank 1 root 0 in_place 0 channels 1 grid 4 tmp 0 lanes 1$'
says out '^  recv_reduce 0 out 0 in 0 forward no_store$'
run 0 print all_reduce --algo ring -n 4 --rank 1 --unfused
grep -q forward "$scratch/out" && fail "--unfused prints marks of the fuse pass"
run 0 print broadcast --algo tree -n 3 --root 2 --channels 2 --in-place
[ "$(grep -c '^plan tree broadcast ranks 3 rank . root 2 in_place 1 channels 2' "$scratch/out")" -eq 3 ] ||
    fail "print does not show all three ranks"
run 0 print all_gather --algo flat -n 2 -o "$scratch/plan"
says plan '^plan flat all_gather'

run 0 check broadcast --algo dbtree -n 12
says out 'at most 2 messages, 1 vectors'
says out '^proved: 24 problems, .* 0 faults'
run 0 check all_reduce --algo 'hier(ring,twoshot)' -n 12 --groups 4
says out '^hier all_reduce of 12 ranks: '
run 1 check all_reduce --algo hier -n 12
run 2 check all_reduce --algo 'hier(ring,rang)' -n 12 --groups 4
says err 'no such algorithm; there are .*, and hier\(A,B\)'
run 2 check all_reduce --algo hier -n 12 --groups 0
run 0 print all_reduce --algo 'hier(ring,twoshot)' -n 6 --groups 2 --rank 1
says out '^plan hier\(ring,twoshot\) all_reduce ranks 6 .* grid 6 '
says out '^  send .* joined$'
run 0 draw broadcast --algo hier -n 9 --groups 4,3 --root 5
run 0 check --all --most 20
says out '^proved: [0-9]+ problems, [0-9]+ plans, [0-9]+ runs, [0-9]+ steps, [0-9]+ messages, 0 faults'
says out '^every collective of 1 to 20 ranks has an algorithm$'

for n in 2 3 8 16; do
    run 0 draw all_reduce --algo dbtree -n "$n" -o "$scratch/picture.svg"
    says picture.svg "^<svg .*"
    says picture.svg "dbtree all_reduce, $n ranks"
    [ "$(tail -1 "$scratch/picture.svg")" = "</svg>" ] || fail "the picture of $n ranks has no end"
done
run 0 draw all_reduce --algo ring -n 4
[ "$(grep -c '<line class="arrow"' "$scratch/out")" -eq 24 ] || fail "a ring of 4 ranks has 24 messages"

run 0 draw all_reduce --algo rhd -n 8
[ "$(grep -c '<line class="arrow"' "$scratch/out")" -eq 48 ] || fail "rhd of 8 ranks has 6 messages a rank"
says out '>[0-7]\+3</text>'

# Without the environment's own settings.
unset HOOP_ALGO HOOP_MODEL HOOP_FLAT_MAX HOOP_SLICE
run 0 explain all_reduce -s 1M -n 8 --cores 8
says out '^\* [a-z]+  *[0-9]+\.[0-9]{3} '
says out '^choice     [a-z]+: least predicted time$'
says out '^range      the same from [0-9]+ bytes'
says out '^constants  built in: hop [0-9]+'
[ "$(grep -c '^change     HOOP_ALGO=' "$scratch/out")" -eq "$(($(grep -Ec '^[* ] [a-z]+  *[0-9]' "$scratch/out") - 1))" ] ||
    fail "explain does not name a setting for every other candidate"
says out '^  hier  *left out: needs groups of ranks, HOOP_GROUPS$'
run 0 explain all_reduce -s 1M -n 8 --groups 4
says out '^[* ] hier\([a-z]+,[a-z]+\)  *[0-9]+\.[0-9]{3} '
run 0 explain all_reduce -s 1M --topo 'hosts:8 ranks:8'
says out '^simulated  on hosts:8@'
says out '^\* hier\([a-z]+,[a-z]+\)  *[0-9.]+$'
HOOP_GROUPS=2 HOOP_ALGO='hier(ring,twoshot)' run 0 explain all_reduce -s 1M -n 8
says out '^choice     hier\(ring,twoshot\): HOOP_ALGO=hier'
run 0 explain all_gather -s 1M -n 8
says out '^  tree .*left out: does not do this collective$'
run 0 explain all_reduce -s 64 -n 2
says out '^choice     flat: at most HOOP_FLAT_MAX=4096 bytes'
HOOP_ALGO=tree run 0 explain all_reduce -s 64 -n 2
says out '^choice     tree: HOOP_ALGO=tree asks for it$'
says out '^change     HOOP_ALGO=auto gives flat$'
printf 'hoop-model 1\nhop 1\ncopy 0.001\n' >"$scratch/model"
HOOP_MODEL=$scratch/model run 0 explain all_reduce -s 1M -n 8
says out '^constants  from HOOP_MODEL: hop 1\.000 ns'
echo 'hop 2' >>"$scratch/model"
HOOP_MODEL=$scratch/model run 1 explain all_reduce -s 1M -n 8
says err 'model: line 4: hop is given twice'
run 0 explain barrier -n 1
says out '^choice     alone:'
run 2 explain all_reduce -s 1X -n 2
says err '1X: a size is a number of bytes'
if command -v python3 >/dev/null; then
    for coll in all_reduce barrier all_gather; do
        run 0 explain "$coll" -s 70000 -n 12 --json
        python3 -c '
import json, sys
it = json.load(sys.stdin)
times = {c["algorithm"]: c["predicted_ns"] for c in it["candidates"] if c["fit"]}
assert it["choice"] in times and it["ranks"] == 12 and it["model"]["hop"] == 400
assert it["bytes"] == 0 or times[it["choice"]] == min(times.values())
assert it["first_bytes"] <= it["bytes"] and (it["last_bytes"] is None or it["last_bytes"] >= it["bytes"])
' <"$scratch/out" || fail "explain $coll --json is wrong: $(head -c 300 "$scratch/out")"
    done
    run 0 explain all_reduce -s 64K --topo 'hosts:8@5,9000 ranks:8' --cores 64 --json
    python3 -c '
import json, sys
it = json.load(sys.stdin)
assert it["groups"] == "8" and it["model"]["hop_across"] == 9000 and it["model"]["uplink"] == 5
assert [(l["name"], l["count"], l["latency_ns"]) for l in it["simulated"]["levels"]] == [("hosts", 8, 9000), ("ranks", 8, 200)]
times = {c["algorithm"]: c["ns"] for c in it["simulated"]["candidates"] if c["ns"] is not None}
assert times[it["simulated"]["least"]] == min(times.values()) and it["simulated"]["least"].startswith("hier(")
assert it["choice"].startswith("hier(") and all(c["across_ns"] > 0 for c in it["candidates"] if c["fit"])
' <"$scratch/out" || fail "explain --topo --json is wrong: $(head -c 300 "$scratch/out")"
fi

# 7 ranks in a ring: 12 steps of 100 ns, 1000 bytes over a port of 1 GB/s and 1900 ns.
run 0 simulate all_reduce --algo ring -n 7 -s 7000 --bandwidth 1 --latency 1900 --post 100 --reduce 0
says out '^ring  *36\.000  *[0-9]+  *84  *84000  *7  *12000  '
run 0 simulate all_reduce -n 5000 -s 1M --algo ring
says out '^ring .*by symmetry'
run 0 simulate all_reduce --algo all -n 4 -s 1M --groups 2
[ "$(grep -Ec '^[a-z]+(\(tree,tree\))?  *[0-9]' "$scratch/out")" -eq "$("$tool" list | grep -c ' all_reduce')" ] ||
    fail "simulate --algo all does not show all algorithms"
run 0 simulate broadcast --table -n 8 --svg "$scratch/table.svg"
[ "$(grep -Ec '^ +[0-9]+ +[248] ' "$scratch/out")" -eq 12 ] || fail "the table has not 12 rows"
[ "$(tail -1 "$scratch/table.svg")" = "</svg>" ] || fail "the plot has no end"
grep -q 'nan\|inf' "$scratch/table.svg" && fail "the plot has numbers that are none"
run 0 simulate all_reduce --algo all -s 1M --topo 'hosts:4@25,2000 ranks:4'
says out '^all_reduce of 1048576 bytes, 16 ranks; hosts:4@25,2000 ranks:4@'
says out '^hier\(rhd,twoshot\)  *hosts  *64 '
run 0 simulate all_reduce --algo 'hier(ring,ring)' -s 16M --topo 'hosts:512 ranks:8'
says out '^hier\(ring,ring\) .*by symmetry: 8 ranks stand for all$'
run 0 simulate all_reduce --table -n 64 --topo 'hosts:8 ranks:8' --svg "$scratch/table.svg"
says table.svg 'hier\(tree,tree\)'
run 0 simulate broadcast --algo tree -n 16 -s 1K --topo 'synthetic:pack:2 [numa] core:4 pu:2'
says out 'hosts:2@[0-9]+,[0-9]+ sockets:2@[0-9,]+ numa:1@[0-9,]+ ranks:4@'
run 2 simulate all_reduce --algo ring --topo 'hosts:4 ranks:x'
says err 'is no level'
run 2 simulate all_reduce --algo ring --topo /nonexistent
run 1 simulate all_reduce --algo ring -n 4 --bandwidth 0
run 1 simulate all_gather --algo tree -n 4
run 2 simulate all_reduce -n 4 --latency fast

run 2
says err 'a command is missing'
run 2 prove
says err 'prove: no such command'
run 2 print
run 2 print all_reduce -n 4
says err 'needs an algorithm'
run 2 print all_reduce --algo rang -n 4
says err 'rang: no such algorithm; there are flat ring'
run 2 print allreduce --algo ring -n 4
says err 'allreduce: no such collective'
run 2 print all_reduce --algo ring -n 0
run 2 print all_reduce --algo ring -n 4 --rank 4
run 1 print all_gather --algo tree -n 4
says err 'algorithm tree does not do all_gather of 4 ranks'
run 1 draw all_reduce --algo ring -n 4 -o "$scratch/none/picture.svg"
says err 'No such file'
if [ -w /dev/full ]; then
    "$tool" print all_reduce --algo ring -n 4 >/dev/full 2>"$scratch/err" && fail "a full disk goes unnoticed"
    "$tool" check all_reduce --algo ring -n 4 >/dev/full 2>"$scratch/err" && fail "a full disk goes unnoticed by check"
fi
exit "$failed"
