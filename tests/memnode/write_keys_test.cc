// Goal: a client that leased a slab can write there, and no client can write anywhere else: not
// into a neighbour, not into the header or the slab table, not after the slab was returned or its
// database closed. Each client of the pool can read everything. Method: requests posted by hand,
// with the keys that the node gave out, over a raw connection.

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "memnode/memory_node.h"
#include "memnode/server_region.h"
#include "pool/connect/lane.h"
#include "pool/connect/request_channel.h"
#include "pool/databases.h"
#include "pool/space/slab_leases.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/extent_codec.h"
#include "pool/wire/protocol.h"
#include "tests/support/pool_fixture.h"

namespace nacre::pool {
namespace {

using std::chrono::seconds;

constexpr uint64_t kSlabBytes = 1 << 20;

class WriteKeysTest : public ::testing::TestWithParam<const char*> {
 protected:
  struct Client {
    std::unique_ptr<rdma::Device> device;
    std::unique_ptr<PoolClient> client;
    std::unique_ptr<rdma::MemoryRegion> memory;
  };

  void SetUp() override {
    ASSERT_TRUE(rdma::OpenDevice(GetParam(), {}, Clock::System(), &node_device_).ok());
    MemoryNodeOptions options;
    options.listen = std::string(GetParam()) + ":@";
    options.region_bytes = 16 * kSlabBytes;
    options.slab_bytes = kSlabBytes;
    options.piece_bytes = 4 << 20;
    const Status s = MemoryNode::Start(options, node_device_.get(), Clock::System(), &node_);
    ASSERT_TRUE(s.ok()) << s.ToString();
    Open(&owner_);
    Open(&other_);
    DatabaseLease lease;
    ASSERT_TRUE(owner_.client->databases()
                    ->Open("db", {.create_if_missing = true, .error_if_exists = true}, &lease)
                    .ok());
    database_ = lease.database_id;
    ASSERT_TRUE(pool::LeaseSlabs(owner_.client.get(), 0, database_,
                                 {.count = 3, .contiguous = true}, &slabs_)
                    .ok());
  }
  void TearDown() override {
    for (Client* client : {&owner_, &other_}) {
      client->client.reset();
      client->memory.reset();
    }
    node_.reset();
  }
  void Open(Client* client) {
    ASSERT_TRUE(rdma::OpenDevice(GetParam(), {}, Clock::System(), &client->device).ok());
    Uri uri;
    ASSERT_TRUE(ParseUri(node_->address(), &uri).ok());
    PoolClientOptions options;
    options.slab_bytes = kSlabBytes;
    ASSERT_TRUE(
        PoolClient::Connect(uri, options, client->device.get(), Clock::System(), &client->client)
            .ok());
    ASSERT_TRUE(
        client->device->AllocateRegion(4096, rdma::Access::kLocalOnly, &client->memory).ok());
    std::memset(client->memory->data(), 'w', 4096);
  }
  static NodeLink* Link(const Client& client) { return client.client->fabric()->link(0); }

