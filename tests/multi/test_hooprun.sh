#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# hooprun: lines and prefixes, exit codes and causes, signals, deadlines, and that no process is left.
# The ranks' shells expand what is in single quotes; numbers need no quotes; functions are called through others.
# shellcheck disable=SC2016,SC2086,SC2094,SC2317
set -u -m # -m: jobs in the background do not ignore SIGINT

run=$TEST_BUILD/tools/run/hooprun
unset "${!HOOP_@}" # the defaults are tested
[ -x "$run" ] || { echo "$run is missing: make all"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
out=$work/out err=$work/err
mark=4$$ # seconds that only our own processes sleep
failures=0

fail()
{
    echo "FAIL: $1"
    echo "  out: $(head -c 400 "$out")"
    echo "  err: $(head -c 400 "$err")"
    failures=$((failures + 1))
}

# hooprun with its output in $out and $err; the exit code in $code
job()
{
    "$run" "$@" >"$out" 2>"$err" </dev/null
    code=$?
}

# expect WHAT COMMAND...: the command succeeds
expect()
{
    local what=$1
    shift
    "$@" || fail "$what"
}

# await COMMAND...: until it succeeds, 10 s at most
await()
{
    for _ in $(seq 200); do
        "$@" && return 0
        sleep 0.05
    done
    return 1
}

asleep()
{
    local count=0 file line
    for file in /proc/[0-9]*/cmdline; do
        line=$(tr '\0' ' ' 2>/dev/null <"$file") || continue
        [[ $line == "sleep $mark "* ]] && count=$((count + 1))
    done
    [ "$count" -eq "$1" ]
}

last_line_has()
{
    tail -n 1 "$err" | grep -q -e "$1"
}

test_lines()
{
    job -n 3 sh -c 'echo out $HOOP_RANK; echo err $HOOP_RANK >&2; printf end'
    expect "code 0" [ $code -eq 0 ]
    for rank in 0 1 2; do
        expect "rank $rank: whole lines" [ "$(grep -c -x -F -e "[$rank] out $rank" -e "[$rank] end" "$out")" -eq 2 ]
        expect "rank $rank: stderr" grep -q -x -F "[$rank] err $rank" "$err"
    done
    expect "nothing else" [ "$(cat "$out" "$err" | wc -l)" -eq 9 ]

    # ranks that write pieces of lines at once: no line is torn
    job -n 4 sh -c 'for i in $(seq 200); do printf aaaa; printf "bbbb\ncc"; printf "dd\n"; done'
    expect "800 lines of each kind" [ "$(grep -c -x '\[[0-3]\] aaaabbbb' "$out")" -eq 800 ]
    expect "no torn line" [ "$(grep -c -v -x -e '\[[0-3]\] aaaabbbb' -e '\[[0-3]\] ccdd' "$out")" -eq 0 ]

    # to one file, both outputs
    "$run" -n 2 sh -c 'for i in $(seq 300); do printf "out-out\n"; printf "err-err\n" >&2; done' >"$out" 2>&1
    expect "one file" [ "$(grep -c -x '\[[01]\] \(out-out\|err-err\)' "$out")" -eq 1200 ]

    job -n 1 sh -c 'head -c 200000 /dev/zero | tr "\0" x; echo; echo after'
    expect "long line: all bytes" [ "$(tr -dc x <"$out" | wc -c)" -eq 200000 ]
    expect "long line: parts are marked" [ "$(grep -c -e '\.\.\.$' "$out")" -eq 3 ]
    expect "line after the long one" grep -q -x -F "[0] after" "$out"

    job -n 2 --no-prefix echo plain
    expect "no prefix" [ "$(grep -c -x plain "$out")" -eq 2 ]
    job -n 2 --quiet echo plain
    expect "quiet" [ ! -s "$out" ]
}

test_environment()
{
    job -n 2 sh -c 'echo $HOOP_RANK/$HOOP_SIZE $HOOP_LOCAL_RANK/$HOOP_LOCAL_SIZE $OMP_NUM_THREADS ${HOOP_ID:+id}'
    expect "variables of rank 1" grep -q -x -F "[1] 1/2 1/2 1 id" "$out"
    HOOP_RANK=7 OMP_NUM_THREADS=3 job -n 1 sh -c 'echo $HOOP_RANK $OMP_NUM_THREADS'
    expect "ours win, theirs stay" grep -q -x -F "[0] 0 3" "$out"
    job -n 2 sh -c 'echo $HOOP_ID'
    expect "one id for all" [ "$(cut -d ' ' -f 2 "$out" | sort -u | wc -l)" -eq 1 ]
    echo typed | "$run" -n 2 sh -c 'cat; echo over' >"$out" 2>"$err"
    expect "rank 0 reads the input" grep -q -x -F "[0] typed" "$out"
    expect "and only that" [ "$(grep -c typed "$out")" -eq 1 ]
    job -n 2 --bind core sh -c 'grep Cpus_allowed_list /proc/self/status'
    if [ "$(nproc)" -ge 2 ]; then
        expect "cores of their own" [ "$(grep -o '[0-9,-]*$' "$out" | sort -u | wc -l)" -eq 2 ]
    fi
}

test_codes()
{
    job -n 3 sh -c '[ $HOOP_RANK != 1 ] || exit 3; exec sleep '$mark
    expect "the code of the rank that failed" [ $code -eq 3 ]
    expect "which and how" last_line_has "rank 1 .*exited with code 3"
    expect "none left after a failure" asleep 0

    # rank 0's error is seen first, but the death of rank 2 is the cause
    job -n 3 sh -c 'case $HOOP_RANK in 0) exit 5;; 2) sleep 0.3; kill -9 $$;; esac; exec sleep '$mark
    expect "death outranks errors" [ $code -eq 137 ]
    expect "names the dead" last_line_has "rank 2 .*killed by signal 9"

    job -n 2 sh -c 'trap "" TERM; [ $HOOP_RANK != 1 ] || exit 4; sleep '"$mark & wait; wait"
    expect "a rank that ignores TERM is killed and no cause" [ $code -eq 4 ]
    expect "none left after KILL" asleep 0

    job -n 2 sh -c '[ $HOOP_RANK != 0 ] || exit 6; sleep 0.4; echo reported; exit 1'
    expect "the others have time to report" grep -q -x -F "[1] reported" "$out"
    expect "the first code counts" [ $code -eq 6 ]

    job -n 2 no-such-program
    expect "not found: 127" [ $code -eq 127 ]
    expect "not found: message" last_line_has "no-such-program.*not found"
    job -n 2 /
    expect "a folder: 126" [ $code -eq 126 ]
    printf 'no program\n' >"$work/text"
    job -n 2 "$work/text"
    expect "not executable: 126" [ $code -eq 126 ]
    printf '#!/no/such/interpreter\n' >"$work/script" && chmod +x "$work/script"
    job -n 2 "$work/script"
    expect "no interpreter: 127" [ $code -eq 127 ]
    job -n 0 true
    expect "wrong usage: 2" [ $code -eq 2 ]
    job -n 2
    expect "no program: 2" [ $code -eq 2 ]
}

# start ARGS...: a job in the background; $job is the process that a caller would signal
start()
{
    "$run" "$@" >"$out" 2>"$err" </dev/null &
    job=$!
}

test_signals()
{
    local signal number
    for signal in INT TERM HUP QUIT USR1 USR2; do
        number=$(kill -l $signal)
        start -n 2 bash -c "trap 'echo got $signal; kill %1; exit 9' $signal; sleep $mark & echo ready; wait"
        await grep -q '\[1\] ready' "$out" && await grep -q '\[0\] ready' "$out"
        kill -s $signal $job
        wait $job
        code=$?
        expect "SIG$signal ($number) reaches all" [ "$(grep -c "got $signal" "$out")" -eq 2 ]
        expect "SIG$signal: the ranks' code" [ $code -eq 9 ]
    done

    start -n 2 sh -c "trap '' INT; echo ready; while :; do sleep $mark; done"
    await asleep 2
    kill -s INT $job
    sleep 0.2
    expect "first SIGINT: they live on" asleep 2
    kill -s INT $job
    wait $job
    code=$?
    expect "second SIGINT kills" [ $code -eq 130 ]
    expect "none left after SIGINT" asleep 0

    start -n 2 sleep $mark
    await asleep 2
    kill -s TERM $job
    wait $job
    expect "SIGTERM: 143" [ $? -eq 143 ]

    # as nohup does it
    (trap "" HUP; exec "$run" -n 2 sleep $mark) >"$out" 2>"$err" &
    job=$!
    await asleep 2
    kill -s HUP $job
    sleep 0.2
    expect "an ignored signal stays ignored" asleep 2
    kill -s TERM $job
    wait $job
}

test_limits()
{
    job -n 3 --timeout 0.5 sh -c '[ $HOOP_RANK = 1 ] || exec sleep '$mark
    expect "time is over: 124" [ $code -eq 124 ]
    expect "who still ran" last_line_has "still running: ranks 0, 2"
    expect "none left after the time" asleep 0
    job -n 2 --timeout 60 true
    expect "in time" [ $code -eq 0 ]

    "$run" -n 2 yes 2>"$err" | head -n 2 >"$out"
    expect "the reader leaves: SIGPIPE" [ "${PIPESTATUS[0]}" -eq 141 ]

    # a reader that does not read holds up neither the deadline nor the end of the ranks
    "$run" -n 2 --timeout 0.5 sh -c "yes | head -c 1000000; exec sleep $mark" 2>"$err" | {
        await grep -q 'time of 0.5 s is over' "$err"
        await asleep 0
        echo $? >"$work/ended"
        wc -c >"$work/bytes"
    }
    expect "ends though nobody reads" [ "$(cat "$work/ended")" -eq 0 ]
}

test_leftovers()
{
    job -n 2 sh -c "setsid sh -c 'sleep $mark & sleep $mark' & (sleep $mark &) ; exit 0"
    expect "daemons: code" [ $code -eq 0 ]
    expect "daemons are ended" asleep 0

    start -n 2 sh -c "setsid sh -c 'sleep $mark & sleep $mark' & sleep $mark"
    await asleep 6
    kill -9 $job
    wait $job
    expect "kill -9 of hooprun ends all" await asleep 0

    start -n 2 sh -c "setsid sh -c 'sleep $mark & sleep $mark' & sleep $mark"
    await asleep 6
    kill -9 "$(ps -o pid= --ppid $job)"
    wait $job
    expect "kill -9 of the supervisor: code" [ $? -eq 137 ]
    expect "kill -9 of the supervisor ends all" asleep 0
}

test_logs()
{
    job -n 2 --log-dir "$work/logs" sh -c 'echo out $HOOP_RANK; echo err $HOOP_RANK >&2; printf end'
    for rank in 0 1; do
        expect "log of rank $rank" [ "$(sort "$work/logs/rank-$rank.log" | tr '\n' ,)" = "end,err $rank,out $rank," ]
    done
    expect "and on the output" grep -q -x -F "[1] out 1" "$out"
    job -n 1 --log-dir /dev/null/x true
    expect "no such folder: 125" [ $code -eq 125 ]
}

test_restarts()
{
    # a marker for each try; rank 1 fails in the first two, and rank 0 would stay
    job -n 2 --max-restarts 3 --log-dir "$work/tries" sh -c 'echo try $HOOP_RESTART
        [ $HOOP_RESTART -lt 2 ] || exit 0; [ $HOOP_RANK = 0 ] || exit 3; exec sleep '$mark
    expect "the third try succeeds" [ $code -eq 0 ]
    expect "three tries of both" [ "$(grep -c -x '\[[01]\] try [012]' "$out")" -eq 6 ]
    expect "logs go on" [ "$(grep -c try "$work/tries/rank-1.log")" -eq 3 ]
    expect "causes are told" [ "$(grep -c 'rank 1 .*exited with code 3' "$err")" -eq 2 ]
    expect "restarts are told" [ "$(grep -c 'restart [12] of 3: starting all ranks again' "$err")" -eq 2 ]
    expect "none left of the first tries" asleep 0

    job -n 2 --max-restarts 1 sh -c 'echo $HOOP_ID; ulimit -n; [ $HOOP_RESTART = 1 ] && exit 5; kill -9 $$'
    expect "the last try's code" [ $code -eq 5 ]
    expect "a new id, the same limits" [ "$(cut -d ' ' -f 2 "$out" | sort -u | wc -l)" -eq 3 ]
    expect "the cause comes last" last_line_has "rank [01] .*exited with code 5"
    job -n 1 --max-restarts 3 true
    expect "success is not repeated" [ "$code $(wc -c <"$err")" = "0 0" ]
    job -n 1 --max-restarts 3 no-such-program
    expect "what cannot start is not tried again" [ "$code $(wc -l <"$err")" = "127 1" ]
    job -n 1 --max-restarts 3 --timeout 0.3 sleep $mark
    expect "nor what takes too long" [ "$code $(wc -l <"$err")" = "124 1" ]
    job -n 1 --max-restarts x true
    expect "a number: usage" [ $code -eq 2 ]

    start -n 2 --max-restarts 9 sh -c "echo ready; sleep $mark; exit 1"
    await asleep 2
    kill -s TERM $job
    wait $job
    expect "nor what the caller ends" [ "$(grep -c ready "$out")" -eq 2 ]
}

test_survivors()
{
    job -n 3 --survivors sh -c '[ $HOOP_RANK = 1 ] && kill -9 $$; sleep 1.2; exit $((HOOP_RANK * 4))'
    expect "one lives: 0" [ $code -eq 0 ]
    expect "who dies is told at once" sh -c "sed -n 1p '$err' | grep -q 'rank 1 .*killed by signal 9.*; 2 of 3 ranks go on'"
    expect "so is who fails" last_line_has "rank 2 .*exited with code 8.*; [01] of 3 ranks go on"
    job -n 2 --survivors sh -c 'exit $((HOOP_RANK + 4))'
    expect "none lives: the first one's code" [ $code -eq 4 -o $code -eq 5 ]
}

test_lines
test_environment
test_codes
test_signals
test_limits
test_leftovers
test_logs
test_restarts
test_survivors
expect "none left at the end" asleep 0
[ $failures -eq 0 ] && echo "all passed"
exit $((failures > 0))
