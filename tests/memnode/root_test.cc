// Goal: a database survives its owner; it has one owner at a time, and no root that was
// acknowledged is lost, whatever dies and whichever clients compete. Method: nodes in this process
// and several clients of them, each with connections of its own. Clients die by the end of their
// connections, nodes as kill -9 would have it.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "jobs/job_client.h"
#include "memnode/memory_node.h"
#include "pool/databases.h"
#include "pool/reports.h"
#include "pool/space/slab_leases.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/database_report.h"
#include "pool/wire/root_register.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

using std::chrono::milliseconds;

constexpr OpenDatabaseOptions kCreate{.create_if_missing = true};
constexpr OpenDatabaseOptions kExisting{};
constexpr OpenDatabaseOptions kTakeOver{.take_over = true};

class RootTest : public PoolFixture {
 protected:
  struct Node {
    std::unique_ptr<rdma::Device> device;
    std::unique_ptr<MemoryNode> node;
  };

  void StartNodes(int count) {
    for (int i = 0; i < count; ++i) StartNode();
  }
  void StartNode() {
    Node& node = nodes_.emplace_back();
    ASSERT_TRUE(IsOk(rdma::OpenDevice("shm", {}, Clock::System(), &node.device)));
    MemoryNodeOptions options;
    options.listen = "shm:@";
    options.region_bytes = 16 << 20;
    options.slab_bytes = 1 << 20;
    ASSERT_TRUE(IsOk(MemoryNode::Start(options, node.device.get(), Clock::System(), &node.node)));
    uri_ += (uri_.empty() ? "shm:" : ",") + Address(nodes_.size() - 1).substr(4);
  }
  void TearDown() override { ClosePool(); }

  std::shared_ptr<PoolImpl> Client(milliseconds timeout = milliseconds(5000)) const {
    PoolOpenOptions options;
    options.slab_bytes = 1 << 20;
    options.operation_timeout = timeout;
    std::shared_ptr<PoolImpl> pool;
    EXPECT_TRUE(IsOk(OpenPool(uri_, options, Clock::System(), &pool)));
    return pool;
  }
  const std::string& Address(size_t node) const { return nodes_[node].node->address(); }
  void Kill(size_t node) { nodes_[node].node->Kill(); }
  /// Creates "db" by a client that publishes `value` and goes away.
  void MakeDatabase(const std::string& value) {
    const auto owner = Client();
    DatabaseLease lease;
    ASSERT_TRUE(IsOk(owner->client()->databases()->Open("db", kCreate, &lease)));
    EXPECT_FALSE(lease.existed);
    ASSERT_TRUE(IsOk(owner->client()->databases()->PublishRoot(lease.database_id, value)));
  }
  /// Until the nodes have noticed that an owner is gone.
  static Status OpenSoon(PoolClient* client, const OpenDatabaseOptions& options,
                         DatabaseLease* lease) {
    Status s;
    EXPECT_TRUE(Eventually([&] {
      s = client->databases()->Open("db", options, lease);
      return !s.IsBusy();
    }));
    return s;
  }
  static bool Names(const Status& s, const std::string& what) {
    return s.ToString().find(what) != std::string::npos;
  }

  std::vector<Node> nodes_;
  std::string uri_;
};

std::vector<RootAnswer> AnswersOf(uint64_t nodes) {
  std::vector<RootAnswer> answers;
  for (NodeId node = 0; node < 6; ++node) {
    if ((nodes >> node & 1) != 0)
      answers.push_back({.node = node, .instance_id = node + 1u, .state = {}});
  }
  return answers;
}
std::set<uint64_t> InstancesOf(uint64_t nodes) {
  std::set<uint64_t> instances;
  for (const RootAnswer& answer : AnswersOf(nodes)) instances.insert(answer.instance_id);
  return instances;
}

