#include "server/session/sweeper.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nacre/task.h"
#include "server/store/encoding.h"
#include "server/store/unit_of_work.h"
#include "server/store/unix_time.h"

namespace nacre::server {
namespace {

/// Keys that are looked at with one write.
constexpr size_t kKeysAtOnce = 64;
/// Elements that are removed one by one. More are removed as a range, by a tombstone that reads
/// around it have to look at until a compaction drops it.
constexpr size_t kElementsOneByOne = 256;

/// Looks at keys whose time has come. False if there were none, or the database failed: the next
/// sweep tries again.
Task<bool> SweepExpired(ServerState* server, LoopState* loop, int database) {
  std::vector<Row> rows;
  {
    UnitOfWork scan(&loop->access, /*changes=*/false);
    const std::string from(1, kExpiryRow);
    rows =
        co_await scan.Scan(database, RowRange(from, ExpiryRow(scan.now_ms() + 1, ""), kKeysAtOnce));
  }
  if (rows.empty()) co_return false;
  UnitOfWork unit(&loop->access, /*changes=*/true);
  std::vector<std::pair<const Row*, std::string>> keys;
  std::vector<SlotLock> locks;
  for (const Row& row : rows) {
    uint64_t expires_at_ms = 0;
    Slice key;
    if (DecodeExpiryRow(row.key, &expires_at_ms, &key)) {
      keys.emplace_back(&row, key.ToString());
      locks.push_back({LockTable::SlotOf(database, key.ToStringView()), LockMode::kChange});
    }
    unit.Delete(database, row.key);
  }
  co_await unit.Lock(std::move(locks));
  for (const auto& [row, key] : keys) {
    // This deletes keys that have expired. Others were given another time, or were made anew.
    const std::optional<Meta> meta = co_await unit.Find(database, key);
    if (!unit.status().ok()) co_return false;
  }
  const uint64_t expired = unit.TakeExpired();
  const Status written = co_await unit.Submit();
  server->expired_keys.fetch_add(expired, std::memory_order_relaxed);
  co_return written.ok();
}

/// Removes the elements of a collection that is gone.
Task<bool> SweepGarbage(LoopState* loop, int database) {
  UnitOfWork unit(&loop->access, /*changes=*/false);
  const std::string from(1, kGarbageRow);
  const std::vector<Row> garbage =
      co_await unit.Scan(database, RowRange(from, std::string(1, kGarbageRow + 1), kKeysAtOnce));
  if (garbage.empty()) co_return false;
  ColumnFamilyHandle* const family = loop->access.store->Find(database)->family;
  WriteBatch batch;
  Status status;
  const auto note = [&](Status added) {
    if (status.ok()) status = std::move(added);
  };
  for (const Row& row : garbage) {
    Slice key;
    uint64_t incarnation = 0;
    note(batch.Delete(family, row.key));
    if (!DecodeGarbageRow(row.key, &key, &incarnation)) continue;
    const std::string prefix = ElementPrefix(key.ToStringView(), incarnation);
    const std::string behind = BehindPrefix(prefix);
    const std::vector<Row> elements =
        co_await unit.Scan(database, RowRange(prefix, behind, kElementsOneByOne + 1));
    if (elements.size() > kElementsOneByOne) {
      note(batch.DeleteRange(family, prefix, behind));
    } else {
      for (const Row& element : elements) note(batch.Delete(family, element.key));
    }
  }
  if (!status.ok() || !unit.status().ok()) co_return false;
  const Status written = co_await loop->async->WriteAsync({}, &batch);
  co_return written.ok();
}

Task<void> Sweep(ServerState* server, LoopState* loop, std::chrono::milliseconds rest) {
  for (int i = 0; i < server->store->databases(); ++i) {
    if (server->store->Find(i) == nullptr) continue;
    while (!loop->loop.stopping()) {
      const bool expired = co_await SweepExpired(server, loop, i);
      if (!expired) break;
    }
    while (!loop->loop.stopping()) {
      const bool garbage = co_await SweepGarbage(loop, i);
      if (!garbage) break;
    }
  }
  loop->loop.After(rest, [=] { SweepRepeatedly(server, loop, rest); });
}

}  // namespace

void SweepRepeatedly(ServerState* server, LoopState* loop, std::chrono::milliseconds rest) {
  loop->loop.Spawn(Sweep(server, loop, rest));
}

}  // namespace nacre::server
