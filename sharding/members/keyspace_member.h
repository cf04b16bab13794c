#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "nacre/utilities/sharded_db.h"
#include "sharding/local_owner.h"
#include "sharding/members/membership.h"
#include "sharding/remote/member_links.h"
#include "sharding/remote/member_messages.h"
#include "sharding/remote/remote_owner.h"
#include "sharding/remote/served_shards.h"
#include "sharding/remote/shard_followers.h"
#include "sharding/shard_opener.h"
#include "sharding/sharded_view.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/executor.h"
#include "util/threads/task_threads.h"
#include "util/threads/thread.h"

namespace nacre {

class BatchSettler;
class KeyspaceLeader;
class OwnedShards;
class ShardServer;

/// This process as a member of a keyspace that several processes own: it follows what the
/// coordinator says, has the shards that are its own open, serves them to the others, and publishes
/// views of all of them.
///
/// One thread follows. Whatever may wait is done by others, so that it is not held up.
///
/// Thread safety: Close from one thread; all else from many.
class KeyspaceMember final : private ServedShards {
 public:
  struct Context {
    const ShardOpener* opener;
    std::shared_ptr<LocalOwner> owner;
    std::shared_ptr<ShardedViews> views;
    TaskThreads* threads;
    Clock* clock;
    pool::PeerSecurity security;
    /// Makes the keyspace in the pool, or reads what is there.
    std::function<Status(ShardMap* map)> make;
  };

  /// Returns once the map is known, and the shards that are this member's are open. All in
  /// `context` outlives it.
  static Status Open(Context context, std::unique_ptr<KeyspaceMember>* member);
  /// As Close.
  ~KeyspaceMember() override;

  /// Closes the shards, and leaves, once. Operations on views find no shards here any more.
  Status Close() EXCLUDES(mutex_);

  Status GetMembers(std::vector<ShardMember>* members) const;
  /// Has the leader do it. Fails as that does; `TimedOut` if none can be reached for as long as an
  /// operation may take.
  Status AskLeader(const sharding::ControlRequest& request);
  /// As ShardedDB::AskMember.
  Status Ask(int64_t member, const Slice& request, std::chrono::milliseconds timeout,
             std::string* answer);

 private:
  /// How long the nodes have not answered. Rounds, too: this process may have been frozen itself.
  struct NodesAsked {
    uint64_t since_nanos = 0;  ///< 0: they have.
    int rounds = 0;
  };

  /// How shards are reached that other members own.
  struct Others {
    std::map<int64_t, std::shared_ptr<RemoteOwner>> owners{};  ///< The thread's.
    ShardFollowers followers;
  };

  explicit KeyspaceMember(Context context);

  Status Start();
  Status AwaitOpen() EXCLUDES(mutex_);
  Status Lead(const sharding::ControlRequest& request);

  // ---- The thread that follows ----
  void Follow() EXCLUDES(mutex_);
  void Round() EXCLUDES(mutex_);
  void TakeState(const KeyspaceState& state);
  void Publish();
  std::shared_ptr<Shard> ShardOf(size_t index);
  /// Leaves for as long as the memory nodes cannot be reached from here: others may reach them.
  void LookAtNodes() EXCLUDES(mutex_);
  void LookAfterMembers(const KeyspaceState& state) EXCLUDES(mutex_);
  void LookAfter(int64_t member) EXCLUDES(mutex_);
  /// Has `work` done by another thread, unless that is being done.
  void Once(int64_t what, std::function<void()> work) EXCLUDES(mutex_);
  void Wake() EXCLUDES(mutex_);

  const ShardedOptions& options() const { return context_.opener->options(); }

  // ServedShards.
  int64_t member() const override { return context_.owner->id(); }
  std::shared_ptr<LocalShard> Find(uint32_t shard) const override;
  const std::shared_ptr<LocalOwner>& owner() const override { return context_.owner; }
  Status Control(const sharding::ControlRequest& request, sharding::ControlReply* reply) override;
  Status Answer(const std::string& request, std::string* answer) override;
  void Orphaned(uint32_t shard, const std::string& batch) override;

  const Context context_;
  const std::shared_ptr<MemberLinks> links_;
  std::unique_ptr<ShardServer> server_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<OwnedShards> owned_;
  std::unique_ptr<KeyspaceLeader> leader_;
  std::unique_ptr<BatchSettler> settler_;
  Others others_;

  // The thread's.
  std::optional<ShardMap> map_;
  int64_t map_changed_ = 0;
  int64_t revision_ = 0;

  mutable Mutex mutex_;
  CondVar wake_{&mutex_};
  CondVar progress_{&mutex_};
  bool leaving_ GUARDED_BY(mutex_) = false;
  bool woken_ GUARDED_BY(mutex_) = false;
  bool served_changed_ GUARDED_BY(mutex_) = false;
  std::set<int64_t> busy_ GUARDED_BY(mutex_);  ///< What other threads do: see Once.
  std::set<int64_t> ended_members_ GUARDED_BY(mutex_);
  NodesAsked nodes_asked_ GUARDED_BY(mutex_);
  Status leader_status_ GUARDED_BY(mutex_);
  Status map_status_ GUARDED_BY(mutex_);
  std::unique_ptr<Executor> executor_;
  Thread thread_;
  bool closed_ = false;
};

}  // namespace nacre