// All sets of nodes that may decide a read or acknowledge a write, in a pool of five.
TEST(RootRegisterTest, EveryReadMeetsEveryWrite) {
  constexpr uint64_t kAll = 31;
  for (uint64_t old_members = 0; old_members <= kAll; ++old_members) {
    for (uint64_t members = 1; members <= kAll; ++members) {
      control::Root joint;
      for (const uint64_t each : InstancesOf(members)) joint.add_members(each);
      for (const uint64_t each : InstancesOf(old_members)) joint.add_old_members(each);
      if (old_members == 0) joint.set_founding_nodes(5);
      control::Root settled = joint;
      settled.clear_old_members();
      settled.clear_founding_nodes();
      control::Root before;
      before.mutable_members()->CopyFrom(joint.old_members());
      for (uint64_t written = 0; written <= kAll; ++written) {
        const bool joint_written = IsWritten(joint, InstancesOf(written));
        const bool settled_written = IsWritten(settled, InstancesOf(written));
        for (uint64_t read = 0; read <= kAll; ++read) {
          if ((read & written) != 0) continue;
          const auto answers = AnswersOf(read);
          // A client that reads none of it must decide neither by what was before nor by the first
          // step.
          const control::Root* former = old_members == 0 ? nullptr : &before;
          if (joint_written) {
            EXPECT_FALSE(CheckReadQuorum(former, answers, 5).ok());
            EXPECT_FALSE(IsDestroyed(joint, answers));
          }
          if (settled_written) {
            EXPECT_FALSE(CheckReadQuorum(&joint, answers, 5).ok());
            EXPECT_FALSE(CheckReadQuorum(&settled, answers, 5).ok());
            EXPECT_FALSE(IsDestroyed(settled, answers));
          }
        }
      }
    }
  }
}

TEST_F(RootTest, OutlivesItsOwner) {
  StartNodes(3);
  uint64_t id = 0;
  {
    const auto owner = Client();
    DatabaseLease lease;
    ASSERT_TRUE(IsOk(owner->client()->databases()->Open("db", kCreate, &lease)));
    id = lease.database_id;
    std::vector<uint64_t> slabs;
    ASSERT_TRUE(
        IsOk(pool::LeaseSlabs(owner->client(), 1, id, {.count = 2, .contiguous = true}, &slabs)));
    ASSERT_TRUE(IsOk(owner->client()->databases()->PublishRoot(id, "first")));
    ASSERT_TRUE(IsOk(owner->client()->databases()->PublishRoot(id, "second")));
  }
  const auto heir = Client();
  DatabaseLease lease;
  ASSERT_TRUE(IsOk(OpenSoon(heir->client(), kExisting, &lease)));
  EXPECT_TRUE(lease.existed);
  EXPECT_EQ(lease.database_id, id);
  EXPECT_EQ(lease.epoch, 2u);
  EXPECT_EQ(lease.root, "second");
  EXPECT_EQ(lease.slabs.at(1).size(), 2u);
  DatabaseRoot root;
  ASSERT_TRUE(IsOk(heir->client()->databases()->Find("db", &root)));
  EXPECT_TRUE(root.exists);
  EXPECT_TRUE(root.owned);
  EXPECT_EQ(root.value, "second");
  EXPECT_EQ(root.members.size(), 3u);
  ASSERT_TRUE(IsOk(heir->client()->databases()->Leave(id)));
  ASSERT_TRUE(IsOk(heir->client()->databases()->Find("db", &root)));
  EXPECT_FALSE(root.owned);
  EXPECT_EQ(root.value, "second");
}

TEST_F(RootTest, GoesWithItsOwnerAsLongAsThereIsNoRoot) {
  StartNodes(3);
  const auto client = Client();
  {
    const auto owner = Client();
    DatabaseLease lease;
    ASSERT_TRUE(IsOk(owner->client()->databases()->Open("db", kCreate, &lease)));
    std::vector<uint64_t> slabs;
    ASSERT_TRUE(IsOk(pool::LeaseSlabs(owner->client(), 0, lease.database_id,
                                      {.count = 2, .contiguous = true}, &slabs)));
  }
  for (const Node& node : nodes_) {
    EXPECT_TRUE(Eventually([&] { return node.node->stats().databases == 0; }));
    EXPECT_EQ(node.node->stats().slabs_leased, 0u);
  }
  DatabaseRoot root;
  EXPECT_TRUE(IsFailure(client->client()->databases()->Find("db", &root), Status::Code::kNotFound));
}

TEST_F(RootTest, OpensAndPublishesWithoutAMinority) {
  StartNodes(3);
  ASSERT_NO_FATAL_FAILURE(MakeDatabase("first"));
  Kill(1);
  const auto owner = Client();
  EXPECT_EQ(owner->client()->node_count(), 3);
  EXPECT_FALSE(owner->client()->alive(1));
  DatabaseLease lease;
  ASSERT_TRUE(IsOk(OpenSoon(owner->client(), kExisting, &lease)));
  EXPECT_EQ(lease.root, "first");
  EXPECT_EQ(lease.slabs.size(), 2u);
  ASSERT_TRUE(IsOk(owner->client()->databases()->PublishRoot(lease.database_id, "second")));
  DatabaseRoot root;
  ASSERT_TRUE(IsOk(owner->client()->databases()->Find("db", &root)));
  EXPECT_EQ(root.members.size(), 2u);
  // One after the other: the members follow.
  Kill(0);
  ASSERT_TRUE(Eventually([&] { return !owner->client()->alive(0); }));
  ASSERT_TRUE(IsOk(owner->client()->databases()->PublishRoot(lease.database_id, "third")));
  ASSERT_TRUE(IsOk(owner->client()->databases()->Find("db", &root)));
  EXPECT_EQ(root.value, "third");
  ASSERT_TRUE(IsOk(owner->client()->databases()->Leave(lease.database_id)));
  const auto heir = Client();
  ASSERT_TRUE(IsOk(heir->client()->databases()->Open("db", kExisting, &lease)));
  EXPECT_EQ(lease.root, "third");
}

