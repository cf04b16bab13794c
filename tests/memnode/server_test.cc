// Goal: a node survives and refuses whatever a client may send it, and a client whatever may answer
// in a node's place. Method: raw connections that break the protocol in every way there is, beside
// a well-behaved client that must not notice.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "memnode/memory_node.h"
#include "pool/databases.h"
#include "pool/space/slab_leases.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/node_stats.h"
#include "pool/wire/protocol.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "util/codes/crc32c.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// A client that does as it likes.
class RawClient {
 public:
  RawClient(rdma::Device* device, std::string address)
      : device_(device), address_(std::move(address)) {
    EXPECT_TRUE(device->CreateCompletionQueue(64, &queue_).ok());
    EXPECT_TRUE(device->AllocateRegion(64 << 10, rdma::Access::kRemoteAll, &region_).ok());
  }

  Status Connect(const std::string& hello, bool control,
                 std::unique_ptr<rdma::QueuePair>* queue_pair) {
    std::string reply;
    return device_->Connect(address_, hello, {.send = 16, .receive = 4, .control = control},
                            queue_.get(), queue_.get(),
                            Deadline::After(Clock::System(), seconds(5)), &reply, queue_pair);
  }
  /// As a lifeline would.
  Status Connect(const std::string& hello, std::unique_ptr<rdma::QueuePair>* queue_pair) {
    return Connect(hello, true, queue_pair);
  }
  Status Connect(ConnectionKind kind, std::unique_ptr<rdma::QueuePair>* queue_pair) {
    Hello hello;
    hello.kind = kind;
    hello.client_id = client_id_;
    return Connect(hello.Encode(), kind != ConnectionKind::kData, queue_pair);
  }
  void NewId() { ++client_id_; }

  Status Send(rdma::QueuePair* queue_pair, const std::string& bytes) {
    std::memcpy(region_->data(), bytes.data(), bytes.size());
    return queue_pair->PostSend(1,
                                {.data = region_->data(),
                                 .size = static_cast<uint32_t>(bytes.size()),
                                 .region = region_.get()},
                                rdma::kSignaled);
  }
  /// A good request but for what the caller does to it.
  control::Request Request() {
    control::Request request;
    request.set_id(1);
    const rdma::RemoteKey key = region_->remote_key();
    request.mutable_reply()->set_address(key.address + 8192);
    request.mutable_reply()->set_key(key.key);
    request.mutable_reply()->set_length(8192);
    return request;
  }
  /// True once the node has ended the connection.
  bool AwaitBroken(rdma::QueuePair* queue_pair) {
    const Deadline deadline = Deadline::After(Clock::System(), seconds(10));
    while (!queue_pair->broken() && !deadline.Expired()) {
      rdma::Completion completions[8];
      queue_->Poll(completions, 8);
      std::this_thread::sleep_for(milliseconds(1));
    }
    return queue_pair->broken();
  }
  bool AwaitReply(uint64_t id, control::Reply* reply) {
    const Deadline deadline = Deadline::After(Clock::System(), seconds(10));
    const Slice buffer(region_->data() + 8192, 8192);
    auto* flag = reinterpret_cast<uint64_t*>(region_->data() + 2 * 8192 - 8);
    while (std::atomic_ref<uint64_t>(*flag).load(std::memory_order_acquire) != id) {
      if (deadline.Expired()) return false;
      std::this_thread::sleep_for(milliseconds(1));
    }
    return DecodeReplyFrame(buffer, id, reply).ok();
  }
  rdma::MemoryRegion* region() const { return region_.get(); }

 private:
  rdma::Device* const device_;
  const std::string address_;
  uint64_t client_id_ = 123;
  std::unique_ptr<rdma::CompletionQueue> queue_;
  std::unique_ptr<rdma::MemoryRegion> region_;
};

