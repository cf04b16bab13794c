// Goal: what the shm backend promises beyond the contract: socket files, strangers at its door, one
// mapping per region, nothing leaked by connections that end in whatever way.
// Method: /proc/self tells descriptors and mappings before and after.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "rdma/shm/socket.h"
#include "rdma/shm/wire.h"
#include "rdma/wait.h"
#include "tests/support/rdma/rdma_endpoint.h"
#include "tests/support/rdma/rdma_peer.h"
#include "tests/support/temp_folder.h"

namespace nacre::rdma {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

size_t CountDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count++;
  }
  return count;
}

/// Counts mappings of shared memory that a device made.
size_t CountMappings() {
  std::ifstream maps("/proc/self/maps");
  size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:nacre") != std::string::npos) count++;
  }
  return count;
}

/// A device's monitor may hold on to a dead connection for a moment.
void ExpectCounts(size_t descriptors, size_t mappings) {
  const auto begin = std::chrono::steady_clock::now();
  while (CountDescriptors() != descriptors || CountMappings() != mappings) {
    if (std::chrono::steady_clock::now() - begin > Endpoint::kPatience) {
      FAIL() << CountDescriptors() << " descriptors and " << CountMappings()
             << " mappings instead of " << descriptors << " and " << mappings;
    }
    std::this_thread::yield();
  }
}

class ShmTest : public testing::Test {
 protected:
  std::string SocketPath() const { return folder_.File("node.sock"); }

  const TempFolder folder_;
};

TEST_F(ShmTest, SocketFilesComeAndGo) {
  Endpoint near({});
  Endpoint far({});
  ASSERT_TRUE(far.Listen("shm:" + SocketPath()).ok());
  EXPECT_EQ(far.listener->address(), "shm:" + SocketPath());
  ConnectEndpoints(&near, &far, SocketPath());
  EXPECT_EQ(near.queue_pairs[0]->peer(), "shm:" + SocketPath());
  far.listener.reset();
  EXPECT_FALSE(std::filesystem::exists(SocketPath()));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 0);
}

TEST_F(ShmTest, AStaleSocketFileIsReplacedAndALiveOneIsNot) {
  {
    const auto peer = MakeChildPeer({});
    ASSERT_TRUE(peer->Run({.command = PeerCommand::kListen, .bytes = SocketPath()}).status.ok());
    Endpoint second({});
    const Status status = second.Listen(SocketPath());
    EXPECT_TRUE(status.IsBusy()) << status.ToString();
    EXPECT_NE(status.message().find(SocketPath()), std::string_view::npos);
    peer->Kill();
  }
  EXPECT_TRUE(std::filesystem::exists(SocketPath()));
  Endpoint near({});
  Endpoint far({});
  ASSERT_TRUE(far.Listen(SocketPath()).ok());
  ConnectEndpoints(&near, &far, SocketPath());
}

TEST_F(ShmTest, WhatIsNoSocketIsLeftAlone) {
  std::ofstream(SocketPath()) << "precious";
  Endpoint endpoint({});
  const Status status = endpoint.Listen(SocketPath());
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_NE(status.message().find(SocketPath()), std::string_view::npos);
  std::string content;
  std::ifstream(SocketPath()) >> content;
  EXPECT_EQ(content, "precious");
  EXPECT_FALSE(endpoint.Listen(folder_.File("missing/node.sock")).ok());
  EXPECT_TRUE(endpoint.Listen("shm:bare-name").IsInvalidArgument());
}

