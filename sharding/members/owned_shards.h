#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "sharding/local_shard.h"
#include "sharding/members/membership.h"
#include "sharding/remote/member_links.h"
#include "sharding/remote/member_messages.h"
#include "sharding/shard_map.h"
#include "sharding/shard_opener.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/executor.h"
#include "util/threads/task_threads.h"

namespace nacre {

class ShardReshaper;

/// The shards that a member has open: those which the map gives to it.
///
/// A shard is opened only if the coordinator says at that moment that it is this member's, and
/// after the member that had it before has closed it, or does not answer. It is closed once the map
/// gives it to another one, or once another process has taken its database over. A member that is
/// cut off from the coordinator keeps what it has: only the pool says that it has lost it.
///
/// Thread safety: all methods may be called from many threads at once, but Follow and CloseAll by
/// one.
class OwnedShards {
 public:
  /// How long the member that had a shard before may take to close it.
  static constexpr std::chrono::milliseconds kReleasePatience{2000};

  struct Context {
    const ShardOpener* opener;
    Membership* membership;
    MemberLinks* links;
    TaskThreads* threads;
    Clock* clock;
    std::shared_ptr<Logger> log;
    /// What is served has changed. It must not wait.
    std::function<void()> changed;
    /// A shard is about to be closed.
    std::function<void(uint32_t shard)> leaving;
  };

  explicit OwnedShards(Context context);
  /// After CloseAll.
  ~OwnedShards() = default;
  OwnedShards(const OwnedShards&) = delete;
  OwnedShards& operator=(const OwnedShards&) = delete;

  /// Has shards opened and closed as `map` says, of which `self` is this member. Called again and
  /// again: what failed is tried again after a while.
  void Follow(const ShardMap& map, int64_t self) EXCLUDES(mutex_);
  /// Null if it is not served here.
  std::shared_ptr<LocalShard> Find(uint32_t shard) const EXCLUDES(mutex_);
  std::vector<std::shared_ptr<LocalShard>> All() const EXCLUDES(mutex_);
  /// Returns once the shard is not open here, if the map gives it to another member by now, or will
  /// in a moment.
  Status Release(uint32_t shard, Deadline deadline) EXCLUDES(mutex_);
  /// Closes the shard, and has it opened again: a write to it ended in a way that only the next
  /// owner can tell.
  void Reopen(uint32_t shard) EXCLUDES(mutex_);
  /// Flushes the shard, so that its next owner has little to read of its log.
  Status PrepareToMove(uint32_t shard) const;
  /// Copies the databases of shards for a split or a merge that `map` has begun, as far as that can
  /// be done while they serve. It takes as long as reading and writing what they hold. Once a map
  /// has committed it, the rest is copied, and the new shards are served. `Fenced`: a shard is not
  /// served here.
  Status PrepareReshaping(const ShardMap& map, const ShardMap::Reshaping& reshaping)
      EXCLUDES(mutex_);
  /// A key in the middle of what the shard holds. `NotFound` if there is none between two keys.
  Status FindSplitKey(uint32_t shard, std::string* key) const;
  /// Asks each shard's database whether it is this process's still, as far as the nodes say. Takes
  /// as long as an operation may take while they cannot be reached.
  void LookAtNodes() const;
  /// What each shard holds, and does.
  void AddLoads(sharding::ControlReply* reply) const;
  /// Closes all, and opens none any more.
  Status CloseAll() EXCLUDES(mutex_);

  /// Why a shard could not be opened last; OK if all are open that should be.
  Status OpenStatus() const EXCLUDES(mutex_);

 private:
  struct Entry {
    std::shared_ptr<LocalShard> shard{};  ///< Null unless it is served.
    uint64_t epoch = 0;                   ///< ShardMap::Shard::epoch by which it was opened.
    bool busy = false;                    ///< A task opens or closes it.
    bool wanted = false;                  ///< The map gives it to this member.
    bool reopen = false;
    uint64_t not_before_nanos = 0;
    Status status{};
  };

  /// One that is prepared.
  struct Prepared {
    std::shared_ptr<ShardReshaper> reshaper;
    uint64_t map_version = 0;  ///< That of the map that had begun it.
    uint64_t since_nanos = 0;
  };
  void FollowReshapings(const ShardMap& map, int64_t self) REQUIRES(mutex_);
  void BeginFinish(const Prepared& prepared) REQUIRES(mutex_);
  void Finish(const std::shared_ptr<ShardReshaper>& reshaper) EXCLUDES(mutex_);
  /// Null: there is none.
  ShardObserver* Observer() const;
  void LeaveNow(LocalShard* shard) const;
  void BeginOpen(uint32_t shard, Entry* entry) REQUIRES(mutex_);
  void BeginClose(uint32_t shard, Entry* entry) REQUIRES(mutex_);
  void Open(uint32_t shard) EXCLUDES(mutex_);
  Status OpenNow(uint32_t shard, std::shared_ptr<LocalShard>* opened, uint64_t* epoch);
  void AskToRelease(uint32_t shard, int64_t previous);
  Status Close(const std::shared_ptr<LocalShard>& shard);

  const Context context_;
  const std::unique_ptr<Executor> executor_;
  mutable Mutex mutex_;
  CondVar changed_{&mutex_};
  bool closing_ GUARDED_BY(mutex_) = false;
  std::map<uint32_t, Entry> entries_ GUARDED_BY(mutex_);
  std::vector<Prepared> prepared_ GUARDED_BY(mutex_);
};

}  // namespace nacre
