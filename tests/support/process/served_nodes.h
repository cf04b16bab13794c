#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memnode/memory_node.h"
#include "rdma/transport.h"
#include "tests/support/temp_folder.h"

namespace nacre {

/// Memory nodes in this process that other processes reach, over shm: there in a millisecond, and
/// as alive as the test is. They have no log.
class ServedNodes {
 public:
  /// A failure to start fails the test.
  ServedNodes(size_t count, uint64_t node_bytes, uint64_t slab_bytes);
  ~ServedNodes();
  ServedNodes(const ServedNodes&) = delete;
  ServedNodes& operator=(const ServedNodes&) = delete;

  /// As if its process had died.
  void Kill(size_t node);
  /// Another one at the address of one that was killed.
  void StartAnew(size_t node);
  /// "shm:/tmp/.../0"
  const std::string& address(size_t node) const { return addresses_[node]; }
  /// Leased slabs of all nodes.
  uint64_t leased_slabs() const;

 private:
  void Start(size_t node);

  const TempFolder folder_;
  const uint64_t node_bytes_;
  const uint64_t slab_bytes_;
  std::vector<std::unique_ptr<rdma::Device>> devices_;
  std::vector<std::unique_ptr<pool::MemoryNode>> nodes_;
  std::vector<std::string> addresses_;
};

/// "shm:PATH,PATH,..." of addresses that each begin with "shm:".
std::string PoolUriOf(const std::vector<std::string>& addresses);

}  // namespace nacre
