// Goal: nacre-ctl shows a keyspace with a coordinator as it is, its orders are carried out by the
// member that leads, and its doctor finds what is wrong with etcd, members and shards.
// Method: the tool as a process, over an etcd and memory nodes that are processes; members within
// this process, or entries that this test makes in etcd.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "nacre/comparator.h"
#include "nacre/utilities/etcd.h"
#include "nacre/utilities/sharded_db.h"
#include "sharding/members/coordinator.h"
#include "sharding/members/member.pb.h"
#include "sharding/members/membership.h"
#include "sharding/shard_map.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/clock.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kCtlSeconds = 60;

class CtlTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
    UseEtcd();
    etcd_ = std::make_unique<EtcdProcess>();
  }

  std::string uri() const { return "etcd:" + etcd_->endpoint(); }
  static ProcessResult CtlAt(const std::string& coordinator, std::vector<std::string> words) {
    words.push_back("--coordinator=" + coordinator);
    return RunBinary("nacre-ctl", words, kCtlSeconds);
  }
  ProcessResult Ctl(const std::vector<std::string>& words) const { return CtlAt(uri(), words); }
  /// It ends so, and says all of `texts`.
  static void Expect(const ProcessResult& result, int exit_code,
                     const std::vector<std::string>& texts) {
    EXPECT_EQ(result.exit_code, exit_code) << result.output;
    for (const std::string& text : texts) {
      EXPECT_NE(result.output.find(text), std::string::npos) << text << "\n" << result.output;
    }
  }

  std::unique_ptr<EtcdProcess> etcd_;
};

// ---- A keyspace that works ----------------------------------------------------------------------

class KeyspaceCtlTest : public CtlTest {
 protected:
  void SetUp() override {
    CtlTest::SetUp();
    if (IsSkipped()) return;
    nodes_ = std::make_unique<MemnodeProcesses>(
        2, MemnodeProcessOptions{.size = "128MiB", .slab_size = "1MiB"});
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(IsOk(ShardedDB::Open(OptionsOf(), "keys", &members_.emplace_back())));
    }
    ASSERT_TRUE(Eventually([&] { return Ctl({"shards", "keys"}).exit_code == 0; }));
  }

  ShardedOptions OptionsOf() const {
    ShardedOptions options;
    options.create_if_missing = true;
    options.pool_uri = nodes_->pool_uri();
    options.slab_size = 1 << 20;
    options.write_buffer_size = 1 << 20;
    options.boundaries = {"g", std::string("n\0", 2)};
    options.coordinator = uri();
    options.member_address = "shm:@";
    return options;
  }
  /// As the `i`-th sees itself.
  ShardMember Self(size_t i) const {
    std::vector<ShardMember> all;
    EXPECT_TRUE(IsOk(members_[i]->GetMembers(&all)));
    const auto self = std::ranges::find(all, true, &ShardMember::self);
    return self == all.end() ? ShardMember() : *self;
  }
  /// The ids of the shards that the map has that the pool keeps; none while some are being made.
  std::vector<uint32_t> ShardsInThePool() const {
    Options options = OptionsOf();
    std::unique_ptr<DB> db;
    std::string bytes;
    ShardMap map;
    const bool read = DB::OpenAsSecondary(options, ShardMap::DatabaseOfMap("keys"), &db).ok() &&
                      db->Get({}, ShardMap::kKey, &bytes).ok() &&
                      ShardMap::Parse(bytes, BytewiseComparator(), &map).ok();
    std::vector<uint32_t> ids;
    if (!read || !map.reshapings().empty()) return ids;
    for (const ShardMap::Shard& shard : map.shards()) ids.push_back(shard.id);
    return ids;
  }
  /// Which member it is that has the most shards.
  size_t Busiest() const { return Self(0).shards >= Self(1).shards ? 0 : 1; }

  std::unique_ptr<MemnodeProcesses> nodes_;
  std::vector<std::unique_ptr<ShardedDB>> members_;
};

