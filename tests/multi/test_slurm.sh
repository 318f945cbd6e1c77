#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks started by Slurm's srun: PMIx, PMI-1 of its pmi2 plugin, and variables alone. A controller and two slurmd, all of this test's
# own, make one machine two nodes; they listen on loopback only and end with the test.
# shellcheck disable=SC2154,SC2016,SC2317 # of launch.sh; what is in single quotes is for shells of the ranks; functions are called by traps
# shellcheck source-path=SCRIPTDIR
PATH=$PATH:/usr/sbin:/sbin
for program in munged slurmctld slurmd srun sinfo; do
    command -v $program >/dev/null || { echo "skipped: $program is not installed (Debian: slurmctld slurmd slurm-client munge)"; exit 77; }
done
. "$TEST_SOURCE/tests/multi/launch.sh"

# libpmix leaks, in parts that it has unloaded before leaks are looked for, so that no suppression could name them.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export SLURM_CONF=$work/slurm.conf
pids=()
nodes=(127.0.0.2 127.0.0.3)
host=$(hostname -s)

# Daemons of steps that outlive their slurmd: known by the configuration that they carry.
leftovers()
{
    local process
    for process in /proc/[0-9]*; do
        [ "$(cat "$process/comm" 2>/dev/null)" = slurmstepd ] &&
            tr '\0' '\n' 2>/dev/null <"$process/environ" | grep -q -x -F "SLURM_CONF=$SLURM_CONF" && echo "${process#/proc/}"
    done
}

stop()
{
    local i
    trap '' INT TERM HUP
    for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
        kill "${pids[i]}" 2>/dev/null
        timeout 10 tail -s 0.1 --pid "${pids[i]}" -f /dev/null || kill -9 "${pids[i]}"
    done
    wait
    leftovers | xargs -r kill -9
    rm -rf "$work"
}
trap stop EXIT

port=$((21000 + RANDOM % 10000))
mkdir -p "$work"/{munge,state,log} "$work"/spool/127.0.0.{2,3} "$work"/tmp/127.0.0.{2,3}
(umask 077 && head -c 128 /dev/urandom >"$work/key")
cat >"$SLURM_CONF" <<END
ClusterName=t
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
AuthInfo=socket=$work/munge/sock
CredType=cred/munge
StateSaveLocation=$work/state
SlurmctldPidFile=$work/ctld.pid
SlurmctldLogFile=$work/log/ctld
SlurmdSpoolDir=$work/spool/%n
SlurmdPidFile=$work/%n.pid
SlurmdLogFile=$work/log/%n
TmpFS=$work/tmp/%n
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
ReturnToService=2
SlurmdParameters=config_overrides
NodeName=127.0.0.[2-3] NodeAddr=127.0.0.1 NodeHostname=$host Port=[$((port + 1))-$((port + 2))] CPUs=4
PartitionName=all Nodes=ALL Default=YES MaxTime=10 State=UP
END

start()
{
    "$@" >>"$work/log/start" 2>&1 </dev/null &
    pids+=($!)
}

start munged -F -f --key-file="$work/key" --socket="$work/munge/sock" --pid-file="$work/munge/pid" --log-file="$work/log/munged" \
    --seed-file="$work/munge/seed" --num-threads=2
for _ in $(seq 200); do
    [ -S "$work/munge/sock" ] && break
    sleep 0.05
done
start slurmctld -D -c
for node in "${nodes[@]}"; do
    start slurmd -D -N "$node"
done
for _ in $(seq 600); do
    [ "$(timeout 10 sinfo -h -t idle -o %D 2>/dev/null)" = 2 ] && break
    sleep 0.05
done
[ "$(timeout 10 sinfo -h -t idle -o %D 2>"$out")" = 2 ] || {
    echo "FAIL: the two nodes do not come up"
    tail -n 5 "$out" "$work"/log/* | cut -c 1-300
    exit 1
}

export HOOP_ADDRESS=127.0.0.1 # both nodes are here
plugins=$(timeout 10 srun --mpi=list 2>&1)
for mpi in pmix pmi2; do
    if ! grep -q -w "$mpi" <<<"$plugins"; then
        echo "left out: this Slurm has no --mpi=$mpi"
        continue
    fi
    name=$([ $mpi = pmix ] && echo Slurm || echo PMI)
    job "srun --mpi=$mpi" 0 srun -n 4 -N 2 --ntasks-per-node=2 --mpi=$mpi launched
    ranks "srun --mpi=$mpi" 4 "$name"
    job "srun --mpi=$mpi, uneven" 0 srun -n 4 -N 2 -m block --mpi=$mpi launched
    ranks "srun --mpi=$mpi, uneven" 4 "$name"
done
export HOOP_SECRET_FILE=$work/secret
(umask 077 && od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"$HOOP_SECRET_FILE")
job "srun" 0 srun -n 4 -N 2 --mpi=none launched
ranks "srun" 4 Slurm
job "two hosts" 0 srun -n 4 -N 2 --ntasks-per-node=2 --mpi=none bash -c 'HOOP_HOST=$SLURMD_NODENAME hoop-bench all_reduce -b 8 -e 64K -f 64 -n 2'
says "two hosts" '/shm+tcp/links/'
unset HOOP_SECRET_FILE
job "srun without a secret" any srun -n 2 --mpi=none launched
says "srun without a secret" 'started by Slurm as rank [01] of 2: no secret is known'

[ "$failures" = 0 ]
