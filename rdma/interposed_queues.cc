#include "rdma/interposed_queues.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace nacre::rdma {

namespace {

using std::chrono::nanoseconds;

/// A sleep is not punctual to less than this.
constexpr uint64_t kSpinNanos = 20'000;
/// How long a Wait leaves a blocked message unexamined: no event tells that the block has ended.
constexpr uint64_t kBlockedNanos = 1'000'000;

bool IsReceive(Opcode opcode) { return opcode == Opcode::kRecv || opcode == Opcode::kRecvWithImm; }

}  // namespace

InterposedCompletionQueue::InterposedCompletionQueue(std::unique_ptr<CompletionQueue> inner,
                                                     int capacity, Clock* clock)
    : inner_(std::move(inner)), capacity_(static_cast<uint64_t>(capacity)), clock_(clock) {}

uint64_t InterposedCompletionQueue::Attach(InterposedQueuePair* queue_pair) {
  auto place = std::find(attached_.begin(), attached_.end(), nullptr);
  if (place == attached_.end()) place = attached_.insert(place, nullptr);
  *place = queue_pair;
  return static_cast<uint64_t>(place - attached_.begin()) << kTagShift;
}

void InterposedCompletionQueue::Detach(uint64_t tag) { attached_[tag >> kTagShift] = nullptr; }

void InterposedCompletionQueue::Absorb() {
  std::array<Completion, 64> arrived;
  int count;
  do {
    count = inner_->Poll(arrived.data(), static_cast<int>(arrived.size()));
    for (int i = 0; i < count; i++) {
      const Completion& completion = arrived[static_cast<size_t>(i)];
      InterposedQueuePair* queue_pair = attached_[completion.id >> kTagShift];
      if (queue_pair != nullptr) queue_pair->Absorb(completion.id & kNumberMask, completion);
    }
  } while (count == static_cast<int>(arrived.size()));
}

int InterposedCompletionQueue::Poll(Completion* completions, int n) {
  if (pending_ == 0) return 0;
  Absorb();
  const uint64_t now = clock_->NowNanos();
  const size_t queue_pairs = attached_.size();
  int taken = 0;
  for (size_t i = 0; i < queue_pairs && taken < n; i++) {
    InterposedQueuePair* queue_pair = attached_[(first_ + i) % queue_pairs];
    if (queue_pair == nullptr) continue;
    while (taken < n && queue_pair->Take(this, now, &completions[taken])) taken++;
  }
  if (taken > 0) first_ = (first_ + 1) % queue_pairs;
  return taken;
}

uint64_t InterposedCompletionQueue::NextDue() {
  uint64_t due = kNever;
  for (InterposedQueuePair* queue_pair : attached_) {
    if (queue_pair != nullptr) due = std::min(due, queue_pair->NextDue(this));
  }
  return due;
}