TEST_F(KeyspaceCtlTest, ShowsShardsAndMembers) {
  ASSERT_TRUE(IsOk(members_[0]->Put({}, "a", "1")));
  const ShardMember member = Self(0);
  const std::string id = std::to_string(member.id);
  Expect(Ctl({"shards", "keys"}), 0, {"shard begin", "'g'", "0x6E00", "served"});
  const ProcessResult shards = Ctl({"shards", "keys", "--json"});
  Expect(shards, 0,
         {R"("id": 1, "begin": "g", "begin_hex": "67", "owner": )",
          R"("begin": null, "begin_hex": "6E00")", R"("epoch": )", R"("bytes": )",
          R"("operations": )", R"("state": "served")"});
  Expect(Ctl({"members", "keys"}), 0, {"member ", id, member.address, "yes"});
  Expect(Ctl({"members", "keys", "--json"}), 0,
         {"\"id\": \"" + id + "\"", "\"address\": \"" + member.address + "\"", "\"leads\": true",
          "\"leads\": false", "\"draining\": false", "\"reachable\": true"});
  Expect(Ctl({"doctor"}), 0,
         {"ok       " + uri(), "1 keyspace", "leads 2 members", "all of its 3 shards are served"});
}

TEST_F(KeyspaceCtlTest, MovesAndPauses) {
  ASSERT_TRUE(IsOk(members_[0]->Put({}, "h", "1")));
  Expect(Ctl({"balance", "keys"}), 0, {"moves        by themselves", "imbalance    up to 30 %"});
  Expect(Ctl({"balance", "keys", "pause"}), 0, {});
  Expect(Ctl({"balance", "keys"}), 0, {"moves        paused"});
  Expect(Ctl({"balance", "keys", "--json"}), 0, {"\"paused\": true", "\"split_bytes\": "});
  Expect(Ctl({"doctor"}), 0, {"moves are paused"});
  for (const size_t to : {0, 1, 1, 0}) {
    const ShardMember member = Self(to);
    // By its address, and by its id.
    const std::string name = to == 0 ? member.address : std::to_string(member.id);
    Expect(Ctl({"move", "keys", "1", name}), 0, {"shard 1 is served by " + member.address});
    Expect(Ctl({"shards", "keys", "--json"}), 0,
           {"\"begin_hex\": \"67\", \"owner\": \"" + std::to_string(member.id) + "\""});
    for (const auto& db : members_) {
      std::string value;
      ASSERT_TRUE(IsOk(db->Get({}, "h", &value)));
      EXPECT_EQ(value, "1");
    }
  }
  Expect(Ctl({"balance", "keys", "set", "split_bytes=8GiB", "merge_bytes=1GiB"}), 0, {});
  Expect(Ctl({"balance", "keys"}), 0, {"moves        paused", "above 8.0 GiB", "below 1.0 GiB"});
  while (members_[1]->GetBalance()["split_bytes"] != std::to_string(uint64_t{8} << 30)) {
    Clock::System()->SleepFor(std::chrono::milliseconds(1));
  }
  Expect(Ctl({"balance", "keys", "resume"}), 0, {});
  Expect(Ctl({"balance", "keys", "--json"}), 0, {"\"paused\": false"});
}

TEST_F(KeyspaceCtlTest, SplitsAndMerges) {
  for (const char* key : {"a", "b", "h", "p"}) ASSERT_TRUE(IsOk(members_[0]->Put({}, key, key)));
  Expect(Ctl({"split", "keys", "0", "0x62"}), 0, {"shard 0 is split"});
  Expect(Ctl({"shards", "keys", "--json"}), 0, {"\"begin_hex\": \"62\""});
  Expect(Ctl({"split", "keys", "0", "b"}), 1, {"there is no shard 0"});
  const std::vector<ShardInfo> shards = members_[0]->GetShards();
  ASSERT_EQ(shards.size(), 4u);
  const auto merge = [&] {
    return Ctl({"merge", "keys", std::to_string(shards[0].id), std::to_string(shards[1].id)});
  };
  // Until the leader has seen that they are whole.
  ASSERT_TRUE(Eventually([&] { return merge().exit_code == 0; }));
  EXPECT_TRUE(Eventually([&] { return members_[0]->GetShards().size() == 3; }));
  EXPECT_TRUE(Eventually([&] { return members_[1]->GetShards().size() == 3; }));
  // The pool has the map, too, should the coordinator lose it.
  std::vector<uint32_t> ids;
  for (const ShardInfo& shard : members_[0]->GetShards()) ids.push_back(shard.id);
  EXPECT_TRUE(Eventually([&] { return ShardsInThePool() == ids; }));
  for (const auto& db : members_) {
    std::string value;
    for (const char* key : {"a", "b", "h", "p"}) {
      ASSERT_TRUE(IsOk(db->Get({}, key, &value)));
      EXPECT_EQ(value, key);
    }
  }
}

