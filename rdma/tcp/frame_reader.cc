#include "rdma/tcp/frame_reader.h"

#include <algorithm>
#include <cstring>

#include "util/codes/crc32c.h"

namespace nacre::rdma {

namespace {

/// A buffer of this size is kept for the next frame that arrives in pieces.
constexpr size_t kKeptBytes = 1024;

}  // namespace

bool FrameReader::Malformed() {
  malformed_ = true;
  return false;
}

char* FrameReader::place(size_t* size) const {
  *size = body_left_;
  return in_place_ && body_left_ > 0 ? place_ : nullptr;
}

void FrameReader::Advance(size_t size) {
  crc_ = Crc32c(place_, size, crc_);
  place_ += size;
  body_left_ -= size;
}

bool FrameReader::Take(const char* bytes, size_t size) {
  const char* const end = bytes + size;
  while (bytes < end) {
    const auto left = static_cast<size_t>(end - bytes);
    if (in_place_) {
      bytes += TakePayload(bytes, left);
      if (body_left_ == 0 && last_taken_ == last_size_ && !FinishPayload()) return false;
    } else if (!partial_.empty()) {
      if (!Complete(&bytes, end)) return false;
    } else if (left < kFrameHeaderBytes) {
      partial_.assign(bytes, left);
      return true;
    } else {
      if (!DecodeFrameHeader(bytes, &header_)) return Malformed();
      const uint32_t payload = PayloadBytes(header_);
      if (payload > kStagedPayloadBytes) {
        bytes += kFrameHeaderBytes;
        if (!BeginLong()) return false;
      } else if (left < kFrameHeaderBytes + payload) {
        partial_.assign(bytes, left);
        return true;
      } else {
        if (!TakeShort(bytes + kFrameHeaderBytes)) return false;
        bytes += kFrameHeaderBytes + payload;
      }
    }
  }
  return true;
}

bool FrameReader::Complete(const char** bytes, const char* end) {
  const auto take = [&](size_t wanted) {
    const size_t size = std::min(wanted - partial_.size(), static_cast<size_t>(end - *bytes));
    partial_.append(*bytes, size);
    *bytes += size;
    return partial_.size() == wanted;
  };
  if (partial_.size() < kFrameHeaderBytes) {
    if (!take(kFrameHeaderBytes)) return true;
    if (!DecodeFrameHeader(partial_.data(), &header_)) return Malformed();
  }
  const uint32_t payload = PayloadBytes(header_);
  if (payload > kStagedPayloadBytes) {
    partial_.clear();
    return BeginLong();
  }
  if (!take(kFrameHeaderBytes + payload)) return true;
  const bool go_on = TakeShort(partial_.data() + kFrameHeaderBytes);
  partial_.clear();
  if (partial_.capacity() > kKeptBytes) partial_.shrink_to_fit();
  return go_on;
}

bool FrameReader::TakeShort(const char* payload) {
  bulk_ = false;
  if (Crc32c(payload, PayloadBytes(header_)) != header_.payload_crc) return Malformed();
  return sink_->TakeFrame(header_, payload);
}

bool FrameReader::BeginLong() {
  char* place = nullptr;
  if (!sink_->BeginFrame(header_, &place)) return false;
  // The last group of bytes begins at the last multiple of 8 before the end.
  const uint64_t end = header_.address + header_.length;
  last_size_ = static_cast<size_t>(end - ((end - 1) & ~uint64_t{kLastBytes - 1}));
  last_taken_ = 0;
  body_left_ = header_.length - last_size_;
  place_ = place;
  crc_ = 0;
  in_place_ = true;
  bulk_ = true;
  return true;
}

size_t FrameReader::TakePayload(const char* bytes, size_t size) {
  const size_t body = std::min(size, body_left_);
  crc_ = Crc32c(bytes, body, crc_);
  if (place_ != nullptr) {
    std::memcpy(place_, bytes, body);
    place_ += body;
  }
  body_left_ -= body;
  const size_t last = body_left_ > 0 ? 0 : std::min(size - body, last_size_ - last_taken_);
  std::memcpy(last_.data() + last_taken_, bytes + body, last);
  last_taken_ += last;
  return body + last;
}

bool FrameReader::FinishPayload() {
  in_place_ = false;
  if (Crc32c(last_.data(), last_size_, crc_) != header_.payload_crc) return Malformed();
  return sink_->EndFrame(header_, place_, last_.data(), last_size_);
}

}  // namespace nacre::rdma
