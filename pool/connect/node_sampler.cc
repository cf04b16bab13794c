#include "pool/connect/node_sampler.h"

#include <utility>

#include "pool/connect/spin_wait.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/protocol.h"

namespace nacre::pool {
namespace {

constexpr uint32_t kReadBytes = 64;

std::chrono::nanoseconds Since(Clock* clock, uint64_t start) {
  return std::chrono::nanoseconds(clock->NowNanos() - start);
}

}  // namespace

Status NodeSampler::Open(const ClientContext* context, const NodeLink* link, Deadline deadline,
                         std::unique_ptr<NodeSampler>* sampler) {
  std::unique_ptr<NodeSampler> result(new NodeSampler(context, link));
  rdma::Device* const device = context->device->ForPeer(link->address());
  NACRE_RETURN_IF_ERROR(device->CreateCompletionQueue(/*capacity=*/8, &result->queue_));
  NACRE_RETURN_IF_ERROR(
      device->AllocateRegion(kReadBytes, rdma::Access::kLocalOnly, &result->landing_));
  NACRE_RETURN_IF_ERROR(link->Connect(device, ConnectionKind::kData,
                                      rdma::QueueDepths{.send = 4, .receive = 1},
                                      result->queue_.get(), deadline, &result->queue_pair_));
  *sampler = std::move(result);
  return Status::OK();
}

Status NodeSampler::Read(Deadline deadline, nanoseconds* took) {
  const uint64_t start = context_->clock->NowNanos();
  uint64_t contiguous = 0;
  NACRE_RETURN_IF_ERROR(queue_pair_->PostRead(
      /*id=*/1, {.data = landing_->data(), .size = kReadBytes, .region = landing_.get()},
      link_->Translate(0, &contiguous), rdma::kSignaled));
  SpinWait pause(context_->clock);
  rdma::Completion completion;
  while (queue_->Poll(&completion, 1) == 0) {
    if (deadline.Expired()) return Status::TimedOut(link_->address() + ": a read did not end");
    pause.Pause();
  }
  *took = Since(context_->clock, start);
  return StatusOfCompletion(link_->address(), completion.code);
}

Status NodeSampler::Ping(Deadline deadline, nanoseconds* took) {
  if (channel_ == nullptr) {
    NACRE_RETURN_IF_ERROR(RequestChannel::Open(context_, link_, deadline, &channel_));
  }
  const uint64_t start = context_->clock->NowNanos();
  control::Request request;
  control::Reply reply;
  request.mutable_ping();
  NACRE_RETURN_IF_ERROR(channel_->Call(&request, deadline, &reply));
  *took = Since(context_->clock, start);
  return Status::OK();
}

}  // namespace nacre::pool
