#include "tests/support/process/served_nodes.h"

#include <gtest/gtest.h>

#include "tests/support/status_assert.h"
#include "util/clock.h"

namespace nacre {

ServedNodes::ServedNodes(size_t count, uint64_t node_bytes, uint64_t slab_bytes)
    : node_bytes_(node_bytes), slab_bytes_(slab_bytes), devices_(count), nodes_(count) {
  for (size_t i = 0; i < count; ++i) {
    addresses_.push_back("shm:" + folder_.File(std::to_string(i)));
    Start(i);
  }
}

ServedNodes::~ServedNodes() {
  nodes_.clear();  // The nodes end before their devices.
}

void ServedNodes::Start(size_t node) {
  pool::MemoryNodeOptions options;
  options.listen = addresses_[node];
  options.region_bytes = node_bytes_;
  options.slab_bytes = slab_bytes_;
  EXPECT_TRUE(IsOk(rdma::OpenDevice("shm", {}, Clock::System(), &devices_[node])));
  EXPECT_TRUE(
      IsOk(pool::MemoryNode::Start(options, devices_[node].get(), Clock::System(), &nodes_[node])));
}

void ServedNodes::Kill(size_t node) { nodes_[node]->Kill(); }

void ServedNodes::StartAnew(size_t node) {
  nodes_[node].reset();
  Start(node);
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
