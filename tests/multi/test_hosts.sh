#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Ranks on several hosts: by TCP on this one, through a shell as ssh would, and in network namespaces joined by a bridge, where a rank is
# killed and a link is cut, and where whole hosts die and the others go on. Without the right to make namespaces that part is left out, and said so.
# shellcheck disable=SC2016,SC2317 # functions are called through others, and expand in shells of their own
set -u

export PATH=$TEST_BUILD/tools/run:$TEST_BUILD/tools/bench:$TEST_BUILD/tests/multi:$PATH
unset "${!HOOP_@}"
work=$(mktemp -d)
net=hoop$$
made=()
failures=0

clean()
{
    local name
    for name in "${made[@]}"; do
        ip netns pids "$name" 2>/dev/null | xargs -r kill -9 2>/dev/null
        ip netns del "$name"
    done
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 1' INT TERM HUP

fail()
{
    echo "FAIL: $1"
    tail -n 12 "$work/out" | cut -c 1-400
    failures=$((failures + 1))
}

# job WHAT CODE COMMAND...: it ends with that code, its output in $work/out
job()
{
    local what=$1 expected=$2 code
    shift 2
    timeout -k 5 $((${TEST_LIMIT:-240} / 4)) "$@" >"$work/out" 2>&1 </dev/null
    code=$?
    [ "$code" = "$expected" ] || fail "$what: exit code $code, not $expected"
}

says()
{
    grep -q -e "$2" "$work/out" || fail "$1: no '$2'"
}

colls="all_reduce reduce broadcast all_gather reduce_scatter all_to_all all_gatherv all_to_allv gather scatter barrier"
bench="-b 24 -e 300000 -f 110 -n 2 -w 1"

# ---- by TCP on this host

for coll in $colls; do
    # shellcheck disable=SC2086 # words
    HOOP_TRANSPORTS=tcp job "$coll by tcp" 0 hooprun -n 3 hoop-bench $coll $bench
    says "$coll by tcp" '/tcp/links/'
done
HOOP_TRANSPORTS=tcp job "calls that differ" 0 "$TEST_BUILD/tests/multi/mismatch"
HOOP_TRANSPORTS=tcp job "split" 0 "$TEST_BUILD/tests/multi/split"
HOOP_TRANSPORTS=pigeon job "unknown transport" 3 hooprun -n 2 hoop-bench barrier -n 1
says "unknown transport" 'HOOP_TRANSPORTS=pigeon: give auto, shm or tcp'
HOOP_TRANSPORTS=tcp HOOP_IFACE=nothere0 job "unknown interface" 3 hooprun -n 2 hoop-bench barrier -n 1
says "unknown interface" "HOOP_IFACE=nothere0: no interface that is up fits 'nothere0'; there are: "
HOOP_TRANSPORTS=tcp HOOP_PORTS=9-8 job "ports" 3 hooprun -n 2 hoop-bench barrier -n 1
says "ports" 'HOOP_PORTS=9-8: give a port'
HOOP_TRANSPORTS=tcp HOOP_PORTS=41300-41399 HOOP_IFACE=lo job "ports" 0 hooprun -n 2 hoop-bench barrier -n 1
job "too few ranks" 2 hooprun -n 2 --hosts a,b,c hoop-bench barrier
says "too few ranks" 'has room for 3'
job "bad list" 2 hooprun --hosts a:,b true
says "bad list" 'give names with commas'

# ---- through a shell, which gets one line, and the id as its input

cat >"$work/ssh" <<'END'
#!/bin/bash
[[ "$*" == *HOOP_ID=* ]] && { echo "the secret is an argument"; exit 1; }
shift
exec env -i PATH="$PATH" sh -c "$*"
END
chmod +x "$work/ssh"
HOOP_ADDRESS=127.0.0.1 job "by a shell" 0 hooprun --hosts a:2,b --rsh "$work/ssh" hoop-bench all_reduce -b 8 -e 8 -n 1
says "by a shell" '/shm+tcp/links/'
HOOP_ADDRESS=127.0.0.1 HOOP_TRANSPORTS=shm job "refused" 3 hooprun --hosts a,b --rsh "$work/ssh" hoop-bench barrier
says "refused" 'the ranks are on 2 hosts, and HOOP_TRANSPORTS=shm joins those of one only'
job "a restart on all hosts" 0 hooprun --max-restarts 1 --hosts a,b --rsh "$work/ssh" sh -c 'echo "try $HOOP_RESTART"; exit $((3 - 3 * HOOP_RESTART))'
says "a restart on all hosts" '^\[1\] try 1$'
job "words" 0 hooprun --hosts "a" --rsh "$work/ssh" sh -c 'test "$1" = "it'\''s \"so\"" && echo well' - "it's \"so\""
says "words" well

# ---- in namespaces

space()
{
    ip netns add "$1" || return 1
    made+=("$1")
    ip -n "$1" link set lo up
}

# A bridge in a namespace of its own, and as many hosts on it.
build()
{
    local i
    space "$net-hub" && ip -n "$net-hub" link add name hub type bridge && ip -n "$net-hub" link set hub up || return 1
    for i in $(seq "$1"); do
        space "$net-$i" && ip -n "$net-hub" link add "to$i" type veth peer name eth0 netns "$net-$i" &&
            ip -n "$net-hub" link set "to$i" master hub up && ip -n "$net-$i" addr add "10.77.0.$i/24" dev eth0 &&
            ip -n "$net-$i" link set eth0 up || return 1
    done
}

if ! command -v ip >/dev/null || ! build 4 2>"$work/why"; then
    echo "left out: namespaces cannot be made here: $(tail -n 1 "$work/why" 2>/dev/null)"
    [ "$failures" = 0 ] && exit 0
    exit 1
fi

over() { ip netns exec "$net-1" hooprun --hosts "$1" --rsh "ip netns exec" "${@:2}"; }
export -f over
export net

for coll in $colls; do
    # shellcheck disable=SC2086 # words
    job "$coll over 2 x 2" 0 bash -c 'over "$net-1:2,$net-2:2" "$@"' - hoop-bench $coll $bench
    says "$coll over 2 x 2" '/shm+tcp/links/'
done
job "all_reduce over 4" 0 bash -c 'over "$net-1,$net-2,$net-3,$net-4" "$@"' - hoop-bench all_reduce -b 8 -e 1M -f 512 -n 2
says "all_reduce over 4" '/tcp/links/'
job "hier" 0 bash -c 'over "$net-1:2,$net-2:2" "$@"' - hoop-bench all_reduce -b 4M -e 4M -n 2
says "hier" 'hier('

# The curve of a training over four hosts is that of one rank. TEST_TRAIN: options of a longer one, by hand, such as "--epochs 5".
train="$TEST_BUILD/trainer/hoop-train --log-every 0 --global-batch 64 ${TEST_TRAIN:---data synthetic --hidden 64,32 --steps 60}"
losses() { sed -n 's/^{"event":"step".*"loss":\([^,]*\),.*/\1/p' "$work/$1/log.jsonl"; }
same_curve()
{
    # shellcheck disable=SC2086 # words
    {
        job "training" 0 $train --out "$work/one"
        job "training over 4 hosts" 0 bash -c 'over "$net-1,$net-2,$net-3,$net-4" "$@"' - $train --out "$work/four"
    }
    says "training over 4 hosts" 'on 4 ranks'
    says "training over 4 hosts" '/tcp/links/'
    paste <(losses one) <(losses four) | awk '
        NF != 2 { lost = 1 }
        { apart = ($1 - $2) / $1; if (apart < 0) apart = -apart; if (apart > worst) worst = apart }
        END { printf "training over 4 hosts: %d steps, the loss differs from 1 rank by %.1e at most\n", NR, worst
              exit NR < 60 || lost || worst >= 1e-5 }' || fail "training over 4 hosts: another curve than that of one rank"
}
if [ -x "$TEST_BUILD/trainer/hoop-train" ]; then
    same_curve
else
    echo "training over 4 hosts left out: hoop-train is not built"
fi

# break_off WHAT WORDS COMMAND...: while a job runs; all survivors say the words.
break_off()
{
    local what=$1 words=$2 job
    shift 2
    : >"$work/out" # the job before had its first line, too
    HOOP_SILENT=3 bash -c 'over "$net-1:2,$net-2:2" hoop-bench all_reduce -b 64K -e 64K -n 10000000' >"$work/out" 2>&1 </dev/null &
    job=$!
    for _ in $(seq 300); do
        grep -q '(us)' "$work/out" && break
        sleep 0.1
    done
    sleep 0.3
    "$@"
    for _ in $(seq 300); do
        kill -0 $job 2>/dev/null || break
        sleep 0.1
    done
    kill -0 $job 2>/dev/null && fail "$what: the job goes on"
    kill $job 2>/dev/null
    wait $job
    [ "$(grep -c "$words" "$work/out")" -ge 3 ] || fail "$what: fewer than 3 ranks say '$words'"
}
kill_last()
{
    local pid
    for pid in $(ip netns pids "$net-2"); do
        tr '\0' '\n' <"/proc/$pid/environ" | grep -q '^HOOP_RANK=3$' && kill -9 "$pid"
    done
}
cut_link() { ip -n "$net-hub" link set to2 down; }
break_off "a rank is killed" 'rank 3 (process [0-9]*) died' kill_last
break_off "a link is cut" 'the host of rank [02] (process [0-9]*) shows no sign of life: .*a partition' cut_link

# survive WHAT RANKS...: of six ranks on three hosts these die at once; the others go on.
survive()
{
    local what=$1 job rank pid words left=$((7 - $#))
    shift
    : >"$work/out"
    LEFT=$left HOOP_SILENT=60 bash -c 'over "$net-1:2,$net-3:2,$net-4:2" --survivors --timeout 60 survivor "$LEFT"' >"$work/out" 2>&1 </dev/null &
    job=$!
    for _ in $(seq 300); do
        [ "$(grep -c 'is one of 6' "$work/out")" = 6 ] && break
        sleep 0.1
    done
    for pid in $(ip netns pids "$net-1") $(ip netns pids "$net-3") $(ip netns pids "$net-4"); do
        for rank in "$@"; do
            # shellcheck disable=SC2009 # a variable of the process, not its name
            tr '\0' '\n' <"/proc/$pid/environ" 2>/dev/null | grep -q -x "HOOP_RANK=$rank" && echo "$pid"
        done
    done | xargs kill -9
    wait $job || fail "$what: exit code $?"
    for words in "is one of $left\$" 'is done'; do
        [ "$(grep -c "$words" "$work/out")" = "$left" ] || fail "$what: not $left ranks say '$words'"
    done
}
survive "a host's first rank dies" 2
survive "a whole host dies" 4 5
survive "the host of rank 0 dies" 0 1
[ -z "$(ip netns pids "$net-1")$(ip netns pids "$net-3")$(ip netns pids "$net-4")" ] || fail "processes are left"

[ "$failures" = 0 ]
