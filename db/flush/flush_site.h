#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "nacre/options.h"

namespace nacre {

/// Why a flush that could have been near the data was not, or not wholly.
enum class FlushFallback : uint8_t {
  kSmall,           ///< Sending it takes less than asking for it.
  kLarge,           ///< Nodes keep in memory what they sort.
  kSlower,          ///< The nodes take longer than this process, and writers wait.
  kUnlogged,        ///< Some entries are not in this owner's log: unlogged writes, replayed ones.
  kLog,             ///< The log fails.
  kLostCopy,        ///< A node that has a copy of the log is lost.
  kRangeDeletions,  ///< There are some, which the log has in no order of keys.
  kBusy,            ///< No node had a thread for it.
  kComparator,      ///< No node knows the comparator, or the merge operator.
  kFailed,  ///< On the node: the log is damaged, the table outgrew its space, the node died.
};
inline constexpr size_t kFlushFallbacks = 10;

/// As in the properties "nacre.flush.fallback.NAME".
std::string_view NameOf(FlushFallback why);

/// Where flushes ran. Monotonic.
class FlushSites {
 public:
  void CountNearData() { near_data_.fetch_add(1, std::memory_order_relaxed); }
  void Count(FlushFallback why) {
    fallbacks_[static_cast<size_t>(why)].fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t near_data() const { return near_data_.load(std::memory_order_relaxed); }
  uint64_t fallbacks(FlushFallback why) const {
    return fallbacks_[static_cast<size_t>(why)].load(std::memory_order_relaxed);
  }
  uint64_t fallbacks() const;

 private:
  std::atomic<uint64_t> near_data_{0};
  std::array<std::atomic<uint64_t>, kFlushFallbacks> fallbacks_{};
};

/// Chooses where flushes run under NearDataFlush::kAuto: near the data, as this process has better
/// things to do, unless writers had to wait for a flush. From then on for as long as they do: where
/// the last flush took less time for a byte; and the other place once in sixteen flushes, since
/// either may have become less busy. So "the nodes are busier than the compute node" is measured by
/// what matters of it.
///
/// Thread safety: none.
class FlushSiteChooser {
 public:
  bool NearData();
  /// `writers_waited`: when the flush ended.
  void Flushed(bool near_data, uint64_t bytes, uint64_t nanos, bool writers_waited);

 private:
  static constexpr int kFlushesBetweenLooks = 16;

  /// Picoseconds for a byte; 0: never tried.
  uint64_t cost_near_ = 0;
  uint64_t cost_here_ = 0;
  bool writers_waited_ = false;
  int flushes_until_look_ = kFlushesBetweenLooks;
};

}  // namespace nacre
