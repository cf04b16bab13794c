#include "rdma/shm/wire.h"

#include <bit>
#include <cstring>
#include <string>

#include "rdma/shm/control.h"

namespace nacre::rdma {

namespace {

constexpr uint32_t kMaxRingSlots = 1 << 15;

Status Malformed(const char* what) {
  return Status::InvalidArgument(std::string("a message that is no ") + what);
}

/// Copies the message if its header says that it is a T; what else is in it is the caller's matter.
template <typename T>
Status Decode(std::string_view bytes, const char* what, T* message) {
  MessageHeader header{.type = MessageType::kHello};
  if (bytes.size() < sizeof(header)) return Malformed(what);
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kWireMagic) return Malformed(what);
  if (header.version != kWireVersion) {
    return Status::NotSupported("speaks version " + std::to_string(header.version) +
                                " of the shm protocol, this process version " +
                                std::to_string(kWireVersion));
  }
  if (bytes.size() != sizeof(T)) return Malformed(what);
  std::memcpy(message, bytes.data(), sizeof(T));
  return Status::OK();
}

std::string BytesOf(const void* data, size_t size) {
  return std::string(static_cast<const char*>(data), size);
}

}  // namespace

Status DecodeHello(std::string_view bytes, size_t fds, Hello* hello) {
  NACRE_RETURN_IF_ERROR(Decode(bytes, "greeting", hello));
  const bool sound = hello->header.type == MessageType::kHello && fds == 0 &&
                     hello->private_size <= Device::kMaxPrivateData &&
                     std::has_single_bit(hello->ring_slots) && hello->ring_slots <= kMaxRingSlots &&
                     hello->receive_depth <= hello->ring_slots && hello->send_depth >= 1 &&
                     hello->send_depth <= kMaxRingSlots && hello->control <= 1;
  return sound ? Status::OK() : Malformed("greeting");
}

Status DecodeChallenge(std::string_view bytes, size_t fds, Challenge* challenge) {
  NACRE_RETURN_IF_ERROR(Decode(bytes, "challenge", challenge));
  const bool sound = challenge->header.type == MessageType::kChallenge && fds == 0;
  return sound ? Status::OK() : Malformed("challenge");
}

Status DecodeIntroduction(std::string_view bytes, size_t fds, Introduction* introduction) {
  NACRE_RETURN_IF_ERROR(Decode(bytes, "introduction", introduction));
  const bool sound = introduction->header.type == MessageType::kIntroduction && fds == 3 &&
                     introduction->regions <= ControlBlock::kKeySlots;
  return sound ? Status::OK() : Malformed("introduction");
}

Status DecodeAnswer(std::string_view bytes, size_t fds, Answer* answer) {
  NACRE_RETURN_IF_ERROR(Decode(bytes, "answer", answer));
  if (answer->private_size > Device::kMaxReasonBytes) return Malformed("answer");
  const bool sound = answer->header.type == MessageType::kRejected ||
                     (answer->header.type == MessageType::kAccepted && fds == 2 &&
                      answer->private_size <= Device::kMaxPrivateData && answer->may_write <= 1 &&
                      answer->regions <= ControlBlock::kKeySlots);
  return sound ? Status::OK() : Malformed("answer");
}

Status DecodeRegion(std::string_view bytes, RegionMessage* region) {
  NACRE_RETURN_IF_ERROR(Decode(bytes, "announcement", region));
  const bool sound = (region->header.type == MessageType::kRegionAdded &&
                      region->access <= static_cast<uint32_t>(Access::kRemoteAll)) ||
                     region->header.type == MessageType::kRegionDropped;
  return sound ? Status::OK() : Malformed("announcement");
}

Handshake Said(const Hello& hello, const Challenge& challenge) {
  return {.connector_nonce = hello.nonce,
          .listener_nonce = challenge.nonce,
          .hello = BytesOf(&hello, offsetof(Hello, nonce)),
          .reply = BytesOf(&challenge, offsetof(Challenge, nonce))};
}

}  // namespace nacre::rdma
