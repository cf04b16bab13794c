#include "server/session/sweeper.h"

#include <atomic>
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

/// What is swept: a section of one of a store's databases.
struct Place {
  const StoreAccess* access = nullptr;
  int database = 0;
  uint32_t section = 0;

  RowRange Rows(char kind) const {
    const RowNames& names = access->store->names();
    return {names.Kind(section, kind), names.Kind(section, static_cast<char>(kind + 1)),
            kKeysAtOnce};
  }
  void SweepBy(uint64_t unix_ms) const { access->store->SweepBy(database, section, unix_ms); }
};

/// Removes the first keys whose time has come.
Task<Swept> SweepExpired(ServerState* server, const Place& place) {
  UnitOfWork unit(place.access, /*changes=*/true);
  const int database = place.database;
  const std::vector<Row> rows = co_await unit.Scan(database, place.Rows(kExpiryRow));
  std::vector<std::string> keys;
  std::vector<SlotLock> locks;
  for (const Row& row : rows) {
    uint64_t expires_at_ms = 0;
    Slice key;
    if (unit.names().DecodeExpiry(row.key, &expires_at_ms, &key)) {
      if (expires_at_ms > unit.now_ms()) {
        place.SweepBy(expires_at_ms);
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
Task<Swept> SweepGarbage(const Place& place) {
  UnitOfWork unit(place.access, /*changes=*/false);
  const int database = place.database;
  const std::vector<Row> garbage = co_await unit.Scan(database, place.Rows(kGarbageRow));
  if (!unit.status().ok()) co_return Swept::kFailed;
  if (garbage.empty()) co_return Swept::kAll;
  ColumnFamilyHandle* const family = place.access->store->Find(database)->family;
  WriteBatch batch;
  Status status;
  const auto note = [&](Status added) {
    if (status.ok()) status = std::move(added);
  };
  for (const Row& row : garbage) {
    Slice key;
    uint64_t incarnation = 0;
    note(batch.Delete(family, row.key));
    if (!unit.names().DecodeGarbage(row.key, &key, &incarnation)) continue;
    const std::string prefix = unit.names().ElementPrefix(key.ToStringView(), incarnation);
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
  const Status written = co_await place.access->async->WriteAsync({}, &batch);
  co_return written.ok() ? Swept::kMore : Swept::kFailed;
}

/// Sweeps a section if its time has come.
Task<void> SweepSection(ServerState* server, LoopState* loop, const Place& place) {
  Store* const store = place.access->store;
  std::atomic<uint64_t>& next =
      store->Find(place.database)->sweep_at_ms[place.section - store->sections().first];
  if (next.load(std::memory_order_relaxed) > UnixMillis()) co_return;
  // What becomes visible from here on says so again.
  next.exchange(UINT64_MAX, std::memory_order_acquire);
  const auto goes_on = [&] { return !loop->loop.stopping() && !place.access->leaving; };
  Swept expired = Swept::kMore;
  while (expired == Swept::kMore && goes_on()) {
    expired = co_await SweepExpired(server, place);
  }
  Swept garbage = Swept::kMore;
  while (garbage == Swept::kMore && goes_on()) {
    garbage = co_await SweepGarbage(place);
  }
  // The next sweep tries again.
  if (expired != Swept::kAll || garbage != Swept::kAll) place.SweepBy(0);
}

Task<void> SweepStore(ServerState* server, LoopState* loop, const StoreAccess* access) {
  const Store& store = *access->store;
  for (int number = 0; number < store.databases(); ++number) {
    if (store.Find(number) == nullptr) continue;
    if (store.names().by_slot() && !store.Find(number)->surveyed) {
      Offload offload(access->loop, access->workers, [&] { access->store->Survey(number); });
      co_await offload;
    }
    const SlotRange& sections = store.sections();
    for (uint32_t section = sections.first; section < sections.behind; ++section) {
      if (access->leaving) co_return;
      if ((section + 1) % Yield::kTasksMax == 0) co_await Yield(&loop->loop);
      const Place place = {.access = access, .database = number, .section = section};
      co_await SweepSection(server, loop, place);
    }
  }
}

Task<void> Sweep(ServerState* server, LoopState* loop, std::chrono::milliseconds rest) {
  if (loop->access.store != nullptr) co_await SweepStore(server, loop, &loop->access);
  std::vector<uint32_t> first_slots;
  for (const LoopShards::Shard* const shard : loop->shards.All()) {
    first_slots.push_back(shard->slots.first);
  }
  for (const uint32_t slot : first_slots) {
    LoopShards::Shard* const shard = loop->shards.Find(slot);
    if (shard == nullptr) continue;
    const LoopShards::Use use(shard);
    co_await SweepStore(server, loop, &shard->access);
  }
  loop->loop.After(rest, [=] { SweepRepeatedly(server, loop, rest); });
}

}  // namespace

void SweepRepeatedly(ServerState* server, LoopState* loop, std::chrono::milliseconds rest) {
  loop->loop.Spawn(Sweep(server, loop, rest));
}

}  // namespace nacre::server
