#include "rdma/verbs/wire.h"

#include <algorithm>

#include "rdma/queue_depths.h"

namespace nacre::rdma {

namespace {

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
         CheckDepths({.send = hello.send_depth, .receive = hello.receive_depth}).ok();
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

}  // namespace nacre::rdma
