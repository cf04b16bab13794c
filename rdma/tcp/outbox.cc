#include "rdma/tcp/outbox.h"

#include <algorithm>
#include <cstring>

#include "util/codes/crc32c.h"

namespace nacre::rdma {

namespace {

constexpr size_t kFirstBytes = 4096;

}  // namespace

char* Outbox::Grow(size_t size) {
  if (buffer_.size() - end_ < size) {
    const size_t held = end_ - begin_;
    if (begin_ > 0) std::memmove(buffer_.data(), buffer_.data() + begin_, held);
    begin_ = 0;
    end_ = held;
    if (buffer_.size() - end_ < size) {
      buffer_.resize(std::max({kFirstBytes, held + size, 2 * buffer_.size()}));
    }
  }
  return buffer_.data() + end_;
}

char* Outbox::Stage(uint32_t length) {
  return Grow(kFrameHeaderBytes + length) + kFrameHeaderBytes;
}

void Outbox::AddHeader(FrameHeader* header, char* to) {
  header->consumed = consumed_;
  told_consumed_ = consumed_;
  EncodeFrameHeader(*header, to);
}

void Outbox::AddSegment(const char* payload, size_t size) {
  size_ += size;
  if (payload == nullptr) {
    end_ += size;
    if (first_segment_ < segments_.size() && segments_.back().payload == nullptr) {
      segments_.back().size += size;
      return;
    }
  }
  segments_.push_back({payload, size});
}

void Outbox::AddStaged(FrameHeader header) {
  const uint32_t length = PayloadBytes(header);
  char* const frame = buffer_.data() + end_;
  header.payload_crc = length == 0 ? 0 : Crc32c(frame + kFrameHeaderBytes, length);
  AddHeader(&header, frame);
  AddSegment(nullptr, kFrameHeaderBytes + length);
}

void Outbox::Add(const FrameHeader& header, const char* payload) {
  const uint32_t length = PayloadBytes(header);
  char* const to = Stage(length);
  if (length > 0) std::memcpy(to, payload, length);
  AddStaged(header);
}

void Outbox::AddInPlace(FrameHeader header, const char* payload) {
  char* const frame = Grow(kFrameHeaderBytes);
  header.payload_crc = Crc32c(payload, header.length);
  AddHeader(&header, frame);
  AddSegment(nullptr, kFrameHeaderBytes);
  AddSegment(payload, header.length);
}

int Outbox::Gather(iovec* vectors, int vectors_max, size_t bytes_max) const {
  int count = 0;
  size_t held = begin_;
  for (size_t i = first_segment_; i < segments_.size() && count < vectors_max && bytes_max > 0;
       i++) {
    const Segment& segment = segments_[i];
    const size_t size = std::min(segment.size, bytes_max);
    const char* const from = segment.payload != nullptr ? segment.payload : buffer_.data() + held;
    if (segment.payload == nullptr) held += segment.size;
    vectors[count++] = {.iov_base = const_cast<char*>(from), .iov_len = size};
    bytes_max -= size;
  }
  return count;
}

void Outbox::Sent(size_t size) {
  size_ -= size;
  sent_ += size;
  while (size > 0) {
    Segment& segment = segments_[first_segment_];
    const size_t step = std::min(size, segment.size);
    if (segment.payload != nullptr) {
      segment.payload += step;
    } else {
      begin_ += step;
    }
    segment.size -= step;
    size -= step;
    if (segment.size == 0) first_segment_++;
  }
  if (size_ == 0) Clear();
}

void Outbox::Clear() {
  segments_.clear();
  first_segment_ = 0;
  begin_ = 0;
  end_ = 0;
  size_ = 0;
}

void Outbox::Trim() {
  if (size_ > 0 || buffer_.size() <= kFirstBytes) return;
  buffer_ = std::vector<char>();
  segments_ = std::vector<Segment>();
}

}  // namespace nacre::rdma
