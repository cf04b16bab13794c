// Any peer that reaches a machine can ask its verbs listener for a connection, or pose as one: what
// the private data says is decoded or refused, and what is decoded is within its bounds.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "rdma/verbs/wire.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre::rdma;
  if (size == 0) return 0;
  // Most inputs are of this protocol, whose numbers take a fuzzer long to find.
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 4 != 0 && bytes.size() >= sizeof(VerbsHeader)) {
    VerbsHeader header{.message = static_cast<VerbsMessage>(bytes[3])};
    AsBytes(header).copy(bytes.data(), sizeof(header));
  }
  VerbsHello hello;
  VerbsAnswer answer;
  Proof proof;
  Handshake said;
  switch (DecodeVerbsRequest(bytes, &hello, &answer)) {
    case VerbsRequest::kHello: {
      Require(bytes.size() >= kVerbsRequestBytes);
      Require(hello.private_size() <= sizeof(hello.private_data));
      Require(hello.send_depth > 0);
      // What is sent on says the same.
      VerbsHello copy = hello;
      copy.SetPrivateData({hello.private_data, hello.private_size()}, hello.control());
      Require(AsBytes(copy) == AsBytes(hello));
      said = {.connector_nonce = hello.nonce, .hello = std::string(AsBytes(hello))};
      Require(Prove("secret", Role::kListener, said, &proof).ok());
      break;
    }
    case VerbsRequest::kAnswer:
      Require(!CheckProof(answer.proof, "secret", Role::kConnector, said).ok());
      break;
    case VerbsRequest::kOtherProtocol:
    case VerbsRequest::kOtherVersion:
      Require(data[0] % 4 == 0 || bytes.size() < sizeof(VerbsHeader));
      break;
    case VerbsRequest::kMalformed:
    case VerbsRequest::kOutOfTurn:
      break;
  }
  VerbsChallenge challenge;
  if (DecodeVerbsChallenge(bytes, &challenge)) {
    Require(!CheckProof(challenge.proof, "secret", Role::kListener, said).ok());
  }
  VerbsAcceptance acceptance;
  if (DecodeVerbsAcceptance(bytes, &acceptance)) {
    Require(acceptance.private_size <= sizeof(acceptance.private_data));
  }
  VerbsHeader header;
  std::string reason;
  if (DecodeVerbsRefusal(bytes, &header, &reason))
    Require(reason.size() <= Device::kMaxReasonBytes);
  return 0;
}
