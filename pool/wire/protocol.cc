#include "pool/wire/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "pool/wire/control.pb.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre::pool {
namespace {

// The reason must fit the private data of a refusal, and the client must know the kinds apart.
constexpr std::string_view kSlabReason = "slabs";
constexpr std::string_view kInstanceReason = "restarted, its memory is lost";
constexpr std::string_view kStartReason = "restarted meanwhile";
/// Slabs are multiples of this.
constexpr uint64_t kPageBytes = 4096;

/// Bytes of a Welcome up to version 8.
constexpr size_t kEarlyWelcomeBytes = 16;

uint32_t FrameCrc(const Slice& body, const char* trailer, uint64_t request_id) {
  char tail[12];
  std::memcpy(tail, trailer, 4);
  EncodeFixed64(tail + 4, request_id);
  return Crc32c(tail, sizeof(tail), Crc32c(body.data(), body.size()));
}

}  // namespace

std::string Hello::Encode() const {
  const bool has_range = range.newest > kVersionBeforeRanges;
  std::string bytes;
  PutFixed32(&bytes, magic);
  const uint32_t before = has_range ? range.newest - range.oldest : 0;
  PutFixed32(&bytes, range.newest | static_cast<uint32_t>(kind) << 16 | before << 24);
  PutFixed64(&bytes, client_id);
  // What no node can have stays what no node has.
  const uint64_t pages = slab_bytes % kPageBytes == 0 ? slab_bytes / kPageBytes : UINT32_MAX;
  const bool is_data = kind == ConnectionKind::kData;
  PutFixed32(&bytes,
             is_data ? connection : static_cast<uint32_t>(std::min<uint64_t>(pages, UINT32_MAX)));
  const bool has_features = has_range && kind == ConnectionKind::kLifeline;
  PutFixed32(&bytes, has_features ? static_cast<uint32_t>(features) : start_id);
  PutFixed64(&bytes, instance_id);
  return bytes;
}

bool Hello::Decode(const Slice& bytes, Hello* hello) {
  // A transport may pad private data with zeros, and a later version may append to it.
  if (bytes.size() < kBytes) return false;
  hello->magic = DecodeFixed32(bytes.data());
  if (hello->magic != kHelloMagic) return false;
  const uint16_t newest = DecodeFixed16(bytes.data() + 4);
  const bool has_range = newest > kVersionBeforeRanges;
  const auto before = static_cast<uint8_t>(bytes[7]);
  const uint16_t kind =
      has_range ? static_cast<uint8_t>(bytes[6]) : DecodeFixed16(bytes.data() + 6);
  if (has_range && before > newest) return false;
  hello->range = {.oldest = has_range ? static_cast<uint16_t>(newest - before) : newest,
                  .newest = newest};
  // Other versions may have other kinds.
  if (CommonVersion(hello->range, kProtocols) != 0 &&
      kind > static_cast<uint16_t>(ConnectionKind::kData)) {
    return false;
  }
  hello->kind = static_cast<ConnectionKind>(kind);
  hello->client_id = DecodeFixed64(bytes.data() + 8);
  const uint32_t number = DecodeFixed32(bytes.data() + 16);
  const bool is_data = hello->kind == ConnectionKind::kData;
  hello->slab_bytes = is_data ? 0 : number * kPageBytes;
  hello->connection = is_data ? number : 0;
  const bool has_features = has_range && hello->kind == ConnectionKind::kLifeline;
  const uint32_t word = DecodeFixed32(bytes.data() + 20);
  hello->features = has_features ? word : 0;
  hello->start_id = has_features ? 0 : word;
  hello->instance_id = DecodeFixed64(bytes.data() + 24);
  return true;
}

std::string Welcome::Encode() const {
  std::string bytes;
  PutFixed32(&bytes, magic);
  PutFixed32(&bytes, version);
  PutFixed64(&bytes, instance_id);
  if (version <= kVersionBeforeRanges) return bytes;
  PutFixed64(&bytes, features);
  PutFixed64(&bytes, features_on);
  return bytes;
}

bool Welcome::Decode(const Slice& bytes, Welcome* welcome) {
  if (bytes.size() < kEarlyWelcomeBytes) return false;
  welcome->magic = DecodeFixed32(bytes.data());
  welcome->version = DecodeFixed16(bytes.data() + 4);
  welcome->instance_id = DecodeFixed64(bytes.data() + 8);
  if (welcome->magic != kHelloMagic) return false;
  const bool has_features = welcome->version > kVersionBeforeRanges;
  if (has_features && bytes.size() < kBytes) return false;
  welcome->features = has_features ? DecodeFixed64(bytes.data() + 16) : 0;
  welcome->features_on = has_features ? DecodeFixed64(bytes.data() + 24) : 0;
  return true;
}

