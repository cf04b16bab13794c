#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "server/session/recent_entries.h"

namespace nacre::server {

/// A command that took long.
struct SlowCommand {
  int64_t id = 0;
  int64_t unix_seconds = 0;
  int64_t micros = 0;  ///< From when it began until it could be answered.
  std::vector<std::string> args;
  std::string client_address;
  std::string client_name;
};

/// The last commands that took long, for SLOWLOG.
///
/// Thread safety: all methods may be called from many threads at once.
class SlowLog : public RecentEntries<SlowCommand> {
 public:
  /// Gives the command its id.
  void Add(SlowCommand command, size_t entries_max) {
    // With the log's mutex held.
    RecentEntries::Add(std::move(command), entries_max,
                       [this](auto* entry, auto* /*others*/) { entry->id = next_id_++; });
  }

 private:
  int64_t next_id_ = 0;
};

}  // namespace nacre::server
