// Goal: nodes, owners and followers of two releases work together in any mixture, in both
// directions, until the upgrade is finalized; from then on the older release is refused by name.
// Method: nodes in this process that keep their memory in files, and are stopped and started as
// the older release or as this one, which is played by the protocol versions and features that a
// program is given. A database is written and read meanwhile, with a model of what it holds.
// `./run soak --upgrade` does the same with programs that were built from an older commit.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "memnode/memory_node.h"
#include "nacre/db.h"
#include "pool/node_pace_report.h"
#include "pool/pool_client.h"
#include "pool/reports.h"
#include "pool/wire/database_report.h"
#include "pool/wire/protocol.h"
#include "pool/wire/versions.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/process/served_nodes.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using pool::ProtocolSupport;

constexpr size_t kMixedNodes = 4;
constexpr int kMixedKeys = 300;
/// Release 0.2.0: one protocol version, and no features.
constexpr ProtocolSupport kOlder = {
    .range = {pool::kVersionBeforeRanges, pool::kVersionBeforeRanges}, .features = 0};
constexpr ProtocolSupport kPresent;
/// One to come, that still speaks with this one.
constexpr ProtocolSupport kNext = {
    .range = {.oldest = pool::kProtocols.newest, .newest = pool::kProtocols.newest + 1},
    .features = pool::kKnownFeatures | pool::kKnownFeatures << 1};

class MixedReleasesTest : public testing::TestWithParam<std::string> {
 protected:
  struct Node {
    std::string address;
    std::unique_ptr<rdma::Device> device;
    std::unique_ptr<pool::MemoryNode> node;
  };

  ~MixedReleasesTest() override {
    db_.reset();
    follower_.reset();
    for (Node& each : nodes_) each.node.reset();  // Before their devices.
  }

  void Start(size_t i, const ProtocolSupport& protocol) {
    Node& each = nodes_[i];
    each.node.reset();
    pool::MemoryNodeOptions options;
    if (each.address.empty()) {
      each.address = GetParam() == "tcp" ? "tcp:127.0.0.1:0" : "shm:" + files_.File(NameOf(i));
    }
    options.listen = each.address;
    options.region_bytes = 64 << 20;
    options.slab_bytes = 1 << 20;
    options.region_file = files_.File("region" + std::to_string(i));
    options.protocol = protocol;
    ASSERT_TRUE(IsOk(rdma::OpenDevice(GetParam(), {}, Clock::System(), &each.device)));
    ASSERT_TRUE(
        IsOk(pool::MemoryNode::Start(options, each.device.get(), Clock::System(), &each.node)));
    each.address = each.node->address();
  }
  static std::string NameOf(size_t i) { return "n" + std::to_string(i); }
  void StartAll(const ProtocolSupport& protocol) {
    for (size_t i = 0; i < kMixedNodes; ++i) ASSERT_NO_FATAL_FAILURE(Start(i, protocol));
  }
  std::string PoolUri() const {
    std::vector<std::string> addresses;
    for (const Node& each : nodes_) addresses.push_back(each.address);
    return PoolUriOf(addresses);
  }
  std::shared_ptr<pool::PoolImpl> Client(const ProtocolSupport& protocol) {
    return ConnectTestPool(PoolUri(), {.protocol = protocol});
  }
  Options OptionsOf(const std::shared_ptr<Pool>& pool) {
    Options options = SmallTableOptions(pool);
    options.redundancy = "rs(2,1)";
    return options;
  }
  void OpenOwner(const ProtocolSupport& protocol) {
    if (db_ != nullptr) {
      ASSERT_TRUE(IsOk(db_->Close()));
    }
    db_.reset();
    owner_ = Client(protocol);
    ASSERT_TRUE(IsOk(DB::Open(OptionsOf(owner_), "db", &db_)));
  }
  void OpenFollower(const ProtocolSupport& protocol) {
    follower_.reset();
    ASSERT_TRUE(IsOk(DB::OpenAsSecondary(OptionsOf(Client(protocol)), "db", &follower_)));
  }
  /// Each key anew.
  void Write() {
    ++round_;
    for (int i = 0; i < kMixedKeys; ++i) {
      ASSERT_TRUE(IsOk(db_->Put({}, "key" + std::to_string(i), Value(i)))) << i;
      if (i == kMixedKeys / 2) {
        ASSERT_TRUE(IsOk(db_->Flush({})));
      }
    }
  }
  std::string Value(int i) const {
    return TestValue(1000 * round_ + static_cast<uint64_t>(i), 400);
  }
  void ExpectAll(DB* db) {
    for (int i = 0; i < kMixedKeys; ++i) {
      std::string value;
      ASSERT_TRUE(IsOk(db->Get({}, "key" + std::to_string(i), &value))) << i;
      ASSERT_TRUE(value == Value(i)) << i;
    }
  }
  void WriteAndRead() {
    ASSERT_NO_FATAL_FAILURE(Write());
    ASSERT_NO_FATAL_FAILURE(ExpectAll(db_.get()));
    ASSERT_TRUE(IsOk(follower_->TryCatchUpWithPrimary()));
    ASSERT_NO_FATAL_FAILURE(ExpectAll(follower_.get()));
  }
  /// Until the owner uses all nodes, and each may be lost. A connection of before may show only
  /// when it is used that it has ended.
  void AwaitWhole() {
    std::string seen;
    for (int in_a_row = 0; in_a_row < 3; ++in_a_row) {
      ASSERT_TRUE(Eventually([&] {
        const auto nodes = pool::ReportPace(*owner_->client());
        const auto well = std::count_if(nodes.begin(), nodes.end(), [](const auto& node) {
          return node.state == pool::NodePaceReport::State::kWell;
        });
        seen = RunBinary("nacre-ctl", {"fsck", "db", "--json", "--pool=" + PoolUri()}).output;
        if (well == kMixedNodes && seen.find("\"spare_nodes\": 1,") != std::string::npos)
          return true;
        in_a_row = 0;
        return false;
      })) << seen;
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
    }
  }
  /// The node is stopped and started as another release, while the database is in use.
  void Replace(size_t i, const ProtocolSupport& protocol) {
    nodes_[i].node->Stop();
    ASSERT_NO_FATAL_FAILURE(WriteAndRead());
    ASSERT_NO_FATAL_FAILURE(Start(i, protocol));
    ASSERT_NO_FATAL_FAILURE(AwaitWhole());
    ASSERT_NO_FATAL_FAILURE(WriteAndRead());
  }
  /// As an operator's order: each node is told.
  void TurnOn(pool::FeatureSet features) {
    for (size_t i = 0; i < kMixedNodes; ++i) {
      pool::Directions now;
      ASSERT_TRUE(IsOk(pool::SetDirections(owner_->client(), static_cast<NodeId>(i),
                                           {.version = 1, .features_on = features}, &now)));
      EXPECT_EQ(now.features_on, features);
    }
  }

