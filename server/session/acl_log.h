#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "server/session/recent_entries.h"

namespace nacre::server {

/// A request that a user was refused.
struct RefusedRequest {
  std::string reason;   ///< "auth", "command", "key" or "channel".
  std::string context;  ///< "toplevel", "multi" or "lua".
  std::string object;   ///< What was refused.
  std::string user;
  std::string client;    ///< As CLIENT LIST describes it.
  uint64_t last_ms = 0;  ///< When it was refused last, in milliseconds of Unix time.
  uint64_t count = 1;    ///< How often it was.

  bool SameAs(const RefusedRequest& other) const {
    return reason == other.reason && context == other.context && object == other.object &&
           user == other.user;
  }
};

/// The last requests that users were refused, for ACL LOG. Those of a kind are one entry.
///
/// Thread safety: all methods may be called from many threads at once.
class AclLog : public RecentEntries<RefusedRequest> {
 public:
  void Add(RefusedRequest request, size_t entries_max) {
    constexpr uint64_t kTogetherMs = 60'000;
    RecentEntries::Add(std::move(request), entries_max, [](auto* entry, auto* others) {
      const auto known = std::ranges::find_if(*others, [&](const RefusedRequest& each) {
        return each.SameAs(*entry) && entry->last_ms < each.last_ms + kTogetherMs;
      });
      if (known == others->end()) return;
      entry->count += known->count;
      others->erase(known);
    });
  }
};

}  // namespace nacre::server
