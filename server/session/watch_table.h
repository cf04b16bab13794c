#pragma once

#include <atomic>
#include <coroutine>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/loop/event_loop.h"
#include "server/session/client.h"
#include "server/store/unit_of_work.h"
#include "util/mutex.h"

namespace nacre::server {

/// A command that waits for one of its keys, such as BLPOP: it is resumed once, whatever happens
/// first. It is on its coroutine's frame.
struct BlockedClient {
  enum class End : uint8_t { kNone, kKey, kTimeout, kUnblocked, kClosed, kMoved };

  EventLoop* loop = nullptr;
  std::vector<std::pair<int, std::string>> keys;
  std::coroutine_handle<> waiter{};
  End end = End::kNone;
  uint64_t place = 0;  ///< In the order of those that wait; it is kept when it waits on.
  std::pair<int, std::string> turn;  ///< The key that it was resumed for.
};

/// Knows what waits for which key to change: clients that WATCH it, and commands that wait for it.
///
/// Thread safety: all methods may be called from many threads at once.
class WatchTable {
 public:
  using Key = std::pair<int, std::string>;

  /// These keys were changed, or all that there were of a database. The caller holds their locks.
  /// Of the commands that wait for a key that is there, the first one is resumed.
  void Touch(const std::vector<TouchedKey>& keys) EXCLUDES(mutex_);
  void TouchAll(int database) EXCLUDES(mutex_);

  /// The caller holds the key's lock, so that no change is missed.
  void Watch(const std::shared_ptr<WatchState>& state, const Key& key, bool there) EXCLUDES(mutex_);
  void Unwatch(const std::shared_ptr<WatchState>& state) EXCLUDES(mutex_);

  /// From here on it ends when a key of its is touched and those that wait for longer have had
  /// their turn. The caller holds the keys' locks.
  void Block(BlockedClient* blocked) EXCLUDES(mutex_);
  /// What was resumed for a key, and has that place, has taken what it could; the caller holds the
  /// key's lock. If the key is still there, it is the turn of the next.
  void EndTurn(const Key& key, uint64_t place, bool there) EXCLUDES(mutex_);
  /// Whether something was resumed for the key, and has yet to look at it, that waits for longer
  /// than what has that place.
  bool ComesFirst(const Key& key, uint64_t place) const EXCLUDES(mutex_);
  /// Ends it, unless it has ended already; on its loop.
  void End(BlockedClient* blocked, BlockedClient::End end) EXCLUDES(mutex_);
  /// The keys of these slots go to another server: what is watched of them counts as changed, and
  /// what waits for them ends.
  void EndOfSlots(SlotRange slots) EXCLUDES(mutex_);
  /// How many commands wait for a key.
  size_t blocked() const { return waiting_.load(std::memory_order_relaxed); }

 private:
  /// Those that wait for one key. One of them at a time has its turn: it was resumed, and looks at
  /// the key before the next one is resumed.
  struct Queue {
    std::map<uint64_t, BlockedClient*> waiting;  ///< By place.
    uint64_t turn = 0;   ///< The place of what has its turn; 0: nothing has.
    bool again = false;  ///< The key was changed meanwhile: the first one is to look again.
  };

  /// Resumes the first behind `place`, if it is no other one's turn.
  void WakeLocked(const Key& key, uint64_t place) REQUIRES(mutex_);
  void EndLocked(BlockedClient* blocked, BlockedClient::End end) REQUIRES(mutex_);

  /// How many entries there are; 0 lets Touch do nothing. What holds a key's lock sees the entries
  /// of those that held it before.
  std::atomic<size_t> entries_{0};
  std::atomic<size_t> waiting_{0};
  mutable Mutex mutex_;
  struct Watcher {
    std::shared_ptr<WatchState> state;
    bool there = false;  ///< The key was there.
  };
  std::map<Key, std::vector<Watcher>> watches_ GUARDED_BY(mutex_);
  uint64_t last_place_ GUARDED_BY(mutex_) = 0;
  std::map<Key, Queue> blocked_ GUARDED_BY(mutex_);
};

/// `co_await AwaitKey(blocked)`, once WatchTable::Block was called.
class AwaitKey {
 public:
  explicit AwaitKey(BlockedClient* blocked) : blocked_(blocked) {}
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> waiter) { blocked_->waiter = waiter; }
  void await_resume() const noexcept {}

 private:
  BlockedClient* const blocked_;
};

}  // namespace nacre::server
