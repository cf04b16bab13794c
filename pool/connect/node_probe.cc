#include "pool/connect/node_probe.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "pool/connect/request_channel.h"
#include "pool/connect/spin_wait.h"
#include "pool/wire/control.pb.h"
#include "util/exceptions.h"

namespace nacre::pool {
namespace {

constexpr int kReads = 4;
constexpr int kRequests = 2;
constexpr uint32_t kReadBytes = 64;

std::chrono::nanoseconds Since(Clock* clock, uint64_t start) {
  return std::chrono::nanoseconds(clock->NowNanos() - start);
}

}  // namespace

NodeProbe::NodeProbe(const ClientContext& context, NodeLink* link,
                     std::chrono::nanoseconds patience, std::function<void()> wake)
    : context_(context), link_(link), patience_(patience) {
  thread_ = Thread("nacre-probe", [this, wake = std::move(wake)] {
    const Deadline deadline = Deadline::After(context_.clock, patience_);
    status_ = CatchAll([&] { return Ask(deadline); });
    // What came later counts: transports answer `Unavailable` for silence, too.
    if (!status_.ok() && answered_ && deadline.Expired()) {
      status_ = Status::TimedOut(link_->address() + ": slow to answer a probe");
    }
    done_.store(true, std::memory_order_release);
    wake();
  });
}

NodeProbe::~NodeProbe() { thread_.Join(); }

Status NodeProbe::Ask(Deadline deadline) {
  rdma::Device* const device = context_.device->ForPeer(link_->address());
  // Destroyed in reverse order: the queue pair before what it uses.
  std::unique_ptr<rdma::CompletionQueue> queue;
  std::unique_ptr<rdma::MemoryRegion> landing;
  std::unique_ptr<rdma::QueuePair> queue_pair;
  std::unique_ptr<RequestChannel> channel;
  NACRE_RETURN_IF_ERROR(device->CreateCompletionQueue(/*capacity=*/8, &queue));
  NACRE_RETURN_IF_ERROR(device->AllocateRegion(kReadBytes, rdma::Access::kLocalOnly, &landing));
  NACRE_RETURN_IF_ERROR(link_->Connect(device, ConnectionKind::kData,
                                       rdma::QueueDepths{.send = 4, .receive = 1}, queue.get(),
                                       deadline, &queue_pair));
  answered_ = true;
  for (int i = 0; i < kReads; ++i) {
    NACRE_RETURN_IF_ERROR(Read(queue_pair.get(), queue.get(), *landing, deadline));
  }
  NACRE_RETURN_IF_ERROR(RequestChannel::Open(&context_, link_, deadline, &channel));
  for (int i = 0; i < kRequests; ++i) {
    const uint64_t start = context_.clock->NowNanos();
    control::Request request;
    control::Reply reply;
    request.mutable_ping();
    NACRE_RETURN_IF_ERROR(channel->Call(&request, deadline, &reply));
    longest_request_ = std::max(longest_request_, Since(context_.clock, start));
  }
  return Status::OK();
}

Status NodeProbe::Read(rdma::QueuePair* queue_pair, rdma::CompletionQueue* queue,
                       const rdma::MemoryRegion& landing, Deadline deadline) {
  const uint64_t start = context_.clock->NowNanos();
  uint64_t contiguous = 0;
  NACRE_RETURN_IF_ERROR(queue_pair->PostRead(
      /*id=*/1, {.data = landing.data(), .size = kReadBytes, .region = &landing},
      link_->Translate(0, &contiguous), rdma::kSignaled));
  SpinWait pause(context_.clock);
  rdma::Completion completion;
  while (queue->Poll(&completion, 1) == 0) {
    if (deadline.Expired()) return Status::TimedOut(link_->address() + ": a read did not end");
    pause.Pause();
  }
  longest_read_ = std::max(longest_read_, Since(context_.clock, start));
  return StatusOfCompletion(link_->address(), completion.code);
}

}  // namespace nacre::pool
