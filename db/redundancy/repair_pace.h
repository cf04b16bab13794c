#pragma once

#include <algorithm>
#include <cstdint>

namespace nacre {

/// Keeps repair to a number of bytes a second. A limit that changes holds at once, also for what
/// was spent under the one before.
///
/// Thread safety: none.
class RepairPace {
 public:
  /// From when on more may be spent. `bytes_per_second`: 0 is no limit.
  uint64_t ReadyNanos(uint64_t bytes_per_second) const {
    if (bytes_per_second == 0) return 0;
    constexpr uint64_t kSecond = 1'000'000'000;
    return since_nanos_ + owed_ / bytes_per_second * kSecond +
           static_cast<uint64_t>(static_cast<double>(owed_ % bytes_per_second) /
                                 static_cast<double>(bytes_per_second) * 1e9);
  }
  /// At a time when it is ready.
  void Spend(uint64_t bytes, uint64_t now_nanos) {
    since_nanos_ = now_nanos;
    owed_ = bytes;
  }
  /// Bytes that were spent for nothing.
  void GiveBack(uint64_t bytes) { owed_ -= std::min(owed_, bytes); }

 private:
  uint64_t since_nanos_ = 0;
  uint64_t owed_ = 0;  ///< Spent at since_nanos_.
};

}  // namespace nacre
