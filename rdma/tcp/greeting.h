#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "nacre/status.h"
#include "rdma/handshake.h"
#include "rdma/transport.h"

namespace nacre::rdma {

// The messages of the handshake, before the first frame (numbers are little-endian):
//
//   connecting side                  accepting side
//   Hello                    ->
//                            <-      Challenge
//   Introduction             ->
//                            <-      Answer
//
// Where TLS was agreed on it begins behind the introduction: the answer and all that follows are
// within it. Ends that do not agree on it are told so by an answer instead of the challenge.
//
// Each begins with
//
//   offset size
//      0    8   magic, "ncre-tcp"
//      8    4   version
//     12    4   type (GreetingType)
//
// which is the same in all versions; another version is refused by its number (an Answer).
//
//   Hello:         16  4 send depth    20  4 receive depth   24  4 size of private data
//                  28  4 flags (HelloFlags)
//                  32 32 private data  64 16 nonce
//   Challenge:     16 16 nonce         32 32 proof of the accepting side
//   Introduction:  16 32 proof of the connecting side
//   Answer:        16  4 size of text  20  4 0   24 120 text: private data, or why refused

inline constexpr size_t kGreetingHeaderBytes = 16;
inline constexpr size_t kHelloBytes = 80;
inline constexpr size_t kChallengeBytes = 64;
inline constexpr size_t kIntroductionBytes = 48;
inline constexpr size_t kAnswerBytes = 144;
inline constexpr uint32_t kTcpVersion = 3;

enum class GreetingType : uint32_t {
  kHello = 1,
  kChallenge = 2,
  kIntroduction = 3,
  kAccepted = 4,
  kRejected = 5,
  kOtherVersion = 6,
};

enum HelloFlags : uint32_t {
  kControlConnection = 1,
  kTlsFollows = 2,  ///< Behind the introduction, both ends speak TLS.
  kTlsAlways = 4,   ///< So they do on all connections to this end, whatever they carry.
};

struct TcpHello {
  QueueDepths depths;
  bool tls = false;
  bool tls_always = false;
  std::string private_data;
  Nonce nonce{};
};

struct TcpChallenge {
  Nonce nonce{};
  Proof proof{};
};

std::string EncodeHello(const TcpHello& hello);
std::string EncodeChallenge(const TcpChallenge& challenge);
std::string EncodeIntroduction(const Proof& proof);
/// The text is cut to what there is room for.
std::string EncodeAnswer(GreetingType type, std::string_view text);

// Decoders, safe on any bytes. `InvalidArgument` for what is no such message or makes no sense,
// `NotSupported` naming both for another version.

/// The first kGreetingHeaderBytes of any message.
Status DecodeGreetingHeader(std::string_view bytes, GreetingType* type);
Status DecodeHello(std::string_view bytes, TcpHello* hello);
Status DecodeChallenge(std::string_view bytes, TcpChallenge* challenge);
Status DecodeIntroduction(std::string_view bytes, Proof* proof);
/// `*type` is one of the last three.
Status DecodeAnswer(std::string_view bytes, GreetingType* type, std::string* text);

/// What both ends have said when the nonces are known, for the proofs. `hello`: its bytes.
Handshake SaidOverTcp(std::string_view hello, const TcpChallenge& challenge);

}  // namespace nacre::rdma
