#include "pool/connect/pool_pace.h"

#include <algorithm>
#include <vector>

#include "pool/connect/fabric.h"
#include "pool/connect/node_monitor.h"
#include "util/clock.h"
#include "util/planted_bug.h"

namespace nacre::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kRefreshInterval = milliseconds(50);
/// After this, what was noted counts half.
constexpr nanoseconds kHalfLife = milliseconds(1000);
/// Operations by which a node is judged, at least.
constexpr uint64_t kLeastOperations = 16;
constexpr int kPatienceFactor = 4;
/// A node's processor has other work; and a request is rarely what an application waits for.
constexpr int kRequestFactor = 16;
constexpr nanoseconds kFirstProbation = milliseconds(50);
constexpr nanoseconds kLastProbation = milliseconds(10'000);
/// A node on probation is asked so often.
constexpr nanoseconds kProbeInterval = milliseconds(100);
/// One more probation may end early after this.
constexpr nanoseconds kEarlyEndInterval = milliseconds(500);
/// A node that is slow again within so many times the probation has not changed its ways.
constexpr int kRelapse = 16;

nanoseconds Median(std::vector<nanoseconds>* values) {
  const auto middle = values->begin() + static_cast<ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

}  // namespace

bool PoolPace::active() const {
  return fabric_->context.options.slow_node_patience_max.count() > 0;
}

bool PoolPace::IsLoaded(const NodeLink& link) const {
  return !link.is_self() && fabric_->context.device->ForPeer(link.address())->may_map();
}

nanoseconds PoolPace::PatienceOf(NodeOperation operation) const {
  const PoolClientOptions& options = fabric_->context.options;
  const int factor = operation == NodeOperation::kRequest ? kRequestFactor : 1;
  const nanoseconds most = factor * nanoseconds(options.slow_node_patience_max);
  const nanoseconds least = std::min(factor * nanoseconds(options.slow_node_patience_min), most);
  std::vector<nanoseconds> typical;
  std::vector<nanoseconds> slowest;
  bool any_known = false;
  for (int i = 0; i < fabric_->node_count(); ++i) {
    const NodeLink* const link = fabric_->link(static_cast<NodeId>(i));
    const OperationTimes& times = link->pace().times(operation);
    if (!link->alive() || link->pace().slow()) continue;
    const bool known = times.count() >= kLeastOperations;
    // Memory that is loaded takes no time by this measure. Were it left out, a pool of such nodes
    // and a single one that is read from would be as fast as that one.
    if (!known && !(operation == NodeOperation::kRead && IsLoaded(*link))) continue;
    any_known = any_known || known;
    typical.push_back(known ? times.Within(0.5) : nanoseconds(0));
    slowest.push_back(known ? times.Within(0.99) : nanoseconds(0));
  }
  if (!any_known) return most;
  const nanoseconds patience = std::clamp(kPatienceFactor * Median(&slowest), least, most);
  return std::max(patience, kPatienceFactor * Median(&typical));
}

void PoolPace::Refresh(uint64_t now) {
  for (size_t i = 0; i < kNodeOperations; ++i) {
    patience_nanos_[i].store(PatienceOf(static_cast<NodeOperation>(i)).count(),
                             std::memory_order_relaxed);
  }
  const bool age = now >= age_at_nanos_.load(std::memory_order_relaxed);
  uint64_t reads = 0;
  uint64_t kept = 0;  // Reads that are counted after this.
  for (int i = 0; i < fabric_->node_count(); ++i) {
    NodePace* const pace = fabric_->link(static_cast<NodeId>(i))->mutable_pace();
    const OperationTimes& read_times = pace->times(NodeOperation::kRead);
    reads += read_times.count();
    if (age) {
      for (OperationTimes& times : pace->times_) times.Age();
    }
    kept += read_times.count();
  }
  if (age) age_at_nanos_.store(now + Nanos(kHalfLife), std::memory_order_relaxed);
  const uint64_t seen = reads_seen_.exchange(kept, std::memory_order_relaxed);
  const uint64_t since = reads < seen ? 0 : reads - seen;
  const uint64_t percent = fabric_->context.options.hedged_reads_percent;
  // Applications that read a few times a second get their share, too.
  const uint64_t earned = since * percent + hedge_percents_.load(std::memory_order_relaxed);
  hedge_percents_.store(earned % 100, std::memory_order_relaxed);
  const auto more = static_cast<int64_t>(earned / 100);
  int64_t left = hedges_left_.load(std::memory_order_relaxed);
  while (left < kFirstHedges &&
         !hedges_left_.compare_exchange_weak(left, std::min(kFirstHedges, left + more),
                                             std::memory_order_relaxed)) {
  }
}

nanoseconds PoolPace::Patience(NodeOperation operation) {
  if (!active()) return fabric_->context.options.operation_timeout;
  const uint64_t now = fabric_->context.clock->NowNanos();
  uint64_t due = refresh_at_nanos_.load(std::memory_order_relaxed);
  if (now >= due && refresh_at_nanos_.compare_exchange_strong(due, now + Nanos(kRefreshInterval),
                                                              std::memory_order_relaxed)) {
    Refresh(now);
  }
  const int64_t known =
      patience_nanos_[static_cast<size_t>(operation)].load(std::memory_order_relaxed);
  return known > 0 ? nanoseconds(known)
                   : nanoseconds(fabric_->context.options.slow_node_patience_max);
}

bool PoolPace::MayHedge(std::span<NodeLink* const> late, bool again) {
  if (!active() || fabric_->context.options.hedged_reads_percent == 0) return false;
  bool slow = true;
  for (NodeLink* const link : late) slow = (again ? MakeSlow(link) : NoteLate(link)) && slow;
  // Reads that begin now avoid slow nodes, so that those that were under way are few. They count,
  // though: others have to wait for their share.
  if (slow) {
    hedges_left_.fetch_sub(1, std::memory_order_relaxed);
  } else if (!TakeHedge()) {
    return false;
  }
  hedges_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool PoolPace::TakeHedge() {
  int64_t left = hedges_left_.load(std::memory_order_relaxed);
  while (left > 0 || NACRE_PLANTED_BUG("pace.hedges-without-end")) {
    if (hedges_left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) return true;
  }
  return false;
}

void PoolPace::SetSlow(NodeLink* link, bool slow) {
  NodePace* const pace = link->mutable_pace();
  // Only this changes the count, under the mutex.
  const uint64_t next = changes_.load(std::memory_order_relaxed) + 1;
  if (slow) pace->slow_since_.store(next, std::memory_order_relaxed);
  pace->slow_.store(slow, std::memory_order_relaxed);
  pace->avoided_.store(slow || pace->leaves_, std::memory_order_relaxed);
  changes_.fetch_add(1, std::memory_order_release);  // Pairs with changes().
}

void PoolPace::SetLeaves(NodeLink* link, bool leaves) {
  MutexLock lock(&mutex_);
  NodePace* const pace = link->mutable_pace();
  pace->leaves_ = leaves;
  pace->avoided_.store(leaves || pace->slow(), std::memory_order_relaxed);
}

bool PoolPace::MayBecomeSlow() const {
  int alive = 0;
  int slow = 0;
  for (int i = 0; i < fabric_->node_count(); ++i) {
    const NodeLink* const each = fabric_->link(static_cast<NodeId>(i));
    if (!each->alive() || each->is_self()) continue;
    ++alive;
    slow += each->pace().slow() ? 1 : 0;
  }
  return 2 * (slow + 1) < alive || NACRE_PLANTED_BUG("pace.all-nodes-slow-at-a-time");
}

bool PoolPace::NoteLate(NodeLink* link) {
  if (!active()) return false;
  link->mutable_pace()->late_.fetch_add(1, std::memory_order_relaxed);
  return MakeSlow(link);
}

bool PoolPace::MakeSlow(NodeLink* link) {
  NodePace* const pace = link->mutable_pace();
  if (pace->slow()) return true;
  {
    MutexLock lock(&mutex_);
    if (pace->slow()) return true;
    const uint64_t now = fabric_->context.clock->NowNanos();
    if (!MayBecomeSlow() && !EndAProbation(now)) return false;
    const bool relapse = pace->returned_nanos_ != 0 &&
                         now - pace->returned_nanos_ < kRelapse * Nanos(pace->probation_) &&
                         !NACRE_PLANTED_BUG("pace.relapse-forgotten");
    pace->probation_ = relapse ? std::min(2 * pace->probation_, kLastProbation) : kFirstProbation;
    pace->until_nanos_ = now + Nanos(pace->probation_);
    pace->probe_at_nanos_ = now + Nanos(std::min(pace->probation_, kProbeInterval));
    pace->answers_well_ = false;
    pace->times_slow_.fetch_add(1, std::memory_order_relaxed);
    SetSlow(link, true);
  }
  fabric_->monitor->Wake();
  return true;
}

bool PoolPace::EndAProbation(uint64_t now) {
  const uint64_t earned = (now - early_ends_since_) / Nanos(kEarlyEndInterval);
  if (earned > 0) {
    early_ends_ = static_cast<int>(std::min<uint64_t>(early_ends_ + earned, kEarlyEnds));
    early_ends_since_ += earned * Nanos(kEarlyEndInterval);
  }
  if (early_ends_ == 0) return false;
  NodeLink* soonest = nullptr;
  for (int i = 0; i < fabric_->node_count(); ++i) {
    NodeLink* const each = fabric_->link(static_cast<NodeId>(i));
    if (!each->alive() || !each->pace().slow() || !each->pace().answers_well_) continue;
    if (soonest == nullptr || each->pace().until_nanos_ < soonest->pace().until_nanos_) {
      soonest = each;
    }
  }
  if (soonest == nullptr) return false;
  --early_ends_;
  Return(soonest, now);
  return true;
}

uint64_t PoolPace::ProbeAt(const NodeLink& link) const {
  MutexLock lock(&mutex_);
  return link.pace().probe_at_nanos_;
}

void PoolPace::NoteProbe(NodeLink* link, nanoseconds read, nanoseconds request) {
  const bool late =
      read > Patience(NodeOperation::kRead) || request > Patience(NodeOperation::kRequest);
  MutexLock lock(&mutex_);
  NodePace* const pace = link->mutable_pace();
  if (!pace->slow()) return;
  const uint64_t now = fabric_->context.clock->NowNanos();
  pace->answers_well_ = !late;
  if (late || NACRE_PLANTED_BUG("pace.slow-for-ever")) {
    pace->until_nanos_ = now + Nanos(pace->probation_);
  } else if (now >= pace->until_nanos_) {
    return Return(link, now);
  }
  pace->probe_at_nanos_ =
      std::min(now + Nanos(kProbeInterval), std::max(now + 1, pace->until_nanos_));
}

void PoolPace::Return(NodeLink* link, uint64_t now) {
  NodePace* const pace = link->mutable_pace();
  pace->returned_nanos_ = now;
  // What it took while it was slow says nothing of it now.
  for (OperationTimes& times : pace->times_) times.Age();
  SetSlow(link, false);
}

void PoolPace::Forget(NodeLink* link) {
  MutexLock lock(&mutex_);
  if (link->pace().slow()) SetSlow(link, false);
}

}  // namespace nacre::pool
