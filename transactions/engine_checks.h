#pragma once

#include <memory>
#include <vector>

#include "db/db_impl.h"
#include "transactions/bucket_locks.h"
#include "transactions/write_checks.h"

namespace nacre {

/// Those of a database of this process, all of whose writes take the buckets of their keys.
class EngineChecks final : public WriteChecks {
 public:
  /// `engine` is what is below `db`. All outlive it.
  EngineChecks(DB* db, const DBImpl* engine, BucketLocks* buckets)
      : db_(db), engine_(engine), buckets_(buckets) {}

  Status Watch(ColumnFamilyHandle* family, const Slice& key,
               const std::shared_ptr<const Snapshot>& snapshot, SequenceNumber* sequence) override;
  Status Write(const WriteOptions& options, const KeyTracker& tracked,
               WriteBatch* updates) override;
  void Clear() override { snapshots_.clear(); }
  std::unique_ptr<ColumnFamilyHandle> FindHandle(uint32_t family) const override;

 private:
  /// The caller holds the buckets of all keys.
  Status Check(const KeyTracker& tracked) const;

  DB* const db_;
  const DBImpl* const engine_;
  BucketLocks* const buckets_;
  std::vector<std::shared_ptr<const Snapshot>> snapshots_;
};

}  // namespace nacre