TEST_F(RootTest, AMajorityThatIsGoneIsNamed) {
  StartNodes(5);
  ASSERT_NO_FATAL_FAILURE(MakeDatabase("first"));
  const auto owner = Client();
  DatabaseLease lease;
  ASSERT_TRUE(IsOk(OpenSoon(owner->client(), kExisting, &lease)));
  for (const size_t node : {0, 2, 3}) Kill(node);
  for (const NodeId node : {0, 2, 3}) {
    ASSERT_TRUE(Eventually([&] { return !owner->client()->alive(node); }));
  }
  const Status published = owner->client()->databases()->PublishRoot(lease.database_id, "second");
  EXPECT_TRUE(IsFailure(published, Status::Code::kUnavailable));
  const auto other = Client();
  const Status opened = other->client()->databases()->Open("db", kTakeOver, &lease);
  EXPECT_TRUE(IsFailure(opened, Status::Code::kUnavailable));
  const Status created =
      other->client()->databases()->Open("another", {.create_if_missing = true}, &lease);
  EXPECT_TRUE(IsFailure(created, Status::Code::kUnavailable));
  for (const Status& s : {published, opened, created}) {
    for (const size_t node : {0, 2, 3}) EXPECT_TRUE(Names(s, Address(node))) << s.ToString();
    for (const size_t node : {1, 4}) EXPECT_FALSE(Names(s, Address(node))) << s.ToString();
  }
}