  const TempFolder files_{MemoryFolder()};
  std::vector<Node> nodes_{kMixedNodes};
  std::shared_ptr<pool::PoolImpl> owner_;
  std::unique_ptr<DB> db_;
  std::unique_ptr<DB> follower_;
  uint64_t round_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Schemes, MixedReleasesTest, testing::Values("tcp", "shm"),
                         [](const auto& scheme) { return scheme.param; });

TEST_P(MixedReleasesTest, NodesAreRolledForwardAndBackUnderOwnersOfEitherRelease) {
  ASSERT_NO_FATAL_FAILURE(StartAll(kOlder));
  bool owner_is_older = true;
  for (const ProtocolSupport& to : {kPresent, kOlder}) {
    for (size_t i = 0; i < kMixedNodes; ++i) {
      SCOPED_TRACE(i);
      // Each owner finds what the one of the other release has left.
      ASSERT_NO_FATAL_FAILURE(OpenOwner(owner_is_older ? kOlder : kPresent));
      if (round_ == 0) {
        ASSERT_NO_FATAL_FAILURE(Write());
      }
      ASSERT_NO_FATAL_FAILURE(ExpectAll(db_.get()));
      ASSERT_NO_FATAL_FAILURE(OpenFollower(owner_is_older ? kPresent : kOlder));
      ASSERT_NO_FATAL_FAILURE(Replace(i, to));
      owner_is_older = !owner_is_older;
    }
  }
}

TEST_P(MixedReleasesTest, NodesAreRolledOneAfterTheOtherUnderOneOwnerAndOneFollower) {
  ASSERT_NO_FATAL_FAILURE(StartAll(kOlder));
  ASSERT_NO_FATAL_FAILURE(OpenOwner(kPresent));
  ASSERT_NO_FATAL_FAILURE(Write());
  ASSERT_NO_FATAL_FAILURE(OpenFollower(kOlder));
  for (const ProtocolSupport& to : {kPresent, kOlder}) {
    for (size_t i = 0; i < kMixedNodes; ++i) {
      SCOPED_TRACE(i);
      ASSERT_NO_FATAL_FAILURE(Replace(i, to));
    }
  }
}

TEST_P(MixedReleasesTest, TheReleaseToComeSpeaksWithThisOne) {
  ASSERT_NO_FATAL_FAILURE(StartAll(kPresent));
  ASSERT_NO_FATAL_FAILURE(Start(1, kNext));
  ASSERT_NO_FATAL_FAILURE(OpenOwner(kPresent));
  ASSERT_NO_FATAL_FAILURE(Write());
  ASSERT_NO_FATAL_FAILURE(OpenFollower(kNext));
  ASSERT_NO_FATAL_FAILURE(WriteAndRead());
  EXPECT_EQ(owner_->client()->fabric()->link(1)->protocol(), pool::kProtocols.newest);
  EXPECT_EQ(owner_->client()->fabric()->link(1)->features(), kNext.features);
  ASSERT_NO_FATAL_FAILURE(OpenOwner(kNext));
  ASSERT_NO_FATAL_FAILURE(WriteAndRead());
  // Only what a node knows can be turned on there.
  pool::Directions now;
  EXPECT_TRUE(IsFailure(
      pool::SetDirections(owner_->client(), 0, {.version = 1, .features_on = kNext.features}, &now),
      Status::Code::kNotSupported, "feature 1"));
  EXPECT_EQ(nodes_[0].node->stats().features_on, 0u);
}

