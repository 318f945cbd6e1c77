#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks started by MPICH's hydra, which meet by its PMI-1 key store, also on two pretended hosts.
# shellcheck disable=SC2154,SC2016,SC2054,SC2317 # of launch.sh; single quotes are for shells of ranks; hydra wants commas; called by others
# shellcheck source-path=SCRIPTDIR
command -v mpiexec.hydra >/dev/null || { echo "skipped: MPICH's mpiexec.hydra is not installed"; exit 77; }
. "$TEST_SOURCE/tests/multi/launch.sh"

job "hydra" 0 mpiexec.hydra -n 3 launched
ranks "hydra" 3 PMI
job "hoop-bench" 0 mpiexec.hydra -n 2 hoop-bench all_reduce -b 8 -e 64K -f 64 -n 2
says "hoop-bench" 'all_reduce'
job "hoop-info" 0 mpiexec.hydra -n 2 hoop-info
says "hoop-info" 'key store (PMI-1 at PMI_FD='

# Two proxies, which make two hosts of one machine; every rank's environment says which is its own.
two=(mpiexec.hydra -launcher fork -hosts 127.0.0.2,127.0.0.3 -ppn 2 -n 4)
HOOP_ADDRESS=127.0.0.1 job "two proxies" 0 "${two[@]}" launched
ranks "two proxies" 4 PMI
HOOP_ADDRESS=127.0.0.1 job "two hosts" 0 "${two[@]}" bash -c 'HOOP_HOST=$((PMI_RANK / 2)) hoop-bench all_reduce -b 8 -e 64K -f 64 -n 2'
says "two hosts" '/shm+tcp/links/'
HOOP_INIT_TIMEOUT=0.7 job "a rank that does not come" any mpiexec.hydra -n 2 bash -c '[ "$PMI_RANK" = 1 ] && exec sleep 2; launched'
says "a rank that does not come" 'did not answer barrier_in before the deadline'

[ "$failures" = 0 ]
