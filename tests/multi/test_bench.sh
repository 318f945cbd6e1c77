#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hoop-bench: right results are found right for every collective, type, operator and root; wrong ones are found wrong, on
# all ranks; and the layouts are what parsers expect.
# Functions are called through others; awk expands what is in single quotes.
# shellcheck disable=SC2016,SC2317
set -u

bin=$TEST_BUILD/bin
[ -x "$bin/hoop-bench" ] || bin=$TEST_BUILD/tools/run:$TEST_BUILD/tools/bench
export PATH=$bin:$PATH
command -v hoop-bench >/dev/null || { echo "hoop-bench is missing: make all"; exit 1; }
spoiler=$TEST_BUILD/.libs/libcorrupt.so
unset "${!HOOP_@}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out err=$work/err
failures=0

fail()
{
    echo "FAIL: $1"
    head -c 2000 "$out" "$err"
    failures=$((failures + 1))
}

expect()
{
    local what=$1
    shift
    "$@" || fail "$what"
}

# bench RANKS ARGUMENTS...
bench()
{
    local ranks=$1
    shift
    hooprun -n "$ranks" --timeout 100 --no-prefix hoop-bench "$@" >"$out" 2>"$err" </dev/null
    code=$?
}

rows()
{
    grep -v '^#' "$out"
}

# Every field of every row is what it should be, out of place and in place.
rows_are_right()
{
    rows | awk '
        NF != 18 || $9 != 0 || $13 != 0 || $6 !~ /^[0-9.e+]+$/ || $14 !~ /^[0-9.]+$/ { print "row: " $0; bad = 1 }
        END { exit bad || NR == 0 }'
}

row_count_is()
{
    [ "$(rows | wc -l)" -eq "$1" ]
}

test_results()
{
    # sizes 8, 1976, 488072; types × operators × roots
    local few="-b 8 -e 1M -f 247 -n 2 -w 1"
    # shellcheck disable=SC2086
    for case in "all_reduce 378" "reduce 1134" "broadcast 162" "all_gather 54" "reduce_scatter 378" \
        "all_to_all 54" "all_gatherv 54" "all_to_allv 54" "gather 162" "scatter 162"; do
        bench 3 "${case% *}" -d all -o all -r all $few
        expect "${case% *}: code" [ "$code" -eq 0 ]
        expect "${case% *}: rows" rows_are_right
        expect "${case% *}: number of rows" row_count_is "${case#* }"
    done
    bench 2 all_reduce --malloc --dirty -b 1000 -e 1000 -n 3
    expect "ordinary memory" rows_are_right
    bench 1 all_reduce -b 1000 -e 1000 -n 3
    expect "one rank" rows_are_right
    bench 3 barrier -n 3
    expect "barrier: one row without data" [ "$(rows | awk '{print NF, $1, $9, $13}')" = "18 0 N/A N/A" ]
    bench 2 all_reduce -b 64 -e 64 -c 0 -n 3
    expect "unchecked" [ "$(rows | awk '{print $9, $13}')" = "N/A N/A" ]
}

test_layout()
{
    bench 2 all_reduce -b 100 -e 300 -i 100 -n 4
    expect "sizes by addition" [ "$(rows | awk '{printf "%s/%s ", $1, $2}')" = "100/25 200/50 300/75 " ]
    expect "columns of the first numbers" grep -q '^ \{9\}100 \{12\}25     float     sum      -1 ' "$out"
    expect "head" grep -q -x '# Collective test starting: all_reduce' "$out"
    expect "foot: wrong values" grep -q -x '# Out of bounds values : 0 OK' "$out"
    expect "foot: bandwidth" grep -q '^# Avg bus bandwidth    : [0-9.e-]*$' "$out"
    # bandwidths follow from size and time, to the digits shown
    bench 3 all_gather -b 1M -e 1M -n 4
    expect "bandwidths" awk '!/^#/ { a = $1 / $6 / 1000; b = a * 2 / 3
        exit !($1 % 48 == 0 && ($7 - a) ^ 2 < 0.0001 && ($8 - b) ^ 2 < 0.0001) }' "$out"
    bench 2 reduce --osu -b 4 -e 64 -f 4 -n 4
    expect "osu head" grep -q '^# Size  .* Avg Latency(us)     Min Latency(us)     Max Latency(us)  Iterations' "$out"
    expect "osu rows" [ "$(rows | awk '/Pass$/ {printf "%s ", $1}')" = "4 16 64 " ]
    expect "osu columns" [ "$(rows | awk '{print length($0)}' | sort -u)" = 142 ]
    # the price of a fixed order: ordered p50, ratio (twice), plan
    HOOP_FLAT_MAX=0 bench 3 all_reduce -b 64K -e 64K -n 4 --deterministic
    expect "deterministic: columns" [ "$(rows | awk '{print NF}')" = 23 ]
    expect "deterministic: figures" awk '!/^#/ { exit !($19 > 0 && $20 > 0 && $21 > 0 && $22 > 0) }' "$out"
    expect "deterministic: plan" [ "$(rows | awk '$23 ~ /^(flat|twoshot|direct)\// {print "yes"}')" = yes ]
    HOOP_ALGO=ring bench 3 all_reduce -b 64K -e 64K -n 4 --deterministic
    expect "deterministic: other order" [ "$code" -eq 3 ]
    expect "deterministic: both settings" grep -q 'HOOP_ALGO=ring and HOOP_DETERMINISTIC=1' "$err"
    if command -v python3 >/dev/null; then
        bench 2 all_reduce -b 8 -e 32 -f 4 -n 4 --json "$work/json"
        expect "json" python3 - "$work/json" <<'END'
