#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks started by Open MPI's mpirun, which meet by its PMIx key store.
# shellcheck disable=SC2154,SC2016,SC2054,SC2317 # of launch.sh; single quotes are for shells of ranks; hydra wants commas; called by others
# shellcheck source-path=SCRIPTDIR
mpirun=$(command -v mpirun.openmpi || command -v mpirun)
if [ -z "$mpirun" ] || ! "$mpirun" --version 2>/dev/null | grep -q -e 'Open MPI' -e OpenRTE; then
    echo "skipped: Open MPI's mpirun is not installed"
    exit 77
fi
. "$TEST_SOURCE/tests/multi/launch.sh"
OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=x hoop-info >"$out" 2>&1
grep -q 'knows nothing of PMIx' "$out" && { echo "skipped: this build of hoop has no PMIx"; exit 77; }

# libpmix leaks, in parts that it has unloaded before leaks are looked for, so that no suppression could name them.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
run=("$mpirun" --oversubscribe)
export TMPDIR=$work # its session folder

job "mpirun" 0 "${run[@]}" -n 3 launched
ranks "mpirun" 3 "Open MPI"
job "hoop-bench" 0 "${run[@]}" -n 2 hoop-bench all_reduce -b 8 -e 64K -f 64 -n 2
says "hoop-bench" 'all_reduce'
job "PMIx alone" 0 "${run[@]}" -n 2 env -u OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_SIZE launched
ranks "PMIx alone" 2 PMIx
job "one rank" 0 "${run[@]}" -n 1 launched
ranks "one rank" 1 "Open MPI"
job "hoop-info" 0 "${run[@]}" -n 1 env -u OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_SIZE hoop-info
says "hoop-info" 'key store (PMIx)'
HOOP_INIT_TIMEOUT=0.7 job "a rank that does not come" any "${run[@]}" -n 2 bash -c '[ "$PMIX_RANK" = 1 ] && exec sleep 2; launched'
says "a rank that does not come" 'not all ranks came before the deadline'

[ "$failures" = 0 ]
