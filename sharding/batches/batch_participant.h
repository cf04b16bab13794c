#pragma once

#include <string>

#include "nacre/options.h"
#include "nacre/status.h"
#include "sharding/batches/batch_part.h"
#include "util/clock.h"

namespace nacre {

/// A shard's part in batches over several shards: what SharedBatch asks of it, in this order. Each
/// batch has a name that is never used again.
///
/// Invariant: a batch can be decided only while the deciding shard has it prepared, which it
/// forgets when its process ends, when the shard moves, and by Abort. So once a batch is not
/// prepared there and has no record of its decision, it never takes place.
///
/// Thread safety: all methods may be called from many threads at once; those for one batch one
/// after the other.
class BatchParticipant {
 public:
  virtual ~BatchParticipant() = default;

  /// Holds the keys that `part` changes or checks, waits until operations that may use them have
  /// ended, and looks whether the shard takes the part. If another shard `decides`, the entry of
  /// its updates is durable afterwards, unless `options` say that there is no log. `Busy`: one of
  /// the keys that it checks was written. After a failure nothing of the batch is left here, or
  /// what is left is removed when it is settled.
  virtual Status Prepare(const std::string& batch, const WriteOptions& options,
                         const BatchPart& part, bool decides, Deadline deadline) = 0;

  /// Does all of a batch that has no other part: looks whether the shard takes it, as Prepare does,
  /// and writes it. Fails as Prepare and as writes do.
  virtual Status WriteAlone(const std::string& batch, const WriteOptions& options,
                            const BatchPart& part, Deadline deadline) = 0;

  /// Waits until no snapshot over several shards is being taken; from here on none is, until the
  /// batch has ended in this shard. Looks once more whether the shard takes the part. Batches begin
  /// to be committed at one owner after the other, in the order of the owners' ids.
  virtual Status BeginCommit(const std::string& batch, Deadline deadline) = 0;

  /// Writes the part together with a record of the decision, and ends the batch here. `refused`:
  /// the answer says that nothing was written; else a failure leaves open whether it was.
  virtual Status Decide(const std::string& batch, bool* refused) = 0;

  /// Writes the part of a batch that another shard has decided, and ends the batch here. OK if that
  /// was done before.
  virtual Status Commit(const std::string& batch) = 0;

  /// The batch has been decided, and the caller could not learn whether it was committed here. The
  /// shard's owner finds that out.
  virtual void LeaveToOwner(const std::string& batch) = 0;

  /// Ends a batch that was not decided.
  virtual void Abort(const std::string& batch) = 0;

  /// To the deciding shard: whether it has decided the batch. If it has not, it never will.
  /// `Busy`: it is about to, or a part of it is being written. `TryAgain`: only the shard's next
  /// opening tells.
  virtual Status Settle(const std::string& batch, bool* decided) = 0;

  /// To the deciding shard: all parts are committed, so the record is not needed any more.
  virtual void Forget(const std::string& batch) = 0;

  /// It is unknown whether the batch was decided, or it cannot be committed now. Until it is
  /// settled its keys stay held. Operations that use them are answered `why`, unless the shard may
  /// move: then they wait, as it is settled soon.
  virtual void Fail(const std::string& batch, const Status& why) = 0;
};

}  // namespace nacre
