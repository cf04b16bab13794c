#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "sharding/members/coordinator.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre {

/// A process that has a keyspace open, as the others see it.
struct MemberInfo {
  Coordinator::Lease id = 0;  ///< Its lease; never used twice.
  std::string address;        ///< Empty: it only uses the keyspace.
  std::string client_address{};

  bool serves() const { return !address.empty(); }
};

/// What the coordinator had of a keyspace at one of its revisions. A value.
struct KeyspaceState {
  int64_t revision = 0;
  std::vector<MemberInfo> members;  ///< In the order of their ids.
  Coordinator::Lease leader = 0;    ///< 0: none.
  std::string map;
  int64_t map_changed = 0;  ///< Coordinator::Entry::changed of the map; 0: there is none.

  const MemberInfo* Find(Coordinator::Lease id) const;
  /// The addresses of those that serve shards.
  std::map<Coordinator::Lease, std::string> Servers() const;
};

/// What the keys of a keyspace begin with in the coordinator (docs/formats.md).
std::string KeyspacePrefix(const std::string& pool, const std::string& keyspace);

/// What the coordinator has under such a prefix, without becoming a member. `*leader_changed` is
/// Coordinator::Entry::changed of the leader's entry; 0: there is none. Fails as the coordinator
/// does, and by `Corruption` if an entry makes no sense.
Status ReadKeyspace(Coordinator* coordinator, const std::string& prefix, Deadline deadline,
                    KeyspaceState* state, int64_t* leader_changed);

struct MembershipOptions {
  std::string keyspace;
  std::string pool = "default";  ///< Tells keyspaces of one name apart in one coordinator.
  /// Where the other members reach this process. Empty: it owns no shards, and never leads.
  std::string address;
  std::string client_address{};
  /// A member that does not answer the coordinator for so long is none any more.
  std::chrono::milliseconds lease{2000};
  std::shared_ptr<Logger> log{};  ///< May be null.
};

/// This process's place among the members of a keyspace: an entry of the coordinator under a lease,
/// which a thread keeps, and what that says of the others, which another thread follows. One member
/// leads: it alone changes the map.
///
/// A member whose lease has ended, as it was frozen or cut off, is none any more. It becomes one
/// anew, under another id, as soon as it reaches the coordinator. Its id says so to the others:
/// what was meant for the earlier one is not meant for it.
///
/// Without the coordinator the last state stands, and nothing changes.
///
/// Invariant: a map is changed only by a commit that finds the leader's entry as the leader made
/// it. So what a member does that no longer leads changes nothing, whatever it believes.
///
/// Thread safety: all methods may be called from many threads at once, but Leave from one.
class Membership {
 public:
  /// How long what a member does waits for the coordinator.
  static constexpr std::chrono::milliseconds kPatience{1000};

  /// Called with each new state, one call at a time, by the thread that follows.
  using Changed = std::function<void(const std::shared_ptr<const KeyspaceState>& state)>;

  /// Becomes a member. Fails as the coordinator does. `clock` outlives it.
  static Status Join(std::shared_ptr<Coordinator> coordinator, Clock* clock,
                     MembershipOptions options, Changed changed, Deadline deadline,
                     std::unique_ptr<Membership>* membership);
  /// As Leave.
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  /// Ends the membership, which the others learn of at once if the coordinator is there, and else
  /// when the lease has ended.
  void Leave() EXCLUDES(mutex_);

  /// From here on, or no more, it is no member, though it follows: it cannot do what a member has
  /// to do. Fails as the coordinator does; then its lease ends by itself.
  Status Suspend(bool suspended) EXCLUDES(mutex_);
  bool suspended() const { return suspended_.load(); }

  std::shared_ptr<const KeyspaceState> state() const EXCLUDES(mutex_);
  /// 0 while it is none, since its lease has ended.
  Coordinator::Lease id() const { return id_.load(std::memory_order_acquire); }
  /// It led when the lease was kept last, and the lease has not run out since. Another one may lead
  /// a moment later; and already, if another member has ended the lease (EndMember).
  bool leads() const EXCLUDES(mutex_);
  /// Why the coordinator could not be reached last; OK if it could.
  Status coordinator_status() const EXCLUDES(mutex_);

  /// The map as the coordinator has it now, and KeyspaceState::map_changed of it.
  Status ReadMap(Deadline deadline, std::string* map, int64_t* changed);
  /// Makes `map` the map, if this member leads and the map is still that of `expected`
  /// (KeyspaceState::map_changed); else `*done` is false. Fails as Coordinator::Commit.
  Status ChangeMap(int64_t expected, const std::string& map, Deadline deadline, bool* done)
      EXCLUDES(mutex_);
  /// The process of another member has certainly ended: its lease is not waited for. One that lives
  /// nevertheless is no member until it comes back under another id.
  Status EndMember(Coordinator::Lease id, Deadline deadline);

 private:
  Membership(std::shared_ptr<Coordinator> coordinator, Clock* clock, MembershipOptions options,
             Changed changed);

  /// How long this member counts on its lease since it began to keep it.
  uint64_t Lasts() const;
  Deadline AttemptDeadline() const;
  /// Gets a lease, and makes the entry.
  Status Enter(Deadline deadline) EXCLUDES(mutex_);
  Status Read(Deadline deadline) EXCLUDES(mutex_);
  /// Has this member lead if none does. `*tried`: it was so.
  Status Stand(Deadline deadline, bool* tried) EXCLUDES(mutex_);
  /// One round of following; returns when something has changed, or a while has passed.
  Status FollowOnce() EXCLUDES(mutex_);
  void Follow() EXCLUDES(mutex_);
  void Keep() EXCLUDES(mutex_);
  void SetStatus(const Status& status) EXCLUDES(mutex_);
  bool leaving() const { return leaving_.load(std::memory_order_acquire); }

  const std::shared_ptr<Coordinator> coordinator_;
  Clock* const clock_;
  const MembershipOptions options_;
  const Changed changed_;
  const std::string prefix_;
  std::atomic<Coordinator::Lease> id_{0};  ///< Release by the thread that follows.
  std::atomic<bool> leaving_{false};       ///< Release by Leave.
  std::atomic<bool> suspended_{false};

  mutable Mutex mutex_;
  CondVar wake_{&mutex_};
  std::shared_ptr<const KeyspaceState> state_ GUARDED_BY(mutex_);
  int64_t leader_changed_ GUARDED_BY(mutex_) = 0;  ///< When the leader's entry in state_ did.
  uint64_t kept_until_nanos_ GUARDED_BY(mutex_) = 0;
  Status status_ GUARDED_BY(mutex_);
  Thread keeper_;
  Thread follower_;
};

}  // namespace nacre