  /// Posts one request of `bytes` by a connection of its own.
  static rdma::CompletionCode Post(const Client& client, bool write, rdma::RemoteBuffer remote,
                                   uint32_t bytes) {
    std::unique_ptr<Lane> lane;
    EXPECT_TRUE(Lane::Create(client.client->fabric(), 1, &lane).ok());
    rdma::QueuePair* pair = nullptr;
    const Status connected = lane->Get(Link(client), &pair);
    EXPECT_TRUE(connected.ok()) << connected.ToString();
    if (!connected.ok()) return rdma::CompletionCode::kFlushed;
    const rdma::LocalBuffer local{
        .data = client.memory->data(), .size = bytes, .region = client.memory.get()};
    const Status posted = write ? pair->PostWrite(1, local, remote, rdma::kSignaled)
                                : pair->PostRead(1, local, remote, rdma::kSignaled);
    EXPECT_TRUE(posted.ok()) << posted.ToString();
    const Deadline deadline = Deadline::After(Clock::System(), seconds(20));
    rdma::Completion completion;
    while (lane->queue()->Poll(&completion, 1) == 0) {
      if (deadline.Expired()) ADD_FAILURE() << "no completion";
      if (deadline.Expired()) return rdma::CompletionCode::kFlushed;
      std::this_thread::yield();
    }
    return completion.code;
  }
  static rdma::RemoteBuffer WriteAddress(const Client& client, uint64_t offset) {
    rdma::RemoteBuffer to;
    uint64_t contiguous = 0;
    EXPECT_TRUE(Link(client)->TranslateWrite(offset, &to, &contiguous));
    EXPECT_GT(contiguous, 0u);
    EXPECT_LE(contiguous, kSlabBytes);
    return to;
  }
  static bool HasKey(const Client& client, uint64_t offset) {
    rdma::RemoteBuffer to;
    uint64_t contiguous = 0;
    return Link(client)->TranslateWrite(offset, &to, &contiguous);
  }
  /// The address at `offset` with another key.
  static rdma::RemoteBuffer With(const Client& client, uint64_t offset, uint32_t key) {
    uint64_t contiguous = 0;
    rdma::RemoteBuffer at = Link(client)->Translate(offset, &contiguous);
    at.key = key;
    return at;
  }
  static ExtentAddr Extent(uint64_t offset, uint64_t length) {
    ExtentAddr extent;
    extent.start.node = 0;
    extent.start.offset = offset & ((uint64_t{1} << 48) - 1);
    extent.length = length;
    return extent;
  }
  /// By a channel of its own.
  static Status Ask(const Client& client, control::Request* request, control::Reply* reply) {
    const Deadline deadline = Deadline::After(Clock::System(), seconds(20));
    std::unique_ptr<RequestChannel> channel;
    NACRE_RETURN_IF_ERROR(Link(client)->TakeChannel(deadline, &channel));
    NACRE_RETURN_IF_ERROR(channel->Call(request, deadline, reply));
    return GetStatus(*reply);
  }
  static rdma::RemoteBuffer ReadAddress(const Client& client, uint64_t offset) {
    uint64_t contiguous = 0;
    return Link(client)->Translate(offset, &contiguous);
  }
  void ExpectWrites(const Client& client, rdma::RemoteBuffer to) {
    EXPECT_EQ(Post(client, true, to, 64), rdma::CompletionCode::kSuccess);
  }
  void ExpectRefused(const Client& client, rdma::RemoteBuffer to) {
    EXPECT_EQ(Post(client, true, to, 64), rdma::CompletionCode::kRemoteAccessError);
  }

