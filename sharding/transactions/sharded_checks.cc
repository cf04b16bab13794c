#include "sharding/transactions/sharded_checks.h"

#include <algorithm>
#include <string>

#include "sharding/sharded_snapshot.h"
#include "transactions/below.h"

namespace nacre {

Status ShardedChecks::Watch(ColumnFamilyHandle* family, const Slice& key,
                            const std::shared_ptr<const Snapshot>& snapshot,
                            SequenceNumber* sequence) {
  ShardState state;
  if (snapshot != nullptr) {
    state = db_->StateIn(snapshot, key);
  } else {
    NACRE_RETURN_IF_ERROR(db_->TakeStateOf(family, key, states_, kSnapshotsMax, &state));
  }
  *sequence = state.snapshot->GetSequenceNumber();
  Add(state);
  return Status::OK();
}

void ShardedChecks::Add(const ShardState& state) {
  const auto same = [&](const ShardState& each) {
    return each.shard == state.shard &&
           each.snapshot->GetSequenceNumber() == state.snapshot->GetSequenceNumber();
  };
  if (std::ranges::none_of(states_, same)) states_.push_back(state);
}

Status ShardedChecks::Write(const WriteOptions& options, const KeyTracker& tracked,
                            WriteBatch* updates) {
  std::vector<ShardedDBImpl::CheckedKey> checks;
  tracked.ForEach([&](uint32_t family, const std::string& key, const TrackedKey& each) {
    checks.push_back({.family = family, .key = key, .sequence = each.sequence});
  });
  return db_->WriteChecked(options, checks, states_, updates);
}

}  // namespace nacre
