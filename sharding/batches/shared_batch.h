#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/options.h"
#include "nacre/status.h"
#include "sharding/batches/batch_parts.h"
#include "sharding/sharded_view.h"
#include "util/clock.h"

namespace nacre {

/// A batch over several shards: its two-phase commit.
///
/// The first shard that it changes decides. All prepare their parts, in their order: they hold
/// their keys, and all but the one that decides make an entry with their updates in their prepared
/// family. Then that one writes its part together with a record of the decision, in one write; from
/// there on the batch takes place. Then the others write their parts, each in one write with the
/// removal of its entry.
///
/// What a process leaves that dies is settled: an entry whose batch has a record of its decision is
/// committed, any other one is removed (SettleBatches). An entry goes with the write that commits
/// it, so nothing is committed twice; the record of a decision is deleted when no entry is left.
///
/// The name of a batch is "<opening>-<number>:<shard that decides>", and is not used twice: each
/// opening of a keyspace has its own number, and each member its own id.
class SharedBatch {
 public:
  /// `view` outlives it. `parts` are two or more, and ascend. The first one with updates decides,
  /// if there is one.
  SharedBatch(const ShardedView& view, std::vector<BatchPart>* parts, const std::string& number);

  /// Fails before anything is decided if a shard refuses its part, keys are held for too long, or
  /// operations do not end. Once it may have been decided, a failure leaves its keys held, and says
  /// so. `Fenced`: a shard has moved, and nothing was written.
  Status Commit(const WriteOptions& options, Deadline deadline);
  /// Looks whether all of its checks hold at once, of one that has no updates. Fails likewise.
  Status Check(Deadline deadline);

  /// The shard that decides the batch of this name. False if it is not the name of one.
  static bool DeciderOf(const std::string& name, uint32_t* shard);

 private:
  BatchParticipant* ShardOf(const BatchPart& part) const {
    return view_.shards[part.shard]->participant();
  }
  BatchParticipant* Decider() const { return ShardOf((*parts_)[decider_]); }
  bool IsDecider(const BatchPart& part) const { return &part == &(*parts_)[decider_]; }

  Status Prepare(const WriteOptions& options, Deadline deadline);
  Status BeginCommit(Deadline deadline);
  void Abort();
  Status Fail(const Status& why, const char* step);

  const ShardedView& view_;
  std::vector<BatchPart>* const parts_;
  const size_t decider_;
  const std::string name_;
  size_t prepared_ = 0;  ///< Parts that may be prepared; they come first.
};

/// Ends the batches that an earlier process left in the shards of `view`, which are all of this
/// process and which nothing else uses. What they have for families that were dropped since is left
/// out.
Status SettleBatches(const ShardedView& view);
/// The same of one shard, which leaves the records of decisions. `Busy` if a batch may be being
/// decided.
Status SettleBatchesOf(const ShardedView& view, Shard* shard);

}  // namespace nacre
