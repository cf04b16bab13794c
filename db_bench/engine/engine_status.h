#pragma once

#include <string>
#include <utility>

#include "nacre/status.h"

namespace nacre::bench {

inline Status ToStatus(Status status) { return status; }

/// Converts a status of RocksDB or LevelDB. This costs next to nothing for OK and NotFound, which
/// are what a benchmark meets.
template <typename ForeignStatus>
Status ToStatus(const ForeignStatus& status) {
  if (status.ok()) [[likely]]
    return Status::OK();
  if (status.IsNotFound()) return Status::NotFound();
  const std::string text = status.ToString();
  if (status.IsCorruption()) return Status::Corruption(text);
  if (status.IsInvalidArgument()) return Status::InvalidArgument(text);
  if constexpr (requires { status.IsBusy(); }) {  // What ends transactions; LevelDB has none.
    if (status.IsBusy()) return Status::Busy(text);
    if (status.IsTimedOut()) return Status::TimedOut(text);
    if (status.IsTryAgain()) return Status::TryAgain(text);
    if (status.IsAborted()) return Status::Aborted(text);
  }
  return Status::IOError(text);
}

/// Converts one outside of loops: a "not found" is a failure there, and keeps its message.
template <typename ForeignStatus>
Status ToSetupStatus(const ForeignStatus& status, const std::string& path) {
  if (status.IsNotFound()) return Status::IOError(path + ": " + status.ToString());
  return ToStatus(status).WithContext(path);
}

}  // namespace nacre::bench
