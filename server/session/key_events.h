#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/session/command.h"
#include "server/store/unit_of_work.h"

// What clients are told of changes of keys, by channels: Redis's keyspace notifications.

namespace nacre::server {

/// Which events are published, and how; or'ed together.
enum KeyEventClass : uint32_t {
  kEventsByKey = 1 << 0,   ///< K: to the channel of the key.
  kEventsByName = 1 << 1,  ///< E: to the channel of the event.
  kGenericEvents = 1 << 2,
  kStringEvents = 1 << 3,
  kListEvents = 1 << 4,
  kSetEvents = 1 << 5,
  kHashEvents = 1 << 6,
  kSortedSetEvents = 1 << 7,
  kExpiredEvents = 1 << 8,
  kAllEvents = 0xFFC,  ///< Those that Redis calls "A".
};

/// Reads classes as CONFIG SET notify-keyspace-events has them, such as "KEA"; false: there is a
/// letter that stands for none. Evictions, streams, modules, misses and new keys are no events
/// here.
bool ParseEventClasses(std::string_view letters, uint32_t* classes);
std::string FormatEventClasses(uint32_t classes);

/// While it lives a command runs: has the unit of work know the events of what the command changed.
class KeyEventScope {
 public:
  explicit KeyEventScope(Call* call) : call_(*call), before_(call->unit->touched().size()) {}
  ~KeyEventScope();
  KeyEventScope(const KeyEventScope&) = delete;
  KeyEventScope& operator=(const KeyEventScope&) = delete;

 private:
  Call& call_;
  const size_t before_;  ///< What was touched by commands before.
};

/// Tells clients of events that have taken effect, and of keys that have expired.
void PublishEvents(ServerState* server, const std::vector<KeyEvent>& events,
                   const std::vector<ExpiredKey>& expired);

}  // namespace nacre::server
