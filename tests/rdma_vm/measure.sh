#!/usr/bin/env bash
# In the guest: the verbs transport beside perftest's programs in the same boot, in turns; then the
# database over four nacre-memnode processes. The processor is emulated: only ratios mean anything.
# `./run vm tests/rdma_vm/measure.sh build/release/bin [KEYS]`
set -euo pipefail
readonly BIN=$(realpath "$1") KEYS=${2:-100000} HOST=10.77.0.1 ROUNDS=3

cd /tmp
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT

# perftest PROGRAM ARGUMENT...: one of its programs against itself; the line of its results.
perftest() {
  local port=$((20000 + RANDOM % 10000))
  "$@" -p $port >/dev/null 2>&1 &
  sleep 1
  timeout 60 "$@" -p $port $HOST 2>/dev/null | grep -E '^ *[0-9]+ +[0-9]+ ' | tail -n 1
  wait $!
}

"$BIN/nacre-perf" serve verbs:$HOST:7900 --region=16MiB >/dev/null &
sleep 1
for round in $(seq $ROUNDS); do
  echo "== round $round"
  echo "ib_read_lat 512    $(perftest ib_read_lat -d rxe0 -s 512 -n 2000)"
  echo "nacre read 512     $("$BIN/nacre-perf" read verbs:$HOST:7900 --size=512 --json)"
  echo "ib_write_lat 64    $(perftest ib_write_lat -d rxe0 -s 64 -n 2000)"
  "$BIN/micro_rdma" --benchmark_filter='Verbs.*Write' --benchmark_min_time=1 2>/dev/null |
    grep -E '^BM_' || true
  echo "ib_write_bw 65536  $(perftest ib_write_bw -d rxe0 -s 65536 -n 500)"
  echo "nacre write 65536  $("$BIN/nacre-perf" write verbs:$HOST:7900 --size=65536 --depth=128 \
    --json)"
done
kill %1

pool=verbs:
for port in 7001 7002 7003 7004; do
  "$BIN/nacre-memnode" --listen="verbs:$HOST:$port" --size=256MiB >"node-$port.log" 2>&1 &
  pool+="$HOST:$port,"
done
sleep 5
"$BIN/db_bench" --engine=nacre --pool="${pool%,}" --num="$KEYS" --reads=$((KEYS / 5)) \
  --readwrites=$((KEYS / 2)) --key_size=20 --value_size=400 --multiread_batch=32 \
  --benchmarks=fillrandom,waitforcompaction,readrandom,multireadrandom,readseq,readrandomwriterandom
