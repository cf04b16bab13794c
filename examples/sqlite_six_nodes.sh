#!/usr/bin/env bash
# The SQLite shell over six memory nodes that keep each table as rs(4,2): a node is killed, and the
# same query has the same answer.
# usage: examples/sqlite_six_nodes.sh [FOLDER of the binaries; build/release/bin]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

bin=${1:-build/release/bin}
folder=$(mktemp -d)
nodes=()
clean_up() {
  kill -9 "${nodes[@]}" 2>/dev/null || true
  rm -rf "$folder"
}
trap clean_up EXIT

pool=shm:
for i in 0 1 2 3 4 5; do
  "$bin/nacre-memnode" --listen="shm:$folder/$i.sock" --size=1GiB \
    >"$folder/$i.log" 2>&1 &
  nodes+=($!)
  disown
  if ((i > 0)); then pool+=,; fi
  pool+=$folder/$i.sock
  for _ in $(seq 600); do
    if [[ -S $folder/$i.sock ]]; then break; fi
    sleep 0.1
  done
done

table="CREATE VIRTUAL TABLE orders USING nacre(pool='$pool', redundancy='rs(4,2)',
  id INTEGER PRIMARY KEY, customer INT, at TEXT, total REAL, INDEX(customer, at))"
query="SELECT customer, count(*), sum(total) FROM orders WHERE customer BETWEEN 10 AND 12
  GROUP BY customer ORDER BY customer"

echo "-- 100000 orders over six nodes"
sqlite3 :memory: ".load $bin/nacre_sqlite" "$table" \
  "WITH RECURSIVE i(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM i LIMIT 100000)
   INSERT INTO orders SELECT k, k % 1000, '2026-01-' || (1 + k % 31), k * 0.25 FROM i" \
  "$query" | tee "$folder/before"
kill -9 "${nodes[2]}"
echo "-- the same question to another process, without the third node"
sqlite3 :memory: ".load $bin/nacre_sqlite" "$table" "$query" | tee "$folder/after"
cmp "$folder/before" "$folder/after"
