#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/session/client.h"
#include "server/store/slots.h"
#include "util/mutex.h"

namespace nacre::server {

struct LoopState;

/// The subscriptions to channels and patterns, and the way of messages to them. Messages of one
/// publisher arrive in their order; they are not stored. Sharded channels have names of their own;
/// in this server that is the only difference.
///
/// Thread safety: all methods may be called from many threads at once; those with a client by its
/// loop.
class PubSub {
 public:
  enum class Kind : uint8_t { kChannel, kPattern, kShardChannel };

  static std::set<std::string>& SubscriptionsOf(Client* client, Kind kind);

  void Subscribe(Client* client, LoopState* loop, Kind kind, const std::string& name)
      EXCLUDES(mutex_);
  void Unsubscribe(Client* client, LoopState* loop, Kind kind, const std::string& name)
      EXCLUDES(mutex_);
  void UnsubscribeAll(Client* client, LoopState* loop) EXCLUDES(mutex_);

  /// Ends the subscriptions of the loop's clients to sharded channels of these slots, and tells
  /// them.
  void EndOfSlots(LoopState* loop, SlotRange slots) EXCLUDES(mutex_);

  /// How many subscriptions it is sent to. `kind`: of channels, or of sharded ones.
  int64_t Publish(std::string_view channel, std::string_view message, Kind kind = Kind::kChannel)
      EXCLUDES(mutex_);

  /// Channels of the kind with subscribers that match the glob `pattern`.
  std::vector<std::string> Channels(Kind kind, std::string_view pattern) const EXCLUDES(mutex_);
  size_t Subscribers(Kind kind, const std::string& channel) const EXCLUDES(mutex_);
  size_t patterns() const EXCLUDES(mutex_);

 private:
  using ByName = std::map<std::string, std::set<std::pair<LoopState*, uint64_t>>>;
  ByName& Of(Kind kind) REQUIRES(mutex_) { return subscribers_[static_cast<size_t>(kind)]; }
  const ByName& Of(Kind kind) const REQUIRES(mutex_) {
    return subscribers_[static_cast<size_t>(kind)];
  }

  mutable Mutex mutex_;
  std::array<ByName, 3> subscribers_ GUARDED_BY(mutex_);  ///< By kind.
};

}  // namespace nacre::server
