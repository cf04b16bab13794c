#include "tests/support/sim/sim_cluster.h"

#include <utility>

#include "memnode/memory_node.h"
#include "util/clock.h"

namespace nacre::sim {

namespace {

class EventLogger final : public Logger {
 public:
  explicit EventLogger(Scheduler* scheduler) : scheduler_(scheduler) {}
  void Log(LogLevel level, std::string_view message) override {
    constexpr const char* kNames[] = {"debug", "info", "warn", "error"};
    scheduler_->Log(std::string(kNames[static_cast<size_t>(level)]) + ": " + std::string(message));
  }

 private:
  Scheduler* const scheduler_;
};

}  // namespace

Cluster::Cluster(Scheduler* scheduler, const ClusterOptions& options)
    : scheduler_(scheduler), options_(options), network_(scheduler, {}), nodes_(options.nodes) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    pool_uri_ += (i == 0 ? "sim:n" : ",n") + std::to_string(i);
    StartNode(i);
  }
  AwaitNodes();
}

std::shared_ptr<Logger> Cluster::NewLogger() {
  return scheduler_->logs() ? std::make_shared<EventLogger>(scheduler_) : nullptr;
}

void Cluster::Run(ProcessId process, const std::string& name, std::function<void()> body) {
  threads_.push_back(scheduler_->Start(process, name, std::move(body)));
}

void Cluster::StartNode(size_t i) {
  Node& node = nodes_[i];
  node.process = scheduler_->NewProcess("n" + std::to_string(i));
  node.running = true;
  node.serves = false;
  Run(node.process, "main", [this, i, process = node.process] { Serve(i, process); });
}

size_t Cluster::AddNode() {
  nodes_.emplace_back();
  pool_uri_ += ",n" + std::to_string(nodes_.size() - 1);
  StartNode(nodes_.size() - 1);
  return nodes_.size() - 1;
}

void Cluster::Serve(size_t i, ProcessId process) {
  std::unique_ptr<rdma::Device> device;
  std::unique_ptr<pool::MemoryNode> node;
  pool::MemoryNodeOptions options;
  options.listen = AddressOf(i);
  options.region_bytes = options_.region_bytes;
  options.slab_bytes = options_.slab_bytes;
  options.log = NewLogger();
  Status status = rdma::OpenDevice("sim", {}, Clock::System(), &device);
  if (status.ok()) {
    status = pool::MemoryNode::Start(options, device.get(), Clock::System(), &node);
  }
  if (!status.ok()) scheduler_->Fail("node " + std::to_string(i) + ": " + status.ToString());
  if (nodes_[i].process == process) nodes_[i].serves = true;
  scheduler_->Park(&nodes_[i], Simulation::kForever, "its end");
}

void Cluster::StopNode(size_t i, uint64_t nanos) {
  const ProcessId process = nodes_[i].process;
  scheduler_->Stop(process);
  network_.Hold(process);
  scheduler_->At(scheduler_->TrueNanos() + nanos, [this, process] {
    scheduler_->Continue(process);
    network_.Admit(process);
  });
}

void Cluster::AwaitNodes() {
  for (const Node& node : nodes_) {
    while (node.running && !node.serves) scheduler_->SleepFor(std::chrono::microseconds(100));
  }
}

void Cluster::KillNode(size_t i, bool told) {
  nodes_[i].running = false;
  KillProcess(nodes_[i].process, told);
}

void Cluster::KillProcess(ProcessId process, bool told) {
  if (!scheduler_->alive(process)) return;
  network_.EndHost(process, told);
  scheduler_->Kill(process);
}

Options Cluster::DatabaseOptions() {
  Options options;
  options.pool_uri = pool_uri_;
  options.create_if_missing = true;
  options.write_buffer_size = 512 << 10;
  options.max_write_buffer_number = 3;
  options.level0_file_num_compaction_trigger = 2;
  options.level0_slowdown_writes_trigger = 8;
  options.level0_stop_writes_trigger = 12;
  options.target_file_size_base = 64 << 10;
  options.max_bytes_for_level_base = 256 << 10;
  options.max_bytes_for_level_multiplier = 4;
  options.max_background_jobs = 3;
  options.slab_size = options_.slab_bytes;
  options.chunk_size = 4 << 10;
  options.scrub_bytes_per_second = 0;
  options.redundancy = "rep(2)";
  options.info_log = NewLogger();
  return options;
}

}  // namespace nacre::sim