TEST_F(ShmTest, StrangersAreTurnedAwayAndDelayNobody) {
  Endpoint near({});
  Endpoint far({});
  ASSERT_TRUE(far.Listen(SocketPath()).ok());
  ShmAddress address;
  ASSERT_TRUE(ParseShmAddress(SocketPath(), &address).ok());
  const Deadline deadline = Deadline::After(Clock::System(), seconds(10));
  // One peer says nothing, one talks nonsense, one leaves, one has another version, and one says no
  // more than hello.
  UniqueFd silent;
  UniqueFd nonsense;
  UniqueFd gone;
  UniqueFd other_version;
  UniqueFd no_proof;
  for (UniqueFd* socket : {&silent, &nonsense, &gone, &other_version, &no_proof}) {
    ASSERT_TRUE(ConnectTo(address, deadline, socket).ok());
  }
  ASSERT_TRUE(SendBy(nonsense.get(), deadline, "hello?", 6, {}).ok());
  gone.Reset();
  Hello hello;
  hello.ring_slots = 4;
  hello.send_depth = 4;
  ASSERT_TRUE(SendBy(no_proof.get(), deadline, &hello, sizeof(hello), {}).ok());
  hello.header.version = kWireVersion + 1;
  ASSERT_TRUE(SendBy(other_version.get(), deadline, &hello, sizeof(hello), {}).ok());

  ConnectEndpoints(&near, &far, SocketPath());
  Packet packet;
  ASSERT_TRUE(ReceiveBy(other_version.get(), deadline, &packet).ok());
  Answer answer;
  ASSERT_EQ(packet.size, sizeof(answer));
  std::memcpy(&answer, packet.data.data(), sizeof(answer));
  EXPECT_EQ(answer.header.type, MessageType::kOtherVersion);
  EXPECT_EQ(answer.header.version, kWireVersion);
  EXPECT_TRUE(ReceiveBy(nonsense.get(), deadline, &packet).IsUnavailable());
}

