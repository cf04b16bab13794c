#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/session/client.h"
#include "util/mutex.h"

namespace nacre::server {

struct LoopState;

/// The subscriptions to channels and patterns, and the way of messages to them. Messages of one
/// publisher arrive in their order; they are not stored.
///
/// Thread safety: all methods may be called from many threads at once; those with a client by its
/// loop.
class PubSub {
 public:
  enum class Kind : uint8_t { kChannel, kPattern };

  void Subscribe(Client* client, LoopState* loop, Kind kind, const std::string& name)
      EXCLUDES(mutex_);
  void Unsubscribe(Client* client, LoopState* loop, Kind kind, const std::string& name)
      EXCLUDES(mutex_);
  void UnsubscribeAll(Client* client, LoopState* loop) EXCLUDES(mutex_);

  /// How many subscriptions it is sent to.
  int64_t Publish(std::string_view channel, std::string_view message) EXCLUDES(mutex_);

  /// Channels with subscribers that match the glob `pattern`.
  std::vector<std::string> Channels(std::string_view pattern) const EXCLUDES(mutex_);
  size_t Subscribers(const std::string& channel) const EXCLUDES(mutex_);
  size_t patterns() const EXCLUDES(mutex_);

 private:
  using ByName = std::map<std::string, std::set<std::pair<LoopState*, uint64_t>>>;
  ByName& Of(Kind kind) REQUIRES(mutex_) { return kind == Kind::kChannel ? channels_ : patterns_; }

  mutable Mutex mutex_;
  ByName channels_ GUARDED_BY(mutex_);
  ByName patterns_ GUARDED_BY(mutex_);
};

}  // namespace nacre::server
