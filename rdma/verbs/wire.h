#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "rdma/handshake.h"
#include "rdma/transport.h"

namespace nacre::rdma {

// The handshake of the verbs transport travels in the private data of the connection manager's
// messages, all of it before any queue pair of the listening side exists. A connection is asked for
// twice: the first request is always rejected, with a challenge.
//
//   connecting side                      listening side
//   REQ  VerbsHello               ->
//                                 <-     REJ  VerbsChallenge (its nonce and proof) or VerbsRefusal
//   REQ  VerbsAnswer (its proof)  ->
//                                 <-     REP  VerbsAcceptance (reply, proof), or REJ VerbsRefusal
//   RTU                           ->
//
// So a peer that does not know the secret costs the listener an entry in a bounded table and
// nothing else: no queue pair, no receive, no access, no time in Accept; and the user's completion
// queues, which a queue pair is bound to at its creation, are not needed before the user accepts. A
// SEND as the third message would need the queue pair first, and would have to be awaited in the
// user's completion queue, at a stranger's leisure.
//
// The listener proves itself twice: in the challenge over the hello, before the connecting side
// answers it, and in the acceptance over the hello and the user's reply, before the connecting
// side's queue pair can receive anything.
//
// Numbers here are frozen per version; bytes in little-endian order. Another version is refused by
// its number, which is in the same place in all of them.

inline constexpr uint16_t kVerbsMagic = 0x636e;  // "nc"
inline constexpr uint8_t kVerbsVersion = 3;
static_assert(std::endian::native == std::endian::little);

enum class VerbsMessage : uint8_t {
  /// The greetings of a data and of a control connection. The size of the private data is added to
  /// these numbers, as there is no byte left for it elsewhere.
  kHello = 64,
  kControlHello = 128,
  kChallenge = 2,
  kAnswer = 3,
  kAcceptance = 4,
  kRefused = 5,      ///< Sent by the listening application, with a reason.
  kNotAdmitted = 6,  ///< Sent by the transport: no secret, or too many at once.
  kOtherVersion = 7,
};

struct VerbsHeader {
  uint16_t magic = kVerbsMagic;
  uint8_t version = kVerbsVersion;
  VerbsMessage message;
};

struct VerbsHello {
  VerbsHeader header{.message = VerbsMessage::kHello};
  uint16_t send_depth = 0;
  uint16_t receive_depth = 0;
  Nonce nonce{};
  char private_data[Device::kMaxPrivateData] = {};

  void SetPrivateData(const std::string& data, bool of_control) {
    const VerbsMessage kind = of_control ? VerbsMessage::kControlHello : VerbsMessage::kHello;
    header.message = static_cast<VerbsMessage>(static_cast<size_t>(kind) + data.size());
    data.copy(private_data, data.size());
  }
  bool control() const { return header.message >= VerbsMessage::kControlHello; }
  /// Above kMaxPrivateData if this is no hello.
  size_t private_size() const {
    const VerbsMessage kind = control() ? VerbsMessage::kControlHello : VerbsMessage::kHello;
    return static_cast<size_t>(header.message) - static_cast<size_t>(kind);
  }
};
inline constexpr size_t kVerbsRequestBytes =
    56;  ///< What RDMA CM leaves of a REQ over RDMA_PS_TCP.
static_assert(sizeof(VerbsHello) == kVerbsRequestBytes);

struct VerbsChallenge {
  VerbsHeader header{.message = VerbsMessage::kChallenge};
  Nonce nonce{};
  Proof proof{};
};
static_assert(sizeof(VerbsChallenge) == 52);

/// The listener knows the rest by its nonce.
struct VerbsAnswer {
  VerbsHeader header{.message = VerbsMessage::kAnswer};
  uint32_t reserved = 0;
  Nonce listener_nonce{};
  Proof proof{};
};
static_assert(sizeof(VerbsAnswer) == kVerbsRequestBytes);

struct VerbsAcceptance {
  VerbsHeader header{.message = VerbsMessage::kAcceptance};
  uint32_t private_size = 0;
  Proof proof{};
  char private_data[Device::kMaxPrivateData] = {};
};
static_assert(sizeof(VerbsAcceptance) == 72);

struct VerbsRefusal {
  VerbsHeader header{.message = VerbsMessage::kRefused};
  uint32_t reason_size = 0;
  char reason[Device::kMaxReasonBytes] = {};
};
static_assert(sizeof(VerbsRefusal) == 128);  // A REJ has 148.

// Decoders, safe on any bytes: private data comes padded with zeros, or not at all.

/// What a request to connect says.
enum class VerbsRequest : uint8_t {
  kHello,
  kAnswer,
  kOtherProtocol,
  kOtherVersion,
  kMalformed,
  kOutOfTurn,
};
/// Fills in the message that it is. A hello then makes sense; an answer may come from any peer.
VerbsRequest DecodeVerbsRequest(std::string_view bytes, VerbsHello* hello, VerbsAnswer* answer);
/// False for anything else.
bool DecodeVerbsChallenge(std::string_view bytes, VerbsChallenge* challenge);
bool DecodeVerbsAcceptance(std::string_view bytes, VerbsAcceptance* acceptance);
/// Decodes a refusal of any version and message; false for another protocol.
bool DecodeVerbsRefusal(std::string_view bytes, VerbsHeader* header, std::string* reason);

template <typename Message>
std::string_view AsBytes(const Message& message) {
  static_assert(std::is_trivially_copyable_v<Message>);
  return {reinterpret_cast<const char*>(&message), sizeof(message)};
}

}  // namespace nacre::rdma
