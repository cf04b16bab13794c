// Goal: each kind of request needs the right that is meant, one that this test has not been told of
// needs the highest, and a node carries out nothing that its client's secret does not allow.
// Method: every kind that the protocol has, found by parsing; then a node with a secret of each
// right, and clients that send every kind with each.

#include "memnode/request_rights.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "memnode/memory_node.h"
#include "pool/connect/fabric.h"
#include "pool/connect/node_requests.h"
#include "pool/pool_impl.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/protocol.h"
#include "tests/support/status_assert.h"
#include "util/coding.h"

namespace nacre::pool {
namespace {

using Kind = NeededRight::Kind;
using Body = control::Request::BodyCase;

/// What is meant. A new kind of request belongs here, and in RightNeededFor.
std::map<int, Kind> Meant() {
  return {
      {Body::kPing, Kind::kRead},
      {Body::kDescribe, Kind::kRead},
      {Body::kGetStats, Kind::kRead},
      {Body::kFetchReply, Kind::kRead},
      {Body::kReadRoot, Kind::kRead},
      {Body::kListDatabases, Kind::kRead},
      {Body::kAcknowledgeLog, Kind::kRead},
      {Body::kEndConnections, Kind::kRead},
      {Body::kClaimDatabase, Kind::kWriteNamed},
      {Body::kLeaseSlabs, Kind::kWriteKnown},
      {Body::kReturnSlabs, Kind::kWriteKnown},
      {Body::kWriteRoot, Kind::kWriteKnown},
      {Body::kReleaseDatabase, Kind::kWriteKnown},
      {Body::kDestroyDatabase, Kind::kWriteKnown},
      {Body::kConfirmOwner, Kind::kWriteKnown},
      {Body::kBeginJob, Kind::kWriteKnown},
      {Body::kEndJobs, Kind::kWriteKnown},
      {Body::kCompact, Kind::kWriteKnown},
      {Body::kRebuild, Kind::kWriteKnown},
      {Body::kScrub, Kind::kWriteKnown},
      {Body::kFlush, Kind::kWriteKnown},
      {Body::kReportDatabase, Kind::kWriteKnown},
      {Body::kApplyImageUpdate, Kind::kWriteKnown},
      {Body::kSetDirections, Kind::kAdminister},
      {Body::kMemberRequest, Kind::kAdminister},
  };
}

/// The number of the request's field `field`, empty, as bytes.
std::string Empty(int field) {
  std::string bytes;
  PutVarint32(&bytes, static_cast<uint32_t>(field) << 3 | 2);
  bytes.push_back('\0');
  return bytes;
}

/// All kinds of requests that there are.
std::vector<control::Request> AllKinds() {
  std::vector<control::Request> requests;
  for (int field = 1; field < 4096; ++field) {
    control::Request request;
    if (request.ParseFromString(Empty(field)) && request.body_case() == field) {
      requests.push_back(request);
    }
  }
  return requests;
}

TEST(RequestRightsTest, EachKindNeedsWhatIsMeant) {
  const std::vector<control::Request> kinds = AllKinds();
  const std::map<int, Kind> all_meant = Meant();
  EXPECT_EQ(kinds.size(), all_meant.size());
  for (const control::Request& request : kinds) {
    const auto meant = all_meant.find(request.body_case());
    ASSERT_NE(meant, all_meant.end()) << "request of kind " << request.body_case();
    EXPECT_EQ(RightNeededFor(request).kind, meant->second) << request.body_case();
  }
  EXPECT_EQ(RightNeededFor({}).kind, Kind::kAdminister);
}

TEST(RequestRightsTest, ARequestNeedsTheRightToTheDatabaseThatItNames) {
  control::Request request;
  request.mutable_claim_database()->set_name("orders");
  EXPECT_EQ(RightNeededFor(request).database, "orders");
  // Each of these says the id in a field of its own.
  const std::vector<void (*)(control::Request*)> naming = {
      [](control::Request* r) { r->mutable_lease_slabs()->set_database_id(7); },
      [](control::Request* r) { r->mutable_return_slabs()->set_database_id(7); },
      [](control::Request* r) { r->mutable_write_root()->set_database_id(7); },
      [](control::Request* r) { r->mutable_release_database()->set_database_id(7); },
      [](control::Request* r) { r->mutable_destroy_database()->set_database_id(7); },
      [](control::Request* r) { r->mutable_confirm_owner()->set_database_id(7); },
      [](control::Request* r) { r->mutable_begin_job()->set_database_id(7); },
      [](control::Request* r) { r->mutable_end_jobs()->set_database_id(7); },
      [](control::Request* r) { r->mutable_compact()->mutable_header()->set_database_id(7); },
      [](control::Request* r) { r->mutable_rebuild()->mutable_header()->set_database_id(7); },
      [](control::Request* r) { r->mutable_scrub()->mutable_header()->set_database_id(7); },
      [](control::Request* r) { r->mutable_flush()->mutable_header()->set_database_id(7); },
      [](control::Request* r) { r->mutable_report_database()->set_database_id(7); },
      [](control::Request* r) { r->mutable_apply_image_update()->set_database_id(7); },
  };
  size_t known = 0;
  for (const auto& [kind, right] : Meant()) known += right == Kind::kWriteKnown ? 1 : 0;
  EXPECT_EQ(naming.size(), known);
  for (const auto& name : naming) {
    request.Clear();
    name(&request);
    EXPECT_EQ(RightNeededFor(request).kind, Kind::kWriteKnown);
    EXPECT_EQ(RightNeededFor(request).database_id, 7u) << request.body_case();
  }
}

TEST(RequestRightsTest, WhatIsMissingIsNamed) {
  const std::string orders = "orders";
  const std::string billing = "billing";
  Rights reader;
  Rights writer;
  ASSERT_TRUE(IsOk(Rights::Parse("read", &reader)));
  ASSERT_TRUE(IsOk(Rights::Parse("write:orders", &writer)));
  const NeededRight claim{.kind = Kind::kWriteNamed, .database = billing};
  const NeededRight lease{.kind = Kind::kWriteKnown, .database_id = 1};
  const NeededRight direct{.kind = Kind::kAdminister};

  EXPECT_TRUE(IsOk(CheckRight({.kind = Kind::kRead}, reader, "x", nullptr)));
  for (const NeededRight& needed : {claim, lease, direct}) {
    EXPECT_TRUE(IsFailure(CheckRight(needed, reader, "x", &orders), Status::Code::kNotSupported));
    EXPECT_TRUE(IsFailure(CheckRight(needed, reader, "x", nullptr), Status::Code::kNotSupported));
    EXPECT_TRUE(IsOk(CheckRight(needed, Rights(), "x", &orders)));
  }
  EXPECT_TRUE(IsOk(CheckRight(lease, writer, "x", &orders)));
  EXPECT_TRUE(IsOk(CheckRight(lease, writer, "x", nullptr))) << "it fails later, for want of it";
  EXPECT_TRUE(IsFailure(CheckRight(lease, writer, "x", &billing), Status::Code::kNotSupported));
  EXPECT_TRUE(IsFailure(CheckRight(direct, writer, "x", nullptr), Status::Code::kNotSupported));
  const Status denied = CheckRight(claim, writer, "teller", nullptr);
  EXPECT_TRUE(IsFailure(denied, Status::Code::kNotSupported));
  EXPECT_EQ(denied.message(),
            "secret 'teller' has the right 'write:orders', not 'write' to database 'billing'");
}

/// A node that knows a secret of each right, and a client with one of them.
class NodeRightsTest : public ::testing::TestWithParam<std::string> {
 protected:
  NodeRightsTest() {
    EXPECT_TRUE(IsOk(rdma::SecretRing::Create(
        {{.secret = "of an administrator", .name = "admin", .rights = "admin"},
         {.secret = "of a writer", .name = "writer", .rights = "write:mine*"},
         {.secret = "of a reader", .name = "reader", .rights = "read", .may_write = false}},
        &ring_)));
    const std::string any = GetParam() == "tcp" ? "tcp:127.0.0.1:0" : GetParam() + ":@";
    MemoryNodeOptions options;
    options.listen = any;
    options.region_bytes = 8 << 20;
    options.slab_bytes = 1 << 20;
    EXPECT_TRUE(IsOk(rdma::OpenDevice(GetParam(), {.ring = ring_}, Clock::System(), &device_)));
    EXPECT_TRUE(IsOk(MemoryNode::Start(options, device_.get(), Clock::System(), &node_)));
  }

