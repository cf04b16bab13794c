// Goal: a listener takes each of its secrets and no other, and a peer whose secret lets it read
// only changes nothing by one-sided requests, whatever keys it knows (rdma/secret_ring.h). Method:
// a listener with several secrets, in this process and in another, over each backend and decorator;
// peers that connect with each of them and try everything that changes memory.

#include <sys/mman.h>

#include <cerrno>
#include <fstream>
#include <functional>
#include <sstream>
#include <vector>

#include "tests/rdma/contract_fixture.h"
#include "tests/support/status_assert.h"

namespace nacre::rdma {

namespace {

constexpr char kOwner[] = "the secret of an owner of databases";
constexpr char kFollower[] = "the secret of a follower of databases";
constexpr char kStranger[] = "the secret of a stranger";
constexpr size_t kRightsBytes = 2 << 20;

/// All that listen at the far side, but for simulations, which model what becomes of a handshake,
/// and not the handshake.
std::vector<Setup> ListeningSetups() {
  std::vector<Setup> setups = AllSetups();
  std::erase_if(setups,
                [](const Setup& setup) { return setup.spec.scheme == "sim" || setup.accepting; });
  return setups;
}

class RightsContractTest : public testing::TestWithParam<Setup> {
 protected:
  using Post = std::function<Status(QueuePair*, LocalBuffer, RemoteBuffer)>;

  RightsContractTest()
      : far_(GetParam().child ? MakeChildPeer(Listening()) : MakeLocalPeer(Listening())) {
    region_ = far_->Allocate(kRightsBytes, Access::kRemoteAll, &key_);
  }

  static DeviceSpec Listening() {
    DeviceSpec spec = GetParam().spec;
    spec.ring = {{.secret = "the listener's own"},
                 {.secret = kFollower, .may_write = false},
                 {.secret = kOwner}};
    return spec;
  }
  static DeviceSpec Knowing(const std::string& secret) {
    DeviceSpec spec = GetParam().spec;
    spec.secret = secret;
    return spec;
  }
  Status Connect(Endpoint* near, QueueDepths depths = {}) {
    const PeerAnswer listening = far_->Run(
        {.command = PeerCommand::kListen, .bytes = rdma::AnyAddress(GetParam().spec.scheme)});
    EXPECT_TRUE(IsOk(listening.status));
    listening_at_ = listening.bytes;
    far_->Start({.command = PeerCommand::kAccept});
    std::string reply;
    const Status connected = near->Connect(listening_at_, "", depths, &reply);
    if (connected.ok()) {
      EXPECT_TRUE(IsOk(far_->Finish().status));
    }
    return connected;
  }
  RemoteBuffer Far(size_t offset) const { return {key_.address + offset, key_.key}; }

  /// Over a connection of its own, as a failure ends it.
  CompletionCode Try(Endpoint* near, RemoteBuffer to, const Post& post) {
    if (!IsOk(Connect(near))) return CompletionCode::kLocalError;
    QueuePair* const pair = near->queue_pairs.back().get();
    EXPECT_TRUE(IsOk(post(pair, near->Buffer(0, 0, 8), to)));
    const Completion completion = near->Next();
    EXPECT_EQ(completion.id, 1u);
    return completion.code;
  }

  static std::vector<Post> Changes() {
    return {
        [](QueuePair* pair, LocalBuffer local, RemoteBuffer to) {
          return pair->PostWrite(1, local, to, kSignaled);
        },
        [](QueuePair* pair, LocalBuffer local, RemoteBuffer to) {
          return pair->PostWriteWithImm(1, local, to, 7, kSignaled);
        },
        [](QueuePair* pair, LocalBuffer local, RemoteBuffer to) {
          return pair->PostCompareSwap(1, local, to, 0, 42, kSignaled);
        },
        [](QueuePair* pair, LocalBuffer local, RemoteBuffer to) {
          return pair->PostFetchAdd(1, local, to, 42, kSignaled);
        },
    };
  }
  /// One that does not fit a frame of tcp, and that shm marks several times.
  static Status PostLongWrite(QueuePair* pair, const Endpoint& near, RemoteBuffer to) {
    return pair->PostWrite(1, near.Buffer(0, 0, kRightsBytes), to, kSignaled);
  }

