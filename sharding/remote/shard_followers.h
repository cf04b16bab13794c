#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "sharding/shard_map.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

class ShardOpener;

/// A follower of the database of a shard that another member owns.
///
/// Thread safety: as DB.
class ShardFollower {
 public:
  /// `families` are those of `handles`, by their ids in the keyspace.
  ShardFollower(std::unique_ptr<DB> db, const std::vector<uint32_t>& families,
                const std::vector<ColumnFamilyHandle*>& handles);

  /// As DB::Get; `NotSupported` if it was opened without the family.
  Status Get(const ReadOptions& options, uint32_t family, const Slice& key,
             PinnableSlice* value) const;
  void MultiGet(const ReadOptions& options, uint32_t family, size_t num_keys, const Slice* keys,
                PinnableSlice* values, Status* statuses) const;

 private:
  const std::unique_ptr<DB> db_;
  std::map<uint32_t, std::unique_ptr<ColumnFamilyHandle>> handles_;
};

/// The followers that this process has of other members' shards, for reads that go to the memory
/// nodes by themselves (ReadOptions::read_from_follower).
///
/// Thread safety: all methods may be called from many threads at once.
class ShardFollowers {
 public:
  /// Both outlive it.
  ShardFollowers(const ShardOpener* opener, Clock* clock) : opener_(opener), clock_(clock) {}

  /// The shard's. The first call opens it, with the families of the latest map, which takes
  /// milliseconds. Null if it cannot be opened now, or another thread opens it: the owner is there,
  /// too.
  std::shared_ptr<ShardFollower> Find(uint32_t shard) EXCLUDES(mutex_);
  /// Whether followers may answer reads with `options`.
  static bool MayAnswer(const ReadOptions& options) {
    return options.read_from_follower && !options.linearizable && options.snapshot == nullptr;
  }
  /// Takes those away of which `map` has no shard any more, or this process, or which were opened
  /// with other families. They close with their last reference.
  std::vector<std::shared_ptr<ShardFollower>> Follow(const ShardMap& map, int64_t self)
      EXCLUDES(mutex_);

 private:
  using Families = std::vector<ShardMap::Family>;
  struct Entry {
    std::shared_ptr<ShardFollower> follower{};
    std::shared_ptr<const Families> families{};  ///< Those that it is opened with.
    bool opening = false;
    uint64_t not_before_nanos = 0;
  };

  Status Open(uint32_t shard, const Families& families,
              std::shared_ptr<ShardFollower>* follower) const;

  const ShardOpener* const opener_;
  Clock* const clock_;
  Mutex mutex_;
  std::map<uint32_t, Entry> entries_ GUARDED_BY(mutex_);
  /// Those of the latest map, without the default one. Another object if they are others.
  std::shared_ptr<const Families> families_ GUARDED_BY(mutex_) = std::make_shared<Families>();
  ShardMap::FamilySet family_set_ GUARDED_BY(mutex_);
};

}  // namespace nacre