TEST_F(ShmTest, AConnectorIsToldOfAnotherVersion) {
  ShmAddress address;
  ASSERT_TRUE(ParseShmAddress(SocketPath(), &address).ok());
  UniqueFd listening;
  ASSERT_TRUE(ListenOn(&address, &listening).ok());
  for (const bool magic : {true, false}) {
    std::thread impostor([&] {
      ASSERT_TRUE(WaitFor(listening.get(), POLLIN, seconds(10)));
      const UniqueFd socket(accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
      Answer answer;
      answer.header.type = MessageType::kOtherVersion;
      answer.header.version = 99;
      if (!magic) answer.header.magic++;
      ASSERT_TRUE(SendBy(socket.get(), Deadline::After(Clock::System(), seconds(10)), &answer,
                         sizeof(answer), {})
                      .ok());
    });
    Endpoint endpoint({});
    std::string reply;
    const Status status = endpoint.Connect(SocketPath(), "", {}, &reply);
    if (magic) {
      EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
      EXPECT_NE(status.message().find("99"), std::string_view::npos) << status.ToString();
    } else {
      EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
    }
    impostor.join();
  }
}

TEST_F(ShmTest, AnEmbeddedDeviceStaysInItsProcess) {
  const auto peer = MakeChildPeer({});
  const DeviceSpec embedded{.scheme = "embedded"};
  Endpoint near(embedded);
  ASSERT_TRUE(peer->Run({.command = PeerCommand::kListen, .bytes = SocketPath()}).status.ok());
  peer->Start({.command = PeerCommand::kAccept});
  std::string reply;
  const Status status = near.Connect(SocketPath(), "", {}, &reply);
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_FALSE(peer->Finish().status.ok());
}

TEST_F(ShmTest, ADeviceMayConnectToItself) {
  Endpoint self({});
  self.Allocate(1 << 20);
  ASSERT_TRUE(self.Listen(SocketPath()).ok());
  std::unique_ptr<CompletionQueue> queue;
  std::unique_ptr<QueuePair> accepted;
  ASSERT_TRUE(self.device->CreateCompletionQueue(16, &queue).ok());
  std::thread accepting([&] {
    std::unique_ptr<IncomingConnection> incoming;
    ASSERT_TRUE(self.listener->Accept(seconds(10), &incoming).ok());
    ASSERT_TRUE(incoming->Accept(queue.get(), queue.get(), "", &accepted).ok());
  });
  std::string reply;
  ASSERT_TRUE(self.Connect(SocketPath(), "", {}, &reply).ok());
  accepting.join();
  self.Allocate(1 << 20);  // Announced to itself.
  const RemoteKey key = self.regions[1]->remote_key();
  std::memcpy(self.Data(0), "to myself", 9);
  ASSERT_TRUE(self.queue_pairs[0]
                  ->PostWrite(1, self.Buffer(0, 0, 9), {key.address, key.key}, kSignaled)
                  .ok());
  EXPECT_EQ(self.Next().code, CompletionCode::kSuccess);
  EXPECT_EQ(std::string(self.Data(1), 9), "to myself");
}

// More regions than a socket holds announcements of: the side that connects waits until they are
// read. Another connection of its process that the listener takes first must not wait for that one.
TEST_F(ShmTest, ConnectionsThatTellOfManyRegionsAreTakenInAnyOrder) {
  Endpoint near({});
  Endpoint far({});
  ASSERT_TRUE(far.Listen(SocketPath()).ok());
  for (int i = 0; i < 1500; i++) near.Allocate(4096);
  std::vector<Status> connected(2);
  std::vector<std::thread> connecting;
  std::vector<std::unique_ptr<QueuePair>> queue_pairs(2);
  std::vector<std::unique_ptr<IncomingConnection>> incoming(2);
  for (size_t i = 0; i < 2; i++) {
    connecting.emplace_back([&, i] {
      std::string reply;
      connected[i] = near.device->Connect(SocketPath(), "", {}, near.queue.get(), near.queue.get(),
                                          Deadline::After(Clock::System(), Endpoint::kPatience),
                                          &reply, &queue_pairs[i]);
    });
    EXPECT_TRUE(far.listener->Accept(Endpoint::kPatience, &incoming[i]).ok());
  }
  std::vector<std::unique_ptr<QueuePair>> accepted(2);
  for (const size_t i : {1, 0}) {
    ASSERT_NE(incoming[i], nullptr);
    const Status status = incoming[i]->Accept(far.queue.get(), far.queue.get(), "", &accepted[i]);
    EXPECT_TRUE(status.ok()) << status.ToString();
  }
  for (std::thread& thread : connecting) thread.join();
  for (const Status& status : connected) EXPECT_TRUE(status.ok()) << status.ToString();
}

TEST_F(ShmTest, ManyConnectionsMapARegionOnce) {
  const auto peer = MakeChildPeer({});
  RemoteKey key;
  const int region = peer->Allocate(8 << 20, Access::kRemoteAll, &key);
  ASSERT_TRUE(peer->Run({.command = PeerCommand::kListen, .bytes = SocketPath()}).status.ok());
  Endpoint first({});
  Endpoint second({});
  const int near_region = first.Allocate(4096, Access::kLocalOnly);
  const auto connect = [&](Endpoint* endpoint) {
    peer->Start({.command = PeerCommand::kAccept});
    std::string reply;
    ASSERT_TRUE(endpoint->Connect(SocketPath(), "", {.send = 4, .receive = 4}, &reply).ok());
    ASSERT_TRUE(peer->Finish().status.ok());
  };
  connect(&first);
  const size_t with_one = CountMappings();
  for (int i = 0; i < 8; i++) {
    connect(&first);
    connect(&second);
  }
  // Each connection has its rings; the region and the peer's control block stay as they are.
  EXPECT_EQ(CountMappings(), with_one + 16);
  // All of them reach it, and when it is freed it is unmapped.
  for (const auto& pair : first.queue_pairs) {
    ASSERT_TRUE(
        pair->PostRead(1, first.Buffer(near_region, 0, 8), {key.address, key.key}, kSignaled).ok());
    EXPECT_EQ(first.Next().code, CompletionCode::kSuccess);
  }
  peer->Free(region);
  for (const auto& pair : first.queue_pairs) {
    ASSERT_TRUE(pair->PostRead(1, first.Buffer(near_region, 0, 8), {key.address, key.key}, 0).ok());
    EXPECT_EQ(first.Next().code, CompletionCode::kRemoteAccessError);
  }
  const auto begin = std::chrono::steady_clock::now();
  while (CountMappings() != with_one + 16 - 1) {
    ASSERT_LT(std::chrono::steady_clock::now() - begin, Endpoint::kPatience);
    std::this_thread::yield();  // The announcements are on their way.
  }
}

TEST_F(ShmTest, AFreedRegionGivesItsMemoryBackThoughPeersKnowIt) {
  Endpoint near({});
  Endpoint far({});
  ASSERT_TRUE(far.Listen(SocketPath()).ok());
  ConnectEndpoints(&near, &far, SocketPath());
  const int region = far.Allocate(64 << 20);
  const int near_region = near.Allocate(4096);
  const RemoteKey key = far.regions[0]->remote_key();
  std::memset(far.Data(region), 1, 64 << 20);
  ASSERT_TRUE(near.queue_pairs[0]
                  ->PostRead(1, near.Buffer(near_region, 0, 8), {key.address, key.key}, kSignaled)
                  .ok());
  EXPECT_EQ(near.Next().code, CompletionCode::kSuccess);
  const auto resident = [] {
    std::ifstream statm("/proc/self/statm");
    size_t total, pages;
    statm >> total >> pages;
    return pages * 4096;
  };
  const size_t before = resident();
  far.regions[0].reset();
  EXPECT_LT(resident(), before - (32 << 20));
}

TEST_F(ShmTest, PopulatingTakesTheMemoryAndKeepsWhatIsThere) {
  for (const char* scheme : {"shm", "embedded"}) {
    std::unique_ptr<Device> device;
    ASSERT_TRUE(OpenDevice(scheme, {}, Clock::System(), &device).ok());
    for (const size_t size : {size_t{5000}, size_t{9 << 20} + 12345}) {
      std::unique_ptr<MemoryRegion> region;
      ASSERT_TRUE(device->AllocateRegion(size, Access::kRemoteAll, &region).ok());
      const std::vector<size_t> places = {0, size / 3, size - 1};
      for (const size_t place : places) region->data()[place] = static_cast<char>(place % 100 + 1);
      const Status status = region->Populate();
      ASSERT_TRUE(status.ok()) << status.ToString();
      std::vector<unsigned char> resident((size + 4095) / 4096);
      ASSERT_EQ(mincore(region->data(), size, resident.data()), 0);
      for (size_t page = 0; page < resident.size(); ++page)
        ASSERT_EQ(resident[page] & 1, 1) << page;
      size_t set = 0;
      for (size_t i = 0; i < size; ++i) set += region->data()[i] != 0;
      EXPECT_EQ(set, places.size());
      for (const size_t place : places) {
        EXPECT_EQ(region->data()[place], static_cast<char>(place % 100 + 1));
      }
    }
  }
}

TEST_F(ShmTest, ConnectionsLeaveNothingBehind) {
  Endpoint near({});
  Endpoint far({});
  near.Allocate(1 << 16);
  far.Allocate(1 << 16);
  ASSERT_TRUE(far.Listen(SocketPath()).ok());
  const size_t descriptors = CountDescriptors();
  const size_t mappings = CountMappings();
  for (int round = 0; round < 100; round++) {
    ConnectEndpoints(&near, &far, SocketPath());
    ASSERT_TRUE(near.queue_pairs[0]->PostRecv(1, near.Buffer(0, 0, 8)).ok());
    const RemoteKey key = far.regions[0]->remote_key();
    ASSERT_TRUE(near.queue_pairs[0]
                    ->PostRead(2, near.Buffer(0, 0, 8), {key.address, key.key}, kSignaled)
                    .ok());
    ASSERT_EQ(near.Next().id, 2u);
    // Either end may go first.
    Endpoint* first = round % 2 == 0 ? &near : &far;
    Endpoint* second = round % 2 == 0 ? &far : &near;
    first->queue_pairs.clear();
    second->queue_pairs.clear();
  }
  ExpectCounts(descriptors, mappings);
}

TEST_F(ShmTest, RefusedAndUnansweredConnectionsLeaveNothingBehind) {
  Endpoint near({});
  Endpoint far({});
  near.Allocate(1 << 16);
  ASSERT_TRUE(far.Listen(SocketPath()).ok());
  const size_t descriptors = CountDescriptors();
  const size_t mappings = CountMappings();
  for (int round = 0; round < 50; round++) {
    std::string reply;
    std::thread refusing([&] { EXPECT_TRUE(far.Reject("no").ok()); });
    EXPECT_TRUE(near.Connect(SocketPath(), "", {}, &reply).IsInvalidArgument());
    refusing.join();
    EXPECT_TRUE(near.Connect(SocketPath(), "", {}, &reply, milliseconds(1)).IsUnavailable());
    // A peer that has left does not come this far.
    std::unique_ptr<IncomingConnection> incoming;
    ASSERT_TRUE(far.listener->Accept(milliseconds(0), &incoming).IsTimedOut());
  }
  ExpectCounts(descriptors, mappings);
}

TEST_F(ShmTest, KilledPeersLeaveNothingBehind) {
  Endpoint near({});
  near.Allocate(1 << 16);
  ASSERT_TRUE(near.Listen(SocketPath()).ok());
  const size_t descriptors = CountDescriptors();
  const size_t mappings = CountMappings();
  for (int round = 0; round < 100; round++) {
    const auto peer = MakeChildPeer({});
    RemoteKey key;
    peer->Allocate(1 << 20, Access::kRemoteAll, &key);
    peer->Start({.command = PeerCommand::kConnect, .numbers = {16, 16}, .bytes = SocketPath()});
    ASSERT_TRUE(near.Accept("").ok());
    ASSERT_TRUE(peer->Finish().status.ok());
    QueuePair* pair = near.queue_pairs[0].get();
    ASSERT_TRUE(pair->PostRecv(1, near.Buffer(0, 0, 8)).ok());
    ASSERT_TRUE(pair->PostRead(2, near.Buffer(0, 0, 8), {key.address, key.key}, kSignaled).ok());
    ASSERT_EQ(near.Next().id, 2u);
    peer->Kill();
    const Completion flushed = near.Next();
    ASSERT_EQ(flushed.id, 1u);
    ASSERT_EQ(flushed.code, CompletionCode::kFlushed);
    near.queue_pairs.clear();
  }
  ExpectCounts(descriptors, mappings);
}

TEST_F(ShmTest, DevicesLeaveNothingBehind) {
  const size_t descriptors = CountDescriptors();
  const size_t mappings = CountMappings();
  for (int round = 0; round < 20; round++) {
    Endpoint near({});
    Endpoint far({});
    near.Allocate(1 << 16);
    ASSERT_TRUE(far.Listen(FreshAddress()).ok());
    ConnectEndpoints(&near, &far, far.listener->address());
  }
  ExpectCounts(descriptors, mappings);
}

TEST_F(ShmTest, DescriptorsAreNotInherited) {
  Endpoint near({});
  Endpoint far({});
  near.Allocate(1 << 16);
  ASSERT_TRUE(far.Listen(SocketPath()).ok());
  ConnectEndpoints(&near, &far, SocketPath());
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(entry, error).string();
    if (target.find("memfd:nacre") == std::string::npos && !target.starts_with("socket:") &&
        !target.starts_with("anon_inode:")) {
      continue;
    }
    EXPECT_NE(fcntl(std::stoi(entry.path().filename()), F_GETFD) & FD_CLOEXEC, 0) << target;
  }
}

