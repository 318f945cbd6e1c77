#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hoop-bench --device on the fake driver: right results are found right for every collective, wrong ones wrong, each rank has
# its device, and host buffers stay the default where HOOP_DEVICE is set.
set -u

fake=$TEST_BUILD/tests/fakecuda/.libs
[ -e "$fake/libcuda.so.1" ] || { echo "skipped: there is no fake driver in $fake"; exit 77; }
export LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export PATH=$TEST_BUILD/bin:$TEST_BUILD/tools/run:$TEST_BUILD/tools/bench:$PATH
spoiler=$TEST_BUILD/.libs/libcorrupt.so
unset "${!HOOP_@}" "${!FAKECUDA_@}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out
failures=0

expect()
{
    local what=$1
    shift
    "$@" && return
    echo "FAIL: $what"
    head -c 3000 "$out"
    failures=$((failures + 1))
}

# bench RANKS ARGUMENTS...
bench()
{
    local ranks=$1
    shift
    hooprun -n "$ranks" --timeout 100 --no-prefix hoop-bench "$@" >"$out" 2>&1 </dev/null
    code=$?
}

# Rows that are right out of place and in place, on a plan that fits the pattern.
right_rows() { grep -v '^#' "$out" | awk -v plan="$1" 'NF == 18 && $9 == 0 && $13 == 0 && $18 ~ plan' | wc -l; }

for collective in all_reduce reduce broadcast all_gather reduce_scatter all_to_all all_gatherv all_to_allv gather scatter; do
    bench 4 $collective --device cuda -b 1000 -e 100000 -f 100 -n 2 -w 1
    expect "$collective: code" [ "$code" -eq 0 ]
    expect "$collective: rows" [ "$(right_rows .)" -eq 2 ]
done
HOOP_TRANSPORTS=tcp bench 3 all_reduce --device cuda -b 1000 -e 1000000 -f 1000 -n 2 -w 1
expect "each rank a host of its own" [ "$(right_rows /kernel/)" -eq 2 ]
bench 2 all_reduce --device cuda -b 4000 -e 4000 -n 2 --dirty -d all -o sum
expect "types" [ "$(right_rows .)" -eq 14 ]
expect "a device for each rank" [ "$(grep -c '^#  Rank  \([01]\) .* device  \1 \[0000:0' "$out")" -eq 2 ]
expect "number of GPUs" grep -q '^# nThread 1 nGpus 1 ' "$out"
bench 1 all_reduce --device cuda:2 -b 4000 -e 4000 -n 2 --json "$work/json"
expect "one device" grep -q '^#  Rank  0 .* device  2 \[' "$out"
expect "json" grep -q '"memory": "device"' "$work/json"
bench 1 all_reduce --device cuda:9 -b 4000 -e 4000
expect "no such device" [ "$code" -eq 3 ]
expect "no such device: text" grep -q 'there is no CUDA device 9' "$out"

# without --device the buffers are the host's
HOOP_DEVICE=cuda bench 2 all_reduce -b 4000 -e 4000 -n 2
expect "host buffers" [ "$(right_rows .)" -eq 1 ]
expect "host buffers: head" grep -q '^# nThread 1 nGpus 0 ' "$out"

# what is spoiled, and the elements that must be found: out of place, in place
for case in "result 1 1" "input 1 0" "behind 1 1"; do
    [ -e "$spoiler" ] || break
    # shellcheck disable=SC2086
    set -- $case
    SPOIL=$1 LD_PRELOAD=$spoiler ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}verify_asan_link_order=0 \
        bench 2 all_reduce --device cuda -d int32 -b 4000 -e 4000 -n 2
    expect "spoiled $1: code" [ "$code" -eq 1 ]
    expect "spoiled $1: count" [ "$(grep '^ *4000 ' "$out" | awk '{print $9, $13}')" = "$2 $3" ]
done
[ $failures -eq 0 ] && echo "all passed"
exit $((failures > 0))
