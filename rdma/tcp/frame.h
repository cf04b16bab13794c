#pragma once

#include <cstddef>
#include <cstdint>

namespace nacre::rdma {

// What travels over a connection once its handshake is done: frames, each a header and what it says
// that follows, in both directions. All numbers are little-endian; they are frozen per version of
// the handshake.
//
//   offset size
//      0    1   type (FrameType)
//      1    1   flags (FrameFlags)
//      2    2   0
//      4    4   number: of a request; of a reply, the request's. Counted from 0, modulo 2^32
//      8    8   address at the target
//     16    4   key at the target
//     20    4   length: bytes that follow; of a read, bytes asked for
//     24    4   messages of the receiver of this frame that were consumed so far, modulo 2^32
//     28    4   argument: the immediate, or why a request failed
//     32    4   CRC32C of the bytes that follow
//     36    4   CRC32C of bytes 0 to 35
//
// Replies come in the order of their requests, and each says that all requests before it were
// carried out; so a write needs none of its own when one follows.
//
// A read of more than kReadFragmentBytes is several frames of one number, and so is a write of more
// than kWriteFragmentBytes, of which all but the last are kFragment. A reader asks for no more than
// kReadWindowBytes at a time, so that the other side can carry out each request when it comes,
// whatever the state of its socket: a side that stopped reading until it can write could wait for
// ever for a peer that does the same.

inline constexpr size_t kFrameHeaderBytes = 40;
/// What atomic requests work on are words.
inline constexpr uint32_t kWordBytes = sizeof(uint64_t);
inline constexpr uint32_t kReadFragmentBytes = 128 << 10;
inline constexpr uint32_t kReadWindowBytes = 1 << 20;
inline constexpr uint32_t kWriteFragmentBytes = 256 << 10;
/// What is longer is sent from and received in the place where it belongs; shorter payloads are
/// put together, in one buffer, with the frames around them, and take effect once their checksum
/// is known to be right. A longer write is checked in its place: two peers that write to the same
/// bytes at once may so be taken for one damaged frame, and its connection ends.
inline constexpr uint32_t kStagedPayloadBytes = 16 << 10;

enum class FrameType : uint8_t {
  // Requests.
  kRead = 1,
  kWrite = 2,
  kWriteWithImm = 3,
  kCompareSwap = 4,  ///< Expected and desired follow, 8 bytes each.
  kFetchAdd = 5,     ///< The addend follows, 8 bytes.
  kSend = 6,
  // Replies.
  kReadReply = 16,    ///< The bytes follow.
  kAtomicReply = 17,  ///< What was there follows, 8 bytes.
  kAck = 18,
  kFailure = 19,  ///< The last frame of its sender.
  // Neither; has no number.
  kCredit = 32,
};

enum FrameFlags : uint8_t {
  kWantAck = 1,   ///< A write or message that asks for a reply.
  kFragment = 2,  ///< A write whose rest follows in the next frame of this kind.
};

struct FrameHeader {
  FrameType type = FrameType::kCredit;
  uint8_t flags = 0;
  uint32_t number = 0;
  uint64_t address = 0;
  uint32_t key = 0;
  uint32_t length = 0;
  uint32_t consumed = 0;
  uint32_t argument = 0;
  uint32_t payload_crc = 0;
};

/// Bytes that follow the header.
inline uint32_t PayloadBytes(const FrameHeader& header) {
  return header.type == FrameType::kRead ? 0 : header.length;
}

void EncodeFrameHeader(const FrameHeader& header, char* to);

/// False if the bytes are no header: a wrong checksum, an unknown type or flag, or a length beyond
/// what its type can have.
bool DecodeFrameHeader(const char* from, FrameHeader* header);

}  // namespace nacre::rdma
