#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# hoop-train as a user runs it: the same curve on 1, 2, 3 and 4 ranks, results that a program can read, every exit code.
set -u
train=$TEST_BUILD/trainer/hoop-train run=$TEST_BUILD/tools/run/hooprun
[ -x "$train" ] || { echo "skipped: hoop-train is not built"; exit 77; }
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
failed=0
export LC_ALL=C
small=(--data synthetic --hidden "64,32" --first-bucket 0.005 --bucket 0.1 --log-every 0)

broken() {
    echo "failed: $*"
    failed=1
}

# want CODE PATTERN COMMAND: the exit code, and a line of output or message that matches.
want() {
    local code=$1 pattern=$2 got
    shift 2
    timeout 100 "$@" >out 2>&1
    got=$?
    if [ "$got" -ne "$code" ] || ! grep -q -- "$pattern" out; then
        broken "$* ended with $got, not $code, or tells nothing of \"$pattern\":"
        cat out
    fi
}

# losses DIR: the loss of every step.
losses() {
    sed -n 's/^{"event":"step".*"loss":\([^,]*\),.*/\1/p' "$1/log.jsonl"
}

for n in 1 2 3 4; do
    want 0 'test accuracy  0\.[0-9]* ([0-9]* of 2000)' \
        "$run" -n $n "$train" "${small[@]}" --steps 300 --verify-every 50 --out ranks$n
    [ "$(losses ranks$n | wc -l)" -eq 300 ] || broken "$n ranks: not 300 steps in log.jsonl"
    [ "$(grep -c '"event":"verify"' ranks$n/log.jsonl)" -eq 7 ] || broken "$n ranks: not 7 checks of the parameters"
    head -c 4 ranks$n/curves.svg | grep -q '<svg' || broken "$n ranks: no picture"
done
for n in 2 3 4; do
    paste <(losses ranks1) <(losses ranks$n) | awk -v n=$n '
        { apart = ($1 - $2) / $1; if (apart < 0) apart = -apart; if (apart > worst) { worst = apart; at = NR } }
        END { printf "%d ranks: the loss differs from 1 rank by %.1e at most\n", n, worst; exit worst >= 1e-5 }' ||
        broken "$n ranks do not follow the curve of 1 rank"
done
awk -F'"test_accuracy":' '/"summary"/ { split($2, part, ","); if (part[1] < 0.8) exit 1 }' ranks2/log.jsonl ||
    broken "nothing was learnt"

# An odd batch that the ranks do not divide, and more ranks than samples in a step.
want 0 'all steps done' "$run" -n 3 "$train" "${small[@]}" --steps 20 --global-batch 100
want 0 'all steps done' "$run" -n 3 "$train" "${small[@]}" --steps 20 --global-batch 2
want 0 'global batch 15, 4 steps' "$run" -n 3 "$train" "${small[@]}" --steps 4 --batch 5
want 0 '^{"event":"summary".*"step":20,' "$train" "${small[@]}" --steps 20 --json
want 0 'all steps done' "$run" -n 2 "$train" "${small[@]}" --steps 20 --overlap off
want 0 'target accuracy reached' "$train" "${small[@]}" --target-accuracy 0.3

want 1 'must be between' "$train" --lr -1
want 1 'not both' "$train" --batch 3 --global-batch 4
want 1 'widths from 1 to 65536' "$train" --hidden 10,,4
want 1 'cannot make the folder' "$train" "${small[@]}" --out /proc/here
want 2 "$scratch/none" "$train" --data "idx:$scratch/none"
want 3 'Try a smaller --lr' "$run" -n 2 "$train" "${small[@]}" --lr 1e6 --steps 200
want 3 'not 0.9999 as --target-accuracy asks' "$run" -n 2 "$train" "${small[@]}" --steps 20 --target-accuracy 0.9999

# Ranks that were started differently, by a script that gives rank 1 another option.
# shellcheck disable=SC2016 # expanded by the inner shell
as_rank_1='more=(); [ "$HOOP_RANK" = 1 ] && more=("$1"); shift; exec "$@" "${more[@]}"'
want 4 'rank 0 has "seed=1", rank 1 has "seed=2"' "$run" -n 2 bash -c "$as_rank_1" - --seed=2 "$train" "${small[@]}"
want 4 'rank 0 has "batch=128", rank 1 has "batch=64"' \
    "$run" -n 3 bash -c "$as_rank_1" - --global-batch=64 "$train" "${small[@]}"
want 2 'rank 1 could not begin' \
    "$run" -n 2 bash -c "$as_rank_1" - "--data=idx:$scratch/none" "$train" "${small[@]}"

# begun: wait until the job that writes `out` has done five steps.
begun() {
    for ((i = 0; i < 1200; i++)); do
        grep -qs 'step 5/' out && return
        sleep 0.05
    done
    broken "no step within a minute"
}

# A rank that is killed while it trains: the others name it.
rm -f out
"$run" -n 3 "$train" "${small[@]}" --epochs 100000 --log-every 1 --out "$scratch/victim" >out 2>&1 &
launcher=$!
begun
victim=$(pgrep -f "^[^ ]*hoop-train .*$scratch/victim" | tail -n 1)
kill -9 "$victim"
wait $launcher
code=$?
[ $code -eq 137 ] || broken "a rank killed by SIGKILL: exit $code, not 137"
[ "$(grep -c 'hoop-train: rank [0-9].*rank [0-9]' out)" -ge 2 ] ||
    { broken "the survivors do not name the dead rank:"; grep -v ' step ' out; }

# SIGTERM to the launcher stops all ranks after a step, with a summary.
rm -f out
"$run" -n 2 "$train" "${small[@]}" --epochs 100000 --log-every 1 >out 2>&1 &
launcher=$!
begun
kill -TERM $launcher
wait $launcher
code=$?
[ $code -eq 143 ] || broken "SIGTERM: exit $code, not 143"
grep -q 'stopped by SIGTERM' out || { broken "no summary after SIGTERM:"; tail -n 20 out; }
exit $failed
