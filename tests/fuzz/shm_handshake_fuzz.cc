// Any process of the host can connect to a shm listener or pose as one: each message is decoded or
// refused, and what is decoded is within its bounds.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "rdma/shm/ring.h"
#include "rdma/shm/wire.h"

namespace {

void Require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace nacre::rdma;
  if (size == 0) return 0;
  const size_t fds = data[0] % 5;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Hello hello;
  if (DecodeHello(bytes, fds, &hello).ok()) {
    Require(fds == 0 && hello.private_size <= Device::kMaxPrivateData);
    Require(ConnectionMemory::Bytes(hello.ring_slots) < size_t{1} << 30);
    Proof proof;
    Require(Prove("secret", Role::kListener, Said(hello, Challenge()), &proof).ok());
  }
  Challenge challenge;
  if (DecodeChallenge(bytes, fds, &challenge).ok()) {
    const Handshake said = Said(Hello(), challenge);
    Require(!CheckProof(challenge.proof, "secret", Role::kListener, said).ok());
  }
  Introduction introduction;
  if (DecodeIntroduction(bytes, fds, &introduction).ok()) Require(fds == 3);
  Answer answer;
  if (DecodeAnswer(bytes, fds, &answer).ok()) Require(answer.private_size <= sizeof(answer));
  RegionMessage region;
  if (DecodeRegion(bytes, &region).ok() && region.header.type == MessageType::kRegionAdded) {
    Require(region.access <= static_cast<uint32_t>(Access::kRemoteAll));
  }
  return 0;
}
