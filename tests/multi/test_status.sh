#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hoop-status on a job that runs, one of whose ranks is stopped, that has failed, and on what it has written then.
set -u
export PATH=$TEST_BUILD/tools/run:$TEST_BUILD/tools/bench:$TEST_BUILD/tools/status:$PATH
unset "${!HOOP_@}"
work=$(mktemp -d) || exit 1
job=
stopped=
clean()
{
    [ -n "$stopped" ] && kill -CONT "$stopped" 2>/dev/null
    [ -n "$job" ] && kill "$job" 2>/dev/null
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP
failures=0

fail()
{
    echo "FAIL: $1"
    cut -c 1-300 "$work/out"
    failures=$((failures + 1))
}

# shows WHAT PATTERN ARGUMENT...: hoop-status does, within a minute
shows()
{
    local what=$1 pattern=$2
    shift 2
    for _ in $(seq 600); do
        hoop-status "$@" >"$work/out" 2>&1
        grep -Eq -e "$pattern" "$work/out" && return
        sleep 0.1
    done
    fail "$what: no '$pattern'"
}

HOOP_ALGO=ring HOOP_SILENT=3 HOOP_FLIGHT=$work/flight hooprun -n 3 hoop-bench all_reduce -b 64K -e 64K -n 100000000 \
    >"$work/job" 2>&1 </dev/null &
job=$!
shows "a job that runs" '^ +2 +[0-9]+ +[a-z]+ +call [0-9]+ all_reduce of 16384 float.* by ring' "$job"
stopped=$(awk '$1 == 1 { print $2 }' "$work/out")
kill -STOP "$stopped" || fail "rank 1 has no process '$stopped'"
shows "a rank is stopped" "late: rank 1 \\(process $stopped, stopped\\)" "$job"
grep -q 'late: rank 2' "$work/out" && fail "who waits for the stopped rank is blamed"
# or waited: on a busy machine the verdict may have come by then
grep -Eq '^ +[02] .* wait(ing|ed) .*for data from rank [012], step [0-9]+ of lane 0' "$work/out" || fail "no rank waits for another"
for _ in $(seq 600); do
    grep -q 'what the ranks of this host did last' "$work/job" && break
    sleep 0.1
done
hoop-status -H 5 "$work"/flight.* >"$work/out" 2>&1 || fail "the file cannot be read"
grep -q "failed: rank 1 (process $stopped) shows no sign of life" "$work/out" || fail "no verdict"
[ "$(grep -c 's ago  call [0-9]* all_reduce' "$work/out")" = 15 ] || fail "not the latest 5 operations of 3 ranks"
hoop-status --json -H 1000 "$work"/flight.* >"$work/out" 2>&1 || fail "no JSON"
grep -q '"late": \[1\]' "$work/out" || fail "JSON does not say who is late"
if command -v python3 >/dev/null; then
    python3 - "$work/out" <<'PY' || fail "the JSON is not right"
import json, sys
one, = json.load(open(sys.argv[1]))["communicators"]
assert one["dumped"] and len(one["rank"]) == 3
for rank in one["rank"]:
    numbers = [call["sequence"] for call in rank["history"]]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[-1] == rank["call"]["sequence"]
PY
fi
kill -CONT "$stopped"
kill "$job"
wait "$job" 2>/dev/null
job=
hoop-status 999999999 >"$work/out" 2>&1
[ $? = 3 ] || fail "a process that is not there"
head -c 100000 /dev/zero >"$work/zeros"
hoop-status "$work/zeros" >"$work/out" 2>&1
[ $? = 1 ] || fail "a file of zeros"
grep -q 'no memory of a communicator' "$work/out" || fail "no reason against a file of zeros"
head -c 20000 "$work"/flight.* >"$work/cut"
hoop-status "$work/cut" >"$work/out" 2>&1
[ $? = 1 ] || fail "a file that is cut off"
grep -q 'cut off' "$work/out" || fail "no reason against a file that is cut off"
[ "$failures" = 0 ]
