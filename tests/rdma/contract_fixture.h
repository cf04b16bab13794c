#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>

#include "tests/support/rdma/rdma_endpoint.h"
#include "tests/support/rdma/rdma_peer.h"
#include "tests/support/seed.h"
#include "tests/support/sim/sim_network.h"

namespace nacre::rdma {

/// A pair of devices that must meet the contract. A new backend or decorator joins the suite by
/// another line in AllSetups.
struct Setup {
  const char* name;
  DeviceSpec spec;
  bool child = false;      ///< The far side is another process.
  bool accepting = false;  ///< The near side is the one that accepts the connection.
  bool emulated = false;   ///< In a guest, where all is slow.
};

inline void PrintTo(const Setup& setup, std::ostream* out) { *out << setup.name; }

inline std::vector<Setup> AllSetups() {
  const DeviceSpec shm;
  const DeviceSpec cxl{.scheme = "cxl"};
  const DeviceSpec embedded{.scheme = "embedded"};
  const DeviceSpec nic{.scheme = "shm", .parameters = {{"rtt_us", "5"}, {"gbps", "50"}}};
  const DeviceSpec faults{.scheme = "shm", .with_faults = true};
  const DeviceSpec tcp{.scheme = "tcp"};
  const DeviceSpec tls{.scheme = "tcp", .parameters = {{"tls", "1"}}, .secret = "a secret"};
  const DeviceSpec tls_all{.scheme = "tcp", .parameters = {{"tls", "all"}}, .secret = "a secret"};
  const DeviceSpec tcp_faults{.scheme = "tcp", .with_faults = true};
  std::vector<Setup> setups = {
      {.name = "shm", .spec = shm},
      {.name = "shm_accepting", .spec = shm, .accepting = true},
      {.name = "shm_process", .spec = shm, .child = true},
      {.name = "shm_process_accepting", .spec = shm, .child = true, .accepting = true},
      {.name = "cxl", .spec = cxl},
      {.name = "cxl_process", .spec = cxl, .child = true},
      {.name = "embedded", .spec = embedded},
      {.name = "nic", .spec = nic},
      {.name = "nic_process", .spec = nic, .child = true},
      {.name = "faultless", .spec = faults},
      {.name = "faultless_process", .spec = faults, .child = true, .accepting = true},
      {.name = "tcp", .spec = tcp},
      {.name = "tcp_accepting", .spec = tcp, .accepting = true},
      {.name = "tcp_process", .spec = tcp, .child = true},
      {.name = "tcp_process_accepting", .spec = tcp, .child = true, .accepting = true},
      {.name = "tcp_tls", .spec = tls},
      {.name = "tcp_tls_accepting", .spec = tls, .accepting = true},
      {.name = "tcp_tls_process", .spec = tls, .child = true},
      {.name = "tcp_tls_all", .spec = tls_all},
      {.name = "tcp_tls_all_accepting", .spec = tls_all, .accepting = true},
      {.name = "tcp_tls_all_process", .spec = tls_all, .child = true},
      {.name = "tcp_faultless", .spec = tcp_faults},
      {.name = "tcp_faultless_process", .spec = tcp_faults, .child = true},
  };
  setups.push_back({.name = "sim", .spec = {.scheme = "sim"}});
  setups.push_back({.name = "sim_accepting", .spec = {.scheme = "sim"}, .accepting = true});
  if (VerbsHost() != nullptr) {
    // A second is enough where the peer is on the same machine.
    const DeviceSpec verbs{.scheme = "verbs", .parameters = {{"timeout_ms", "1000"}}};
    setups.push_back({.name = "verbs", .spec = verbs});
    setups.push_back({.name = "verbs_accepting", .spec = verbs, .accepting = true});
    setups.push_back({.name = "verbs_process", .spec = verbs, .child = true});
    setups.push_back(
        {.name = "verbs_process_accepting", .spec = verbs, .child = true, .accepting = true});
    for (Setup& setup : setups) setup.emulated = setup.spec.scheme == "verbs";
  }
  return setups;
}

inline std::string NameOf(const testing::TestParamInfo<Setup>& info) { return info.param.name; }

/// Both sides, each with a region of kRegionBytes that the other may use in full.
class ContractTest : public testing::TestWithParam<Setup> {
 protected:
  static constexpr size_t kRegionBytes = 1 << 20;

  ContractTest()
      : simulation_(GetParam().spec.scheme == "sim" ? std::make_unique<sim::Network>(TestSeed(31))
                                                    : nullptr),
        peer_(GetParam().child ? MakeChildPeer(GetParam().spec) : MakeLocalPeer(GetParam().spec)),
        near_(GetParam().spec) {
    near_.Allocate(kRegionBytes);
    far_region_ = peer_->Allocate(kRegionBytes, Access::kRemoteAll, &far_key_);
  }

