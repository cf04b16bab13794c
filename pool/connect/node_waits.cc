#include "pool/connect/node_waits.h"

#include <utility>

namespace nacre::pool {

namespace {

constinit thread_local NodeWaits* current = nullptr;

}  // namespace

void NodeWaits::Add(What what, NodeId node, uint64_t nanos) {
  for (Wait& wait : std::span(waits_.data(), count_)) {
    if (wait.node != node || wait.what != what) continue;
    wait.nanos += nanos;
    return;
  }
  if (count_ < kMost) waits_[count_++] = {.node = node, .what = what, .nanos = nanos};
}

NodeWaits* CurrentNodeWaits() { return current; }

NodeWaits* SetCurrentNodeWaits(NodeWaits* waits) { return std::exchange(current, waits); }

}  // namespace nacre::pool