std::string RefusalReason(const Hello& hello, uint64_t slab_bytes, uint64_t instance_id,
                          uint32_t start_id, const ProtocolRange& range) {
  // Before there were ranges, an end took its own version and no other one.
  const bool takes_one = range.newest <= kVersionBeforeRanges;
  if (takes_one ? hello.range.newest != range.newest : CommonVersion(hello.range, range) == 0) {
    const std::string there =
        takes_one ? fmt::format("{}", hello.range.newest) : ToString(hello.range);
    return fmt::format("protocol {} here, {} there", ToString(range), there);
  }
  if (hello.instance_id != 0 && hello.instance_id != instance_id) {
    return std::string(kInstanceReason);
  }
  if (hello.start_id != 0 && hello.start_id != start_id) return std::string(kStartReason);
  if (hello.slab_bytes != 0 && hello.slab_bytes != slab_bytes) {
    return fmt::format("{} of {} here, {} asked", kSlabReason, slab_bytes, hello.slab_bytes);
  }
  return {};
}

std::string MissingFeaturesReason(FeatureSet features, FeatureSet features_on) {
  const FeatureSet missing = features_on & ~features;
  if (missing == 0) return {};
  return fmt::format("{}: on in this pool, and unknown to this older release", ToString(missing))
      .substr(0, rdma::Device::kMaxReasonBytes);
}

bool IsFromBeforeRanges(const Status& refusal) {
  constexpr std::string_view kSentence = "protocol version 8 here, ";
  static_assert(kVersionBeforeRanges == 8);
  return refusal.IsInvalidArgument() && refusal.message().find(kSentence) != std::string_view::npos;
}

Status StatusOfRefusal(const std::string& address, const Status& refusal) {
  // A transport that has named the peer already need not do so twice.
  const std::string message = refusal.message().starts_with(address + ": ")
                                  ? std::string(refusal.message())
                                  : fmt::format("{}: {}", address, refusal.message());
  if (refusal.IsInvalidArgument() &&
      refusal.message().find(kSlabReason) == std::string_view::npos) {
    return Status::Unavailable(message);
  }
  return Status::FromCode(static_cast<int>(refusal.code()), message);
}

bool IsOtherInstance(const Status& status) { return status.message().ends_with(kInstanceReason); }

std::string EncodeReplyFrame(const control::Reply& reply, uint64_t request_id) {
  std::string frame = reply.SerializeAsString();
  const size_t body_bytes = frame.size();
  char length[4];
  EncodeFixed32(length, static_cast<uint32_t>(body_bytes));
  const uint32_t crc = FrameCrc(frame, length, request_id);
  frame.append(length, sizeof(length));
  PutFixed32(&frame, crc);
  PutFixed64(&frame, request_id);
  return frame;
}

Status DecodeReplyFrame(const Slice& buffer, uint64_t request_id, control::Reply* reply) {
  if (buffer.size() < kReplyTrailerBytes) return Status::Corruption("reply without a trailer");
  const char* trailer = buffer.end() - kReplyTrailerBytes;
  const uint32_t length = DecodeFixed32(trailer);
  if (length > buffer.size() - kReplyTrailerBytes) {
    return Status::Corruption("reply longer than its buffer");
  }
  const Slice body(trailer - length, length);
  if (FrameCrc(body, trailer, request_id) != DecodeFixed32(trailer + 4)) {
    return Status::Corruption("checksum of a reply does not match");
  }
  if (!reply->ParseFromArray(body.data(), static_cast<int>(body.size()))) {
    return Status::Corruption("reply is no control message");
  }
  return Status::OK();
}

void SetStatus(const Status& status, control::Reply* reply) {
  reply->set_code(static_cast<uint32_t>(status.code()));
  const std::string_view message = status.message().substr(0, kMaxMessageBytes);
  reply->set_message(message.data(), message.size());
}

Status GetStatus(const control::Reply& reply) {
  return Status::FromCode(static_cast<int>(reply.code()), reply.message());
}

Status DecodeRequest(const Slice& bytes, control::Request* request) {
  if (bytes.size() > kMaxLargeRequestBytes ||
      !request->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Status::InvalidArgument("no control message");
  }
  if (request->id() == 0) return Status::InvalidArgument("request without an id");
  const control::RemoteMemory& reply = request->reply();
  if (reply.length() < kMinReplyBytes || (reply.address() + reply.length()) % 8 != 0) {
    return Status::InvalidArgument("request without a proper reply buffer");
  }
  if (request->has_large() && request->large().length() > kMaxLargeRequestBytes) {
    return Status::InvalidArgument("request is too large");
  }
  return Status::OK();
}

bool IsLargeBodyOf(const control::Request& large, const control::Request& envelope) {
  return large.id() == envelope.id() && !large.has_large() &&
         large.body_case() != control::Request::BODY_NOT_SET;
}

}  // namespace nacre::pool