  const std::unique_ptr<Peer> far_;
  int region_ = -1;
  RemoteKey key_;
  std::string listening_at_;
};

INSTANTIATE_TEST_SUITE_P(All, RightsContractTest, testing::ValuesIn(ListeningSetups()), NameOf);

TEST_P(RightsContractTest, EachSecretOfTheListenerConnects) {
  for (const std::string secret : {kFollower, kOwner, "the listener's own"}) {
    SCOPED_TRACE(secret);
    Endpoint near(Knowing(secret));
    ASSERT_TRUE(IsOk(Connect(&near)));
    near.queue_pairs.clear();
  }
  EXPECT_EQ(far_->Traffic().peers_refused, 0u);
}

TEST_P(RightsContractTest, AnotherSecretIsRefusedAndTheNextOneServed) {
  Endpoint stranger(Knowing(kStranger));
  const Status refused = Connect(&stranger);
  EXPECT_TRUE(IsFailure(refused, Status::Code::kUnavailable));
  EXPECT_NE(refused.message().find("secret"), std::string_view::npos) << refused.ToString();
  // The far side still accepts: this one, which shows that it did not take the stranger.
  Endpoint near(Knowing(kOwner));
  std::string reply;
  ASSERT_TRUE(IsOk(near.Connect(listening_at_, "", {}, &reply)));
  EXPECT_TRUE(IsOk(far_->Finish().status));
  EXPECT_GE(far_->Traffic().peers_refused, 1u);
}

TEST_P(RightsContractTest, AReaderReads) {
  Endpoint near(Knowing(kFollower));
  near.Allocate(kRightsBytes);
  far_->Store(region_, 4096, "what is there");
  ASSERT_TRUE(IsOk(Connect(&near)));
  QueuePair* const pair = near.queue_pairs.back().get();
  ASSERT_TRUE(IsOk(pair->PostRead(1, near.Buffer(0, 0, 13), Far(4096), kSignaled)));
  EXPECT_EQ(near.Next().code, CompletionCode::kSuccess);
  EXPECT_EQ(std::string(near.Data(0), 13), "what is there");
}

TEST_P(RightsContractTest, AReaderChangesNothingByAKeyThatLetsOthersWrite) {
  RemoteKey granted;
  far_->Grant(region_, 1 << 20, 4096, Access::kRemoteAll, &granted);
  Endpoint reader(Knowing(kFollower));
  reader.Allocate(kRightsBytes);
  std::memset(reader.Data(0), 'x', kRightsBytes);
  Endpoint writer(Knowing(kOwner));
  writer.Allocate(kRightsBytes);
  for (const Post& change : Changes()) {
    EXPECT_EQ(Try(&reader, Far(64), change), CompletionCode::kRemoteAccessError);
    EXPECT_EQ(Try(&reader, {granted.address, granted.key}, change),
              CompletionCode::kRemoteAccessError);
  }
  EXPECT_EQ(far_->Load(region_, 64, 8), std::string(8, '\0'));
  EXPECT_EQ(far_->Load(region_, 1 << 20, 8), std::string(8, '\0'));
  EXPECT_EQ(Try(&reader, Far(0),
                [&](QueuePair* pair, LocalBuffer /*local*/, RemoteBuffer to) {
                  return PostLongWrite(pair, reader, to);
                }),
            CompletionCode::kRemoteAccessError);
  EXPECT_TRUE(far_->Load(region_, 0, kRightsBytes) == std::string(kRightsBytes, '\0'));

  // It is the secret that makes the difference: the same requests of a writer pass.
  std::memset(writer.Data(0), 'w', 8);
  EXPECT_EQ(Try(&writer, Far(64), Changes()[0]), CompletionCode::kSuccess);
  EXPECT_EQ(far_->Load(region_, 64, 8), std::string(8, 'w'));
  EXPECT_EQ(Try(&writer, {granted.address, granted.key}, Changes()[0]), CompletionCode::kSuccess);
  EXPECT_EQ(Try(&writer, Far(128), Changes()[3]), CompletionCode::kSuccess);
  EXPECT_EQ(far_->Load(region_, 128, 1), std::string(1, 42));
  // What a writer of this process does is no way around it for a reader of this process.
  EXPECT_EQ(Try(&reader, Far(64), Changes()[0]), CompletionCode::kRemoteAccessError);
  EXPECT_EQ(far_->Load(region_, 64, 8), std::string(8, 'w'));
}

TEST_P(RightsContractTest, AReaderWritesNothingAtOnceEither) {
  Endpoint reader(Knowing(kFollower));
  reader.Allocate(4096);
  ASSERT_TRUE(IsOk(Connect(&reader)));
  QueuePair* const pair = reader.queue_pairs.back().get();
  const std::optional<CompletionCode> written = pair->WriteNow(reader.Buffer(0, 0, 8), Far(0));
  if (written.has_value()) {
    EXPECT_EQ(*written, CompletionCode::kRemoteAccessError);
    EXPECT_TRUE(pair->broken());
  } else {
    EXPECT_EQ(Try(&reader, Far(0), Changes()[0]), CompletionCode::kRemoteAccessError);
  }
  EXPECT_EQ(far_->Load(region_, 0, 8), std::string(8, '\0'));
}

TEST_P(RightsContractTest, TheListenerWritesToAReaderAndHearsItsMessages) {
  Endpoint reader(Knowing(kFollower));
  reader.Allocate(4096);
  std::memcpy(reader.Data(0), "a request", 9);
  ASSERT_TRUE(IsOk(Connect(&reader, {.control = true})));
  far_->PostRecv(0, 5, region_, 0, 64);
  QueuePair* const pair = reader.queue_pairs.back().get();
  ASSERT_TRUE(IsOk(pair->PostSend(1, reader.Buffer(0, 0, 9), kSignaled)));
  EXPECT_EQ(reader.Next().code, CompletionCode::kSuccess);
  const Completion message = far_->Next();
  EXPECT_EQ(message.id, 5u);
  EXPECT_EQ(far_->Load(region_, 0, 9), "a request");
  far_->Store(region_, 512, "a reply");
  const RemoteKey reply = reader.regions[0]->remote_key();
  ASSERT_TRUE(IsOk(far_->Post(Opcode::kWrite, 0, 6, region_, 512, 7,
                              {reply.address + 1024, reply.key}, kSignaled)));
  EXPECT_EQ(far_->Next().code, CompletionCode::kSuccess);
  EXPECT_EQ(std::string(reader.Data(0) + 1024, 7), "a reply");
}

/// Where the far side is another process, whose memory this one maps.
class MappedMemoryTest : public RightsContractTest {};

std::vector<Setup> MappingSetups() {
  std::vector<Setup> setups = ListeningSetups();
  std::erase_if(setups, [](const Setup& setup) {
    return !setup.child || setup.spec.scheme == "tcp" || setup.spec.scheme == "verbs";
  });
  return setups;
}

INSTANTIATE_TEST_SUITE_P(All, MappedMemoryTest, testing::ValuesIn(MappingSetups()), NameOf);

/// Where this process has the far region mapped, and how: "r--s".
struct MappedRange {
  char* data = nullptr;
  std::string protection;
};

std::vector<MappedRange> MappedMemfdsOf(size_t size) {
  std::vector<MappedRange> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:nacre") == std::string::npos) continue;
    std::istringstream words(line);
    uintptr_t begin = 0;
    uintptr_t end = 0;
    char dash = 0;
    MappedRange range;
    words >> std::hex >> begin >> dash >> end >> range.protection;
    range.data = reinterpret_cast<char*>(begin);
    if (end - begin == size) found.push_back(range);
  }
  return found;
}

TEST_P(MappedMemoryTest, AReaderCannotEvenMapItToWrite) {
  // An odd size, which no other mapping has.
  constexpr size_t kOdd = 53 * 4096;
  RemoteKey key;
  far_->Allocate(kOdd, Access::kRemoteAll, &key);
  Endpoint reader(Knowing(kFollower));
  ASSERT_TRUE(IsOk(Connect(&reader)));
  std::vector<MappedRange> mapped = MappedMemfdsOf(kOdd);
  ASSERT_EQ(mapped.size(), 1u);
  EXPECT_EQ(mapped[0].protection, "r--s");
  EXPECT_EQ(mprotect(mapped[0].data, 4096, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(errno, EACCES);

  // A writer of the same process has a mapping of its own, beside that one.
  Endpoint writer(Knowing(kOwner));
  ASSERT_TRUE(IsOk(Connect(&writer)));
  mapped = MappedMemfdsOf(kOdd);
  ASSERT_EQ(mapped.size(), 2u);
  EXPECT_NE(mapped[0].protection, mapped[1].protection);

  // So it is with regions that come later.
  RemoteKey later;
  far_->Allocate(kOdd - 4096, Access::kRemoteReadOnly, &later);
  reader.Allocate(4096);
  QueuePair* const pair = reader.queue_pairs.back().get();
  ASSERT_TRUE(
      IsOk(pair->PostRead(1, reader.Buffer(0, 0, 8), {later.address, later.key}, kSignaled)));
  EXPECT_EQ(reader.Next().code, CompletionCode::kSuccess);
  mapped = MappedMemfdsOf(kOdd - 4096);
  ASSERT_GE(mapped.size(), 1u);
  for (const MappedRange& range : mapped) EXPECT_EQ(range.protection, "r--s");
}

}  // namespace

}  // namespace nacre::rdma
