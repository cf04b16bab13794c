#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/options.h"
#include "nacre/status.h"
#include "sharding/batch_parts.h"
#include "sharding/key_holds.h"
#include "sharding/shard.h"
#include "sharding/snapshot_gate.h"
#include "util/clock.h"

namespace nacre {

/// A batch over several shards: its two-phase commit.
///
/// The first of its shards decides. The others prepare their parts: each has an entry with the part
/// in its prepared family. Then the first one writes its part together with a record of the
/// decision, in one write; from there on the batch takes place. Then the others write their parts,
/// each in one write with the removal of its entry. A process that opens the keyspace ends what was
/// left (SettleBatches): an entry whose batch has a record of its decision is committed, any other
/// one is removed.
///
/// An entry goes with the write that commits it, so nothing is committed twice; the record of a
/// decision is deleted when no entry is left.
///
/// The names of entry and record are "<opening>-<number>:<shard that decides>", with ":decided"
/// for the record. No name is used twice: each opening of a keyspace has its own number.
class SharedBatch {
 public:
  /// All outlive it. `parts` are two or more, and ascend. `id` is this batch's among those of the
  /// opening.
  SharedBatch(const std::vector<std::unique_ptr<Shard>>& shards, SnapshotGate* gate,
              std::vector<BatchPart>* parts, uint64_t opening, KeyHolds::BatchId id);

  /// Fails before anything is prepared if a shard would refuse its part, keys are held for too
  /// long, or operations do not end. Once it may have been decided, a failure leaves its keys held,
  /// and says so.
  Status Commit(const WriteOptions& options, Deadline deadline);

 private:
  Shard& ShardOf(const BatchPart& part) const { return *shards_[part.shard]; }
  Shard& Decider() const { return ShardOf(parts_->front()); }
  bool IsDecider(const BatchPart& part) const { return &part == &parts_->front(); }

  /// Whether all shards would take their parts: once it is decided, none may refuse.
  Status Check(const WriteOptions& options) const;
  Status Hold(Deadline deadline);
  Status Prepare(const WriteOptions& options);
  Status Decide(const WriteOptions& options);
  Status CommitPart(const WriteOptions& options, BatchPart* part);
  /// What is prepared is not needed, as the batch was not decided.
  void RemovePrepared(const WriteOptions& options);
  void Release();
  Status Fail(const Status& why, const char* step);

  const std::vector<std::unique_ptr<Shard>>& shards_;
  SnapshotGate* const gate_;
  std::vector<BatchPart>* const parts_;
  const KeyHolds::BatchId id_;
  const std::string name_;
  size_t held_ = 0;      ///< Parts whose keys are held; they come first.
  size_t prepared_ = 1;  ///< Parts that have, or may have, an entry, and the decider's.
};

/// Ends the batches that an earlier process left. Nothing else uses the shards. What they have for
/// families that were dropped since is left out.
Status SettleBatches(const std::vector<std::unique_ptr<Shard>>& shards);

}  // namespace nacre
