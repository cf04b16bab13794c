#include "pool/connect/request_channel.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <utility>

#include "pool/connect/node_link.h"
#include "pool/connect/spin_wait.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/protocol.h"
#include "util/codes/crc32c.h"

namespace nacre::pool {
namespace {

constexpr size_t kReplyBytes = 64 << 10;
/// A reply region that grew beyond this for one answer is not kept.
constexpr size_t kMaxKeptBytes = 1 << 20;
/// The receive that a wake-up consumes takes no bytes; it only needs an address.
constexpr size_t kWakeReceiveBytes = 64;

constexpr uint64_t kSendId = 1;
constexpr uint64_t kReceiveId = 2;

}  // namespace

Status RequestChannel::Open(const ClientContext* context, const NodeLink* link, Deadline deadline,
                            std::unique_ptr<RequestChannel>* channel) {
  std::unique_ptr<RequestChannel> result(
      new RequestChannel(context, link, context->device->ForPeer(link->address())));
  rdma::Device* device = result->device_;
  NACRE_RETURN_IF_ERROR(device->CreateCompletionQueue(16, &result->queue_));
  NACRE_RETURN_IF_ERROR(device->AllocateRegion(rdma::Device::kMaxSendBytes + kWakeReceiveBytes,
                                               rdma::Access::kLocalOnly, &result->send_region_));
  NACRE_RETURN_IF_ERROR(result->UseReplyRegion(kReplyBytes));
  NACRE_RETURN_IF_ERROR(link->Connect(device, ConnectionKind::kRequest,
                                      rdma::QueueDepths{.send = 4, .receive = 4},
                                      result->queue_.get(), deadline, &result->queue_pair_));
  *channel = std::move(result);
  return Status::OK();
}

RequestChannel::~RequestChannel() = default;

Status RequestChannel::Call(control::Request* request, Deadline deadline, control::Reply* reply) {
  request->set_wake(false);
  return Exchange(
      request, [&] { return AwaitByPolling(deadline); }, reply);
}

Status RequestChannel::CallAndSleep(control::Request* request, std::chrono::nanoseconds period,
                                    const std::function<Status()>& still_wanted,
                                    control::Reply* reply) {
  request->set_wake(true);
  return Exchange(
      request, [&] { return AwaitAsleep(period, still_wanted); }, reply);
}

Status RequestChannel::Exchange(control::Request* request, const std::function<Status()>& wait,
                                control::Reply* reply) {
  NACRE_RETURN_IF_ERROR(Begin(request));
  if (Status s = wait(); !s.ok()) return Broken(std::move(s));
  bool done = false;
  NACRE_RETURN_IF_ERROR(TryEnd(reply, &done));
  if (done) return Status::OK();
  if (Status s = AwaitByPolling(context_->OperationDeadline()); !s.ok()) {
    return Broken(std::move(s));
  }
  return TryEnd(reply, &done);
}

Status RequestChannel::Begin(control::Request* request) {
  sent_ = false;
  if (broken()) return Status::Unavailable(link_->address() + ": connection lost");
  fetching_ = false;
  if (Status s = Send(request); !s.ok()) return Broken(std::move(s));
  sent_ = true;
  return Status::OK();
}

Status RequestChannel::TryEnd(control::Reply* reply, bool* done) {
  *done = false;
  if (!ReplyArrived()) return Status::OK();
  reply->Clear();
  if (Status s =
          DecodeReplyFrame(Slice(reply_region_->data(), reply_region_->size()), last_id_, reply);
      !s.ok()) {
    return Broken(s.WithContext(link_->address()));
  }
  if (reply->needed_bytes() != 0) {
    if (Status s = FetchReply(reply->needed_bytes()); !s.ok()) return Broken(std::move(s));
    return Status::OK();
  }
  if (reply_region_->size() > kMaxKeptBytes) {
    if (Status s = UseReplyRegion(kReplyBytes); !s.ok()) return Broken(std::move(s));
  }
  if (large_region_ != nullptr && large_region_->size() > kMaxKeptBytes) large_region_.reset();
  *done = true;
  return Status::OK();
}

Status RequestChannel::FetchReply(uint64_t bytes) {
  if (fetching_) return Status::Corruption(link_->address() + ": a reply does not stop growing");
  if (bytes > kMaxReplyBytes) {
    return Status::Corruption(
        fmt::format("{}: announces a reply of {} bytes", link_->address(), bytes));
  }
  NACRE_RETURN_IF_ERROR(UseReplyRegion(bytes));
  control::Request fetch;
  fetch.mutable_fetch_reply();
  fetching_ = true;
  return Send(&fetch);
}

Status RequestChannel::Send(control::Request* request) {
  request->set_id(++last_id_);
  const rdma::RemoteKey reply_key = reply_region_->remote_key();
  request->mutable_reply()->set_address(reply_key.address);
  request->mutable_reply()->set_key(reply_key.key);
  request->mutable_reply()->set_length(reply_region_->size());
  std::memset(reply_region_->data() + reply_region_->size() - kReplyTrailerBytes, 0,
              kReplyTrailerBytes);

  if (request->wake()) {
    // Each wake-up consumes one; the completion of the last one may not have been taken yet.
    NACRE_RETURN_IF_ERROR(queue_pair_->PostRecv(
        kReceiveId, {.data = send_region_->data() + rdma::Device::kMaxSendBytes,
                     .size = static_cast<uint32_t>(kWakeReceiveBytes),
                     .region = send_region_.get()}));
  }

  const size_t bytes = request->ByteSizeLong();
  if (bytes <= rdma::Device::kMaxSendBytes) return SendBytes(request->SerializeAsString());
  if (bytes > kMaxLargeRequestBytes) {
    return Status::InvalidArgument(fmt::format("a request of {} bytes is too large", bytes));
  }

  if (large_region_ == nullptr || large_region_->size() < bytes) {
    large_region_.reset();
    NACRE_RETURN_IF_ERROR(
        device_->AllocateRegion(bytes, rdma::Access::kRemoteReadOnly, &large_region_));
  }
  if (!request->SerializeToArray(large_region_->data(), static_cast<int>(bytes))) {
    return Status::InvalidArgument("a request cannot be encoded");
  }
  control::Request envelope;
  envelope.set_id(request->id());
  *envelope.mutable_reply() = request->reply();
  envelope.set_wake(request->wake());
  const rdma::RemoteKey key = large_region_->remote_key();
  envelope.mutable_large()->set_address(key.address);
  envelope.mutable_large()->set_key(key.key);
  envelope.mutable_large()->set_length(bytes);
  envelope.set_large_crc(Crc32c(large_region_->data(), bytes));
  return SendBytes(envelope.SerializeAsString());
}

Status RequestChannel::SendBytes(const std::string& bytes) {
  // The reply to the previous request came after its SEND was taken: its completion is there or
  // about to be.
  SpinWait pause(context_->clock);
  const Deadline deadline = context_->OperationDeadline();
  while (sends_outstanding_ > 0) {
    NACRE_RETURN_IF_ERROR(PollQueue());
    if (sends_outstanding_ == 0) break;
    if (deadline.Expired())
      return Status::TimedOut(link_->address() + ": a request does not leave");
    pause.Pause();
  }
  std::memcpy(send_region_->data(), bytes.data(), bytes.size());
  NACRE_RETURN_IF_ERROR(queue_pair_->PostSend(kSendId,
                                              {.data = send_region_->data(),
                                               .size = static_cast<uint32_t>(bytes.size()),
                                               .region = send_region_.get()},
                                              rdma::kSignaled));
  ++sends_outstanding_;
  return Status::OK();
}

bool RequestChannel::ReplyArrived() const {
  auto* flag = reinterpret_cast<uint64_t*>(reply_region_->data() + reply_region_->size() - 8);
  // Acquire: the bytes before the flag were written before it.
  return std::atomic_ref<uint64_t>(*flag).load(std::memory_order_acquire) == last_id_;
}

Status RequestChannel::PollQueue() {
  rdma::Completion completions[4];
  const int n = queue_->Poll(completions, 4);
  Status failure;
  for (int i = 0; i < n; ++i) {
    const rdma::Completion& completion = completions[i];
    if (completion.id == kSendId) --sends_outstanding_;
    if (completion.code != rdma::CompletionCode::kSuccess && failure.ok()) {
      failure = StatusOfCompletion(link_->address(), completion.code);
    }
  }
  return failure;
}

Status RequestChannel::CheckConnection() {
  Status failure = PollQueue();
  if (failure.ok() && queue_pair_->broken()) {
    failure = StatusOfCompletion(link_->address(), rdma::CompletionCode::kPeerGone);
  }
  // The node may have answered before it went.
  if (failure.ok() || ReplyArrived()) return Status::OK();
  return Broken(std::move(failure));
}

Status RequestChannel::AwaitByPolling(Deadline deadline) {
  SpinWait pause(context_->clock);
  while (!ReplyArrived()) {
    pause.Pause();
    if (!pause.TimeToCheckClock()) continue;
    NACRE_RETURN_IF_ERROR(CheckConnection());
    if (!ReplyArrived() && deadline.Expired()) {
      return Status::TimedOut(link_->address() + ": no answer to a request");
    }
  }
  return Status::OK();
}

Status RequestChannel::AwaitAsleep(std::chrono::nanoseconds period,
                                   const std::function<Status()>& still_wanted) {
  while (!ReplyArrived()) {
    const Status woken = queue_->Wait(period);
    if (!woken.ok() && !woken.IsTimedOut()) return woken.WithContext(link_->address());
    Status failure = PollQueue();
    if (failure.ok() && queue_pair_->broken()) {
      failure = StatusOfCompletion(link_->address(), rdma::CompletionCode::kPeerGone);
    }
    if (ReplyArrived()) return Status::OK();
    NACRE_RETURN_IF_ERROR(failure);
    NACRE_RETURN_IF_ERROR(still_wanted());
  }
  return Status::OK();
}

Status RequestChannel::UseReplyRegion(uint64_t bytes) {
  // The flag is an aligned word at the end.
  bytes = (bytes + 63) / 64 * 64;
  if (reply_region_ != nullptr && reply_region_->size() == bytes) return Status::OK();
  reply_region_.reset();
  return device_->AllocateRegion(bytes, rdma::Access::kRemoteAll, &reply_region_);
}

Status RequestChannel::Broken(Status why) {
  broken_ = true;
  return why;
}

}  // namespace nacre::pool
