#include "perf/workload.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "perf/peer.h"
#include "util/random.h"

namespace nacre::perf {

namespace {

using rdma::CompletionCode;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr seconds kConnectTimeout{10};
constexpr nanoseconds kSilence = seconds(10);

/// What the threads do now; set by the one that waits for them.
struct Phase {
  std::atomic<bool> measuring{false};
  std::atomic<bool> stop{false};
  std::atomic<size_t> measured{0};  ///< Threads that have an operation in the measurement.
};

/// One thread's connection, with `depth` operations under way. Operation i uses slot i of the local
/// region.
class Driver {
 public:
  Driver(const Workload& workload, rdma::Device* device, Clock* clock, uint64_t seed)
      : workload_(workload),
        device_(device),
        clock_(clock),
        random_(seed),
        size_(workload.operation == Operation::kCas ? sizeof(uint64_t) : workload.size),
        slot_bytes_((std::max<size_t>(size_, 8) + 63) / 64 * 64),
        started_(static_cast<size_t>(workload.depth)) {}

  Status Connect(const std::string& address);
  Status Drive(Phase* phase);

  uint64_t operations() const { return operations_; }
  const Histogram& latency() const { return latency_; }

 private:
  rdma::LocalBuffer Slot(uint64_t i, uint64_t half = 0) const {
    return {.data = region_->data() + (2 * i + half) * slot_bytes_,
            .size = static_cast<uint32_t>(size_),
            .region = region_.get()};
  }
  rdma::RemoteBuffer Target(uint64_t i);
  Status Post(uint64_t i, bool more);
  /// One turn of polling; frees what has completed.
  Status Collect(bool measuring);
  void Complete(uint64_t i, bool measuring);

