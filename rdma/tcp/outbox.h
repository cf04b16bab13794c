#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rdma/tcp/frame.h"

namespace nacre::rdma {

/// Frames on their way out, in order: bytes held here, and payloads of requests that are sent from
/// where they are.
///
/// Bounds: no requests are added beyond kOutboxTarget; replies are bounded by what the peer may ask
/// for at a time.
///
/// Thread safety: none.
class Outbox {
 public:
  /// Enough for the socket to be busy with while more is made.
  static constexpr size_t kOutboxTarget = 512 << 10;

  /// Bytes not sent yet.
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  /// Bytes sent since the beginning; and at which number the last frame added will have been sent.
  uint64_t sent() const { return sent_; }
  uint64_t end() const { return sent_ + size_; }

  /// Room for a frame's payload, to be filled in before the next call, which is AddStaged with the
  /// same length, or none at all.
  char* Stage(uint32_t length);
  /// The payload is what Stage gave room for; its checksum is computed here.
  void AddStaged(FrameHeader header);
  /// Adds a frame with a copy of `length` bytes of `payload`.
  void Add(const FrameHeader& header, const char* payload);
  /// Adds a frame that refers to its payload, which must stay in place until it is sent.
  void AddInPlace(FrameHeader header, const char* payload);

  /// What each frame tells of the messages consumed.
  void set_consumed(uint32_t consumed) { consumed_ = consumed; }
  /// What the last frame told.
  uint32_t told_consumed() const { return told_consumed_; }

  /// Describes up to `bytes_max` of what is to be sent next; returns the number of vectors.
  int Gather(iovec* vectors, int vectors_max, size_t bytes_max) const;
  void Sent(size_t size);
  /// Forgets what was not sent, and with it all payloads in place.
  void Clear();
  /// Gives memory back if nothing is to be sent.
  void Trim();

 private:
  struct Segment {
    const char* payload;  ///< Null: bytes of buffer_.
    size_t size;
  };

  char* Grow(size_t size);
  void AddHeader(FrameHeader* header, char* to);
  void AddSegment(const char* payload, size_t size);

  // What is held: [begin_, end_) of buffer_, in the order of the segments.
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
  std::vector<Segment> segments_;
  size_t first_segment_ = 0;
  size_t size_ = 0;
  uint64_t sent_ = 0;
  uint32_t consumed_ = 0;
  uint32_t told_consumed_ = 0;
};

}  // namespace nacre::rdma
