#include "rdma/tcp/greeting.h"

#include <algorithm>
#include <cstring>

#include "rdma/queue_depths.h"
#include "util/coding.h"

namespace nacre::rdma {

namespace {

constexpr uint64_t kMagic = 0x7063742d6572636e;  // "ncre-tcp" in memory.

constexpr size_t kVersionAt = 8;
constexpr size_t kGreetingTypeAt = 12;
constexpr size_t kBodyAt = kGreetingHeaderBytes;

constexpr size_t kReceiveDepthAt = kBodyAt + 4;
constexpr size_t kPrivateSizeAt = kBodyAt + 8;
constexpr size_t kHelloFlagsAt = kBodyAt + 12;
constexpr size_t kPrivateDataAt = kBodyAt + 16;
constexpr size_t kHelloNonceAt = kPrivateDataAt + Device::kMaxPrivateData;
static_assert(kHelloNonceAt + kNonceBytes == kHelloBytes);

constexpr size_t kChallengeProofAt = kBodyAt + kNonceBytes;
static_assert(kChallengeProofAt + kProofBytes == kChallengeBytes);
static_assert(kBodyAt + kProofBytes == kIntroductionBytes);

constexpr size_t kTextAt = kBodyAt + 8;
static_assert(kTextAt + Device::kMaxReasonBytes == kAnswerBytes);

std::string Begin(GreetingType type, size_t size) {
  std::string bytes(size, '\0');
  EncodeFixed64(bytes.data(), kMagic);
  EncodeFixed32(bytes.data() + kVersionAt, kTcpVersion);
  EncodeFixed32(bytes.data() + kGreetingTypeAt, static_cast<uint32_t>(type));
  return bytes;
}

Status Check(std::string_view bytes, GreetingType wanted, size_t size) {
  GreetingType type;
  NACRE_RETURN_IF_ERROR(DecodeGreetingHeader(bytes, &type));
  if (type == wanted && bytes.size() == size) return Status::OK();
  return Status::InvalidArgument("a message of the handshake that is out of turn");
}

}  // namespace

std::string EncodeHello(const TcpHello& hello) {
  std::string bytes = Begin(GreetingType::kHello, kHelloBytes);
  EncodeFixed32(bytes.data() + kBodyAt, static_cast<uint32_t>(hello.depths.send));
  EncodeFixed32(bytes.data() + kReceiveDepthAt, static_cast<uint32_t>(hello.depths.receive));
  EncodeFixed32(bytes.data() + kPrivateSizeAt, static_cast<uint32_t>(hello.private_data.size()));
  const uint32_t flags = (hello.depths.control ? kControlConnection : 0U) |
                         (hello.tls ? kTlsFollows : 0U) | (hello.tls_always ? kTlsAlways : 0U);
  EncodeFixed32(bytes.data() + kHelloFlagsAt, flags);
  hello.private_data.copy(bytes.data() + kPrivateDataAt, Device::kMaxPrivateData);
  std::memcpy(bytes.data() + kHelloNonceAt, hello.nonce.data(), kNonceBytes);
  return bytes;
}

std::string EncodeChallenge(const TcpChallenge& challenge) {
  std::string bytes = Begin(GreetingType::kChallenge, kChallengeBytes);
  std::memcpy(bytes.data() + kBodyAt, challenge.nonce.data(), kNonceBytes);
  std::memcpy(bytes.data() + kChallengeProofAt, challenge.proof.data(), kProofBytes);
  return bytes;
}

std::string EncodeIntroduction(const Proof& proof) {
  std::string bytes = Begin(GreetingType::kIntroduction, kIntroductionBytes);
  std::memcpy(bytes.data() + kBodyAt, proof.data(), kProofBytes);
  return bytes;
}

std::string EncodeAnswer(GreetingType type, std::string_view text) {
  std::string bytes = Begin(type, kAnswerBytes);
  const size_t size = std::min(text.size(), Device::kMaxReasonBytes);
  EncodeFixed32(bytes.data() + kBodyAt, static_cast<uint32_t>(size));
  text.copy(bytes.data() + kTextAt, size);
  return bytes;
}

Status DecodeGreetingHeader(std::string_view bytes, GreetingType* type) {
  if (bytes.size() < kGreetingHeaderBytes || DecodeFixed64(bytes.data()) != kMagic) {
    return Status::InvalidArgument("the peer does not speak this protocol");
  }
  const uint32_t version = DecodeFixed32(bytes.data() + kVersionAt);
  if (version != kTcpVersion) {
    return Status::NotSupported("the peer speaks version " + std::to_string(version) +
                                " of the tcp protocol, this process version " +
                                std::to_string(kTcpVersion));
  }
  *type = static_cast<GreetingType>(DecodeFixed32(bytes.data() + kGreetingTypeAt));
  return Status::OK();
}

Status DecodeHello(std::string_view bytes, TcpHello* hello) {
  NACRE_RETURN_IF_ERROR(Check(bytes, GreetingType::kHello, kHelloBytes));
  const uint32_t send_depth = DecodeFixed32(bytes.data() + kBodyAt);
  const uint32_t receive_depth = DecodeFixed32(bytes.data() + kReceiveDepthAt);
  const uint32_t private_size = DecodeFixed32(bytes.data() + kPrivateSizeAt);
  const uint32_t flags = DecodeFixed32(bytes.data() + kHelloFlagsAt);
  if (send_depth > kMaxQueueDepth || receive_depth > kMaxQueueDepth ||
      private_size > Device::kMaxPrivateData ||
      flags > (kControlConnection | kTlsFollows | kTlsAlways) ||
      (flags & (kTlsFollows | kTlsAlways)) == kTlsAlways) {
    return Status::InvalidArgument("a greeting that makes no sense");
  }
  hello->depths = {.send = static_cast<int>(send_depth),
                   .receive = static_cast<int>(receive_depth),
                   .control = (flags & kControlConnection) != 0};
  hello->tls = (flags & kTlsFollows) != 0;
  hello->tls_always = (flags & kTlsAlways) != 0;
  NACRE_RETURN_IF_ERROR(CheckDepths(hello->depths));
  hello->private_data.assign(bytes.data() + kPrivateDataAt, private_size);
  std::memcpy(hello->nonce.data(), bytes.data() + kHelloNonceAt, kNonceBytes);
  return Status::OK();
}

Status DecodeChallenge(std::string_view bytes, TcpChallenge* challenge) {
  NACRE_RETURN_IF_ERROR(Check(bytes, GreetingType::kChallenge, kChallengeBytes));
  std::memcpy(challenge->nonce.data(), bytes.data() + kBodyAt, kNonceBytes);
  std::memcpy(challenge->proof.data(), bytes.data() + kChallengeProofAt, kProofBytes);
  return Status::OK();
}

Status DecodeIntroduction(std::string_view bytes, Proof* proof) {
  NACRE_RETURN_IF_ERROR(Check(bytes, GreetingType::kIntroduction, kIntroductionBytes));
  std::memcpy(proof->data(), bytes.data() + kBodyAt, kProofBytes);
  return Status::OK();
}

Status DecodeAnswer(std::string_view bytes, GreetingType* type, std::string* text) {
  NACRE_RETURN_IF_ERROR(DecodeGreetingHeader(bytes, type));
  const bool is_answer = *type == GreetingType::kAccepted || *type == GreetingType::kRejected ||
                         *type == GreetingType::kOtherVersion;
  if (is_answer && bytes.size() == kAnswerBytes) {
    const uint32_t size = DecodeFixed32(bytes.data() + kBodyAt);
    const size_t size_max =
        *type == GreetingType::kAccepted ? Device::kMaxPrivateData : Device::kMaxReasonBytes;
    if (size <= size_max) {
      text->assign(bytes.data() + kTextAt, size);
      return Status::OK();
    }
  }
  return Status::InvalidArgument("an answer that makes no sense");
}

Handshake SaidOverTcp(std::string_view hello, const TcpChallenge& challenge) {
  Handshake said;
  std::memcpy(said.connector_nonce.data(), hello.data() + kHelloNonceAt, kNonceBytes);
  said.listener_nonce = challenge.nonce;
  said.hello = hello.substr(0, kHelloNonceAt);
  said.reply = EncodeChallenge({}).substr(0, kGreetingHeaderBytes);
  return said;
}

}  // namespace nacre::rdma
