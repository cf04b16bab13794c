#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "rdma/tcp/frame.h"

namespace nacre::rdma {

/// Told of frames in the order of their arrival. Each method answers false to end the connection:
/// the frame makes no sense, or nothing more is wanted.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  /// A frame whose payload is at hand, and right.
  virtual bool TakeFrame(const FrameHeader& header, const char* payload) = 0;
  /// A frame with a payload longer than kStagedPayloadBytes begins. `*place` becomes where the
  /// payload is to be put, or null to drop it; it stays usable until the frame is done, or `Reset`.
  virtual bool BeginFrame(const FrameHeader& header, char** place) = 0;
  /// Such a frame is in its place, and right, save its last bytes, which are in `last`: at most 8,
  /// not across a multiple of 8. The sink stores them, so that no reader sees a write's end before
  /// the rest of it, or bytes that arrived damaged.
  virtual bool EndFrame(const FrameHeader& header, char* place_of_last, const char* last,
                        size_t size) = 0;
};

/// Makes frames of a stream of bytes that arrives in pieces of any size. Holds the beginning of a
/// frame that has not arrived in full; long payloads go to where they belong.
///
/// Thread safety: none.
class FrameReader {
 public:
  explicit FrameReader(FrameSink* sink) : sink_(sink) {}

  /// Where the payload under way goes, without its last bytes: the receiver may put up to `*size`
  /// bytes there and report them by Advance before it calls Take. Null if none is under way.
  char* place(size_t* size) const;
  /// `size` bytes were put into place.
  void Advance(size_t size);
  /// The next bytes of the stream. False if the connection must end: see `malformed`.
  bool Take(const char* bytes, size_t size);

  /// Whether Take answered false for what it was given rather than for what the sink thinks of it.
  bool malformed() const { return malformed_; }
  /// Whether traffic is in bulk: then little should be read beside the payload under way, since
  /// what is read before its header is copied.
  bool bulk() const { return bulk_; }

 private:
  static constexpr size_t kLastBytes = 8;

  size_t TakePayload(const char* bytes, size_t size);
  bool FinishPayload();
  bool BeginLong();
  bool TakeShort(const char* payload);
  /// The frame's beginning is in partial_; takes what is missing. False as Take.
  bool Complete(const char** bytes, const char* end);
  bool Malformed();

  FrameSink* const sink_;
  FrameHeader header_;
  std::string partial_;  ///< Beginning of a frame; the payload only if it is short.

  // Whether the frame's payload is long and stored in its place.
  bool in_place_ = false;
  bool bulk_ = false;
  bool malformed_ = false;
  char* place_ = nullptr;  ///< Where the next byte belongs; null: nowhere.
  size_t body_left_ = 0;   ///< Bytes before the last ones.
  uint32_t crc_ = 0;
  size_t last_size_ = 0;  ///< How many the last ones are.
  size_t last_taken_ = 0;
  std::array<char, kLastBytes> last_{};
};

}  // namespace nacre::rdma
