#include "sharding/transactions/sharded_checks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sharding/remote/remote_db.h"
#include "sharding/snapshots/sharded_snapshot.h"

namespace nacre {
namespace {

/// The state of the key's shard in a snapshot of the keyspace.
ShardState StateIn(const std::shared_ptr<const Snapshot>& snapshot, const Slice& key) {
  const auto* const all = static_cast<const ShardedSnapshot*>(snapshot.get());
  const size_t index = all->view().map.Find(key);
  return {.shard = all->view().shards[index], .snapshot = {snapshot, all->of_shard(index)}};
}

Status HasMoved(uint32_t shard) {
  return Status::Busy("commit: shard " + std::to_string(shard) +
                      " has moved since this transaction tracked its keys");
}

}  // namespace

// ---- Tracking keys ------------------------------------------------------------------------------

Status ShardedChecks::Watch(ColumnFamilyHandle* family, const Slice& key,
                            const std::shared_ptr<const Snapshot>& snapshot,
                            SequenceNumber* sequence) {
  ShardState state;
  if (snapshot != nullptr) {
    state = StateIn(snapshot, key);
  } else {
    NACRE_RETURN_IF_ERROR(TakeState(family, key, &state));
  }
  *sequence = state.snapshot->GetSequenceNumber();
  const bool known = std::ranges::any_of(states_, [&](const ShardState& each) {
    return each.shard == state.shard && each.snapshot->GetSequenceNumber() == *sequence;
  });
  if (!known) states_.push_back(std::move(state));
  return Status::OK();
}

Status ShardedChecks::TakeState(ColumnFamilyHandle* handle, const Slice& key,
                                ShardState* state) const {
  const ShardedFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(db_->families_.Find(handle, &family));
  return db_->WithView([&](const ShardedView& view) -> Status {
    const std::shared_ptr<Shard>& shard = view.shards[view.map.Find(key)];
    const ShardState* last = nullptr;
    size_t count = 0;
    for (const ShardState& each : states_) {
      if (!each.IsOf(*shard)) continue;
      last = &each;
      ++count;
    }
    const bool is_current =
        last != nullptr && shard->local() != nullptr &&
        last->snapshot->GetSequenceNumber() == shard->db()->GetLatestSequenceNumber();
    if (!is_current && count < kSnapshotsMax) return TakeStateOf(shard, family->id(), key, state);
    *state = *last;
    return Status::OK();
  });
}

Status ShardedChecks::TakeStateOf(const std::shared_ptr<Shard>& shard, uint32_t family,
                                  const Slice& key, ShardState* state) const {
  const Snapshot* taken = nullptr;
  if (shard->local() == nullptr) {
    std::unique_ptr<RemoteSnapshot> remote;
    NACRE_RETURN_IF_ERROR(static_cast<RemoteDB*>(shard->db())->TakeSnapshot(&remote));
    taken = remote.release();
  } else {
    const auto keys = [&] { return KeySets{{.family = family, .begin = key.ToString()}}; };
    NACRE_RETURN_IF_ERROR(shard->local()->Read(keys, [&] {
      taken = shard->db()->GetSnapshot();
      return taken == nullptr ? Status::Unavailable("no snapshot can be taken") : Status::OK();
    }));
  }
  const auto release = [shard](const Snapshot* held) { shard->db()->ReleaseSnapshot(held); };
  *state = {.shard = shard, .snapshot = {taken, release}};
  return Status::OK();
}

// ---- Commit -------------------------------------------------------------------------------------

Status ShardedChecks::Write(const WriteOptions& options, const KeyTracker& tracked,
                            WriteBatch* updates) {
  db_->recent_.Drop();
  const Status status = db_->WithView(
      [&](const ShardedView& view) { return WriteIn(view, options, tracked, *updates); });
  // The owner has a snapshot no more that a key is compared with.
  return status.IsAborted() ? Status::Busy(status.message()) : status;
}

Status ShardedChecks::WriteIn(const ShardedView& view, const WriteOptions& options,
                              const KeyTracker& tracked, const WriteBatch& updates) const {
  TransactionParts parts(&view);
  NACRE_RETURN_IF_ERROR(parts.AddUpdates(updates));
  NACRE_RETURN_IF_ERROR(AddChecks(view, tracked, &parts));
  return parts.Write(options, db_->NextBatch(), db_->OperationDeadline());
}

Status ShardedChecks::AddChecks(const ShardedView& view, const KeyTracker& tracked,
                                TransactionParts* parts) const {
  Status status;
  tracked.ForEach([&](uint32_t family, const std::string& key, const TrackedKey& each) {
    const size_t index = view.map.Find(key);
    const Shard& shard = *view.shards[index];
    const auto state = std::ranges::find_if(states_, [&](const ShardState& known) {
      return known.IsOf(shard) && known.snapshot->GetSequenceNumber() == each.sequence;
    });
    if (state == states_.end()) {
      status = HasMoved(shard.id());
      return;
    }
    parts->PartOf(index)->checks.push_back(
        {.family = family, .key = key, .since = state->snapshot.get()});
  });
  return status;
}

}  // namespace nacre