TEST_F(RootTest, ATakeOverFencesTheFormerOwner) {
  StartNodes(3);
  OpenPoolAt(uri_);
  CreateDatabase();
  ASSERT_TRUE(IsOk(client_->databases()->PublishRoot(database_id_, "before")));
  Placement placement;
  ASSERT_TRUE(IsOk(space_->Reserve(Copies(2), 100'000, kNoNode, &placement)));
  ASSERT_TRUE(IsOk(WriteBytes(placement, std::string(100'000, 'a'))));
  EXPECT_FALSE(client_->databases()->Fenced(database_id_));

  const auto heir = Client();
  DatabaseLease lease;
  EXPECT_TRUE(
      IsFailure(heir->client()->databases()->Open("db", kExisting, &lease), Status::Code::kBusy));
  EXPECT_FALSE(client_->databases()->Fenced(database_id_));
  ASSERT_TRUE(IsOk(heir->client()->databases()->Open("db", kTakeOver, &lease)));
  EXPECT_EQ(lease.root, "before");
  EXPECT_EQ(lease.database_id, database_id_);
  EXPECT_FALSE(lease.slabs.empty());

  // Its writes land nowhere, and all of its requests are refused.
  EXPECT_FALSE(WriteBytes(placement, std::string(100'000, 'b')).ok());
  std::vector<uint64_t> slabs;
  EXPECT_TRUE(IsFailure(pool::LeaseSlabs(client_, 0, database_id_, {.count = 1}, &slabs),
                        Status::Code::kFenced));
  EXPECT_TRUE(client_->databases()->Fenced(database_id_));
  EXPECT_TRUE(IsFailure(pool::ReturnSlabs(client_, 0, database_id_, lease.slabs[0]),
                        Status::Code::kFenced));
  EXPECT_TRUE(
      IsFailure(client_->databases()->PublishRoot(database_id_, "after"), Status::Code::kFenced));
  ScrubJob job;
  job.database_id = database_id_;
  ScrubResult result;
  EXPECT_TRUE(IsFailure(pool::RunOnNode(client_, 0, job, nullptr, &result), Status::Code::kFenced));
  Directions directions;
  EXPECT_TRUE(
      IsFailure(pool::ReportDatabase(client_, 0, {.database_id = database_id_}, &directions),
                Status::Code::kFenced));
  EXPECT_TRUE(IsFailure(client_->databases()->Leave(database_id_), Status::Code::kFenced));
  // The new owner notices nothing of all that.
  ASSERT_TRUE(IsOk(heir->client()->databases()->PublishRoot(database_id_, "heir's")));
  ASSERT_TRUE(IsOk(pool::LeaseSlabs(heir->client(), 0, database_id_, {.count = 1}, &slabs)));
  EXPECT_FALSE(heir->client()->databases()->Fenced(database_id_));
  // And is not safe either.
  DatabaseLease again;
  ASSERT_TRUE(IsOk(client_->databases()->Open("db", kTakeOver, &again)));
  EXPECT_EQ(again.root, "heir's");
  EXPECT_GT(again.epoch, lease.epoch);
  EXPECT_FALSE(client_->databases()->Fenced(database_id_));
}

// Each owner reads a number, and publishes it plus one: a chain, if there is one owner at a time.
// Meanwhile a minority of the nodes dies, one after the other.
TEST_F(RootTest, OwnersThatFightMakeOneChain) {
  const uint64_t seed = TestSeed(2601);
  StartNodes(5);
  ASSERT_NO_FATAL_FAILURE(MakeDatabase("0"));
  constexpr int kOwners = 3;
  const int rounds = static_cast<int>(Scaled(200));
  std::mutex mutex;
  std::map<uint64_t, std::string> published;  // The publisher of each number.
  std::map<uint64_t, int> owners_of_epoch;
  std::atomic<int> fenced{0};
  std::vector<std::thread> owners;
  for (int owner = 0; owner < kOwners; ++owner) {
    owners.emplace_back([&, owner] {
      Random random(seed + static_cast<uint64_t>(owner));
      const auto pool = Client();
      PoolClient* client = pool->client();
      for (int round = 0; round < rounds; ++round) {
        if (owner == 0 && (round == rounds / 3 || round == 2 * rounds / 3)) {
          Kill(round == rounds / 3 ? 0 : 3);
        }
        DatabaseLease lease;
        const Status opened = client->databases()->Open("db", kTakeOver, &lease);
        EXPECT_TRUE(opened.ok() || opened.IsBusy()) << opened.ToString();
        if (!opened.ok()) continue;
        {
          const std::lock_guard lock(mutex);
          EXPECT_EQ(++owners_of_epoch[lease.epoch], 1) << "epoch " << lease.epoch;
        }
        uint64_t number = std::stoull(lease.root);
        for (uint64_t i = 0; i <= random.Uniform(3); ++i) {
          const Status s =
              client->databases()->PublishRoot(lease.database_id, std::to_string(++number));
          EXPECT_TRUE(s.ok() || s.IsFenced()) << s.ToString();
          if (s.IsFenced()) ++fenced;
          if (!s.ok()) break;
          const std::lock_guard lock(mutex);
          const std::string who = std::to_string(owner) + "/" + std::to_string(lease.epoch);
          const auto [it, is_new] = published.emplace(number, who);
          EXPECT_TRUE(is_new) << number << " of " << it->second << " and of " << who;
        }
        client->databases()->Leave(lease.database_id).IgnoreError();
      }
      EXPECT_EQ(client->node_count(), 5) << "a node was given up";
    });
  }
  for (std::thread& owner : owners) owner.join();
  ASSERT_FALSE(published.empty());
  const auto client = Client();
  DatabaseLease lease;
  ASSERT_TRUE(IsOk(OpenSoon(client->client(), kExisting, &lease)));
  EXPECT_GE(std::stoull(lease.root), published.rbegin()->first);
  RecordProperty("fenced", fenced);
  RecordProperty("published", static_cast<int>(published.size()));
}

TEST_F(RootTest, OfTwoThatCreateItOneWins) {
  StartNodes(4);
  for (int round = 0; round < 20; ++round) {
    const std::string name = "db" + std::to_string(round);
    std::atomic<int> created{0};
    std::vector<std::shared_ptr<PoolImpl>> pools = {Client(), Client()};
    std::vector<std::thread> threads;
    for (const auto& pool : pools) {
      threads.emplace_back([&, client = pool->client()] {
        DatabaseLease lease;
        const Status s = client->databases()->Open(name, kCreate, &lease);
        EXPECT_TRUE(s.ok() || s.IsBusy()) << s.ToString();
        if (!s.ok()) return;
        EXPECT_FALSE(lease.existed);
        EXPECT_EQ(lease.slabs.size(), 4u);
        EXPECT_TRUE(IsOk(client->databases()->PublishRoot(lease.database_id, "made")));
        ++created;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(created, 1);
  }
}

TEST_F(RootTest, IsDestroyedWithAllThatItHas) {
  StartNodes(3);
  const auto owner = Client();
  const auto client = Client();
  EXPECT_TRUE(IsFailure(client->client()->databases()->Destroy("db"), Status::Code::kNotFound));
  DatabaseLease lease;
  ASSERT_TRUE(IsOk(owner->client()->databases()->Open("db", kCreate, &lease)));
  std::vector<uint64_t> slabs;
  ASSERT_TRUE(IsOk(pool::LeaseSlabs(owner->client(), 1, lease.database_id,
                                    {.count = 3, .contiguous = true}, &slabs)));
  ASSERT_TRUE(IsOk(owner->client()->databases()->PublishRoot(lease.database_id, "root")));
  EXPECT_TRUE(IsFailure(client->client()->databases()->Destroy("db"), Status::Code::kBusy));
  EXPECT_TRUE(IsFailure(owner->client()->databases()->Destroy("db"), Status::Code::kBusy));
  ASSERT_TRUE(IsOk(owner->client()->databases()->Leave(lease.database_id)));
  std::vector<KnownDatabase> known;
  Directions directions;
  ASSERT_TRUE(IsOk(pool::ListDatabases(client->client(), 1, &known, &directions)));
  ASSERT_EQ(known.size(), 1u);
  EXPECT_EQ(known[0].name, "db");
  EXPECT_FALSE(known[0].open);
  EXPECT_EQ(known[0].leased_bytes, 3u << 20);
  ASSERT_TRUE(IsOk(client->client()->databases()->Destroy("db")));
  for (const Node& node : nodes_) {
    EXPECT_EQ(node.node->stats().databases, 0u);
    EXPECT_EQ(node.node->stats().slabs_leased, 0u);
  }
  EXPECT_TRUE(IsFailure(client->client()->databases()->Open("db", kExisting, &lease),
                        Status::Code::kInvalidArgument));
  const uint64_t old = lease.database_id;
  ASSERT_TRUE(IsOk(client->client()->databases()->Open("db", kCreate, &lease)));
  EXPECT_NE(lease.database_id, old);
}

TEST_F(RootTest, ANodeThatJoinsBecomesAMember) {
  StartNodes(3);
  const auto owner = Client();
  DatabaseLease lease;
  ASSERT_TRUE(IsOk(owner->client()->databases()->Open("db", kCreate, &lease)));
  ASSERT_TRUE(IsOk(owner->client()->databases()->PublishRoot(lease.database_id, "of three")));
  const uint64_t changes = owner->client()->membership_changes();
  StartNode();
  owner->client()->AddNode(Address(3));
  ASSERT_TRUE(Eventually([&] { return owner->client()->alive(3); }));
  EXPECT_GT(owner->client()->membership_changes(), changes);
  std::vector<uint64_t> slabs;
  ASSERT_TRUE(IsOk(pool::LeaseSlabs(owner->client(), 3, lease.database_id, {.count = 1}, &slabs)));
  ASSERT_TRUE(IsOk(owner->client()->databases()->PublishRoot(lease.database_id, "of four")));
  DatabaseRoot root;
  ASSERT_TRUE(IsOk(owner->client()->databases()->Find("db", &root)));
  EXPECT_EQ(root.members.size(), 4u);
  // Two of four took it, and that is as good as all.
  for (const size_t node : {0, 1}) Kill(node);
  for (const NodeId node : {0, 1}) {
    ASSERT_TRUE(Eventually([&] { return !owner->client()->alive(node); }));
  }
  ASSERT_TRUE(IsOk(owner->client()->databases()->PublishRoot(lease.database_id, "of two")));
  ASSERT_TRUE(IsOk(owner->client()->databases()->Find("db", &root)));
  EXPECT_EQ(root.members.size(), 2u);
  EXPECT_EQ(root.value, "of two");
}

TEST_F(RootTest, NamesAndSizesHaveBounds) {
  StartNodes(1);
  const auto pool = Client();
  PoolClient* client = pool->client();
  DatabaseLease lease;
  DatabaseRoot root;
  for (const std::string& name : {std::string(), std::string(1025, 'n')}) {
    EXPECT_TRUE(IsFailure(client->databases()->Open(name, kCreate, &lease),
                          Status::Code::kInvalidArgument));
    EXPECT_TRUE(IsFailure(client->databases()->Find(name, &root), Status::Code::kInvalidArgument));
    EXPECT_TRUE(IsFailure(client->databases()->Destroy(name), Status::Code::kInvalidArgument));
  }
  const std::string longest(1024, '\0');
  ASSERT_TRUE(IsOk(client->databases()->Open(longest, kCreate, &lease)));
  EXPECT_TRUE(
      IsFailure(client->databases()->Open(longest, kTakeOver, &lease), Status::Code::kBusy));
}

}  // namespace
}  // namespace nacre::pool
