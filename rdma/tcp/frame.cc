#include "rdma/tcp/frame.h"

#include "rdma/transport.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre::rdma {

namespace {

constexpr size_t kFrameTypeAt = 0;
constexpr size_t kFrameFlagsAt = 1;
constexpr size_t kZeroAt = 2;
constexpr size_t kNumberAt = 4;
constexpr size_t kAddressAt = 8;
constexpr size_t kKeyAt = 16;
constexpr size_t kLengthAt = 20;
constexpr size_t kConsumedAt = 24;
constexpr size_t kArgumentAt = 28;
constexpr size_t kPayloadCrcAt = 32;
constexpr size_t kHeaderCrcAt = 36;
static_assert(kHeaderCrcAt + sizeof(uint32_t) == kFrameHeaderBytes);

bool IsSound(const FrameHeader& header) {
  const uint8_t flags = header.flags;
  const uint32_t length = header.length;
  switch (header.type) {
    case FrameType::kRead:
      return flags == 0 && length <= kReadFragmentBytes;
    case FrameType::kWrite:
      return (flags & ~(kWantAck | kFragment)) == 0 && length <= kWriteFragmentBytes &&
             (flags != (kWantAck | kFragment));
    case FrameType::kWriteWithImm:
      return (flags & ~kWantAck) == 0 && length <= kWriteFragmentBytes;
    case FrameType::kCompareSwap:
      return flags == 0 && length == 2 * sizeof(uint64_t);
    case FrameType::kFetchAdd:
      return flags == 0 && length == sizeof(uint64_t);
    case FrameType::kSend:
      return (flags & ~kWantAck) == 0 && length <= Device::kMaxSendBytes;
    case FrameType::kReadReply:
      return flags == 0 && length <= kReadFragmentBytes;
    case FrameType::kAtomicReply:
      return flags == 0 && length == sizeof(uint64_t);
    case FrameType::kAck:
    case FrameType::kFailure:
    case FrameType::kCredit:
      return flags == 0 && length == 0;
  }
  return false;
}

}  // namespace

void EncodeFrameHeader(const FrameHeader& header, char* to) {
  to[kFrameTypeAt] = static_cast<char>(header.type);
  to[kFrameFlagsAt] = static_cast<char>(header.flags);
  EncodeFixed16(to + kZeroAt, 0);
  EncodeFixed32(to + kNumberAt, header.number);
  EncodeFixed64(to + kAddressAt, header.address);
  EncodeFixed32(to + kKeyAt, header.key);
  EncodeFixed32(to + kLengthAt, header.length);
  EncodeFixed32(to + kConsumedAt, header.consumed);
  EncodeFixed32(to + kArgumentAt, header.argument);
  EncodeFixed32(to + kPayloadCrcAt, header.payload_crc);
  EncodeFixed32(to + kHeaderCrcAt, Crc32c(to, kHeaderCrcAt));
}

bool DecodeFrameHeader(const char* from, FrameHeader* header) {
  if (DecodeFixed32(from + kHeaderCrcAt) != Crc32c(from, kHeaderCrcAt)) return false;
  header->type = static_cast<FrameType>(from[kFrameTypeAt]);
  header->flags = static_cast<uint8_t>(from[kFrameFlagsAt]);
  header->number = DecodeFixed32(from + kNumberAt);
  header->address = DecodeFixed64(from + kAddressAt);
  header->key = DecodeFixed32(from + kKeyAt);
  header->length = DecodeFixed32(from + kLengthAt);
  header->consumed = DecodeFixed32(from + kConsumedAt);
  header->argument = DecodeFixed32(from + kArgumentAt);
  header->payload_crc = DecodeFixed32(from + kPayloadCrcAt);
  return DecodeFixed16(from + kZeroAt) == 0 && IsSound(*header);
}

}  // namespace nacre::rdma
