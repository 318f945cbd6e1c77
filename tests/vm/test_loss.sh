#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Hosts joined by a bad network, which takes a kernel with sch_netem: run it by tests/vm/guest (make check-vm). 50 ms delay and 1 % loss; then
# more loss, packets out of order and twice; then a rank dies. Results are right, nobody is taken for dead who is not, and who dies is named.
# shellcheck disable=SC2016 # expands in a shell of its own
set -u

export PATH=$TEST_BUILD/tools/run:$TEST_BUILD/tools/bench:$TEST_BUILD/tests/multi:$PATH:/usr/sbin:/sbin
unset "${!HOOP_@}"
work=$(mktemp -d)
failures=0
spaces=()

clean()
{
    local name
    for name in "${spaces[@]}"; do
        ip netns pids "$name" 2>/dev/null | xargs -r kill -9 2>/dev/null
        ip netns del "$name"
    done
    rm -rf "$work"
}
trap clean EXIT

fail()
{
    echo "FAIL: $1"
    tail -n 12 "$work/out" | cut -c 1-400
    failures=$((failures + 1))
}

# Two hosts at the ends of one cable.
build()
{
    local i
    for i in 1 2; do
        ip netns add "bad-$i" || return 1
        spaces+=("bad-$i")
        ip -n "bad-$i" link set lo up
    done
    ip link add eth0 netns bad-1 type veth peer name eth0 netns bad-2 || return 1
    for i in 1 2; do
        ip -n "bad-$i" addr add "10.78.0.$i/24" dev eth0 && ip -n "bad-$i" link set eth0 up || return 1
    done
}

# spoil NETEM...: what befalls packets, in both directions
spoil()
{
    local i
    for i in 1 2; do
        tc -n "bad-$i" qdisc replace dev eth0 root netem "$@" || return 1
    done
}

over() { timeout -k 5 150 ip netns exec bad-1 hooprun --hosts bad-1:2,bad-2:2 --rsh "ip netns exec" "$@" >"$work/out" 2>&1 </dev/null; }

# right WHAT COMMAND...: it ends well, and nobody speaks of deaths
right()
{
    local what=$1
    shift
    SECONDS=0
    over "$@" || fail "$what: exit code $?"
    grep -q -e 'died' -e 'no sign of life' "$work/out" && fail "$what: somebody is taken for dead"
    echo "$what: $SECONDS s"
}

build 2>"$work/out" || { echo "skipped: no namespaces here: $(tail -n 1 "$work/out")"; exit 77; }
spoil delay 50ms loss 1% 2>"$work/out" || { echo "skipped: no netem here: $(tail -n 1 "$work/out")"; exit 77; }
export HOOP_SILENT=3 # seconds; the runs take longer
right "50 ms and 1 % loss: collectives" hoop-bench all_reduce -b 8 -e 256K -f 32 -n 4 -w 1
right "50 ms and 1 % loss: many small calls" survivor 4
spoil delay 5ms 2ms loss 5% reorder 10% duplicate 2%
right "5 % loss, out of order, twice" hoop-bench all_to_all -b 64 -e 64K -f 32 -n 4 -w 1

spoil delay 50ms loss 1%
over --survivors survivor 3 &
job=$!
for _ in $(seq 400); do
    [ "$(grep -c 'is one of 4' "$work/out")" = 4 ] && break
    sleep 0.2
done
for pid in $(ip netns pids bad-2); do
    tr '\0' '\n' <"/proc/$pid/environ" | grep -q -x HOOP_RANK=3 && kill -9 "$pid"
done
wait $job || fail "a rank is killed: exit code $?"
[ "$(grep -c 'saw: .*rank 3 (process [0-9]*) died' "$work/out")" = 3 ] || fail "a rank is killed: not 3 ranks name it"
[ "$(grep -c 'is done' "$work/out")" = 3 ] || fail "a rank is killed: not 3 ranks go on to the end"
[ "$failures" = 0 ] && echo "a rank is killed: named by all, who go on"
[ "$failures" = 0 ]