TEST_P(MixedReleasesTest, WhereNoVersionIsCommonBothRangesAreNamed) {
  ASSERT_NO_FATAL_FAILURE(StartAll(kNext));
  pool::PoolOpenOptions options;
  options.protocol = kOlder;
  options.operation_timeout = std::chrono::milliseconds(500);
  options.slab_bytes = 1 << 20;
  std::shared_ptr<pool::PoolImpl> pool;
  const Status status = pool::OpenPool(PoolUri(), options, Clock::System(), &pool);
  EXPECT_TRUE(IsFailure(status, Status::Code::kUnavailable,
                        "protocol " + pool::ToString(kNext.range) + " here, version 8 there"));
}

TEST_P(MixedReleasesTest, AfterFinalizationTheOlderReleaseIsRefusedByName) {
  ASSERT_NO_FATAL_FAILURE(StartAll(kPresent));
  ASSERT_NO_FATAL_FAILURE(OpenOwner(kPresent));
  ASSERT_NO_FATAL_FAILURE(Write());
  ASSERT_NO_FATAL_FAILURE(OpenFollower(kPresent));
  const auto older = Client(kOlder);
  ASSERT_TRUE(older->client()->alive(0));
  ASSERT_NO_FATAL_FAILURE(TurnOn(pool::kKnownFeatures));
  // A client that was there is cut off, and a new one refused.
  EXPECT_TRUE(Eventually([&] { return !older->client()->alive(0); }));
  const std::string name = pool::ToString(pool::kKnownFeatures);
  pool::PoolOpenOptions options;
  options.protocol = kOlder;
  options.operation_timeout = std::chrono::milliseconds(500);
  options.slab_bytes = 1 << 20;
  std::shared_ptr<pool::PoolImpl> pool;
  EXPECT_TRUE(IsFailure(pool::OpenPool(PoolUri(), options, Clock::System(), &pool),
                        Status::Code::kUnavailable, name + ": on in this pool"));
  // The owner hears of it, and so does what it has stored.
  EXPECT_TRUE(Eventually([&] { return owner_->client()->features_on() == pool::kKnownFeatures; }));
  ASSERT_NO_FATAL_FAILURE(WriteAndRead());
  // A node that comes back as the older release is done without.
  nodes_[2].node->Stop();
  pool::MemoryNodeOptions of_older;
  nodes_[2].node.reset();
  of_older.listen = nodes_[2].address;
  of_older.region_bytes = 64 << 20;
  of_older.slab_bytes = 1 << 20;
  of_older.region_file = files_.File("region2");
  of_older.protocol = kOlder;
  std::unique_ptr<pool::MemoryNode> refused;
  EXPECT_TRUE(IsFailure(
      pool::MemoryNode::Start(of_older, nodes_[2].device.get(), Clock::System(), &refused),
      Status::Code::kNotSupported, name))
      << "what it has kept says so";
  of_older.region_file = "";
  ASSERT_TRUE(IsOk(
      pool::MemoryNode::Start(of_older, nodes_[2].device.get(), Clock::System(), &nodes_[2].node)));
  const auto present = Client(kPresent);
  EXPECT_FALSE(present->client()->alive(2));
  EXPECT_TRUE(
      IsFailure(present->client()->fabric()->link(2)->CheckUp(), Status::Code::kUnavailable, name));
  ASSERT_NO_FATAL_FAILURE(WriteAndRead());
  // One of this release with nothing learns from the owner what is on.
  nodes_[2].node.reset();
  pool::MemoryNodeOptions empty = of_older;
  empty.protocol = kPresent;
  ASSERT_TRUE(IsOk(
      pool::MemoryNode::Start(empty, nodes_[2].device.get(), Clock::System(), &nodes_[2].node)));
  EXPECT_TRUE(
      Eventually([&] { return nodes_[2].node->stats().features_on == pool::kKnownFeatures; }));
  // A later order that says nothing of features leaves them on, and so does a restart.
  pool::Directions now;
  ASSERT_TRUE(IsOk(pool::SetDirections(owner_->client(), 0, {.version = 7}, &now)));
  EXPECT_EQ(now.features_on, pool::kKnownFeatures);
  nodes_[0].node->Stop();
  ASSERT_NO_FATAL_FAILURE(Start(0, kPresent));
  EXPECT_EQ(nodes_[0].node->stats().features_on, pool::kKnownFeatures);
  ASSERT_TRUE(Eventually([&] { return owner_->client()->alive(0); }));
  ASSERT_NO_FATAL_FAILURE(WriteAndRead());
}

}  // namespace
}  // namespace nacre
