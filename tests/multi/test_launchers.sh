#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks started by hand and by torchrun-style variables: how they meet, what is refused, and what hoop-info says of it.
# shellcheck disable=SC2154,SC2016,SC2054,SC2317 # of launch.sh; single quotes are for shells of ranks; hydra wants commas; called by others
# shellcheck source-path=SCRIPTDIR
. "$TEST_SOURCE/tests/multi/launch.sh"

# by_hand N COMMAND...: N processes at once, each with the variables that name_rank gives it; all must succeed.
by_hand()
{
    local n=$1 r pid pids=() bad=0
    shift
    for ((r = n - 1; r >= 0; r--)); do # rank 0 comes last
        (name_rank "$r" "$n" && exec "$@") &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do
        wait "$pid" || bad=1
    done
    return $bad
}
export -f by_hand; export port secret

# A port whose next one is free, too: nobody listens on either.
port=$((20000 + RANDOM % 12000))
while : 2>/dev/null <"/dev/tcp/127.0.0.1/$port" || : 2>/dev/null <"/dev/tcp/127.0.0.1/$((port + 1))"; do
    port=$((20000 + RANDOM % 12000))
done
secret=$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')

name_rank() { export HOOP_RANK=$1 HOOP_SIZE=$2; }
export -f name_rank
job "an id by a file" 0 bash -c 'by_hand 3 launched id "$1"' - "$work/id"
ranks "an id by a file" 3 hooprun
HOOP_MEET=127.0.0.1:$port HOOP_SECRET=$secret job "a place" 0 bash -c 'by_hand 3 launched'
ranks "a place" 3 hooprun

name_rank() { export RANK=$1 WORLD_SIZE=$2 LOCAL_RANK=$1 LOCAL_WORLD_SIZE=$2 MASTER_ADDR=localhost MASTER_PORT=$port; }
export -f name_rank
export HOOP_SECRET_FILE=$work/secret
(umask 077 && echo "$secret" >"$work/secret")
job "torchrun's variables" 0 bash -c 'by_hand 4 launched'
ranks "torchrun's variables" 4 torchrun
TORCHELASTIC_RUN_ID=r TORCHELASTIC_RESTART_COUNT=1 job "started again at once" 0 bash -c 'by_hand 2 launched'
ranks "started again at once" 2 torchrun
job "hoop-bench" 0 bash -c 'by_hand 2 hoop-bench all_reduce -b 8 -e 64K -f 64 -n 2'
says "hoop-bench" 'all_reduce'
job "hoop-info" 0 bash -c 'name_rank 1 2; hoop-info'
says "hoop-info" '^  name  *torchrun$'
says "hoop-info" "^  meeting  *rank 0 serves at localhost port $((port + 1)) .*HOOP_SECRET_FILE"
chmod 644 "$work/secret"
job "a secret that others can read" any bash -c 'name_rank 0 2; launched'
says "a secret that others can read" 'chmod 600'
unset HOOP_SECRET_FILE
job "no secret" any bash -c 'name_rank 0 2; launched'
says "no secret" 'HOOP_INSECURE=1 goes without'
HOOP_INSECURE=1 job "insecure" 0 bash -c 'by_hand 2 launched'
ranks "insecure" 2 torchrun

# who holds another secret does not come in, and the others end in time

job "another secret" any bash -c 'name_rank() { export HOOP_INIT_TIMEOUT=0.7; RANK=$1; export RANK WORLD_SIZE=$2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port HOOP_SECRET=$secret$1; }
    by_hand 2 launched'
says "another secret" 'refuses the secret'
says "another secret" 'rank.* 1'
job "hoop-info of half a group" 0 env RANK=1 hoop-info
says "hoop-info of half a group" 'RANK is set, but WORLD_SIZE is not'

[ "$failures" = 0 ]
