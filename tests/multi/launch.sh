# SPDX-License-Identifier: BSD-3-Clause
# What the tests of launchers share. To be read by them: work, out, failures, and
#   job WHAT CODE COMMAND...   run it, see its exit code (any: failing with whatever code), its output in $out
#   says WHAT PATTERN          a line of the output fits
#   ranks WHAT N LAUNCHER      all N ranks of launched have reported, once each
# shellcheck shell=bash disable=SC2034,SC2015
set -u
export PATH=$TEST_BUILD/tools/run:$TEST_BUILD/tools/bench:$TEST_BUILD/tools/info:$TEST_BUILD/tests/multi:$PATH
unset "${!HOOP_@}" "${!PMI_@}" "${!PMIX_@}" "${!OMPI_@}" "${!SLURM_@}" RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE MASTER_ADDR MASTER_PORT
work=$(mktemp -d) || exit 1
out=$work/out
failures=0
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

fail()
{
    echo "FAIL: $1"
    tail -n 12 "$out" | cut -c 1-600
    failures=$((failures + 1))
}

job()
{
    local what=$1 expected=$2 code
    shift 2
    timeout -k 5 100 "$@" >"$out" 2>&1 </dev/null
    code=$?
    if [ "$expected" = any ]; then
        [ "$code" != 0 ] && [ "$code" -lt 124 ] || fail "$what: exit code $code"
    else
        [ "$code" = "$expected" ] || fail "$what: exit code $code, not $expected"
    fi
}

says()
{
    grep -q -e "$2" "$out" || fail "$1: no '$2'"
}

ranks()
{
    local r
    for ((r = 0; r < $2; r++)); do
        [ "$(grep -c -x -e "launched: rank $r of $2 by $3" "$out")" = 1 ] || fail "$1: rank $r is not there once"
    done
}