  void Open(const std::string& secret, std::shared_ptr<PoolImpl>* pool) {
    PoolOpenOptions options;
    options.pool.secret = secret;
    options.slab_bytes = 1 << 20;
    ASSERT_TRUE(IsOk(OpenPool(node_->address(), options, Clock::System(), pool)));
  }
  static Status Call(PoolImpl* pool, control::Request request, control::Reply* reply) {
    return pool->client()->requests()->Call(0, &request, reply);
  }
  static Status Claim(PoolImpl* pool, const std::string& name, uint64_t id) {
    control::Request request;
    control::Reply reply;
    request.mutable_claim_database()->set_name(name);
    request.mutable_claim_database()->set_database_id(id);
    request.mutable_claim_database()->set_epoch(1);
    return Call(pool, request, &reply);
  }
  static Status Lease(PoolImpl* pool, uint64_t id, control::Reply* reply) {
    control::Request request;
    request.mutable_lease_slabs()->set_database_id(id);
    request.mutable_lease_slabs()->set_count(1);
    return Call(pool, request, reply);
  }
  static bool Denied(const Status& status) {
    return status.IsNotSupported() && status.message().find("has the right") != std::string::npos;
  }

  std::shared_ptr<rdma::SecretRing> ring_;
  std::unique_ptr<rdma::Device> device_;
  std::unique_ptr<MemoryNode> node_;
};

INSTANTIATE_TEST_SUITE_P(All, NodeRightsTest, ::testing::Values("shm", "tcp"),
                         [](const auto& each) { return each.param; });

TEST_P(NodeRightsTest, AReaderIsAnsweredWhatItAsksAndDeniedAllThatChanges) {
  std::shared_ptr<PoolImpl> reader;
  Open("of a reader", &reader);
  size_t denied = 0;
  for (const control::Request& request : AllKinds()) {
    control::Reply reply;
    const Status status = Call(reader.get(), request, &reply);
    const bool may = Meant().at(request.body_case()) == Kind::kRead;
    EXPECT_EQ(Denied(status), !may) << request.body_case() << ": " << status.ToString();
    denied += Denied(status) ? 1 : 0;
  }
  EXPECT_EQ(denied, 17u);
  EXPECT_TRUE(Denied(Claim(reader.get(), "mine", 7)));
  EXPECT_EQ(node_->stats().databases, 0u);
  EXPECT_EQ(node_->stats().slabs_leased, 0u);
}

TEST_P(NodeRightsTest, AWriterHasItsDatabasesAndNoOthers) {
  std::shared_ptr<PoolImpl> admin;
  std::shared_ptr<PoolImpl> writer;
  Open("of an administrator", &admin);
  Open("of a writer", &writer);
  control::Reply reply;
  EXPECT_TRUE(IsOk(Claim(admin.get(), "theirs", 1)));
  EXPECT_TRUE(IsOk(Lease(admin.get(), 1, &reply)));
  EXPECT_TRUE(IsOk(Claim(writer.get(), "mine-too", 2)));
  EXPECT_TRUE(IsOk(Lease(writer.get(), 2, &reply)));
  EXPECT_EQ(node_->stats().slabs_leased, 2u);

  // Another one's database: not by its name, and not by its id, in whatever request has one.
  EXPECT_TRUE(Denied(Claim(writer.get(), "others", 3)));
  EXPECT_TRUE(Denied(Claim(writer.get(), "theirs", 1)));
  EXPECT_TRUE(Denied(Lease(writer.get(), 1, &reply)));
  control::Request request;
  request.mutable_destroy_database()->set_database_id(1);
  EXPECT_TRUE(Denied(Call(writer.get(), request, &reply)));
  request.mutable_release_database()->set_database_id(1);
  EXPECT_TRUE(Denied(Call(writer.get(), request, &reply)));
  request.mutable_compact()->mutable_header()->set_database_id(1);
  EXPECT_TRUE(Denied(Call(writer.get(), request, &reply)));
  // An id that there is not is no way to find out which there are: the request fails by itself.
  EXPECT_TRUE(IsFailure(Lease(writer.get(), 99, &reply), Status::Code::kInvalidArgument));
  request.mutable_set_directions()->set_version(1);
  EXPECT_TRUE(Denied(Call(writer.get(), request, &reply)));
  EXPECT_TRUE(IsOk(Call(admin.get(), request, &reply)));

  EXPECT_EQ(node_->stats().databases, 2u);
  EXPECT_EQ(node_->stats().slabs_leased, 2u);
}

TEST_P(NodeRightsTest, AReaderWritesToNoSlabWithTheKeyOfItsOwner) {
  std::shared_ptr<PoolImpl> writer;
  std::shared_ptr<PoolImpl> reader;
  Open("of a writer", &writer);
  Open("of a reader", &reader);
  control::Reply reply;
  ASSERT_TRUE(IsOk(Claim(writer.get(), "mine", 2)));
  ASSERT_TRUE(IsOk(Lease(writer.get(), 2, &reply)));
  // As if the key had leaked.
  for (PoolImpl* pool : {writer.get(), reader.get()}) {
    NodeLink* const link = pool->client()->fabric()->link(0);
    ASSERT_TRUE(IsOk(link->SetWriteKeys(reply.slabs())));
    rdma::RemoteBuffer to;
    uint64_t contiguous = 0;
    ASSERT_TRUE(link->TranslateWrite(reply.slabs().offsets(0), &to, &contiguous));
    rdma::Device* const device = pool->client()->fabric()->context.device;
    std::unique_ptr<rdma::CompletionQueue> queue;
    std::unique_ptr<rdma::MemoryRegion> local;
    ASSERT_TRUE(IsOk(device->CreateCompletionQueue(16, &queue)));
    ASSERT_TRUE(IsOk(device->AllocateRegion(4096, rdma::Access::kLocalOnly, &local)));
    std::unique_ptr<rdma::QueuePair> pair;
    const Deadline deadline = Deadline::After(Clock::System(), std::chrono::seconds(20));
    ASSERT_TRUE(IsOk(link->Connect(device, ConnectionKind::kData, {.send = 4, .receive = 1},
                                   queue.get(), deadline, &pair)));
    ASSERT_TRUE(IsOk(pair->PostWrite(1, {.data = local->data(), .size = 64, .region = local.get()},
                                     to, rdma::kSignaled)));
    rdma::Completion completion;
    while (queue->Poll(&completion, 1) == 0 && !deadline.Expired()) {
      queue->Wait(deadline.Remaining()).IgnoreError();
    }
    EXPECT_EQ(completion.code, pool == writer.get() ? rdma::CompletionCode::kSuccess
                                                    : rdma::CompletionCode::kRemoteAccessError);
    pair.reset();
  }
}

TEST_P(NodeRightsTest, AQuotaIsNamedAndStopsItsDatabasesAlone) {
  std::shared_ptr<PoolImpl> admin;
  Open("of an administrator", &admin);
  node_->SetQuotas({{.databases = "mine*", .bytes = (3 << 20) + 5}});
  EXPECT_TRUE(IsOk(Claim(admin.get(), "mine-1", 1)));
  EXPECT_TRUE(IsOk(Claim(admin.get(), "mine-2", 2)));
  EXPECT_TRUE(IsOk(Claim(admin.get(), "theirs", 3)));
  control::Reply reply;
  EXPECT_TRUE(IsOk(Lease(admin.get(), 1, &reply)));
  EXPECT_TRUE(IsOk(Lease(admin.get(), 1, &reply)));
  EXPECT_TRUE(IsOk(Lease(admin.get(), 2, &reply)));
  const control::Slabs leased = reply.slabs();
  for (const uint64_t id : {1, 2}) {
    EXPECT_TRUE(IsFailure(Lease(admin.get(), id, &reply), Status::Code::kNoSpace,
                          "quota of 3.0 MiB at this node for databases 'mine*': 3.0 MiB"));
  }
  // Neither a run of slabs nor one that joins what is there is a way around it.
  control::Request request;
  request.mutable_lease_slabs()->set_database_id(1);
  request.mutable_lease_slabs()->set_count(1);
  request.mutable_lease_slabs()->set_extend_at(leased.offsets(0) + (1 << 20));
  request.mutable_lease_slabs()->set_extend_count(2);
  EXPECT_TRUE(IsFailure(Call(admin.get(), request, &reply), Status::Code::kNoSpace, "quota"));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(IsOk(Lease(admin.get(), 3, &reply)));

  // What is returned may be leased again, within it, by whichever of them comes first.
  request.mutable_return_slabs()->set_database_id(2);
  request.mutable_return_slabs()->add_offsets(leased.offsets(0));
  request.mutable_return_slabs()->add_write_keys(leased.write_keys(0));
  EXPECT_TRUE(IsOk(Call(admin.get(), request, &reply)));
  request.mutable_lease_slabs()->set_database_id(1);
  request.mutable_lease_slabs()->set_count(1);
  request.mutable_lease_slabs()->set_extend_at(leased.offsets(0));
  request.mutable_lease_slabs()->set_extend_count(2);
  EXPECT_TRUE(IsOk(Call(admin.get(), request, &reply)));
  EXPECT_EQ(reply.slabs().offsets_size(), 1) << "two would be beyond it, though they are free";
  // A lower one takes nothing away, and one that is gone is none.
  node_->SetQuotas({{.databases = "mine*", .bytes = 0}});
  EXPECT_EQ(node_->stats().slabs_leased, 7u);
  EXPECT_TRUE(IsFailure(Lease(admin.get(), 1, &reply), Status::Code::kNoSpace, "quota of 0 B"));
  node_->SetQuotas({});
  EXPECT_TRUE(IsOk(Lease(admin.get(), 1, &reply)));
}

TEST_P(NodeRightsTest, ConnectionsOfARevokedSecretEndAndOthersStay) {
  std::shared_ptr<PoolImpl> admin;
  std::shared_ptr<PoolImpl> writer;
  Open("of an administrator", &admin);
  Open("of a writer", &writer);
  ASSERT_TRUE(IsOk(Claim(writer.get(), "mine", 2)));
  const uint64_t with_both = node_->stats().connections;
  ASSERT_TRUE(
      IsOk(ring_->Replace({{.secret = "of an administrator", .name = "admin", .rights = "admin"},
                           {.secret = "of a new writer", .rights = "write:mine*"}})));
  // The lifeline ends, and with it all that the writer had: a database without a root goes.
  const Deadline deadline = Deadline::After(Clock::System(), std::chrono::seconds(30));
  while (node_->stats().databases > 0 && !deadline.Expired()) {
    Clock::System()->SleepFor(std::chrono::milliseconds(10));
  }
  EXPECT_EQ(node_->stats().databases, 0u);
  EXPECT_LT(node_->stats().connections, with_both);
  EXPECT_TRUE(IsFailure(Claim(writer.get(), "mine", 3), Status::Code::kUnavailable));
  EXPECT_TRUE(IsOk(Claim(admin.get(), "mine", 4)));
  std::shared_ptr<PoolImpl> next;
  Open("of a new writer", &next);
  EXPECT_TRUE(IsOk(Claim(next.get(), "mine-next", 5)));
}

}  // namespace
}  // namespace nacre::pool
