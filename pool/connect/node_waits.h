#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "table/format/placement.h"

namespace nacre::pool {

/// How long an operation of one thread waited for which nodes.
///
/// Thread safety: none; it belongs to the thread that called NodeWaitsScope.
class NodeWaits {
 public:
  enum class What : uint8_t { kRead, kLog };
  struct Wait {
    NodeId node = 0;
    What what = What::kRead;
    uint64_t nanos = 0;
  };
  /// Waits for more nodes than these are left out.
  static constexpr size_t kMost = 16;

  /// Those for one node and purpose are added up.
  void Add(What what, NodeId node, uint64_t nanos);
  std::span<const Wait> waits() const { return {waits_.data(), count_}; }

 private:
  std::array<Wait, kMost> waits_;
  size_t count_ = 0;
};

/// The calling thread's, or null if its operation is not watched.
NodeWaits* CurrentNodeWaits();
/// Replaces them, and returns those before.
NodeWaits* SetCurrentNodeWaits(NodeWaits* waits);

}  // namespace nacre::pool
