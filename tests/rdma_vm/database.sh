#!/usr/bin/env bash
# In the guest: db_bench over verbs with four nacre-memnode processes; everything written is found.
#
#   database.sh BIN
set -euo pipefail
readonly BIN=$1 HOST=10.77.0.1 KEYS=20000

cd /tmp
pool=verbs:
for port in 7001 7002 7003 7004; do
  "$BIN/nacre-memnode" --listen="verbs:$HOST:$port" --size=192MiB >"node-$port.log" 2>&1 &
  pool+="$HOST:$port,"
done
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
for port in 7001 7002 7003 7004; do
  for _ in $(seq 100); do
    grep -q "$port" "node-$port.log" && break
    sleep 0.2
  done
done

status=0
timeout 150 "$BIN/db_bench" --engine=nacre --pool="${pool%,}" --num=$KEYS --reads=5000 \
  --key_size=20 --value_size=400 --write_buffer_size=2097152 --json=result.json \
  --benchmarks=fillrandom,waitforcompaction,fillseq,readrandom,readseq,multireadrandom ||
  status=$?
if ((status != 0)); then
  tail -n 20 node-*.log
  exit "$status"
fi
python3 - <<'PYTHON'
import json
import sys

# After fillseq each key is there.
found = {b["name"]: b.get("found") for b in json.load(open("result.json"))["benchmarks"]}
expected = {"readrandom": 5000, "readseq": 5000, "multireadrandom": 5000}
wrong = {name: found.get(name) for name in expected if found.get(name) != expected[name]}
if wrong:
    sys.exit(f"found {wrong}, expected {expected}")
print("found", found)
PYTHON
