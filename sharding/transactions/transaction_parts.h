#pragma once

#include <map>
#include <string>

#include "nacre/options.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"
#include "sharding/batches/batch_part.h"
#include "sharding/sharded_view.h"
#include "util/clock.h"

namespace nacre {

/// What a transaction has in each shard: its updates, and what its commit depends on. Thread
/// safety: none.
class TransactionParts {
 public:
  /// `view` outlives it.
  explicit TransactionParts(const ShardedView* view) : view_(view) {}

  /// Once, before anything else. Fails as DivideBatch does.
  Status AddUpdates(const WriteBatch& updates);
  /// That of the shard; a new one if it has none.
  BatchPart* PartOf(size_t shard);

  /// Commits all of it, as `batch`: if what it depends on holds in all shards at once.
  Status Write(const WriteOptions& options, const std::string& batch, Deadline deadline);

 private:
  const ShardedView* const view_;
  std::map<size_t, BatchPart> parts_;  ///< By index of the shard.
  bool has_updates_ = false;
};

}  // namespace nacre