class ServerTest : public PoolFixture {
 protected:
  void SetUp() override {
    ASSERT_TRUE(rdma::OpenDevice("shm", {}, Clock::System(), &node_device_).ok());
    ASSERT_TRUE(rdma::OpenDevice("shm", {}, Clock::System(), &raw_device_).ok());
    MemoryNodeOptions options;
    options.listen = "shm:@";
    options.region_bytes = 8 << 20;
    options.slab_bytes = 1 << 20;
    const Status s = MemoryNode::Start(options, node_device_.get(), Clock::System(), &node_);
    ASSERT_TRUE(s.ok()) << s.ToString();
    OpenPoolAt(node_->address());
    CreateDatabase();
    raw_ = std::make_unique<RawClient>(raw_device_.get(), node_->address());
  }
  void TearDown() override {
    CheckGoodClient();
    raw_.reset();
    ClosePool();
  }
  void CheckGoodClient() {
    EXPECT_TRUE(client_->Ping(0).ok());
    Placement placement;
    ASSERT_TRUE(space_->Reserve(Copies(1), 100'000, kNoNode, &placement).ok());
    EXPECT_TRUE(WriteBytes(placement, std::string(100'000, 'g')).ok());
    space_->Free(placement);
  }
  uint64_t malformed() const { return node_->stats().requests_malformed; }

  std::unique_ptr<rdma::Device> node_device_;
  std::unique_ptr<rdma::Device> raw_device_;
  std::unique_ptr<MemoryNode> node_;
  std::unique_ptr<RawClient> raw_;
};

TEST_F(ServerTest, AConnectionIsOfTheKindThatTheTransportTookItFor) {
  std::unique_ptr<rdma::QueuePair> lifeline;
  std::unique_ptr<rdma::QueuePair> queue_pair;
  ASSERT_TRUE(raw_->Connect(ConnectionKind::kLifeline, &lifeline).ok());
  uint64_t refused = malformed();
  for (const auto kind :
       {ConnectionKind::kLifeline, ConnectionKind::kRequest, ConnectionKind::kData}) {
    Hello hello;
    hello.kind = kind;
    hello.client_id = kind == ConnectionKind::kLifeline ? 124 : 123;
    const bool control = kind != ConnectionKind::kData;
    const Status s = raw_->Connect(hello.Encode(), !control, &queue_pair);
    EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
    EXPECT_EQ(malformed(), ++refused);
    EXPECT_TRUE(raw_->Connect(hello.Encode(), control, &queue_pair).ok());
    queue_pair.reset();
  }
}

TEST_F(ServerTest, OtherProtocolVersionIsRefusedWithBothNumbers) {
  Hello hello;
  hello.range = {.oldest = 4711, .newest = 4711};
  hello.client_id = 5;
  std::unique_ptr<rdma::QueuePair> queue_pair;
  const Status s = raw_->Connect(hello.Encode(), &queue_pair);
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  EXPECT_NE(s.ToString().find("4711"), std::string::npos) << s.ToString();
  EXPECT_NE(s.ToString().find(ToString(kProtocols)), std::string::npos);
}

TEST_F(ServerTest, StrangersAreRefused) {
  std::unique_ptr<rdma::QueuePair> queue_pair;
  for (const std::string& hello : {std::string(), std::string("GET / HTTP/1.1"),
                                   std::string(rdma::Device::kMaxPrivateData, '\xff')}) {
    EXPECT_FALSE(raw_->Connect(hello, &queue_pair).ok());
  }
  EXPECT_GE(malformed(), 3u);
  // Without a lifeline, with two of them, with another slab size, for another instance.
  EXPECT_FALSE(raw_->Connect(ConnectionKind::kRequest, &queue_pair).ok());
  EXPECT_FALSE(raw_->Connect(ConnectionKind::kData, &queue_pair).ok());
  ASSERT_TRUE(raw_->Connect(ConnectionKind::kLifeline, &queue_pair).ok());
  std::unique_ptr<rdma::QueuePair> second;
  EXPECT_FALSE(raw_->Connect(ConnectionKind::kLifeline, &second).ok());
  Hello hello;
  hello.client_id = 1000;
  hello.slab_bytes = 2 << 20;
  EXPECT_FALSE(raw_->Connect(hello.Encode(), &second).ok());
  hello.slab_bytes = 0;
  hello.instance_id = 1;
  EXPECT_FALSE(raw_->Connect(hello.Encode(), &second).ok());
}

TEST_F(ServerTest, SendsOnConnectionsThatCarryNone) {
  std::unique_ptr<rdma::QueuePair> lifeline;
  std::unique_ptr<rdma::QueuePair> data;
  ASSERT_TRUE(raw_->Connect(ConnectionKind::kLifeline, &lifeline).ok());
  ASSERT_TRUE(raw_->Connect(ConnectionKind::kData, &data).ok());
  raw_->Send(data.get(), "x").IgnoreError();
  EXPECT_TRUE(raw_->AwaitBroken(data.get()));
  raw_->Send(lifeline.get(), "x").IgnoreError();
  EXPECT_TRUE(raw_->AwaitBroken(lifeline.get()));
}

TEST_F(ServerTest, AClientEndsItsOwnConnectionsForDataByTheirNumbers) {
  const auto connect = [&](uint64_t client, uint32_t number,
                           std::unique_ptr<rdma::QueuePair>* queue_pair) {
    Hello hello;
    hello.kind = number == 0 ? ConnectionKind::kLifeline : ConnectionKind::kData;
    hello.client_id = client;
    hello.connection = number;
    return raw_->Connect(hello.Encode(), number == 0, queue_pair);
  };
  std::vector<std::unique_ptr<rdma::QueuePair>> mine(5);
  std::unique_ptr<rdma::QueuePair> requests;
  for (uint32_t number = 0; number < mine.size(); ++number) {
    ASSERT_TRUE(connect(123, number, &mine[number]).ok());
  }
  ASSERT_TRUE(raw_->Connect(ConnectionKind::kRequest, &requests).ok());
  std::vector<std::unique_ptr<rdma::QueuePair>> others(3);
  for (uint32_t number = 0; number < others.size(); ++number) {
    ASSERT_TRUE(connect(124, number, &others[number]).ok());
  }
  control::Request request = raw_->Request();
  for (const uint32_t number : {0u, 1u, 3u, 4711u}) {
    request.mutable_end_connections()->add_connections(number);
  }
  // A connection is counted just after its caller has heard of it, and before any later request.
  ASSERT_TRUE(client_->Ping(0).ok());
  const NodeStats before = node_->stats();
  ASSERT_TRUE(raw_->Send(requests.get(), request.SerializeAsString()).ok());
  control::Reply reply;
  ASSERT_TRUE(raw_->AwaitReply(1, &reply));
  EXPECT_TRUE(GetStatus(reply).ok()) << reply.message();
  // It has closed them when it answers.
  EXPECT_EQ(node_->stats().connections, before.connections - 2);
  for (const size_t number : {1, 3}) EXPECT_TRUE(raw_->AwaitBroken(mine[number].get())) << number;
  for (const size_t number : {0, 2, 4}) EXPECT_FALSE(mine[number]->broken()) << number;
  EXPECT_FALSE(requests->broken());
  for (const auto& other : others) EXPECT_FALSE(other->broken());
}

TEST_F(ServerTest, MalformedRequestsEndTheConnection) {
  Random random(TestSeed(701));
  const auto attempt = [&](const std::string& bytes) {
    raw_->NewId();
    std::unique_ptr<rdma::QueuePair> lifeline;
    std::unique_ptr<rdma::QueuePair> requests;
    ASSERT_TRUE(raw_->Connect(ConnectionKind::kLifeline, &lifeline).ok());
    ASSERT_TRUE(raw_->Connect(ConnectionKind::kRequest, &requests).ok());
    ASSERT_TRUE(raw_->Send(requests.get(), bytes).ok());
    EXPECT_TRUE(raw_->AwaitBroken(requests.get())) << Slice(bytes).ToString(/*hex=*/true);
  };
  const uint64_t before = malformed();
  attempt("");
  attempt("no protobuf at all");
  attempt(std::string(rdma::Device::kMaxSendBytes, '\xff'));

  control::Request request = raw_->Request();
  request.mutable_ping();
  request.set_id(0);
  attempt(request.SerializeAsString());
  request = raw_->Request();
  request.mutable_ping();
  request.mutable_reply()->set_length(3);
  attempt(request.SerializeAsString());
  // These reply buffers are not the client's, or end outside of the region, or are not large
  // enough.
  request = raw_->Request();
  request.mutable_ping();
  request.mutable_reply()->set_key(request.reply().key() + 1);
  attempt(request.SerializeAsString());
  request = raw_->Request();
  request.mutable_ping();
  request.mutable_reply()->set_length(uint64_t{1} << 40);
  attempt(request.SerializeAsString());
  request = raw_->Request();
  request.mutable_ping();
  request.mutable_reply()->set_length(17);
  attempt(request.SerializeAsString());
  // Large requests: absurd, empty, not there, damaged, within one another.
  const rdma::RemoteKey key = raw_->region()->remote_key();
  const auto large = [&](uint64_t address, uint32_t remote_key, uint64_t length) {
    control::Request envelope = raw_->Request();
    envelope.mutable_large()->set_address(address);
    envelope.mutable_large()->set_key(remote_key);
    envelope.mutable_large()->set_length(length);
    return envelope;
  };
  attempt(large(key.address, key.key, uint64_t{1} << 50).SerializeAsString());
  attempt(large(key.address, key.key, 0).SerializeAsString());
  attempt(large(key.address, key.key + 1, 4096).SerializeAsString());
  attempt(large(key.address + key.size - 10, key.key, 4096).SerializeAsString());
  attempt(large(key.address, key.key, 4096).SerializeAsString());
  control::Request inner = raw_->Request();
  *inner.mutable_large() = large(key.address, key.key, 100).large();
  const std::string bytes = inner.SerializeAsString();
  std::memcpy(raw_->region()->data() + 40'000, bytes.data(), bytes.size());
  control::Request outer = large(key.address + 40'000, key.key, bytes.size());
  outer.set_large_crc(Crc32c(bytes.data(), bytes.size()));
  attempt(outer.SerializeAsString());
  EXPECT_GE(malformed(), before + 10);
  for (size_t i = 0; i < Scaled(50); ++i) {
    attempt(RandomBytes(random.Next(), random.Uniform(rdma::Device::kMaxSendBytes)));
  }
}

TEST_F(ServerTest, UnknownAndMisplacedRequestsAreAnswered) {
  std::unique_ptr<rdma::QueuePair> lifeline;
  std::unique_ptr<rdma::QueuePair> requests;
  ASSERT_TRUE(raw_->Connect(ConnectionKind::kLifeline, &lifeline).ok());
  ASSERT_TRUE(raw_->Connect(ConnectionKind::kRequest, &requests).ok());
  uint64_t id = 0;
  const auto ask = [&](control::Request request) {
    request.set_id(++id);
    control::Reply reply;
    EXPECT_TRUE(raw_->Send(requests.get(), request.SerializeAsString()).ok());
    EXPECT_TRUE(raw_->AwaitReply(id, &reply));
    return GetStatus(reply);
  };
  EXPECT_TRUE(ask(raw_->Request()).IsNotSupported());
  control::Request request = raw_->Request();
  request.mutable_fetch_reply();
  EXPECT_TRUE(ask(request).IsInvalidArgument());
  request.mutable_end_jobs()->set_database_id(99);
  EXPECT_TRUE(ask(request).IsInvalidArgument());
  request.mutable_begin_job()->set_database_id(99);
  EXPECT_TRUE(ask(request).IsInvalidArgument());
  request.mutable_claim_database()->set_name("without an epoch");
  EXPECT_TRUE(ask(request).IsInvalidArgument());
  request.mutable_write_root()->set_database_id(database_id_);
  EXPECT_TRUE(ask(request).IsInvalidArgument());
  request.mutable_release_database()->set_database_id(database_id_);
  EXPECT_TRUE(ask(request).IsInvalidArgument());
  request.mutable_destroy_database()->set_database_id(database_id_);
  EXPECT_TRUE(ask(request).IsInvalidArgument());
  request.mutable_lease_slabs()->set_database_id(database_id_);
  EXPECT_TRUE(ask(request).IsInvalidArgument());
  request.mutable_return_slabs()->set_database_id(database_id_);
  EXPECT_TRUE(ask(request).IsInvalidArgument());
  request.mutable_compact()->mutable_header()->set_database_id(database_id_);
  EXPECT_TRUE(ask(request).IsInvalidArgument());
  request.mutable_claim_database()->set_name(database_name_);
  request.mutable_claim_database()->set_database_id(database_id_);
  request.mutable_claim_database()->set_epoch(100);
  EXPECT_TRUE(ask(request).IsBusy());
  request.mutable_ping();
  EXPECT_TRUE(ask(request).ok());
}

TEST_F(ServerTest, ManyRequestsAtOnceAreSurvived) {
  std::unique_ptr<rdma::QueuePair> lifeline;
  std::unique_ptr<rdma::QueuePair> requests;
  ASSERT_TRUE(raw_->Connect(ConnectionKind::kLifeline, &lifeline).ok());
  ASSERT_TRUE(raw_->Connect(ConnectionKind::kRequest, &requests).ok());
  control::Request request = raw_->Request();
  request.mutable_ping();
  for (int i = 0; i < 8; ++i) {
    raw_->Send(requests.get(), request.SerializeAsString()).IgnoreError();
  }
  // Whether the node saw them apart (and answered all) or not (and hung up), it lives.
}

// Owners and the space they leave.
TEST_F(ServerTest, TheEndOfALifelineFreesEverything) {
  PoolOpenOptions options;
  options.slab_bytes = slab_bytes_;
  std::shared_ptr<PoolImpl> other;
  ASSERT_TRUE(OpenPool(node_->address(), options, Clock::System(), &other).ok());
  DatabaseLease lease;
  EXPECT_TRUE(other->client()
                  ->databases()
                  ->Open(database_name_, {.create_if_missing = true}, &lease)
                  .IsBusy());
  ASSERT_TRUE(
      other->client()->databases()->Open("other", {.create_if_missing = true}, &lease).ok());
  std::vector<uint64_t> slabs;
  ASSERT_TRUE(pool::LeaseSlabs(other->client(), 0, lease.database_id,
                               {.count = 3, .contiguous = true}, &slabs)
                  .ok());
  EXPECT_TRUE(
      pool::LeaseSlabs(other->client(), 0, lease.database_id, {.count = 30}, &slabs).IsNoSpace());
  const uint64_t leased = node_->stats().slabs_leased;
  EXPECT_GE(leased, 3u);
  other.reset();
  const Deadline deadline = Deadline::After(Clock::System(), seconds(10));
  while (node_->stats().databases > 1 && !deadline.Expired()) {
    std::this_thread::sleep_for(milliseconds(1));
  }
  EXPECT_EQ(node_->stats().slabs_leased, leased - 3);
  EXPECT_TRUE(client_->databases()->Open("other", {}, &lease).IsInvalidArgument());
}

// Something else answers at the node's address.
TEST_F(ServerTest, ClientSurvivesImpostors) {
  std::unique_ptr<rdma::Listener> listener;
  ASSERT_TRUE(node_device_->Listen("shm:@", &listener).ok());
  for (const std::string& answer :
       {std::string("refuse"), std::string(), std::string("hello?"), Welcome().Encode()}) {
    std::thread impostor([&] {
      std::unique_ptr<rdma::IncomingConnection> incoming;
      ASSERT_TRUE(listener->Accept(seconds(10), &incoming).ok());
      if (answer == "refuse") {
        Hello of_later_version;
        of_later_version.range = {.oldest = 99, .newest = 99};
        incoming->Reject(RefusalReason(of_later_version, 0, 0, 0));
        return;
      }
      std::unique_ptr<rdma::CompletionQueue> queue;
      std::unique_ptr<rdma::QueuePair> queue_pair;
      ASSERT_TRUE(node_device_->CreateCompletionQueue(16, &queue).ok());
      ASSERT_TRUE(incoming->Accept(queue.get(), queue.get(), answer, &queue_pair).ok());
      // One that says the right words gets to hear the first request, and does not answer.
      if (answer == Welcome().Encode()) {
        listener->Accept(seconds(1), &incoming).IgnoreError();
      }
    });
    PoolOpenOptions options;
    options.operation_timeout = milliseconds(300);
    std::shared_ptr<PoolImpl> pool;
    const Status s = OpenPool(listener->address(), options, Clock::System(), &pool);
    impostor.join();
    EXPECT_TRUE(s.IsUnavailable() || s.IsTimedOut()) << s.ToString();
    EXPECT_NE(s.ToString().find(listener->address()), std::string::npos) << s.ToString();
  }
}

}  // namespace
}  // namespace nacre::pool
