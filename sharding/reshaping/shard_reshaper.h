#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/copy/database_copier.h"
#include "nacre/status.h"
#include "nacre/write_batch.h"
#include "sharding/local_shard.h"
#include "sharding/shard_map.h"
#include "sharding/shard_opener.h"

namespace nacre {

/// Makes the shards that take the place of others, by a split or a merge: databases of their own,
/// copied from those of the sources while these serve (DatabaseCopier). So each extent of the pool
/// has one owner at all times, and what a split waits for does not depend on what the shard holds.
///
/// Prepared batches of the sources go to the targets that have their keys. The records of what the
/// sources decided go to one target, which the map calls their heir.
///
/// Invariant: a target is whole only once it has all that the sources ever acknowledged, and a map
/// that names it was saved before. So a process that finds a target that is not whole makes it anew
/// from the sources, which nothing has changed since.
///
/// Thread safety: none; one thread at a time uses it.
class ShardReshaper {
 public:
  /// `map` has the reshaping, begun or committed. `opener` outlives this.
  ShardReshaper(const ShardOpener* opener, const ShardMap& map, ShardMap::Reshaping reshaping,
                std::vector<std::shared_ptr<LocalShard>> sources);
  /// Targets that are not whole stay, to be destroyed or made anew.
  ~ShardReshaper();
  ShardReshaper(const ShardReshaper&) = delete;
  ShardReshaper& operator=(const ShardReshaper&) = delete;

  const ShardMap::Reshaping& reshaping() const { return reshaping_; }
  const std::vector<std::shared_ptr<LocalShard>>& sources() const { return sources_; }
  /// With the targets in their places.
  const ShardMap& map() const { return after_; }

  /// Copies until there is little left, as far as that is faster than writers. After a failure
  /// neither this nor Finish may be called.
  Status Prepare();
  /// Copies the rest, once the sources have left (LocalShard::Leave), and answers the targets, open
  /// and whole. What of batches is to be settled holds its keys.
  Status Finish(std::vector<std::shared_ptr<LocalShard>>* targets);

 private:
  Status OpenTargets();
  /// The families of the sources, with the options that they have now, the default one first.
  std::vector<ColumnFamilyDescriptor> FamiliesNow() const;
  /// Families are compacted as their options say, which a database is not that is being made.
  Status EnableCompactions(LocalShard* target) const;
  Status Round();
  /// What is prepared in the sources, or was decided, by target and name.
  using Entries = std::map<std::pair<uint32_t, std::string>, WriteBatch>;
  Status ReadEntries(Entries* entries) const;
  Status MakeWhole(size_t target, SequenceNumber copied, const Entries& entries,
                   std::shared_ptr<LocalShard>* made);

  const ShardOpener* const opener_;
  const ShardMap::Reshaping reshaping_;
  ShardMap after_;  ///< With the targets in their places.
  const std::vector<std::shared_ptr<LocalShard>> sources_;
  std::vector<ColumnFamilyDescriptor> families_;
  std::vector<std::unique_ptr<DBImpl>> targets_;
  std::vector<std::unique_ptr<DatabaseCopier>> copiers_;  ///< One for each source; they go first.
};

}  // namespace nacre
