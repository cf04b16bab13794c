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

void PutHead(std::string* dst, uint32_t magic, uint16_t version, uint16_t kind) {
  PutFixed32(dst, magic);
  PutFixed32(dst, static_cast<uint32_t>(version) | static_cast<uint32_t>(kind) << 16);
}

uint32_t FrameCrc(const Slice& body, const char* trailer, uint64_t request_id) {
  char tail[12];
  std::memcpy(tail, trailer, 4);
  EncodeFixed64(tail + 4, request_id);
  return Crc32c(tail, sizeof(tail), Crc32c(body.data(), body.size()));
}

}  // namespace

std::string Hello::Encode() const {
  std::string bytes;
  PutHead(&bytes, magic, version, static_cast<uint16_t>(kind));
  PutFixed64(&bytes, client_id);
  // What no node can have stays what no node has.
  const uint64_t pages = slab_bytes % kPageBytes == 0 ? slab_bytes / kPageBytes : UINT32_MAX;
  const bool is_data = kind == ConnectionKind::kData;
  PutFixed32(&bytes,
             is_data ? connection : static_cast<uint32_t>(std::min<uint64_t>(pages, UINT32_MAX)));
  PutFixed32(&bytes, start_id);
  PutFixed64(&bytes, instance_id);
  return bytes;
}

bool Hello::Decode(const Slice& bytes, Hello* hello) {
  // A transport may pad private data with zeros, and a later version may append to it.
  if (bytes.size() < kBytes) return false;
  hello->magic = DecodeFixed32(bytes.data());
  hello->version = DecodeFixed16(bytes.data() + 4);
  const uint16_t kind = DecodeFixed16(bytes.data() + 6);
  if (hello->magic != kHelloMagic) return false;
  if (hello->version == kProtocolVersion && kind > static_cast<uint16_t>(ConnectionKind::kData)) {
    return false;
  }
  hello->kind = static_cast<ConnectionKind>(kind);
  hello->client_id = DecodeFixed64(bytes.data() + 8);
  const uint32_t number = DecodeFixed32(bytes.data() + 16);
  const bool is_data = hello->kind == ConnectionKind::kData;
  hello->slab_bytes = is_data ? 0 : number * kPageBytes;
  hello->connection = is_data ? number : 0;
  hello->start_id = DecodeFixed32(bytes.data() + 20);
  hello->instance_id = DecodeFixed64(bytes.data() + 24);
  return true;
}

std::string Welcome::Encode() const {
  std::string bytes;
  PutHead(&bytes, magic, version, 0);
  PutFixed64(&bytes, instance_id);
  return bytes;
}

bool Welcome::Decode(const Slice& bytes, Welcome* welcome) {
  if (bytes.size() < kBytes) return false;
  welcome->magic = DecodeFixed32(bytes.data());
  welcome->version = DecodeFixed16(bytes.data() + 4);
  welcome->instance_id = DecodeFixed64(bytes.data() + 8);
  return welcome->magic == kHelloMagic && welcome->version == kProtocolVersion;
}

std::string RefusalReason(const Hello& hello, uint64_t slab_bytes, uint64_t instance_id,
                          uint32_t start_id) {
  if (hello.version != kProtocolVersion) {
    return fmt::format("protocol version {} here, {} there", kProtocolVersion, hello.version);
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
