#include "tests/support/test_nodes.h"

#include <gtest/gtest.h>

#include <string>

namespace nacre {

TestNodes::TestNodes(NodeKind kind, const TestPoolOptions& options) {
  if (kind == NodeKind::kEmbedded) {
    pool_ = OpenTestPool(options);
    return;
  }
  MemnodeProcessOptions process;
  process.size = std::to_string(options.node_bytes);
  process.slab_size = std::to_string(options.slab_bytes);
  processes_ = std::make_unique<MemnodeProcesses>(options.nodes, process);
  if (!testing::Test::HasFatalFailure()) {
    pool_ = ConnectTestPool(processes_->pool_uri(), options);
  }
}

void TestNodes::Kill(NodeId node) {
  if (processes_ != nullptr) {
    (*processes_)[node].Kill();
  } else {
    pool_->KillEmbeddedNode(node);
  }
}

}  // namespace nacre