Status InterposedCompletionQueue::Wait(nanoseconds timeout) {
  const uint64_t start = clock_->NowNanos();
  const auto length = static_cast<uint64_t>(std::max<int64_t>(0, timeout.count()));
  const uint64_t end = length > kNever - start ? kNever : start + length;
  while (true) {
    Absorb();
    const uint64_t due = NextDue();
    const uint64_t now = clock_->NowNanos();
    if (due <= now || wake_.exchange(false)) return Status::OK();
    if (now >= end) return Status::TimedOut("no completion");
    const uint64_t remaining = std::min(due, end) - now;
    if (due != kNever && remaining <= kSpinNanos) continue;
    const uint64_t sleep = due == kNever ? remaining : remaining - kSpinNanos;
    const Status status =
        inner_->Wait(nanoseconds(std::min(sleep, uint64_t{3600} * 1'000'000'000)));
    if (!status.ok() && !status.IsTimedOut()) return status;
  }
}

void InterposedCompletionQueue::Wake() {
  wake_.store(true);
  inner_->Wake();
}

InterposedQueuePair::InterposedQueuePair(std::unique_ptr<QueuePair> inner,
                                         std::shared_ptr<Interposer> interposer, QueueDepths depths,
                                         InterposedCompletionQueue* send_queue,
                                         InterposedCompletionQueue* receive_queue)
    : inner_(std::move(inner)), interposer_(std::move(interposer)), peer_(inner_->peer()) {
  sends_.queue = send_queue;
  sends_.tag = send_queue->Attach(this);
  sends_.depth = static_cast<uint64_t>(depths.send);
  sends_.requests.Reserve(sends_.depth);
  receives_.queue = receive_queue;
  receives_.tag = receive_queue == send_queue ? sends_.tag : receive_queue->Attach(this);
  receives_.depth = static_cast<uint64_t>(depths.receive);
  receives_.requests.Reserve(receives_.depth);
}

InterposedQueuePair::~InterposedQueuePair() {
  for (Lane* lane : {&sends_, &receives_}) {
    while (!lane->requests.empty()) Pop(lane);
    lane->queue->Detach(lane->tag);
  }
}

void InterposedQueuePair::Push(Lane* lane, const Request& request) {
  lane->requests.push_back(request);
  lane->queue->AddPending(1);
  if (request.counted) lane->queue->Promise();
}

void InterposedQueuePair::Pop(Lane* lane) {
  if (lane->requests.front().counted) lane->queue->Unpromise(1);
  lane->requests.pop_front();
  lane->first++;
  lane->queue->AddPending(-1);
}

uint64_t InterposedQueuePair::DueAfterPost(Opcode opcode, uint32_t bytes, uint8_t flags) {
  (opcode == Opcode::kRead ? batch_read_ : batch_other_) += bytes;
  if ((flags & kMore) != 0 && (flags & kSignaled) == 0) return 0;
  const bool read = opcode == Opcode::kRead;
  uint64_t due =
      interposer_->AfterPost(peer_, opcode, std::exchange(read ? batch_read_ : batch_other_, 0));
  uint64_t& others = read ? batch_other_ : batch_read_;
  if (others > 0) [[unlikely]] {
    const Opcode other = read ? Opcode::kWrite : Opcode::kRead;
    due = std::max(due, interposer_->AfterPost(peer_, other, std::exchange(others, 0)));
  }
  return due;
}

template <typename InnerPost>
Status InterposedQueuePair::Post(Opcode opcode, uint64_t id, uint32_t bytes, uint8_t flags,
                                 InnerPost inner_post) {
  if (!sends_.queue->HasRoom() || sends_.requests.size() >= sends_.depth) {
    return Status::Busy(peer_ + ": the queue for requests is full");
  }
  const bool signaled = (flags & kSignaled) != 0;
  Request request{.completion = {.id = id, .queue_pair = this, .bytes = bytes, .opcode = opcode},
                  .report = signaled,
                  .counted = signaled};
  if (inner_ == nullptr) {
    request.completion.code = CompletionCode::kFlushed;
    request.state = Request::State::kDone;
  } else if (doomed_) {
    request.state = Request::State::kWithheld;
  } else {
    const Verdict verdict = interposer_->BeforePost(peer_);
    request.due_nanos = verdict.due_nanos;
    if (verdict.action == Verdict::Action::kPass) {
      NACRE_RETURN_IF_ERROR(inner_post(inner_.get(), sends_.Id(), flags));
      request.due_nanos = std::max(request.due_nanos, DueAfterPost(opcode, bytes, flags));
    } else {
      // The last request that reaches the wrapped queue pair ends its batch, and its completion
      // tells that those before it are done.
      NACRE_RETURN_IF_ERROR(verdict.action == Verdict::Action::kLoseResponse
                                ? inner_post(inner_.get(), sends_.Id(), kSignaled)
                                : inner_->PostRead(sends_.Id(), {}, {}, kSignaled));
      request.state = Request::State::kFailing;
      request.completion.code = verdict.code;
      doomed_ = true;
    }
  }
  Push(&sends_, request);
  return Status::OK();
}

Status InterposedQueuePair::PostRead(uint64_t id, LocalBuffer to, RemoteBuffer from,
                                     uint8_t flags) {
  return Post(Opcode::kRead, id, to.size, flags,
              [&](QueuePair* inner, uint64_t inner_id, uint8_t inner_flags) {
                return inner->PostRead(inner_id, to, from, inner_flags);
              });
}

Status InterposedQueuePair::PostWrite(uint64_t id, LocalBuffer from, RemoteBuffer to,
                                      uint8_t flags) {
  return Post(Opcode::kWrite, id, from.size, flags,
              [&](QueuePair* inner, uint64_t inner_id, uint8_t inner_flags) {
                return inner->PostWrite(inner_id, from, to, inner_flags);
              });
}

Status InterposedQueuePair::PostWriteWithImm(uint64_t id, LocalBuffer from, RemoteBuffer to,
                                             uint32_t immediate, uint8_t flags) {
  return Post(Opcode::kWriteWithImm, id, from.size, flags,
              [&](QueuePair* inner, uint64_t inner_id, uint8_t inner_flags) {
                return inner->PostWriteWithImm(inner_id, from, to, immediate, inner_flags);
              });
}

Status InterposedQueuePair::PostCompareSwap(uint64_t id, LocalBuffer result, RemoteBuffer target,
                                            uint64_t expected, uint64_t desired, uint8_t flags) {
  return Post(Opcode::kCompareSwap, id, sizeof(uint64_t), flags,
              [&](QueuePair* inner, uint64_t inner_id, uint8_t inner_flags) {
                return inner->PostCompareSwap(inner_id, result, target, expected, desired,
                                              inner_flags);
              });
}

Status InterposedQueuePair::PostFetchAdd(uint64_t id, LocalBuffer result, RemoteBuffer target,
                                         uint64_t addend, uint8_t flags) {
  return Post(Opcode::kFetchAdd, id, sizeof(uint64_t), flags,
              [&](QueuePair* inner, uint64_t inner_id, uint8_t inner_flags) {
                return inner->PostFetchAdd(inner_id, result, target, addend, inner_flags);
              });
}

Status InterposedQueuePair::PostSend(uint64_t id, LocalBuffer from, uint8_t flags) {
  if (from.size > Device::kMaxSendBytes && inner_ != nullptr) {
    return inner_->PostSend(id, from, flags);  // Which refuses it in the backend's words.
  }
  return Post(Opcode::kSend, id, from.size, flags,
              [&](QueuePair* inner, uint64_t inner_id, uint8_t inner_flags) {
                return inner->PostSend(inner_id, from, inner_flags);
              });
}

Status InterposedQueuePair::PostRecv(uint64_t id, LocalBuffer to) {
  if (!receives_.queue->HasRoom() || receives_.requests.size() >= receives_.depth) {
    return Status::Busy(peer_ + ": the queue for receives is full");
  }
  Request request{.completion = {.id = id, .queue_pair = this, .opcode = Opcode::kRecv}};
  if (inner_ == nullptr) {
    request.completion.code = CompletionCode::kFlushed;
    request.state = Request::State::kDone;
  } else {
    NACRE_RETURN_IF_ERROR(inner_->PostRecv(receives_.Id(), to));
  }
  Push(&receives_, request);
  return Status::OK();
}

void InterposedQueuePair::Absorb(uint64_t number, const Completion& completion) {
  const bool receive = IsReceive(completion.opcode);
  Lane& lane = receive ? receives_ : sends_;
  const uint64_t index = (number - lane.first) & kNumberMask;
  if (index >= lane.requests.size()) return;
  // Unsignalled ones before it have succeeded.
  for (uint64_t i = index; i > 0; i--) {
    Request& before = lane.requests[i - 1];
    if (before.state != Request::State::kPosted) break;
    before.state = Request::State::kDone;
  }
  Request& request = lane.requests[index];
  if (request.state != Request::State::kPosted) return;  // Its response is lost.
  request.state = Request::State::kDone;
  request.completion.code = completion.code;
  request.completion.bytes = completion.bytes;
  request.completion.opcode = completion.opcode;
  request.completion.immediate = completion.immediate;
  if (receive && completion.code == CompletionCode::kSuccess) {
    request.due_nanos = interposer_->OnArrival();
  }
}

bool InterposedQueuePair::Blocked(const Request& request) const {
  return IsReceive(request.completion.opcode) &&
         request.completion.code == CompletionCode::kSuccess && interposer_->Blocks(peer_);
}

uint64_t InterposedQueuePair::DueOf(const Lane& lane) const {
  if (lane.requests.empty()) return kNever;
  const Request& head = lane.requests.front();
  if (head.state != Request::State::kDone && head.state != Request::State::kFailing) {
    return kNever;
  }
  if (Blocked(head)) return lane.queue->clock()->NowNanos() + kBlockedNanos;
  return head.due_nanos;
}

uint64_t InterposedQueuePair::NextDue(const InterposedCompletionQueue* queue) {
  uint64_t due = kNever;
  if (sends_.queue == queue) due = std::min(due, DueOf(sends_));
  if (receives_.queue == queue) due = std::min(due, DueOf(receives_));
  return due;
}

bool InterposedQueuePair::Take(const InterposedCompletionQueue* queue, uint64_t now,
                               Completion* completion) {
  return (sends_.queue == queue && TakeFrom(&sends_, now, completion)) ||
         (receives_.queue == queue && TakeFrom(&receives_, now, completion));
}

bool InterposedQueuePair::TakeFrom(Lane* lane, uint64_t now, Completion* completion) {
  while (!lane->requests.empty()) {
    const Request& front = lane->requests.front();
    const bool failing = front.state == Request::State::kFailing;
    if ((front.state != Request::State::kDone && !failing) || now < front.due_nanos ||
        Blocked(front)) {
      return false;
    }
    if (!failing && !front.report && front.completion.code == CompletionCode::kSuccess) {
      Pop(lane);
      continue;
    }
    const Request head = front;
    Pop(lane);
    if (failing) {
      Break();
    } else if (head.completion.code != CompletionCode::kSuccess) {
      Flush(&sends_, /*also_posted=*/false);
      doomed_ = false;
    }
    *completion = head.completion;
    return true;
  }
  return false;
}

void InterposedQueuePair::Flush(Lane* lane, bool also_posted) {
  for (uint64_t i = 0; i < lane->requests.size(); i++) {
    Request& request = lane->requests[i];
    const bool arrived_behind_block =
        also_posted && request.state == Request::State::kDone && Blocked(request);
    if ((request.state == Request::State::kDone && !arrived_behind_block) ||
        (request.state == Request::State::kPosted && !also_posted)) {
      continue;
    }
    request.state = Request::State::kDone;
    request.completion.code = CompletionCode::kFlushed;
    request.completion.bytes = 0;
    request.due_nanos = 0;
  }
}

void InterposedQueuePair::Break() {
  inner_.reset();
  Flush(&sends_, /*also_posted=*/true);
  Flush(&receives_, /*also_posted=*/true);
  doomed_ = false;
}

}  // namespace nacre::rdma
