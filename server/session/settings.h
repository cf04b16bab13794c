#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "nacre/status.h"
#include "util/mutex.h"

namespace nacre::server {

/// What CONFIG GET and CONFIG SET know, by Redis's names. Settings that say how Redis lays data
/// out in its memory are accepted, as clients set them, and have no effect.
///
/// Thread safety: all of it may be used from many threads at once.
class Settings {
 public:
  Settings();

  std::atomic<int64_t> clients_max{10'000};
  /// Clients that are silent for longer are closed; 0: none are.
  std::atomic<int64_t> idle_seconds_max{0};
  std::atomic<int64_t> slow_micros{10'000};  ///< For SLOWLOG; negative: nothing is slow.
  std::atomic<int64_t> slow_log_entries_max{128};
  std::atomic<int64_t> acl_log_entries_max{128};
  std::atomic<uint32_t> event_classes{0};  ///< KeyEventClass.

  /// What CONFIG GET says; the users have it in effect.
  void set_password(std::string password) EXCLUDES(mutex_);
  /// Fixed while the server runs, such as "databases"; set before.
  void SetFixed(const std::string& name, std::string value) EXCLUDES(mutex_);

  /// Names and values of those that match the glob `pattern`.
  std::map<std::string, std::string> Get(std::string_view pattern) const EXCLUDES(mutex_);
  /// `InvalidArgument` says in Redis's words what is wrong, `NotFound` that there is no such one.
  Status Set(std::string_view name, std::string_view value, bool check_only) EXCLUDES(mutex_);

 private:
  struct Number {
    std::atomic<int64_t>* value;
    int64_t min;
    int64_t max;
  };

  std::map<std::string, Number> numbers_;  ///< Never changed.
  mutable Mutex mutex_;
  std::string password_ GUARDED_BY(mutex_);
  std::map<std::string, std::string> fixed_ GUARDED_BY(mutex_);
  /// Those without effect.
  std::map<std::string, std::string> accepted_ GUARDED_BY(mutex_);
};

}  // namespace nacre::server
