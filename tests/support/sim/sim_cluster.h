#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "nacre/logger.h"
#include "nacre/options.h"
#include "tests/support/sim/sim_scheduler.h"
#include "tests/support/sim_transport/network.h"

namespace nacre::sim {

struct ClusterOptions {
  size_t nodes = 4;
  uint64_t region_bytes = 32 << 20;
  uint64_t slab_bytes = 1 << 20;
};

/// Memory nodes in simulated processes of their own, on a simulated network. They run the server
/// that nacre-memnode runs.
///
/// Thread safety: as Simulation. Lives until the simulation's process ends.
class Cluster {
 public:
  Cluster(Scheduler* scheduler, const ClusterOptions& options);

  /// Starts node `i`, empty, at the address that it always has.
  void StartNode(size_t i);
  /// Starts one more; its number. Databases learn of it by directions, or by a later pool_uri().
  size_t AddNode();
  std::string AddressOf(size_t i) const { return "sim:n" + std::to_string(i); }
  /// `told`: its peers hear of it at once.
  void KillNode(size_t i, bool told);
  bool running(size_t i) const { return nodes_[i].running; }
  size_t size() const { return nodes_.size(); }
  /// The process that node `i` is at present.
  ProcessId process(size_t i) const { return nodes_[i].process; }
  /// Stops node `i` for so long, as SIGSTOP does where its process stores what arrives (tcp): what
  /// is sent there meanwhile waits, and is stored when the process goes on.
  void StopNode(size_t i, uint64_t nanos);
  /// Waits until all that were started serve.
  void AwaitNodes();

  /// Ends a process that is no node.
  void KillProcess(ProcessId process, bool told);
  /// Starts a thread that is let go.
  void Run(ProcessId process, const std::string& name, std::function<void()> body);

  const std::string& pool_uri() const { return pool_uri_; }
  rdma::SimNetwork& network() { return network_; }
  Scheduler& scheduler() { return *scheduler_; }
  /// Into the event log; null if there is none.
  std::shared_ptr<Logger> NewLogger();
  /// Small tables over this pool.
  Options DatabaseOptions();

 private:
  struct Node {
    ProcessId process = 0;
    bool running = false;
    bool serves = false;
  };

  void Serve(size_t i, ProcessId process);

  Scheduler* const scheduler_;
  const ClusterOptions options_;
  rdma::SimNetwork network_;
  std::deque<Node> nodes_;
  std::vector<Thread> threads_;
  std::string pool_uri_;
};

}  // namespace nacre::sim
