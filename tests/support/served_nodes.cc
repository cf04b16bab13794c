#include "tests/support/served_nodes.h"

#include <gtest/gtest.h>

#include "tests/support/status_assert.h"
#include "util/clock.h"

namespace nacre {

ServedNodes::ServedNodes(size_t count, uint64_t node_bytes, uint64_t slab_bytes) {
  for (size_t i = 0; i < count; ++i) {
    memnode::MemoryNodeOptions options;
    options.listen = "shm:" + folder_.File(std::to_string(i));
    options.region_bytes = node_bytes;
    options.slab_bytes = slab_bytes;
    EXPECT_TRUE(IsOk(rdma::OpenDevice("shm", {}, Clock::System(), &devices_.emplace_back())));
    EXPECT_TRUE(IsOk(memnode::MemoryNode::Start(options, devices_.back().get(), Clock::System(),
                                                &nodes_.emplace_back())));
    addresses_.push_back(nodes_.back()->address());
  }
}

ServedNodes::~ServedNodes() {
  nodes_.clear();  // Before their devices.
}

uint64_t ServedNodes::leased_slabs() const {
  uint64_t slabs = 0;
  for (const auto& node : nodes_) slabs += node->stats().slabs_leased;
  return slabs;
}

std::string PoolUriOf(const std::vector<std::string>& addresses) {
  std::string uri;
  for (const std::string& address : addresses) {
    uri += uri.empty() ? address : "," + address.substr(address.find(':') + 1);
  }
  return uri;
}

}  // namespace nacre
