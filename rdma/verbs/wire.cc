#include "rdma/verbs/wire.h"

#include <algorithm>

namespace nacre::rdma {

namespace {

constexpr int kMaxDepth = 1 << 15;

template <typename Message>
bool Read(std::string_view bytes, Message* message) {
  static_assert(std::is_trivially_copyable_v<Message>);
  if (bytes.size() < sizeof(*message)) return false;
  std::memcpy(static_cast<void*>(message), bytes.data(), sizeof(*message));
  return true;
}

bool ReadOf(VerbsMessage wanted, std::string_view bytes, auto* message) {
  return Read(bytes, message) && message->header.magic == kVerbsMagic &&
         message->header.version == kVerbsVersion && message->header.message == wanted;
}

bool MakesSense(const VerbsHello& hello) {
  return hello.private_size() <= Device::kMaxPrivateData &&
         CheckVerbsDepths({.send = hello.send_depth, .receive = hello.receive_depth}).ok();
}

}  // namespace

VerbsRequest DecodeVerbsRequest(std::string_view bytes, VerbsHello* hello, VerbsAnswer* answer) {
  VerbsHeader header;
  if (!Read(bytes, &header) || header.magic != kVerbsMagic) return VerbsRequest::kOtherProtocol;
  if (header.version != kVerbsVersion) return VerbsRequest::kOtherVersion;
  if (header.message >= VerbsMessage::kHello) {
    return Read(bytes, hello) && MakesSense(*hello) ? VerbsRequest::kHello
                                                    : VerbsRequest::kMalformed;
  }
  if (header.message != VerbsMessage::kAnswer) return VerbsRequest::kOutOfTurn;
  return Read(bytes, answer) ? VerbsRequest::kAnswer : VerbsRequest::kMalformed;
}

bool DecodeVerbsChallenge(std::string_view bytes, VerbsChallenge* challenge) {
  return ReadOf(VerbsMessage::kChallenge, bytes, challenge);
}

bool DecodeVerbsAcceptance(std::string_view bytes, VerbsAcceptance* acceptance) {
  return ReadOf(VerbsMessage::kAcceptance, bytes, acceptance) &&
         acceptance->private_size <= Device::kMaxPrivateData;
}

bool DecodeVerbsRefusal(std::string_view bytes, VerbsHeader* header, std::string* reason) {
  VerbsRefusal refusal;
  if (!Read(bytes, header) || header->magic != kVerbsMagic) return false;
  reason->clear();
  if (Read(bytes, &refusal)) {
    reason->assign(refusal.reason, std::min<size_t>(refusal.reason_size, Device::kMaxReasonBytes));
  }
  return true;
}

Status CheckVerbsDepths(QueueDepths depths) {
  if (depths.send >= 1 && depths.send <= kMaxDepth && depths.receive >= 0 &&
      depths.receive <= kMaxDepth) {
    return Status::OK();
  }
  return Status::InvalidArgument("queue depths " + std::to_string(depths.send) + " and " +
                                 std::to_string(depths.receive) + ": at most " +
                                 std::to_string(kMaxDepth) + " each, and at least 1 to send");
}

}  // namespace nacre::rdma
