#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hoop-info: every transport, algorithm and setting is listed, origins are true, secrets are not shown, the machine's
# facts agree with what the system says.
set -u
tool=${HOOP_INFO:-$TEST_BUILD/tools/info/hoop-info}
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0
export LC_ALL=C

fail() {
    echo "failed: $*"
    failed=1
}

# has FILE PATTERN
has() { grep -Eq -- "$2" "$scratch/$1" || fail "no line of $1 matches \"$2\""; }

env -i "PATH=$PATH" HOOP_ALGO=ring HOOP_ID=topsecret "$tool" >"$scratch/text" || fail "exit $?"
env -i "PATH=$PATH" HOOP_ALGO=ring HOOP_ID=topsecret "$tool" --json >"$scratch/json" || fail "--json: exit $?"

# names FILE: the first argument of every line MACRO(NAME, … of a table.
names() { sed -nE 's/^[A-Z]+\(([A-Za-z0-9_]+),.*/\1/p' "$TEST_SOURCE/$1"; }

while read -r name; do
    has text "^  HOOP_$name  *[^ ].*  \\((default|environment)\\)$"
    has json "\"name\": \"HOOP_$name\""
done < <(names lib/base/settings.def)
while read -r name; do
    has text "^  $name  "
    has json "\"name\": \"$name\".*\"usable\": "
done < <(names transports/transports.def)
while read -r name; do
    has text "^  $name  "
    has json "\"name\": \"$name\".*\"collectives\": \\[\"[a-z_]+\""
done < <(names lib/algo/algos.def)
has text '^  HOOP_ALGO  *ring  \(environment\)$'
has text '^  HOOP_SLOTS  *[0-9]+  \(default\)$'
grep -q topsecret "$scratch/text" "$scratch/json" && fail "the secret of HOOP_ID is shown"
has text '^  version  *[0-9]+\.[0-9]+\.[0-9]+$'

# CUDA devices, or why there are none; a driver that is no library is none.
has text '^CUDA devices$'
has json '"cuda": \{"usable": (true|false), '
: >"$scratch/libcuda.so.1"
LD_LIBRARY_PATH=$scratch "$tool" >"$scratch/none" || fail "without a driver: exit $?"
has none '^  none  *(there is no CUDA driver: .*libcuda.so.1|this build of hoop has no CUDA)'

kibibytes=$(awk '$1 == "MemTotal:" { print $2 }' /proc/meminfo)
has json "\"memory_bytes\": $((kibibytes * 1024)),"
has json "\"open_files_limit\": $(ulimit -n | sed 's/unlimited/"unlimited"/')$"
first=$(taskset -cp $$ | sed -E 's/.*: ([0-9]+).*/\1/')
taskset -c "$first" "$tool" --json >"$scratch/json" || fail "on one CPU: exit $?"
has json '"cores_allowed": 1,'
has json '"cpus_allowed": 1,'

"$tool" --nonsense >"$scratch/out" 2>&1
[ $? -eq 2 ] || fail "wrong usage does not exit with 2"
"$tool" something >"$scratch/out" 2>&1
[ $? -eq 2 ] || fail "an argument does not exit with 2"
if [ -w /dev/full ]; then
    "$tool" >/dev/full 2>"$scratch/err" && fail "a full disk is no error"
fi
exit $failed
