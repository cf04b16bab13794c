#include "tests/support/process/test_nodes.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace nacre {

namespace {

bool HasVerbs() { return std::getenv("NACRE_TEST_VERBS_HOST") != nullptr; }

}  // namespace

std::vector<NodeKind> AllNodeKinds() {
  std::vector<NodeKind> kinds = {NodeKind::kEmbedded, NodeKind::kProcess, NodeKind::kTcpProcess,
                                 NodeKind::kMixedProcesses};
  if (HasVerbs()) kinds.push_back(NodeKind::kVerbsProcess);
  return kinds;
}

std::string NameOf(NodeKind kind) {
  switch (kind) {
    case NodeKind::kEmbedded:
      return "Embedded";
    case NodeKind::kProcess:
      return "Process";
    case NodeKind::kTcpProcess:
      return "TcpProcess";
    case NodeKind::kVerbsProcess:
      return "VerbsProcess";
    case NodeKind::kMixedProcesses:
      return "MixedProcesses";
  }
  return "Unknown";
}

TestNodes::TestNodes(NodeKind kind, const TestPoolOptions& options) {
  if (kind == NodeKind::kEmbedded) {
    pool_ = OpenTestPool(options);
    return;
  }
  MemnodeProcessOptions process;
  process.size = std::to_string(options.node_bytes);
  process.slab_size = std::to_string(options.slab_bytes);
  switch (kind) {
    case NodeKind::kTcpProcess:
      process.scheme = "tcp";
      break;
    case NodeKind::kVerbsProcess:
      process.scheme = "verbs";
      break;
    default:
      break;
  }
  std::vector<std::string> schemes = {"shm", "tcp"};
  if (HasVerbs()) schemes.emplace_back("verbs");
  processes_ = kind == NodeKind::kMixedProcesses
                   ? std::make_unique<MemnodeProcesses>(options.nodes, process, schemes)
                   : std::make_unique<MemnodeProcesses>(options.nodes, process);
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
