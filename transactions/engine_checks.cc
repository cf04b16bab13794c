#include "transactions/engine_checks.h"

#include <string>
#include <utility>

#include "db/read/key_sequences.h"

namespace nacre {

Status EngineChecks::Watch(ColumnFamilyHandle* /*family*/, const Slice& /*key*/,
                           const std::shared_ptr<const Snapshot>& snapshot,
                           SequenceNumber* sequence) {
  if (snapshot != nullptr) {
    if (snapshots_.empty() || snapshots_.back() != snapshot) snapshots_.push_back(snapshot);
    *sequence = snapshot->GetSequenceNumber();
    return Status::OK();
  }
  const bool fresh = !snapshots_.empty() &&
                     (snapshots_.size() >= kSnapshotsMax ||
                      snapshots_.back()->GetSequenceNumber() == db_->GetLatestSequenceNumber());
  if (!fresh) {
    snapshots_.emplace_back(db_->GetSnapshot(),
                            [db = db_](const Snapshot* held) { db->ReleaseSnapshot(held); });
  }
  *sequence = snapshots_.back()->GetSequenceNumber();
  return Status::OK();
}

Status EngineChecks::Check(const KeyTracker& tracked) const {
  Status status;
  tracked.ForEach([&](uint32_t family, const std::string& key, const TrackedKey& each) {
    if (!status.ok()) return;
    SequenceNumber latest = 0;
    status = engine_->key_sequences().Latest(family, key, each.sequence, &latest);
    if (status.ok() && latest > each.sequence) status = Conflict();
  });
  return status;
}

Status EngineChecks::Write(const WriteOptions& options, const KeyTracker& tracked,
                           WriteBatch* updates) {
  std::vector<uint32_t> buckets;
  NACRE_RETURN_IF_ERROR(buckets_->AddBuckets(*updates, &buckets));
  tracked.ForEach([&](uint32_t family, const std::string& key, const TrackedKey&) {
    buckets.push_back(buckets_->BucketOf(family, key));
  });
  const BucketLocks::Holder holder(buckets_, std::move(buckets));
  NACRE_RETURN_IF_ERROR(Check(tracked));
  return updates->Count() == 0 ? Status::OK() : db_->Write(options, updates);
}

std::unique_ptr<ColumnFamilyHandle> EngineChecks::FindHandle(uint32_t family) const {
  return engine_->key_sequences().FindHandle(family);
}

}  // namespace nacre