TEST_F(ShmTest, APeerThatStandsStillIsCutOffInsteadOfBlockingAllocations) {
  const auto peer = MakeChildPeer({});
  Endpoint near({});
  near.Allocate(4096);
  ASSERT_TRUE(near.Listen(SocketPath()).ok());
  peer->Start({.command = PeerCommand::kConnect, .numbers = {16, 16}, .bytes = SocketPath()});
  ASSERT_TRUE(near.Accept("").ok());
  ASSERT_TRUE(peer->Finish().status.ok());
  kill(peer->process(), SIGSTOP);
  // Its socket takes some hundred announcements; the allocation that finds it full gives the peer
  // up, and those behind do not wait again.
  for (int i = 0; i < 1500; i++) {
    std::unique_ptr<MemoryRegion> region;
    const Status status = near.device->AllocateRegion(4096, Access::kRemoteAll, &region);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  EXPECT_TRUE(near.queue_pairs[0]->broken());
  ASSERT_TRUE(near.queue_pairs[0]->PostRead(1, {}, {}, 0).ok());
  EXPECT_EQ(near.Next().code, CompletionCode::kPeerGone);
  kill(peer->process(), SIGCONT);
}

TEST_F(ShmTest, RegionsAndQueuesAreBounded) {
  Endpoint endpoint({});
  std::unique_ptr<MemoryRegion> region;
  ASSERT_TRUE(endpoint.device->AllocateRegion(4096, Access::kRemoteReadOnly, &region).ok());
  std::vector<std::unique_ptr<RegionGrant>> grants;
  Status status;
  while (status.ok() && grants.size() < 100'000) {
    grants.emplace_back();
    status = region->Grant(0, 4096, Access::kRemoteAll, &grants.back());
  }
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  std::unique_ptr<MemoryRegion> another;
  EXPECT_TRUE(endpoint.device->AllocateRegion(4096, Access::kRemoteAll, &another).IsNoSpace());
  grants.clear();
  EXPECT_TRUE(endpoint.device->AllocateRegion(4096, Access::kRemoteAll, &another).ok());
  std::vector<std::unique_ptr<CompletionQueue>> queues;
  while (status.IsNoSpace() && queues.size() < 10000) {
    queues.emplace_back();
    const Status created = endpoint.device->CreateCompletionQueue(1, &queues.back());
    if (!created.ok()) status = created;
    if (!created.ok()) break;
  }
  EXPECT_TRUE(status.IsNoSpace()) << status.ToString();
  EXPECT_LT(queues.size(), 10000u);
}

}  // namespace

}  // namespace nacre::rdma
