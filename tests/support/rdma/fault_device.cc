#include "tests/support/rdma/fault_device.h"

#include <atomic>
#include <map>
#include <set>
#include <utility>

#include "rdma/interposed_device.h"
#include "util/mutex.h"
#include "util/random.h"

namespace nacre::rdma {

namespace {

Verdict::Action ActionOf(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::kFail:
      return Verdict::Action::kFail;
    case Fault::Kind::kLose:
      return Verdict::Action::kLose;
    case Fault::Kind::kLoseResponse:
      return Verdict::Action::kLoseResponse;
    case Fault::Kind::kDelay:
      break;
  }
  return Verdict::Action::kPass;
}

class FaultInterposer final : public Interposer, public FaultControl {
 public:
  FaultInterposer(FaultPlan plan, Clock* clock) : plan_(std::move(plan)), clock_(clock) {
    for (const Fault& fault : plan_.schedule) schedule_[fault.post] = fault;
  }

  Verdict BeforePost(const std::string& peer) override EXCLUDES(mutex_) {
    const uint64_t post = posts_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (Blocks(peer)) return ToVerdict({.post = post, .kind = Fault::Kind::kLose});
    if (const auto found = schedule_.find(post); found != schedule_.end()) {
      return ToVerdict(found->second);
    }
    if (plan_.fail_probability + plan_.delay_probability + plan_.lose_probability > 0) {
      return ByChance(post);
    }
    return {};
  }
  uint64_t AfterPost(const std::string& /*peer*/, Opcode /*opcode*/, uint64_t /*bytes*/) override {
    return 0;
  }
  uint64_t OnArrival() override { return 0; }
  bool Blocks(const std::string& peer) override EXCLUDES(mutex_) {
    // Relaxed: a partition has no defined moment for other threads.
    if (partitions_.load(std::memory_order_relaxed) == 0) return false;
    MutexLock lock(&mutex_);
    return partitioned_.contains(peer) || partitioned_.contains("");
  }

  void Partition(const std::string& peer) override EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    partitioned_.insert(peer);
    partitions_.store(partitioned_.size(), std::memory_order_relaxed);
  }
  void Heal(const std::string& peer) override EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    partitioned_.erase(peer);
    partitions_.store(partitioned_.size(), std::memory_order_relaxed);
  }
  uint64_t posts() const override { return posts_.load(std::memory_order_relaxed); }

 private:
  Verdict ToVerdict(const Fault& fault) const {
    Verdict verdict{.action = ActionOf(fault.kind), .code = fault.code};
    if (fault.kind == Fault::Kind::kDelay) {
      verdict.due_nanos = clock_->NowNanos() + static_cast<uint64_t>(fault.delay.count());
    } else if (fault.kind != Fault::Kind::kFail) {
      verdict.code = CompletionCode::kPeerGone;
      verdict.due_nanos = clock_->NowNanos() + static_cast<uint64_t>(plan_.give_up.count());
    }
    return verdict;
  }

  Verdict ByChance(uint64_t post) const {
    Random random(plan_.seed * 0x9e3779b97f4a7c15 + post);
    double dice = random.NextDouble();
    if (dice < plan_.fail_probability) {
      return ToVerdict({.post = post, .kind = Fault::Kind::kFail});
    }
    dice -= plan_.fail_probability;
    if (dice < plan_.lose_probability) {
      return ToVerdict({.post = post,
                        .kind = random.OneIn(2) ? Fault::Kind::kLose : Fault::Kind::kLoseResponse});
    }
    dice -= plan_.lose_probability;
    if (dice < plan_.delay_probability) {
      const auto delay_max = static_cast<uint64_t>(plan_.delay_max.count());
      return ToVerdict({.post = post,
                        .kind = Fault::Kind::kDelay,
                        .delay = std::chrono::nanoseconds(random.Uniform(delay_max + 1))});
    }
    return {};
  }

  const FaultPlan plan_;
  Clock* const clock_;
  std::map<uint64_t, Fault> schedule_;
  std::atomic<uint64_t> posts_{0};
  std::atomic<size_t> partitions_{0};
  Mutex mutex_;
  std::set<std::string> partitioned_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Device> WrapWithFaults(std::unique_ptr<Device> inner, FaultPlan plan, Clock* clock,
                                       std::shared_ptr<FaultControl>* control) {
  auto interposer = std::make_shared<FaultInterposer>(std::move(plan), clock);
  if (control != nullptr) *control = interposer;
  return std::make_unique<InterposedDevice>(std::move(inner), std::move(interposer), clock);
}

}  // namespace nacre::rdma
