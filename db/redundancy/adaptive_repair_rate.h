#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>

#include "table/format/placement.h"

namespace nacre {

/// How many bytes a second repair may take where no limit is set (kAdaptiveRepair): what the nodes
/// have left. They are asked a short question every now and then. As long as each answers about as
/// soon as it usually does, repair takes a quarter more each time; when one is late, as its
/// processor, its memory or its network is busy with what clients ask for, half as much.
///
/// What is usual follows faster answers at once and slower ones by a 64th, so that a node which has
/// become slow for good does not hold repair back for ever.
///
/// Thread safety: none.
class AdaptiveRepairRate {
 public:
  static constexpr uint64_t kLeast = uint64_t{64} << 20;
  static constexpr uint64_t kFirst = uint64_t{256} << 20;
  static constexpr uint64_t kMost = uint64_t{64} << 30;

  struct Answer {
    NodeId node;
    uint64_t nanos;  ///< How long it took.
  };

  uint64_t bytes_per_second() const { return bytes_per_second_; }

  /// Takes the answers of nodes that were asked one after the other; one that failed is not there.
  void Heard(std::span<const Answer> answers) {
    bool late = false;
    for (const Answer& answer : answers) {
      uint64_t& usual = usual_nanos_.emplace(answer.node, answer.nanos).first->second;
      late = late || answer.nanos > kLateFactor * usual + kLateNanos;
      usual = std::min(answer.nanos, usual + usual / 64 + 1);
    }
    bytes_per_second_ = late ? std::max(kLeast, bytes_per_second_ / 2)
                             : std::min(kMost, bytes_per_second_ + bytes_per_second_ / 4);
  }

 private:
  static constexpr uint64_t kLateFactor = 3;
  static constexpr uint64_t kLateNanos = 1'000'000;  ///< Less is what a scheduler does on any day.

  std::map<NodeId, uint64_t> usual_nanos_;
  uint64_t bytes_per_second_ = kFirst;
};

}  // namespace nacre