  const Workload& workload_;
  rdma::Device* const device_;
  Clock* const clock_;
  Random random_;
  const size_t size_;
  const size_t slot_bytes_;
  std::unique_ptr<rdma::MemoryRegion> region_;
  std::unique_ptr<rdma::CompletionQueue> queue_;
  std::unique_ptr<rdma::QueuePair> queue_pair_;
  rdma::RemoteKey far_;
  std::vector<uint64_t> started_;  ///< Start times in nanoseconds, by slot.
  std::vector<uint64_t> free_;     ///< Slots.
  uint64_t last_progress_ = 0;
  uint64_t operations_ = 0;
  Histogram latency_;
};

Status Driver::Connect(const std::string& address) {
  const int depth = workload_.depth;
  const bool sends = workload_.operation == Operation::kSend;
  NACRE_RETURN_IF_ERROR(device_->CreateCompletionQueue(4 * depth + 16, &queue_));
  NACRE_RETURN_IF_ERROR(device_->AllocateRegion(2 * static_cast<size_t>(depth) * slot_bytes_,
                                                rdma::Access::kLocalOnly, &region_));
  NACRE_RETURN_IF_ERROR(region_->Populate());
  // Twice as many messages, since an echo may be here before both ends have been told that what
  // they sent has left.
  const rdma::QueueDepths depths{
      .send = sends ? 2 * depth : depth, .receive = sends ? 2 * depth : 1, .control = sends};
  std::string reply;
  NACRE_RETURN_IF_ERROR(device_->Connect(address, "", depths, queue_.get(), queue_.get(),
                                         Deadline::After(clock_, kConnectTimeout), &reply,
                                         &queue_pair_));
  Peer::Welcome welcome;
  if (!Peer::Welcome::Decode(reply, &welcome)) {
    return Status::InvalidArgument(address + ": is no peer of nacre-perf");
  }
  far_ = welcome.key;
  if (!sends && far_.size < size_) {
    return Status::InvalidArgument(address + ": has " + std::to_string(far_.size) +
                                   " bytes only; start it with a larger --region");
  }
  for (int i = depth - 1; i >= 0; --i) {
    const auto slot = static_cast<uint64_t>(i);
    free_.push_back(slot);
    if (sends) NACRE_RETURN_IF_ERROR(queue_pair_->PostRecv(slot, Slot(slot, 1)));
  }
  last_progress_ = clock_->NowNanos();
  return Status::OK();
}

rdma::RemoteBuffer Driver::Target(uint64_t i) {
  const uint64_t places = (far_.size - size_) / 64 + 1;
  const uint64_t place = workload_.random ? random_.Uniform(places) : i % places;
  return {.address = far_.address + place * 64, .key = far_.key};
}

Status Driver::Post(uint64_t i, bool more) {
  const uint8_t flags = more ? rdma::kSignaled | rdma::kMore : rdma::kSignaled;
  started_[i] = clock_->NowNanos();
  switch (workload_.operation) {
    case Operation::kRead:
      return queue_pair_->PostRead(i, Slot(i), Target(i), flags);
    case Operation::kWrite:
      return queue_pair_->PostWrite(i, Slot(i), Target(i), flags);
    case Operation::kCas:
      return queue_pair_->PostCompareSwap(i, Slot(i), Target(i), 0, 0, flags);
    case Operation::kSend:
      break;
  }
  // Its completion says nothing that the echo does not say.
  return queue_pair_->PostSend(i, Slot(i), flags);
}

void Driver::Complete(uint64_t i, bool measuring) {
  free_.push_back(i);
  last_progress_ = clock_->NowNanos();
  if (!measuring) return;
  ++operations_;
  latency_.Add(last_progress_ - started_[i]);
}

Status Driver::Collect(bool measuring) {
  rdma::Completion completions[16];
  const int n = queue_->Poll(completions, 16);
  for (int i = 0; i < n; ++i) {
    const rdma::Completion& completion = completions[i];
    if (completion.code != CompletionCode::kSuccess) {
      return Status::Unavailable(queue_pair_->peer() + ": " + rdma::ToString(completion.code));
    }
    if (completion.opcode == rdma::Opcode::kSend) continue;
    if (completion.opcode == rdma::Opcode::kRecv) {
      NACRE_RETURN_IF_ERROR(queue_pair_->PostRecv(completion.id, Slot(completion.id, 1)));
    }
    Complete(completion.id, measuring);
  }
  if (n == 0 && clock_->NowNanos() - last_progress_ > static_cast<uint64_t>(kSilence.count())) {
    return Status::TimedOut(queue_pair_->peer() + ": nothing completes");
  }
  return Status::OK();
}

Status Driver::Drive(Phase* phase) {
  bool measured = false;
  const auto batch = static_cast<size_t>(workload_.batch);
  const auto depth = static_cast<size_t>(workload_.depth);
  while (!phase->stop.load(std::memory_order_relaxed)) {
    while (free_.size() >= batch) {
      for (size_t i = 0; i < batch; ++i) {
        const uint64_t slot = free_.back();
        free_.pop_back();
        NACRE_RETURN_IF_ERROR(Post(slot, i + 1 < batch));
      }
    }
    NACRE_RETURN_IF_ERROR(Collect(phase->measuring.load(std::memory_order_relaxed)));
    if (!measured && operations_ > 0) {
      measured = true;
      phase->measured.fetch_add(1, std::memory_order_relaxed);
    }
  }
  // Buffers belong to the transport until their completion.
  while (free_.size() < depth) NACRE_RETURN_IF_ERROR(Collect(false));
  return Status::OK();
}

Status Check(const Workload& workload) {
  if (workload.depth < 1 || workload.depth > 4096) {
    return Status::InvalidArgument("depth " + std::to_string(workload.depth) + ": 1 to 4096");
  }
  if (workload.batch < 1 || workload.batch > workload.depth) {
    return Status::InvalidArgument("batch " + std::to_string(workload.batch) + ": 1 to the depth");
  }
  if (workload.threads < 1 || workload.threads > 1024) {
    return Status::InvalidArgument("threads " + std::to_string(workload.threads) + ": 1 to 1024");
  }
  if (workload.size < 1 || workload.size > (size_t{1} << 30)) {
    return Status::InvalidArgument("size " + std::to_string(workload.size) + ": 1 to 1 GiB");
  }
  if (workload.operation == Operation::kSend && workload.size > rdma::Device::kMaxSendBytes) {
    return Status::InvalidArgument("a message has at most " +
                                   std::to_string(rdma::Device::kMaxSendBytes) + " bytes");
  }
  if (!(workload.seconds > 0) || workload.seconds > 3600) {
    return Status::InvalidArgument("seconds: more than 0, at most 3600");
  }
  return Status::OK();
}

}  // namespace

bool ParseOperation(const std::string& name, Operation* operation) {
  constexpr std::pair<const char*, Operation> kNames[] = {{"read", Operation::kRead},
                                                          {"write", Operation::kWrite},
                                                          {"cas", Operation::kCas},
                                                          {"send", Operation::kSend}};
  for (const auto& [known, value] : kNames) {
    if (name != known) continue;
    *operation = value;
    return true;
  }
  return false;
}

Status Run(const Workload& workload, rdma::Device* device, const std::string& address, Clock* clock,
           Result* result) {
  NACRE_RETURN_IF_ERROR(Check(workload));
  const auto threads = static_cast<size_t>(workload.threads);
  std::vector<std::unique_ptr<Driver>> drivers;
  for (size_t i = 0; i < threads; ++i) {
    drivers.push_back(std::make_unique<Driver>(workload, device, clock, i + 1));
    NACRE_RETURN_IF_ERROR(drivers.back()->Connect(address));
  }
  Phase phase;
  std::vector<Status> statuses(threads);
  std::vector<std::thread> workers;
  std::atomic<size_t> ended{0};
  for (size_t i = 0; i < threads; ++i) {
    workers.emplace_back([&, i] {
      statuses[i] = drivers[i]->Drive(&phase);
      ended.fetch_add(1);
    });
  }
  // A thread that fails ends the run early.
  const auto wait = [&](double how_long, size_t measured) {
    constexpr nanoseconds kStep = std::chrono::milliseconds(10);
    const Deadline end = Deadline::After(clock, nanoseconds(static_cast<int64_t>(how_long * 1e9)));
    while ((!end.Expired() || phase.measured.load() < measured) && ended.load() == 0) {
      clock->SleepFor(end.Expired() ? kStep : std::min<nanoseconds>(end.Remaining(), kStep));
    }
  };
  wait(workload.seconds / 10, 0);
  const uint64_t start = clock->NowNanos();
  phase.measuring.store(true);
  // A thread may not have had its turn by then on a busy machine.
  wait(workload.seconds, threads);
  phase.measuring.store(false);
  const uint64_t end = clock->NowNanos();
  phase.stop.store(true);
  for (std::thread& worker : workers) worker.join();
  *result = Result();
  result->seconds = static_cast<double>(end - start) / 1e9;
  for (size_t i = 0; i < threads; ++i) {
    NACRE_RETURN_IF_ERROR(statuses[i]);
    result->operations += drivers[i]->operations();
    result->latency.Merge(drivers[i]->latency());
  }
  return Status::OK();
}

}  // namespace nacre::perf
