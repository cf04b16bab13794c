#include "server/session/sweeper.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nacre/task.h"
#include "server/session/key_events.h"
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

enum class Swept : uint8_t { kMore, kAll, kFailed };

/// Removes the first keys whose time has come.
Task<Swept> SweepExpired(ServerState* server, LoopState* loop, int database) {
  UnitOfWork unit(&loop->access, /*changes=*/true);
  const std::string from(1, kExpiryRow);
  const std::string behind(1, kExpiryRow + 1);
  const std::vector<Row> rows = co_await unit.Scan(database, RowRange(from, behind, kKeysAtOnce));
  std::vector<std::string> keys;
  std::vector<SlotLock> locks;
  for (const Row& row : rows) {
    uint64_t expires_at_ms = 0;
    Slice key;
    if (DecodeExpiryRow(row.key, &expires_at_ms, &key)) {
      if (expires_at_ms > unit.now_ms()) {
        loop->access.store->Find(database)->SweepBy(expires_at_ms);
        break;
      }
      keys.push_back(key.ToString());
      locks.push_back({LockTable::SlotOf(database, key.ToStringView()), LockMode::kChange});
    }
    unit.Delete(database, row.key);
  }
  if (!unit.status().ok()) co_return Swept::kFailed;
  if (!unit.changed()) co_return Swept::kAll;
  co_await unit.Lock(std::move(locks));
  for (const std::string& key : keys) {
    // This deletes keys that have expired. Others were given another time, or were made anew.
    const std::optional<Meta> meta = co_await unit.Find(database, key);
    if (!unit.status().ok()) co_return Swept::kFailed;
  }
  const std::vector<ExpiredKey> expired = unit.TakeExpired();
  const Status written = co_await unit.Submit();
  unit.Written(written);
  if (written.ok()) PublishEvents(server, {}, expired);
  server->expired_keys.fetch_add(expired.size(), std::memory_order_relaxed);
  co_return unit.status().ok() ? Swept::kMore : Swept::kFailed;
}

/// Removes the elements of a collection that is gone.
Task<Swept> SweepGarbage(LoopState* loop, int database) {
  UnitOfWork unit(&loop->access, /*changes=*/false);
  const std::string from(1, kGarbageRow);
  const std::vector<Row> garbage =
      co_await unit.Scan(database, RowRange(from, std::string(1, kGarbageRow + 1), kKeysAtOnce));
  if (!unit.status().ok()) co_return Swept::kFailed;
  if (garbage.empty()) co_return Swept::kAll;
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
  if (!status.ok() || !unit.status().ok()) co_return Swept::kFailed;
  const Status written = co_await loop->async->WriteAsync({}, &batch);
  co_return written.ok() ? Swept::kMore : Swept::kFailed;
}

/// Sweeps the database if its time has come.
Task<void> SweepDatabase(ServerState* server, LoopState* loop, int number) {
  Store::Database* const database = server->store->Find(number);
  if (database == nullptr) co_return;
  // What becomes visible from here on says so again.
  const uint64_t at_ms = database->sweep_at_ms.exchange(UINT64_MAX, std::memory_order_acquire);
  if (at_ms > UnixMillis()) {
    database->SweepBy(at_ms);
    co_return;
  }
  Swept expired = Swept::kMore;
  while (expired == Swept::kMore && !loop->loop.stopping()) {
    expired = co_await SweepExpired(server, loop, number);
  }
  Swept garbage = Swept::kMore;
  while (garbage == Swept::kMore && !loop->loop.stopping()) {
    garbage = co_await SweepGarbage(loop, number);
  }
  // The next sweep tries again.
  if (expired != Swept::kAll || garbage != Swept::kAll) database->SweepBy(0);
}

Task<void> Sweep(ServerState* server, LoopState* loop, std::chrono::milliseconds rest) {
  for (int i = 0; i < server->store->databases(); ++i) co_await SweepDatabase(server, loop, i);
  loop->loop.After(rest, [=] { SweepRepeatedly(server, loop, rest); });
}

}  // namespace

void SweepRepeatedly(ServerState* server, LoopState* loop, std::chrono::milliseconds rest) {
  loop->loop.Spawn(Sweep(server, loop, rest));
}

}  // namespace nacre::server
