#include "rdma/tcp/requester.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "util/coding.h"

namespace nacre::rdma {

namespace {

/// Cuts long requests where words end at the target, so that none arrives in two pieces.
uint32_t FragmentBytes(uint64_t address, uint32_t left, uint32_t fragment_max) {
  return left <= fragment_max ? left : fragment_max - static_cast<uint32_t>(address % kWordBytes);
}

void Add(std::atomic<uint64_t>* counter, uint64_t amount) {
  counter->fetch_add(amount, std::memory_order_relaxed);
}

}  // namespace

Requester::Requester(int depth, TcpCompletionQueue* queue, QueuePair* queue_pair, Outbox* outbox,
                     TcpCounters* counters)
    : queue_(queue),
      queue_pair_(queue_pair),
      outbox_(outbox),
      counters_(counters),
      mask_(std::bit_ceil(static_cast<uint64_t>(depth)) - 1) {}

bool Requester::NeedsReply(const TcpRequest& request) {
  return !request.unusable &&
         (request.opcode == Opcode::kRead || request.opcode == Opcode::kCompareSwap ||
          request.opcode == Opcode::kFetchAdd);
}

bool Requester::IsAwaited(const TcpRequest& request) {
  return NeedsReply(request) || request.unusable || (request.flags & kSignaled) != 0;
}

void Requester::Post(const TcpRequest& request) {
  if (ring_.empty()) ring_.resize(mask_ + 1);
  At(posted_++) = request;
  if (IsAwaited(request)) awaited_++;
}

void Requester::Encode() {
  while (encoded_ != posted_ && !stopped_ && outbox_->size() < Outbox::kOutboxTarget) {
    TcpRequest& request = At(encoded_);
    bool whole = true;
    if (!request.unusable && request.opcode == Opcode::kRead) {
      whole = EncodeRead(request);
      // The window is full: what is behind waits as well, for order's sake.
      if (!whole && asked_bytes_ + kReadFragmentBytes > kReadWindowBytes) return;
    } else if (!request.unusable &&
               (request.opcode == Opcode::kWrite || request.opcode == Opcode::kWriteWithImm)) {
      whole = EncodeWrite(request);
    } else {
      EncodeOther(request);
    }
    if (!whole) continue;
    request.sent_at = outbox_->end();
    stopped_ = request.unusable;
    encoded_bytes_ = 0;
    encoded_++;
  }
}

bool Requester::EncodeRead(const TcpRequest& request) {
  const uint64_t address = request.address + encoded_bytes_;
  const uint32_t left = request.size - encoded_bytes_;
  const uint32_t length = FragmentBytes(address, left, kReadFragmentBytes);
  if (asked_bytes_ + length > kReadWindowBytes) return false;
  FrameHeader header;
  header.type = FrameType::kRead;
  header.number = static_cast<uint32_t>(encoded_);
  header.address = address;
  header.key = request.key;
  header.length = length;
  outbox_->Add(header, nullptr);
  asked_bytes_ += length;
  encoded_bytes_ += length;
  return length == left;
}

bool Requester::EncodeWrite(const TcpRequest& request) {
  const uint64_t address = request.address + encoded_bytes_;
  const uint32_t left = request.size - encoded_bytes_;
  const uint32_t length = FragmentBytes(address, left, kWriteFragmentBytes);
  const bool last = length == left;
  FrameHeader header;
  header.type = last && request.opcode == Opcode::kWriteWithImm ? FrameType::kWriteWithImm
                                                                : FrameType::kWrite;
  header.flags = !last                              ? uint8_t{kFragment}
                 : (request.flags & kSignaled) != 0 ? uint8_t{kWantAck}
                                                    : uint8_t{0};
  header.number = static_cast<uint32_t>(encoded_);
  header.address = address;
  header.key = request.key;
  header.length = length;
  header.argument = request.immediate;
  if (length > kStagedPayloadBytes) {
    outbox_->AddInPlace(header, request.local + encoded_bytes_);
  } else {
    outbox_->Add(header, request.local + encoded_bytes_);
  }
  encoded_bytes_ += length;
  return last;
}

void Requester::EncodeOther(const TcpRequest& request) {
  FrameHeader header;
  header.number = static_cast<uint32_t>(encoded_);
  header.address = request.address;
  header.key = request.key;
  char words[2 * kWordBytes];
  EncodeFixed64(words, request.first);
  EncodeFixed64(words + kWordBytes, request.second);
  const char* payload = words;
  if (request.unusable) {
    header.type = FrameType::kWrite;
    header.flags = kWantAck;
  } else if (request.opcode == Opcode::kCompareSwap) {
    header.type = FrameType::kCompareSwap;
    header.length = 2 * kWordBytes;
  } else if (request.opcode == Opcode::kFetchAdd) {
    header.type = FrameType::kFetchAdd;
    header.length = kWordBytes;
  } else {
    header.type = FrameType::kSend;
    header.flags = (request.flags & kSignaled) != 0 ? uint8_t{kWantAck} : uint8_t{0};
    header.length = request.size;
    payload = request.local;
  }
  outbox_->Add(header, payload);
}

bool Requester::Find(const FrameHeader& header, uint64_t* number) const {
  const uint32_t distance = header.number - static_cast<uint32_t>(completed_);
  *number = completed_ + distance;
  if (*number < encoded_) return true;
  // The first bytes of a long read may arrive before the last were asked for; the first of a long
  // write may be refused before the last were sent.
  return *number == encoded_ && encoded_bytes_ > 0 &&
         (header.type == FrameType::kReadReply || header.type == FrameType::kFailure);
}

bool Requester::CompleteBefore(uint64_t end) {
  while (completed_ != end) {
    const TcpRequest& request = At(completed_);
    // Its buffer is not the caller's before it was sent.
    if (NeedsReply(request) || request.sent_at > outbox_->sent()) return false;
    if (request.unusable) {
      failure_ = CompletionCode::kLocalError;
      return true;
    }
    Complete(CompletionCode::kSuccess);
  }
  return true;
}

void Requester::Complete(CompletionCode code) {
  const TcpRequest& request = At(completed_++);
  if (IsAwaited(request)) awaited_--;
  if (code == CompletionCode::kSuccess) {
    if (request.opcode == Opcode::kRead) {
      Add(&counters_->bytes_read, request.size);
      Add(&counters_->reads, 1);
    } else {
      Add(&counters_->bytes_written, request.size);
      Add(&counters_->writes, 1);
    }
    if ((request.flags & kSignaled) == 0) {
      queue_->Unpromise(1);
      return;
    }
  }
  queue_->Push({.id = request.id,
                .queue_pair = queue_pair_,
                .bytes = request.size,
                .immediate = 0,
                .opcode = request.opcode,
                .code = code},
               completed_);
}

bool Requester::Expects(const FrameHeader& header) {
  uint64_t number;
  if (!Find(header, &number) || !CompleteBefore(number)) return false;
  const TcpRequest& request = At(number);
  if (failed() || !NeedsReply(request)) return false;
  if (header.type == FrameType::kAtomicReply) {
    return request.opcode != Opcode::kRead && request.sent_at <= outbox_->sent();
  }
  const uint32_t asked = number < encoded_ ? request.size : encoded_bytes_;
  const uint32_t left = request.size - arrived_bytes_;
  return request.opcode == Opcode::kRead &&
         header.length ==
             FragmentBytes(request.address + arrived_bytes_, left, kReadFragmentBytes) &&
         header.length <= asked - arrived_bytes_;
}

bool Requester::Begin(const FrameHeader& header, char** place) {
  if (header.type != FrameType::kReadReply || !Expects(header)) return false;
  *place = At(completed_).local + arrived_bytes_;
  return true;
}

bool Requester::End(const FrameHeader& header, char* place_of_last, const char* last, size_t size) {
  std::memcpy(place_of_last, last, size);
  TakeReadBytes(header.length);
  return true;
}

void Requester::TakeReadBytes(uint32_t size) {
  arrived_bytes_ += size;
  asked_bytes_ -= size;
  if (arrived_bytes_ < At(completed_).size) return;
  arrived_bytes_ = 0;
  Complete(CompletionCode::kSuccess);
}

bool Requester::Take(const FrameHeader& header, const char* payload) {
  uint64_t number;
  switch (header.type) {
    case FrameType::kReadReply:
      if (!Expects(header)) return false;
      if (header.length > 0) {
        std::memcpy(At(completed_).local + arrived_bytes_, payload, header.length);
      }
      TakeReadBytes(header.length);
      return true;
    case FrameType::kAtomicReply:
      if (!Expects(header)) return false;
      std::memcpy(At(completed_).local, payload, kWordBytes);
      Complete(CompletionCode::kSuccess);
      return true;
    case FrameType::kAck:
      return Find(header, &number) && CompleteBefore(number + 1);
    case FrameType::kFailure:
      if (header.argument != static_cast<uint32_t>(CompletionCode::kRemoteAccessError) ||
          !Find(header, &number) || !CompleteBefore(number)) {
        return false;
      }
      if (!failed()) failure_ = CompletionCode::kRemoteAccessError;
      return true;
    default:
      return false;
  }
}

void Requester::Flush(CompletionCode first) {
  while (completed_ != posted_) {
    Complete(first);
    first = CompletionCode::kFlushed;
  }
  encoded_ = posted_;
}

void Requester::Forget() {
  queue_->Unpromise(posted_ - completed_);
  completed_ = posted_;
  encoded_ = posted_;
  awaited_ = 0;
}

}  // namespace nacre::rdma