TEST_F(KeyspaceCtlTest, DrainsMembers) {
  const size_t drained = Busiest();
  const ShardMember member = Self(drained);
  Expect(Ctl({"members", "keys", "drain", member.address}), 0, {"serves no shards any more"});
  EXPECT_EQ(Self(1 - drained).shards, 3u);
  EXPECT_TRUE(Self(drained).draining);
  Expect(Ctl({"members", "keys", "--json"}), 0, {"\"draining\": true, \"shards\": 0"});
  // There is no other one, so it waits until that is taken back.
  const ShardMember other = Self(1 - drained);
  Expect(Ctl({"members", "keys", "drain", other.address, "--nowait"}), 0, {});
  Expect(Ctl({"members", "keys", "undrain", std::to_string(member.id)}), 0, {});
  Expect(Ctl({"members", "keys", "drain", other.address}), 0, {"serves no shards any more"});
  Expect(Ctl({"members", "keys", "undrain", other.address}), 0, {});
  EXPECT_TRUE(Eventually([&] { return !Self(0).draining && !Self(1).draining; }));
}

TEST_F(KeyspaceCtlTest, OrdersReachTheNextLeader) {
  const size_t leader = Self(0).leads ? 0 : 1;
  ASSERT_TRUE(IsOk(members_[leader]->Close()));
  Expect(Ctl({"balance", "keys", "pause"}), 0, {});
  Expect(Ctl({"balance", "keys"}), 0, {"paused"});
  Expect(Ctl({"move", "keys", "0", Self(1 - leader).address}), 0, {"shard 0 is served"});
}

TEST_F(KeyspaceCtlTest, NamesMistakes) {
  const std::string member = Self(0).address;
  const struct {
    std::vector<std::string> words;
    std::string culprit;
  } cases[] = {
      {{"shards"}, "unknown command 'shards'"},
      {{"shards", "nothing"}, "knows no keyspace 'nothing'"},
      {{"move", "keys", "1"}, "unknown command 'move keys 1'"},
      {{"move", "keys", "77", member}, "there is no shard 77"},
      {{"move", "keys", "first", member}, "first"},
      {{"move", "keys", "1", "17"}, "no member '17'"},
      {{"members", "keys", "stop", member}, "unknown command"},
      {{"members", "keys", "drain", "17"}, "no member '17'"},
      {{"balance", "keys", "faster"}, "unknown command"},
      {{"balance", "keys", "set"}, "unknown command"},
      {{"balance", "keys", "set", "split_bytes"}, "'split_bytes' is not of the form NAME=VALUE"},
      {{"balance", "keys", "set", "split_bytes=1"}, "split_bytes"},
      {{"split", "keys", "77", "x"}, "there is no shard 77"},
      {{"split", "keys", "1", "0x6"}, "hexadecimal"},
      {{"split", "keys", "0", "zz"}, "it has no such key"},
      {{"split", "keys", "one"}, "SHARD"},
      {{"merge", "keys", "0", "2"}, "does not begin where shard 0 ends"},
  };
  for (const auto& mistake : cases) Expect(Ctl(mistake.words), 1, {mistake.culprit});
  Expect(RunBinary("nacre-ctl", {"shards", "keys"}), 1, {"--coordinator is missing"});
  Expect(CtlAt("paper:1", {"shards", "keys"}), 1, {"Not implemented", "paper"});
}

// ---- What may be wrong --------------------------------------------------------------------------

class KeyspaceDoctorTest : public CtlTest {
 protected:
  void SetUp() override {
    CtlTest::SetUp();
    if (IsSkipped()) return;
    ASSERT_TRUE(IsOk(OpenCoordinator(uri(), &coordinator_)));
  }