  std::unique_ptr<rdma::Device> node_device_;
  std::unique_ptr<MemoryNode> node_;
  Client owner_;
  Client other_;
  uint64_t database_ = 0;
  std::vector<uint64_t> slabs_;
};

INSTANTIATE_TEST_SUITE_P(All, WriteKeysTest, testing::Values("shm", "embedded"));

TEST_P(WriteKeysTest, AnOwnerWritesIntoItsSlabs) {
  for (const uint64_t slab : slabs_) {
    ExpectWrites(owner_, WriteAddress(owner_, slab));
    ExpectWrites(owner_, WriteAddress(owner_, slab + kSlabBytes - 64));
    EXPECT_EQ(Post(other_, false, ReadAddress(other_, slab), 64), rdma::CompletionCode::kSuccess);
    EXPECT_EQ(other_.memory->data()[0], 'w');
  }
}

TEST_P(WriteKeysTest, EverythingIsReadAndNothingElseIsWritten) {
  const uint64_t end = slabs_.back() + kSlabBytes;
  const uint32_t key = WriteAddress(owner_, slabs_[1]).key;
  const std::vector<uint64_t> elsewhere = {0,
                                           kSlabTableOffset,
                                           slabs_[0],
                                           slabs_[1] - 64,
                                           slabs_[1] - 32,
                                           slabs_[2] - 32,
                                           slabs_[2],
                                           end,
                                           Link(owner_)->region_bytes() - 64};
  for (const uint64_t offset : elsewhere) {
    SCOPED_TRACE(offset);
    ExpectRefused(owner_, With(owner_, offset, key));
    ExpectRefused(owner_, ReadAddress(owner_, offset));
    ExpectRefused(other_, ReadAddress(other_, offset));
    // All of it lies in the piece that it starts in.
    const uint32_t bytes = offset + 64 > end && offset < end ? 32 : 64;
    EXPECT_EQ(Post(other_, false, ReadAddress(other_, offset), bytes),
              rdma::CompletionCode::kSuccess);
  }
  EXPECT_FALSE(HasKey(owner_, 0));
  EXPECT_FALSE(HasKey(owner_, end));
  EXPECT_FALSE(HasKey(other_, slabs_[0]));
}

TEST_P(WriteKeysTest, AReturnedSlabIsWrittenNoMore) {
  const rdma::RemoteBuffer stale = WriteAddress(owner_, slabs_[1]);
  const rdma::RemoteBuffer kept = WriteAddress(owner_, slabs_[0]);
  ASSERT_TRUE(pool::ReturnSlabs(owner_.client.get(), 0, database_, {slabs_[1]}).ok());
  EXPECT_FALSE(HasKey(owner_, slabs_[1]));
  ExpectRefused(owner_, stale);
  ExpectWrites(owner_, kept);
  // It is refused as well once the slab is another database's.
  DatabaseLease lease;
  ASSERT_TRUE(other_.client->databases()
                  ->Open("other", {.create_if_missing = true, .error_if_exists = true}, &lease)
                  .ok());
  std::vector<uint64_t> offsets;
  ASSERT_TRUE(pool::LeaseSlabs(other_.client.get(), 0, lease.database_id,
                               {.count = 1, .contiguous = true}, &offsets)
                  .ok());
  ASSERT_EQ(offsets, std::vector<uint64_t>{slabs_[1]});
  ExpectRefused(owner_, stale);
  ExpectWrites(other_, WriteAddress(other_, slabs_[1]));
}

TEST_P(WriteKeysTest, ARefusedReturnLeavesTheKeys) {
  const Status s =
      pool::ReturnSlabs(owner_.client.get(), 0, database_, {slabs_[0], slabs_[2] + kSlabBytes});
  EXPECT_TRUE(s.IsInvalidArgument()) << s.ToString();
  ExpectWrites(owner_, WriteAddress(owner_, slabs_[0]));
}

TEST_P(WriteKeysTest, WhoOpensADatabaseWritesIntoItsSlabsAndWhoClosedItDoesNot) {
  const rdma::RemoteBuffer stale = WriteAddress(owner_, slabs_[0]);
  ASSERT_TRUE(owner_.client->databases()->PublishRoot(database_, "root").ok());
  ASSERT_TRUE(owner_.client->databases()->Leave(database_).ok());
  ExpectRefused(owner_, stale);
  DatabaseLease lease;
  ASSERT_TRUE(other_.client->databases()->Open("db", {}, &lease).ok());
  for (const uint64_t slab : slabs_) ExpectWrites(other_, WriteAddress(other_, slab));
  ExpectRefused(owner_, stale);
}

// What a job was granted is for its extents alone, and ends with the job, whatever else is granted
// for the same bytes.
TEST_P(WriteKeysTest, AJobWritesWhereItWasBegunAndUntilItIsEnded) {
  const std::vector<ExtentAddr> extents = {Extent(slabs_[1], 4096), Extent(slabs_[1] + 8192, 4096)};
  const auto begin = [&](uint64_t job, control::JobKeys* keys) {
    control::Request request;
    control::Reply reply;
    request.mutable_begin_job()->set_database_id(database_);
    request.mutable_begin_job()->set_job_id(job);
    for (const ExtentAddr& extent : extents) {
      EncodeExtent(extent, request.mutable_begin_job()->add_extents());
    }
    const Status s = Ask(owner_, &request, &reply);
    *keys = reply.job_keys();
    return s;
  };
  const auto end = [&](const Client& client, uint64_t job) {
    control::Request request;
    control::Reply reply;
    request.mutable_end_jobs()->set_database_id(database_);
    request.mutable_end_jobs()->add_job_ids(job);
    return Ask(client, &request, &reply);
  };
  control::JobKeys first;
  control::JobKeys second;
  ASSERT_TRUE(begin(77, &first).ok());
  EXPECT_TRUE(begin(77, &second).IsInvalidArgument());
  ASSERT_EQ(first.keys_size(), 2);
  for (int i = 0; i < 2; ++i) {
    const uint64_t at = extents[static_cast<size_t>(i)].start.offset;
    ExpectWrites(other_, With(other_, at, first.keys(i)));
    ExpectRefused(other_, With(other_, at + 4096, first.keys(i)));
    ExpectRefused(other_, With(other_, at - 64, first.keys(i)));
  }
  EXPECT_TRUE(end(other_, 77).IsInvalidArgument());
  ASSERT_TRUE(begin(78, &second).ok());
  EXPECT_TRUE(end(owner_, 77).ok());
  EXPECT_TRUE(end(owner_, 77).ok());
  ExpectRefused(other_, With(other_, extents[0].start.offset, first.keys(0)));
  ExpectWrites(other_, With(other_, extents[0].start.offset, second.keys(0)));
  ExpectWrites(owner_, WriteAddress(owner_, slabs_[1]));
  // A request that was overtaken by the end of its job brings nothing back.
  EXPECT_TRUE(end(owner_, 79).ok());
  EXPECT_TRUE(begin(79, &first).IsAborted());
}

TEST_P(WriteKeysTest, KeysOfJobsEndWithTheirSlabAndWithTheirOwner) {
  std::vector<control::JobKeys> keys(2);
  for (size_t i = 0; i < keys.size(); ++i) {
    control::Request request;
    control::Reply reply;
    request.mutable_begin_job()->set_database_id(database_);
    request.mutable_begin_job()->set_job_id(100 + i);
    EncodeExtent(Extent(slabs_[i], 4096), request.mutable_begin_job()->add_extents());
    ASSERT_TRUE(Ask(owner_, &request, &reply).ok());
    keys[i] = reply.job_keys();
    ExpectWrites(other_, With(other_, slabs_[i], keys[i].keys(0)));
  }
  ASSERT_TRUE(pool::ReturnSlabs(owner_.client.get(), 0, database_, {slabs_[0]}).ok());
  ExpectRefused(other_, With(other_, slabs_[0], keys[0].keys(0)));
  ExpectWrites(other_, With(other_, slabs_[1], keys[1].keys(0)));
  DatabaseLease lease;
  ASSERT_TRUE(owner_.client->databases()->PublishRoot(database_, "root").ok());
  ASSERT_TRUE(other_.client->databases()->Open("db", {.take_over = true}, &lease).ok());
  ExpectRefused(owner_, With(owner_, slabs_[1], keys[1].keys(0)));
}

TEST_P(WriteKeysTest, AnOwnerThatIsGoneWritesNoMore) {
  const rdma::RemoteBuffer stale = WriteAddress(owner_, slabs_[0]);
  owner_.client.reset();
  const Deadline deadline = Deadline::After(Clock::System(), seconds(20));
  while (node_->stats().slabs_leased != 0) {
    ASSERT_FALSE(deadline.Expired());
    std::this_thread::yield();
  }
  ExpectRefused(other_, stale);
}

}  // namespace
}  // namespace nacre::pool