  static std::string FreshAddress() { return rdma::FreshAddress(GetParam().spec.scheme); }
  static std::string AnyAddress() { return rdma::AnyAddress(GetParam().spec.scheme); }

  /// How often to repeat what is to be repeated `count` times.
  static uint64_t Times(uint64_t count) {
    return GetParam().emulated ? std::max<uint64_t>(count / 10, 1) : count;
  }
  static bool IsVerbs() { return GetParam().spec.scheme == "verbs"; }

  /// Connects one more queue pair; its number is the same on both sides.
  QueuePair* Connect(QueueDepths depths = {}) {
    const std::string any = AnyAddress();
    if (GetParam().accepting) {
      EXPECT_TRUE(near_.Listen(any).ok());
      const std::string address = near_.listener->address();
      peer_->Start({.command = PeerCommand::kConnect,
                    .numbers = {static_cast<uint64_t>(depths.send),
                                static_cast<uint64_t>(depths.receive), depths.control},
                    .bytes = address});
      const Status accepted = near_.Accept("");
      EXPECT_TRUE(accepted.ok()) << accepted.ToString();
    } else {
      const PeerAnswer listening = peer_->Run({.command = PeerCommand::kListen, .bytes = any});
      EXPECT_TRUE(listening.status.ok()) << listening.status.ToString();
      const std::string& address = listening.bytes;
      peer_->Start({.command = PeerCommand::kAccept});
      std::string reply;
      const Status connected = near_.Connect(address, "", depths, &reply);
      EXPECT_TRUE(connected.ok()) << connected.ToString();
    }
    const Status other = peer_->Finish().status;
    EXPECT_TRUE(other.ok()) << other.ToString();
    return near_.queue_pairs.empty() ? nullptr : near_.queue_pairs.back().get();
  }

  LocalBuffer Near(size_t offset, size_t size) { return near_.Buffer(0, offset, size); }
  char* NearData(size_t offset = 0) { return near_.Data(0) + offset; }
  RemoteBuffer Far(size_t offset) const { return {far_key_.address + offset, far_key_.key}; }
  /// The near region as the peer names it.
  RemoteBuffer NearKey(size_t offset) const {
    const RemoteKey key = near_.regions[0]->remote_key();
    return {key.address + offset, key.key};
  }

  void StoreNear(size_t offset, const std::string& bytes) {
    bytes.copy(NearData(offset), bytes.size());
  }
  std::string LoadNear(size_t offset, size_t size) { return {NearData(offset), size}; }
  void StoreFar(size_t offset, const std::string& bytes) {
    peer_->Store(far_region_, offset, bytes);
  }
  std::string LoadFar(size_t offset, size_t size) { return peer_->Load(far_region_, offset, size); }

  /// The next completion is this one.
  void ExpectNext(uint64_t id, Opcode opcode, CompletionCode code = CompletionCode::kSuccess) {
    const Completion completion = near_.Next();
    EXPECT_EQ(completion.id, id);
    EXPECT_EQ(completion.opcode, opcode);
    EXPECT_EQ(completion.code, code) << ToString(completion.code);
  }
  void ExpectNextAtPeer(uint64_t id, Opcode opcode,
                        CompletionCode code = CompletionCode::kSuccess) {
    const Completion completion = peer_->Next();
    EXPECT_EQ(completion.id, id);
    EXPECT_EQ(completion.opcode, opcode);
    EXPECT_EQ(completion.code, code) << ToString(completion.code);
  }
  void ExpectNothing() {
    Completion completion;
    EXPECT_FALSE(near_.Next(&completion, std::chrono::milliseconds(20)));
  }
  /// The pair is broken for good, and says so in each completion.
  void ExpectBroken(QueuePair* pair) {
    ASSERT_TRUE(pair->PostWrite(1001, Near(0, 8), Far(0), 0).ok());
    ASSERT_TRUE(pair->PostRecv(1002, Near(0, 8)).ok());
    ASSERT_TRUE(pair->PostRead(1003, Near(0, 8), Far(0), kSignaled).ok());
    for (int i = 0; i < 3; i++) {
      const Completion completion = near_.Next();
      EXPECT_EQ(completion.code, CompletionCode::kFlushed) << ToString(completion.code);
      EXPECT_GE(completion.id, 1001u);
      EXPECT_LE(completion.id, 1003u);
    }
    EXPECT_TRUE(pair->broken());
  }

  const std::unique_ptr<sim::Network> simulation_;
  // The peer's queue pairs may be in the middle of something with ours: ours go first.
  const std::unique_ptr<Peer> peer_;
  Endpoint near_;
  int far_region_ = -1;
  RemoteKey far_key_;
};

}  // namespace nacre::rdma
