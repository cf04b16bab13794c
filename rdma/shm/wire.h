#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "nacre/status.h"
#include "rdma/handshake.h"
#include "rdma/transport.h"

namespace nacre::rdma {

// What travels over a connection's Unix socket (SOCK_SEQPACKET, one message a packet, numbers in
// host order since both ends are on one host):
//
//   connecting side                          accepting side
//   Hello                          ->
//                                  <-        Challenge
//   Introduction + 3 fds           ->
//   its regions' RegionMessages    ->
//                                  <-        Answer (+ 2 fds if accepted)
//                                  <-        its regions' RegionMessages
//   RegionMessages from now on    <->        RegionMessages from now on
//
// Challenge and Introduction carry the proofs of rdma/handshake.h: a descriptor, from which all
// access to memory follows, goes only to a peer that has proven that it knows the secret.
// Each side reads the regions announced in the handshake before its queue pair exists, so a key
// that came with the private data is known; a key learned later was announced before.
// Between two devices of one process the regions' fds are not needed: MappingTable has the
// mappings. An "embedded" device's regions have none. Grants of parts of regions need no message:
// the control block describes them.
// Numbers here are frozen per version; another version is refused by its number, which its header
// tells in the same place, in an Answer.

inline constexpr uint64_t kWireMagic = 0x6d68732d6572636e;  // "ncre-shm" in memory.
inline constexpr uint32_t kWireVersion = 6;

enum class MessageType : uint32_t {
  kHello = 1,
  kAccepted = 2,
  kRejected = 3,
  kOtherVersion = 4,
  kRegionAdded = 5,  ///< Comes with the region's memfd unless both ends are in one process.
  kRegionDropped = 6,
  kChallenge = 7,
  kIntroduction = 8,
};

struct MessageHeader {
  uint64_t magic = kWireMagic;
  uint32_t version = kWireVersion;
  MessageType type;
};

/// How to ring the sender's receive completion queue.
struct DoorbellName {
  uint64_t device = 0;
  uint32_t index = 0;
  uint32_t group = 0;
};

struct Hello {
  MessageHeader header{.type = MessageType::kHello};
  DoorbellName doorbell;
  uint32_t connection = 0;  ///< See ConnectionObject.
  uint32_t ring_slots = 0;  ///< Power of two.
  uint32_t send_depth = 0;
  uint32_t receive_depth = 0;
  int32_t process = 0;  ///< Sender's pid, for messages.
  uint32_t this_process_only = 0;
  uint32_t control = 0;  ///< QueueDepths::control.
  uint32_t private_size = 0;
  char private_data[Device::kMaxPrivateData] = {};
  Nonce nonce{};
};
static_assert(sizeof(Hello) == 16 + 16 + 8 * 4 + Device::kMaxPrivateData + kNonceBytes);
static_assert(offsetof(Hello, nonce) == sizeof(Hello) - kNonceBytes);

struct Challenge {
  MessageHeader header{.type = MessageType::kChallenge};
  Nonce nonce{};
  Proof proof{};  ///< The listener's.
};
static_assert(sizeof(Challenge) == 16 + kNonceBytes + kProofBytes);

/// fds: control block, eventfd of the receive completion queue, connection memory.
struct Introduction {
  MessageHeader header{.type = MessageType::kIntroduction};
  uint32_t regions = 0;  ///< RegionMessages that follow at once.
  uint32_t reserved = 0;
  Proof proof{};  ///< The connector's.
};
static_assert(sizeof(Introduction) == 16 + 8 + kProofBytes);

/// fds if accepted: control block, eventfd of the receive completion queue.
struct Answer {
  MessageHeader header{.type = MessageType::kAccepted};
  DoorbellName doorbell;
  uint32_t regions = 0;
  uint32_t private_size = 0;
  /// Whether the connecting side may write to the regions; if not, their descriptors do not let it.
  uint32_t may_write = 0;
  uint32_t reserved = 0;
  char private_data[Device::kMaxReasonBytes] = {};  ///< In a refusal, this holds the reason.
};
static_assert(sizeof(Answer) == 16 + 16 + 16 + Device::kMaxReasonBytes);

struct RegionMessage {
  MessageHeader header{.type = MessageType::kRegionAdded};
  uint64_t address = 0;
  uint64_t size = 0;
  uint32_t key = 0;
  uint32_t access = 0;
};
static_assert(sizeof(RegionMessage) == 16 + 24);

static_assert(std::is_trivially_copyable_v<Hello> && std::is_trivially_copyable_v<Challenge> &&
              std::is_trivially_copyable_v<Introduction> && std::is_trivially_copyable_v<Answer> &&
              std::is_trivially_copyable_v<RegionMessage>);

/// No message is longer.
inline constexpr size_t kMaxMessageBytes = 256;
static_assert(sizeof(Answer) <= kMaxMessageBytes);

// Decoders, safe on any bytes. `fds`: descriptors that came with the message. `InvalidArgument` for
// what is no such message or makes no sense, `NotSupported` naming both for another version.

Status DecodeHello(std::string_view bytes, size_t fds, Hello* hello);
Status DecodeChallenge(std::string_view bytes, size_t fds, Challenge* challenge);
Status DecodeIntroduction(std::string_view bytes, size_t fds, Introduction* introduction);
/// OK for a refusal as well.
Status DecodeAnswer(std::string_view bytes, size_t fds, Answer* answer);
Status DecodeRegion(std::string_view bytes, RegionMessage* region);

/// What both ends have said when the nonces are known, for the proofs.
Handshake Said(const Hello& hello, const Challenge& challenge);

}  // namespace nacre::rdma
