#pragma once

#include <chrono>
#include <cstdint>

#include "rdma/unique_fd.h"

namespace nacre::rdma {

/// Accepts connections at a listening socket, also when the process has no descriptor left. One is
/// held in reserve for that moment: a caller is then accepted with it and refused, instead of
/// waiting in the backlog, where each poll would report it again.
///
/// Thread safety: none.
class Acceptor {
 public:
  enum class Taken : uint8_t {
    kNobody,
    kCaller,
    kToRefuse,  ///< It uses the descriptor in reserve: close it soon.
  };
  /// What a caller is told.
  static constexpr const char* kWhy = "no file descriptor is left at the listener";

  /// How long it takes no callers once descriptors are exhausted.
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
