#include "pool/connect/node_knock.h"

#include <memory>
#include <utility>

#include "pool/connect/request_channel.h"
#include "pool/wire/control.pb.h"
#include "util/draw_id.h"
#include "util/exceptions.h"

namespace nacre::pool {

NodeKnock::NodeKnock(const ClientContext& context, const std::string& address, uint64_t instance_id,
                     std::chrono::nanoseconds patience, std::function<void()> wake)
    : context_(context), link_(&context_, kLostNode, address), patience_(patience) {
  link_.ExpectInstance(instance_id);
  thread_ = Thread("nacre-knock", [this, wake = std::move(wake)] {
    const uint64_t start = context_.clock->NowNanos();
    status_ = CatchAll([this] { return Ask(Deadline::After(context_.clock, patience_)); });
    took_ = std::chrono::nanoseconds(context_.clock->NowNanos() - start);
    done_.store(true, std::memory_order_release);
    wake();
  });
}

NodeKnock::~NodeKnock() { thread_.Join(); }

Status NodeKnock::Ask(Deadline deadline) {
  NACRE_RETURN_IF_ERROR(DrawId(&context_.client_id));
  // No completion is taken off it: the request has a queue of its own.
  std::unique_ptr<rdma::CompletionQueue> queue;
  std::unique_ptr<rdma::QueuePair> lifeline;
  std::unique_ptr<RequestChannel> channel;
  NACRE_RETURN_IF_ERROR(context_.device->CreateCompletionQueue(/*capacity=*/8, &queue));
  NACRE_RETURN_IF_ERROR(link_.ConnectLifeline(context_.device,
                                              rdma::QueueDepths{.send = 2, .receive = 2},
                                              queue.get(), deadline, &lifeline));
  NACRE_RETURN_IF_ERROR(RequestChannel::Open(&context_, &link_, deadline, &channel));
  control::Request request;
  control::Reply reply;
  request.mutable_ping();
  return channel->Call(&request, deadline, &reply);
}

}  // namespace nacre::pool
