#include "tests/support/rdma/rdma_requests.h"

#include <atomic>
#include <cstring>
#include <numeric>

namespace nacre::rdma {

namespace {

/// Waits for a send-side completion, which must be the only kind that is outstanding.
Status WaitForSuccess(Endpoint* endpoint) {
  Completion completion;
  if (!endpoint->Next(&completion, Endpoint::kPatience)) return Status::TimedOut("no completion");
  if (completion.code == CompletionCode::kSuccess) return Status::OK();
  return Status::IOError(ToString(completion.code));
}

// Layout of the server's region.
constexpr size_t kReceiveAt = 0;
constexpr size_t kReplyAt = Device::kMaxSendBytes;
constexpr size_t kArgumentAt = 2 * Device::kMaxSendBytes;

Status ServeOne(Endpoint* endpoint, QueuePair* queue_pair, const Completion& arrival, int region) {
  SumRequest request;
  std::memcpy(&request, endpoint->Data(region) + kReceiveAt, sizeof(request));
  const char* argument = endpoint->Data(region) + kReceiveAt + sizeof(request);
  size_t size = arrival.bytes - sizeof(request);
  if (request.argument_size > 0) {
    size = request.argument_size;
    NACRE_RETURN_IF_ERROR(queue_pair->PostRead(1, endpoint->Buffer(region, kArgumentAt, size),
                                               {request.argument_address, request.key}, kSignaled));
    NACRE_RETURN_IF_ERROR(WaitForSuccess(endpoint));
    argument = endpoint->Data(region) + kArgumentAt;
  }
  SumReply reply{.done = 1};
  for (size_t i = 0; i < size; i++) reply.sum += static_cast<unsigned char>(argument[i]);
  std::memcpy(endpoint->Data(region) + kReplyAt, &reply, sizeof(reply));
  // The next request may come as soon as the reply is visible.
  NACRE_RETURN_IF_ERROR(
      queue_pair->PostRecv(0, endpoint->Buffer(region, kReceiveAt, Device::kMaxSendBytes)));
  const LocalBuffer from = endpoint->Buffer(region, kReplyAt, sizeof(reply));
  const RemoteBuffer to{request.reply_address, request.key};
  return request.wake == 0 ? queue_pair->PostWrite(2, from, to, 0)
                           : queue_pair->PostWriteWithImm(2, from, to, request.wake, 0);
}

}  // namespace

Status AddTo(Endpoint* endpoint, QueuePair* queue_pair, LocalBuffer result, RemoteBuffer target,
             int count, bool by_swap) {
  uint64_t expected = 0;
  for (int done = 0; done < count;) {
    NACRE_RETURN_IF_ERROR(
        by_swap ? queue_pair->PostCompareSwap(1, result, target, expected, expected + 1, kSignaled)
                : queue_pair->PostFetchAdd(1, result, target, 1, kSignaled));
    NACRE_RETURN_IF_ERROR(WaitForSuccess(endpoint));
    uint64_t before;
    std::memcpy(&before, result.data, sizeof(before));
    if (!by_swap || before == expected) {
      done++;
      expected++;
    } else {
      expected = before;
    }
  }
  return Status::OK();
}

Status Echo(Endpoint* endpoint, QueuePair* queue_pair, int count, int region) {
  for (int done = 0; done < count;) {
    Completion completion;
    if (!endpoint->Next(&completion, Endpoint::kPatience)) return Status::TimedOut("no message");
    if (completion.code != CompletionCode::kSuccess) {
      return Status::IOError(ToString(completion.code));
    }
    if (completion.opcode != Opcode::kRecv) continue;
    std::memcpy(endpoint->Data(region) + Device::kMaxSendBytes, endpoint->Data(region),
                completion.bytes);
    NACRE_RETURN_IF_ERROR(
        queue_pair->PostRecv(0, endpoint->Buffer(region, 0, Device::kMaxSendBytes)));
    NACRE_RETURN_IF_ERROR(queue_pair->PostSend(
        1, endpoint->Buffer(region, Device::kMaxSendBytes, completion.bytes), kSignaled));
    done++;
  }
  return Status::OK();
}

Status ServeRequests(Endpoint* endpoint, QueuePair* queue_pair, int count, int region) {
  for (int served = 0; served < count; served++) {
    Completion arrival;
    if (!endpoint->Next(&arrival, Endpoint::kPatience)) return Status::TimedOut("no request");
    if (arrival.opcode != Opcode::kRecv || arrival.code != CompletionCode::kSuccess) {
      return Status::IOError(std::string("receive: ") + ToString(arrival.code));
    }
    NACRE_RETURN_IF_ERROR(ServeOne(endpoint, queue_pair, arrival, region));
  }
  // The last reply is out before the caller tears anything down.
  NACRE_RETURN_IF_ERROR(queue_pair->PostRead(3, {}, {}, kSignaled));
  return WaitForSuccess(endpoint);
}

}  // namespace nacre::rdma
