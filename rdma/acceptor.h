#pragma once

#include <chrono>
#include <cstdint>

#include "rdma/unique_fd.h"

namespace nacre::rdma {

/// Takes connections up at a listening socket, also when the process has no descriptor left. One is
/// held in reserve for that moment: who calls then is taken up to be told, instead of waiting in
/// the backlog for an answer that does not come, where a poll would find him without end.
///
/// Thread safety: none.
class Acceptor {
 public:
  enum class Taken : uint8_t {
    kNobody,
    kCaller,
    kToRefuse,  ///< With the descriptor in reserve: close it soon.
  };
  /// What a caller is told.
  static constexpr const char* kWhy = "no file descriptor is left at the listener";

  /// Until callers are looked for again, once it is exhausted.
  static constexpr std::chrono::milliseconds kPause{100};

  /// `listening` does not block, and outlives this.
  explicit Acceptor(int listening) : listening_(listening) { Reserve(); }

  Taken Take(UniqueFd* caller);
  /// The reserve is gone as well: callers wait, and are not to be looked for before kPause has
  /// passed.
  bool exhausted() const { return exhausted_; }

 private:
  void Reserve();

  const int listening_;
  UniqueFd reserve_;
  bool exhausted_ = false;
};

}  // namespace nacre::rdma
