#pragma once

#include <string>
#include <utility>

#include "util/mutex.h"

namespace nacre::server {

/// Which server has the database, as clients of Redis Sentinel ask for it.
///
/// Thread safety: all of it may be used from many threads at once.
class Master {
 public:
  /// What clients call it. Set before any of them connects.
  std::string name;

  /// HOST:PORT; empty as long as it is not known.
  std::string address() const EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    return address_;
  }
  /// Answers the one before.
  std::string Set(std::string address) EXCLUDES(mutex_) {
    const MutexLock lock(&mutex_);
    return std::exchange(address_, std::move(address));
  }

  /// The two parts of a HOST:PORT, without the brackets of IPv6.
  static std::pair<std::string, std::string> Divide(const std::string& address) {
    const size_t colon = address.rfind(':');
    if (colon == std::string::npos) return {address, "0"};
    std::string host = address.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    return {std::move(host), address.substr(colon + 1)};
  }

 private:
  mutable Mutex mutex_;
  std::string address_ GUARDED_BY(mutex_);
};

}  // namespace nacre::server
