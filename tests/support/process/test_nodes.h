#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pool/pool_impl.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/test_db.h"

namespace nacre {

enum class NodeKind { kEmbedded, kProcess, kTcpProcess, kVerbsProcess, kMixedProcesses };

/// Those that this machine can run: verbs where NACRE_TEST_VERBS_HOST names a device's address.
std::vector<NodeKind> AllNodeKinds();
/// "TcpProcess", for the names of tests.
std::string NameOf(NodeKind kind);

/// Memory nodes that can be killed, in this process or in processes of their own, and a pool of
/// them.
class TestNodes {
 public:
  /// Failures to start fail the test; then `pool()` is null.
  explicit TestNodes(NodeKind kind, const TestPoolOptions& options = {});

  const std::shared_ptr<pool::PoolImpl>& pool() const { return pool_; }
  /// As kill -9 does.
  void Kill(NodeId node);
  /// Null unless the nodes are processes.
  MemnodeProcesses* processes() { return processes_.get(); }

 private:
  std::unique_ptr<MemnodeProcesses> processes_;
  std::shared_ptr<pool::PoolImpl> pool_;
};

}  // namespace nacre
