#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The check of a GPU (tests/gpu/run, packed as make gpu-kit does) on the fake driver: all parts pass without a rate, a part that fails is
# named and does not stop the rest, time caps hold, and a machine without a driver is told so.
set -u
fake=$TEST_BUILD/tests/fakecuda/.libs/libcuda.so.1
[ -e "$fake" ] || { echo "skipped: there is no fake driver $fake"; exit 77; }
! nm -D "$fake" | grep -Eq ' [UW] __(asan|tsan)_init' || { echo "skipped: sanitized programs are not for carrying along"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kit=$work/kit out=$work/out
unset "${!HOOP_@}" "${!FAKECUDA_@}" LD_LIBRARY_PATH
failures=0

expect()
{
    local what=$1
    shift
    "$@" && return
    echo "FAIL: $what"
    cat "$work/table"
    failures=$((failures + 1))
}

run()
{
    "$kit/run" --out "$out" "$@" >"$work/table" 2>&1 </dev/null
    code=$?
}

# shellcheck disable=SC2317 # expect calls it
has() { grep -Eq -- "$1" "$work/table"; }

bash "$TEST_SOURCE/tests/gpu/pack" "$TEST_BUILD" "$TEST_SOURCE" "$kit" || exit 1
# The tests of calls and plans are left out: they run on this driver by themselves.
run --fake --only 'driver|bits|rates|bench'
expect "all parts: code" [ "$code" -eq 0 ]
expect "all parts: marked" has 'NOT A GPU'
expect "all parts: passed" has '^[0-9]+ passed, 0 failed, 0 skipped in '
expect "no rates" has 'sum f16 +- +- +- +ran$'
expect "no rates in the file" grep -q '"kernel": "copy", .*"gigabytes_per_second": null' "$out/result.json"
! command -v python3 >/dev/null || expect "the file is JSON" python3 -m json.tool "$out/result.json" /dev/null

# a program that fails, one without a device, one that hangs; the rest goes on
printf '#!/bin/sh\necho "x.c:1:F:all:test:0: it is WRONG"\nexit 1\n' >"$kit/bin/bits"
printf '#!/bin/sh\nsleep 100\n' >"$kit/bin/rates"
printf '#!/bin/sh\necho "skipped: for the test"\nexit 77\n' >"$kit/bin/exec_cuda"
chmod +x "$kit/bin/rates" "$kit/bin/bits" "$kit/bin/exec_cuda"
run --fake --only 'memory|bits|plans|rates' --seconds 5
expect "broken: code" [ "$code" -eq 1 ]
expect "broken: failed" has '^kernels: bits +FAILED .*exit 1: .*it is WRONG$'
expect "broken: hangs" has '^rates +FAILED .*ended after [0-5] s$'
expect "broken: skipped" has '^plans: ranks in one process +skipped .*for the test$'
expect "broken: passed before" has '^driver: devices and memory +passed'

run
expect "no driver: code" [ "$code" -eq 77 ]
expect "no driver: text" has 'No GPU to check: there is no CUDA driver'
run --wrong
expect "usage: code" [ "$code" -eq 2 ]
expect "usage: text" has '^run \[--fake\]'
[ $failures -eq 0 ] && echo "all passed"
exit $((failures > 0))
