#include "rdma/tcp/responder.h"

#include <atomic>
#include <utility>

#include "util/coding.h"
#include "util/memory/concurrent_copy.h"

namespace nacre::rdma {

Responder::Responder(int depth, RegionTable* regions, bool may_write, Outbox* outbox)
    : regions_(regions),
      may_write_(may_write),
      outbox_(outbox),
      outbox_max_(2 * Outbox::kOutboxTarget + kWriteFragmentBytes + kReadWindowBytes +
                  (static_cast<size_t>(depth) + kReadWindowBytes / kStagedPayloadBytes) * 2 *
                      (kFrameHeaderBytes + kWordBytes)) {}

bool Responder::Take(const FrameHeader& header, const char* payload) {
  // An honest peer takes replies as fast as it asks, and keeps to its depth and window.
  if (outbox_->size() > outbox_max_) return false;
  switch (header.type) {
    case FrameType::kRead:
      return !in_write_ && Read(header);
    case FrameType::kWrite:
    case FrameType::kWriteWithImm:
      return Write(header, payload);
    case FrameType::kCompareSwap:
    case FrameType::kFetchAdd:
      return !in_write_ && Atomic(header, payload);
    default:
      return false;
  }
}

bool Responder::Fail(const FrameHeader& header) {
  FrameHeader reply;
  reply.type = FrameType::kFailure;
  reply.number = header.number;
  reply.argument = static_cast<uint32_t>(CompletionCode::kRemoteAccessError);
  outbox_->Add(reply, nullptr);
  want_ack_ = false;
  failed_ = true;
  return false;
}

std::shared_ptr<const RegionWindow> Responder::BeginStore(const FrameHeader& header,
                                                          uint64_t size) const {
  if (!may_write_) return nullptr;
  auto window = regions_->Find(header.key, header.address, size, Access::kRemoteAll);
  return window != nullptr && window->BeginStore() ? window : nullptr;
}

bool Responder::Read(const FrameHeader& header) {
  FrameHeader reply;
  reply.type = FrameType::kReadReply;
  reply.number = header.number;
  reply.length = header.length;
  char* const to = outbox_->Stage(header.length);
  if (header.length > 0) {
    const auto window =
        regions_->Find(header.key, header.address, header.length, Access::kRemoteReadOnly);
    if (window == nullptr) return Fail(header);
    CopyConcurrent(to, window->data + (header.address - reinterpret_cast<uint64_t>(window->data)),
                   header.length);
    if (window->revoked.load(std::memory_order_acquire)) return Fail(header);
  }
  outbox_->AddStaged(reply);
  want_ack_ = false;  // This reply says as much.
  return true;
}

bool Responder::CountFragment(const FrameHeader& header) {
  if (in_write_ && header.number != number_of_write_) return false;
  bytes_of_write_ = in_write_ ? bytes_of_write_ + header.length : header.length;
  number_of_write_ = header.number;
  in_write_ = (header.flags & kFragment) != 0;
  return true;
}

bool Responder::Write(const FrameHeader& header, const char* payload) {
  if (!CountFragment(header)) return false;
  if (header.length > 0) {
    const auto window = BeginStore(header, header.length);
    if (window == nullptr) return Fail(header);
    CopyAndPublish(window->data + (header.address - reinterpret_cast<uint64_t>(window->data)),
                   payload, header.length);
    window->EndStore();
  }
  WantAck(header);
  return true;
}

bool Responder::Begin(const FrameHeader& header, char** place) {
  if (header.type != FrameType::kWrite && header.type != FrameType::kWriteWithImm) return false;
  if (!CountFragment(header)) return false;
  auto window = BeginStore(header, header.length);
  if (window == nullptr) return Fail(header);
  window_ = std::move(window);
  storing_ = true;
  *place = window_->data + (header.address - reinterpret_cast<uint64_t>(window_->data));
  return true;
}

bool Responder::End(const FrameHeader& header, char* place_of_last, const char* last, size_t size) {
  CopyAndPublish(place_of_last, last, size);
  EndTurn();
  window_.reset();
  WantAck(header);
  return true;
}

bool Responder::BeginTurn() {
  if (window_ == nullptr) return true;
  storing_ = window_->BeginStore();
  if (storing_) return true;
  FrameHeader header;
  header.number = number_of_write_;
  return Fail(header);
}

void Responder::EndTurn() {
  if (!std::exchange(storing_, false)) return;
  window_->EndStore();
}

bool Responder::Atomic(const FrameHeader& header, const char* payload) {
  if (header.address % kWordBytes != 0) return Fail(header);
  const auto window = BeginStore(header, kWordBytes);
  if (window == nullptr) return Fail(header);
  const uint64_t first = DecodeFixed64(payload);
  uint64_t before = first;
  const std::atomic_ref<uint64_t> word(*reinterpret_cast<uint64_t*>(
      window->data + (header.address - reinterpret_cast<uint64_t>(window->data))));
  if (header.type == FrameType::kFetchAdd) {
    before = word.fetch_add(first, std::memory_order_acq_rel);
  } else {
    word.compare_exchange_strong(before, DecodeFixed64(payload + kWordBytes),
                                 std::memory_order_acq_rel);
  }
  window->EndStore();
  FrameHeader reply;
  reply.type = FrameType::kAtomicReply;
  reply.number = header.number;
  reply.length = kWordBytes;
  char bytes[kWordBytes];
  EncodeFixed64(bytes, before);
  outbox_->Add(reply, bytes);
  want_ack_ = false;
  return true;
}

void Responder::WantAck(const FrameHeader& header) {
  if ((header.flags & kWantAck) == 0) return;
  want_ack_ = true;
  ack_number_ = header.number;
}

void Responder::AddAck() {
  if (!want_ack_) return;
  want_ack_ = false;
  FrameHeader reply;
  reply.type = FrameType::kAck;
  reply.number = ack_number_;
  outbox_->Add(reply, nullptr);
}

}  // namespace nacre::rdma
