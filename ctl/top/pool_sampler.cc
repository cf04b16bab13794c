#include "ctl/top/pool_sampler.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "pool/connect/fabric.h"
#include "pool/connect/node_pace.h"
#include "pool/connect/pool_pace.h"
#include "util/clock.h"

namespace nacre::ctl {
namespace {

using std::chrono::nanoseconds;

/// Nodes that are asked at a time.
constexpr size_t kMaxAsked = 64;
/// Requests by which a node is judged.
constexpr size_t kTimes = 5;

/// The last node of each address, in the order of the first ones: those before it are lost.
std::vector<NodeId> LatestNodes(const pool::PoolClient& client) {
  std::vector<NodeId> nodes;
  std::map<std::string, size_t> places;
  for (int i = 0; i < client.node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    const auto [place, is_new] = places.try_emplace(client.node_address(node), nodes.size());
    if (is_new) {
      nodes.push_back(node);
    } else {
      nodes[place->second] = node;
    }
  }
  return nodes;
}

}  // namespace

PoolSampler::PoolSampler(pool::PoolClient* client, std::chrono::milliseconds interval,
                         std::function<void(const PoolSample&)> told)
    : client_(client), interval_(interval), told_(std::move(told)) {
  thread_ = Thread("nacre-sampler", [this] { Loop(); });
}

PoolSampler::~PoolSampler() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  thread_.Join();
}

uint64_t PoolSampler::rounds() const {
  MutexLock lock(&mutex_);
  return latest_.rounds;
}

PoolSample PoolSampler::Latest() const {
  MutexLock lock(&mutex_);
  return LatestLocked();
}

PoolSample PoolSampler::Await(uint64_t rounds) const {
  MutexLock lock(&mutex_);
  while (latest_.rounds < rounds) changed_.Wait();
  return LatestLocked();
}

PoolSample PoolSampler::LatestLocked() const {
  PoolSample sample = latest_;
  if (sample.rounds > 0) sample.age_nanos = client_->clock()->NowNanos() - taken_at_nanos_;
  return sample;
}

void PoolSampler::Loop() {
  uint64_t rounds = 0;
  for (;;) {
    const Deadline next = Deadline::After(client_->clock(), interval_);
    PoolSample sample = Ask();
    sample.rounds = ++rounds;
    if (told_ != nullptr) told_(sample);
    MutexLock lock(&mutex_);
    latest_ = std::move(sample);
    taken_at_nanos_ = client_->clock()->NowNanos();
    changed_.SignalAll();
    while (!stopping_ && !next.Expired()) changed_.WaitFor(next.Remaining());
    if (stopping_) return;
  }
}

PoolSample PoolSampler::Ask() {
  const std::vector<NodeId> nodes = LatestNodes(*client_);
  std::vector<NodeReport> reports(nodes.size());
  std::atomic<size_t> next{0};
  RunTogether("nacre-ask", std::min(nodes.size(), kMaxAsked), [&](size_t) {
    // Relaxed: each number is taken once, and RunTogether waits for all.
    for (size_t i = next.fetch_add(1, std::memory_order_relaxed); i < nodes.size();
         i = next.fetch_add(1, std::memory_order_relaxed)) {
      AskTimed(nodes[i], &reports[i]);
    }
  });
  PoolSample sample;
  for (NodeReport& report : reports) {
    std::optional<NodeRates>& rates = sample.rates.emplace_back();
    if (!report.status.ok()) continue;
    Memory& memory = memories_[report.address];
    rates = memory.meter.Take(report.stats);
    memory.times.push_back(report.timing.pings.front());
    if (memory.times.size() > kTimes) memory.times.pop_front();
    report.slow = IsSlow(memory);
  }
  sample.pool = Summarize(std::move(reports));
  for (const std::string& address : sample.pool.directions.added_addresses) {
    client_->AddNode(address);
  }
  return sample;
}

void PoolSampler::AskTimed(NodeId node, NodeReport* report) {
  AskNode(client_, node, report);
  if (!report->status.ok()) return;
  // The requests before this one may have had to connect.
  const uint64_t start = client_->clock()->NowNanos();
  report->status = client_->Ping(node);
  if (!report->status.ok()) return;
  const nanoseconds took(client_->clock()->NowNanos() - start);
  report->timing.pings = {took};
  pool::NodeLink* const link = client_->fabric()->link(node);
  if (link != nullptr) link->mutable_pace()->Note(pool::NodeOperation::kRequest, took);
}

bool PoolSampler::IsSlow(const Memory& memory) const {
  std::vector<nanoseconds> sorted(memory.times.begin(), memory.times.end());
  std::sort(sorted.begin(), sorted.end());
  return Within(sorted, 0.5) > client_->fabric()->pace.Patience(pool::NodeOperation::kRequest);
}

}  // namespace nacre::ctl