import json, sys
file = json.load(open(sys.argv[1]))
rows = file["results"]
assert [r["size"] for r in rows] == [8, 32], rows
assert all(r[s]["nwrong"] == 0 and r[s]["p50"] <= r[s]["p99"] <= r[s]["max"]
           for r in rows for s in ("out_of_place", "in_place")), rows
assert file["ranks"] == 2 and file["out_of_bounds"] == {"count": 0, "okay": True}, file
END
    fi
}

# Constants are measured, saved, and found by HOOP_MODEL=auto.
test_calibrate()
{
    XDG_CACHE_HOME=$work bench 3 --calibrate -n 1
    expect "calibrate: code" [ "$code" -eq 0 ]
    expect "calibrate: constants" [ "$(grep -cE '^# (hop|hop_crowded|post|slot|copy|reduce) +[0-9.]+ +[0-9.]+ +[0-9.]+ ' "$out")" = 6 ]
    expect "calibrate: judgement" grep -q '^# measured constants: predictions are off by a factor of [0-9.]* on average; of [1-9][0-9]* choices' "$out"
    local file
    file=$(sed -n 's/^# saved as //p' "$out")
    expect "calibrate: file" [ "$(head -n 1 "$file")" = "hoop-model 1" ]
    expect "calibrate: place" [ "${file%-*}" = "$work/hoop/model" ]
    XDG_CACHE_HOME=$work HOOP_MODEL=auto hoop-info >"$out" 2>"$err"
    expect "calibrate: in force" grep -q -x "constants of the cost model: $file" "$out"
    XDG_CACHE_HOME=$work HOOP_MODEL=auto bench 3 all_reduce -b 64K -e 64K -n 3
    expect "calibrate: used" rows_are_right
    echo "hop x" >>"$file"
    XDG_CACHE_HOME=$work HOOP_MODEL=auto bench 3 all_reduce -b 64K -e 64K -n 3
    expect "calibrate: broken file" [ "$code" -eq 3 ]
    expect "calibrate: broken line" grep -q 'line [0-9]*: ' "$err"
    bench 1 --calibrate
    expect "calibrate: alone" [ "$code" -eq 2 ]
    bench 2 all_reduce --calibrate
    expect "calibrate: and a collective" [ "$code" -eq 2 ]
}

test_wrong()
{
    # what is spoiled, and the elements that must be found: out of place, in place
    if [ ! -e "$spoiler" ]; then
        echo "not tested: wrong results (no $spoiler: shared libraries are off)"
        return
    fi
    for case in "result 1 1" "input 1 0" "behind 1 1"; do
        # shellcheck disable=SC2086
        set -- $case
        SPOIL=$1 LD_PRELOAD=$spoiler ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 \
            bench 3 all_reduce -d int32 -b 4000 -e 4000 -n 2
        expect "spoiled $1: code" [ "$code" -eq 1 ]
        expect "spoiled $1: count" [ "$(rows | awk '{print $9, $13}')" = "$2 $3" ]
        expect "spoiled $1: foot" grep -q -x "# Out of bounds values : $(($2 + $3)) FAILED" "$out"
        expect "spoiled $1: all ranks say so" grep -q 'exited with code 1.*2 other ranks failed' "$err"
    done
}

test_usage()
{
    for wrong in "no_such" "all_reduce -d no" "all_reduce -o no" "all_reduce -b x" "reduce -r 2" "all_reduce reduce" "" \
        "all_reduce --device gpu" "all_reduce --device cuda --malloc" "--calibrate --device cuda"; do
        # shellcheck disable=SC2086
        bench 2 $wrong
        expect "usage: '$wrong'" [ "$code" -eq 2 ]
    done
    bench 1 all_reduce -n 1 --json /no/such/folder
    expect "no such folder" [ "$code" -eq 3 ]
}

test_results
test_layout
test_calibrate
test_wrong
test_usage
[ $failures -eq 0 ] && echo "all passed"
exit $((failures > 0))