  void Commit(const std::string& name, const std::string& value, Coordinator::Lease lease = 0) {
    bool done = false;
    ASSERT_TRUE(IsOk(coordinator_->Commit(
        {{.key = KeyspacePrefix("default", "keys") + name, .value = value, .lease = lease}},
        Ample(), &done)));
    ASSERT_TRUE(done);
  }
  /// Two shards, which have these owners.
  void CommitMap(int64_t first, int64_t second) {
    ShardMap map;
    ASSERT_TRUE(IsOk(ShardMap::Make(BytewiseComparator(), {"m"}, &map)));
    map.SetMade();
    map.SetShared();
    map.SetOwner(0, first);
    map.SetOwner(1, second);
    Commit("map", map.Serialize());
  }
  /// A member at which nothing listens. Its id.
  int64_t CommitMember(const std::string& address) {
    Coordinator::Lease lease = 0;
    EXPECT_TRUE(IsOk(coordinator_->GrantLease(seconds(600), Ample(), &lease)));
    sharding::Member member;
    member.set_address(address);
    Commit("members/" + std::to_string(lease), member.SerializeAsString(), lease);
    return lease;
  }

  std::shared_ptr<Coordinator> coordinator_;
};

TEST_F(KeyspaceDoctorTest, FindsEndpointsThatDoNotAnswer) {
  Expect(Ctl({"doctor"}), 0, {"ok       " + uri(), "knows 0 keyspaces"});
  const std::string dead = "127.0.0.1:" + std::to_string(FreePort());
  CommitMap(0, 0);
  const ProcessResult one = CtlAt("etcd:" + dead + "," + etcd_->endpoint(), {"doctor"});
  Expect(one, 1, {"failure  etcd:" + dead, "ok       " + uri(), "warning  keyspace keys"});
  Expect(CtlAt("etcd:" + dead, {"shards", "keys"}), 1, {"Unavailable", dead});
  Expect(CtlAt("etcd:nowhere", {"doctor"}), 1, {"correct --coordinator"});
  etcd_->Freeze();
  Expect(Ctl({"doctor", "--timeout_ms=1000"}), 1, {"failure  " + uri(), "is etcd running there"});
  etcd_->Continue();
}

TEST_F(KeyspaceDoctorTest, FindsAClusterWithoutALeader) {
  EtcdCluster cluster(3);
  const std::string coordinator = "etcd:" + cluster.endpoints();
  Expect(CtlAt(coordinator, {"doctor"}), 0, {"knows 0 keyspaces"});
  cluster[1].Kill();
  cluster[2].Kill();
  Expect(CtlAt(coordinator, {"doctor", "--timeout_ms=2000"}), 1,
         {"failure  etcd:" + cluster[0].endpoint(), "failure  etcd:" + cluster[1].endpoint()});
}

TEST_F(KeyspaceDoctorTest, FindsAKeyspaceThatIsClosed) {
  CommitMap(0, 17);
  Expect(Ctl({"doctor"}), 0, {"warning  keyspace keys", "no process has it open"});
  Expect(Ctl({"shards", "keys"}), 1, {"orphan"});
  Expect(Ctl({"balance", "keys", "pause"}), 1, {"Unavailable", "none leads it"});
}

TEST_F(KeyspaceDoctorTest, FindsMembersAndOwnersThatAreGone) {
  const int64_t member = CommitMember("tcp:127.0.0.1:" + std::to_string(FreePort()));
  CommitMap(17, member);
  Expect(Ctl({"doctor"}), 1,
         {"no member leads it", "shards without an owner that lives: 0 (member 17"});
  Commit("leader", std::to_string(member), member);
  Expect(Ctl({"doctor"}), 1,
         {std::to_string(member) + ") leads 1 member", std::to_string(member) + "): Unavailable"});
  Expect(Ctl({"shards", "keys"}), 1, {"orphan", "silent"});
  Expect(Ctl({"members", "keys", "--json"}), 1, {"\"reachable\": false, \"error\": "});
  // After its patience, as the leader may come back.
  Expect(Ctl({"balance", "keys", "pause"}), 1, {"timed out", "Connection refused"});
}

TEST_F(KeyspaceDoctorTest, FindsAKeyspaceThatNoMemberCanLead) {
  CommitMember("");
  Expect(Ctl({"doctor"}), 1, {"none of its members serves shards", "no member has made"});
}

TEST_F(KeyspaceDoctorTest, SaysThatAMapIsNotUnderstood) {
  CommitMember("");
  Commit("map", "noise");
  Expect(Ctl({"doctor"}), 1, {"cannot be parsed"});
  Expect(Ctl({"shards", "keys"}), 1, {"cannot be parsed"});
  Expect(Ctl({"members", "keys"}), 1, {"member", "cannot be parsed"});
}

}  // namespace
}  // namespace nacre
