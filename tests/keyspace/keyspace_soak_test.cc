// Goal: whatever happens to the members of a keyspace and to its coordinator, no money is lost and
// none is made, and nothing that was acknowledged is lost.
// Method: three member processes over memory nodes and an etcd, all real, each of which has tellers
// at work (tests/support/process/bank_process.h). They are killed, frozen, drained and closed,
// shards are moved, split and merged, and etcd is stopped for a while, one after the other, while
// the whole bank is looked at. NACRE_SOAK_SECONDS says for how long (30), NACRE_TEST_SEED
// replays the choices and not their timing, NACRE_SOAK_LOG names a file for what members say.

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/utilities/etcd.h"
#include "nacre/utilities/sharded_db.h"
#include "tests/soak/soak_time.h"
#include "tests/support/process/bank_process.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "util/random.h"

BANK_PROCESS_CHILD()

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kMembers = 3;
constexpr size_t kTellersOfEach = 2;
constexpr seconds kPatience(60);

class KeyspaceSoakTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
    UseEtcd();
    etcd_ = std::make_unique<EtcdProcess>();
    nodes_ = std::make_unique<MemnodeProcesses>(6, MemnodeProcessOptions{.size = "256MiB"});
    plan_ = {.pool_uri = nodes_->pool_uri(),
             .coordinator = "etcd:" + etcd_->endpoint(),
             .redundancy = "rs(4,2)",
             .tellers = kMembers * kTellersOfEach,
             .log_path = SoakLogPath()};
    book_ = std::make_unique<BankBook>(BookPath(), plan_.tellers);
    for (size_t i = 0; i < kMembers; ++i) members_.push_back(NewMember(i));
    BankPlan client = plan_;
    client.member_address.clear();
    ASSERT_TRUE(IsOk(ShardedDB::Open(client.Options(), plan_.keyspace, &db_)));
  }

  std::string BookPath() const { return folder_.File("book"); }
  std::unique_ptr<BankProcess> NewMember(size_t i) const {
    return std::make_unique<BankProcess>("keyspace_tests", plan_, BookPath(), i * kTellersOfEach,
                                         (i + 1) * kTellersOfEach);
  }

  /// Those that serve shards.
  std::vector<ShardMember> Servers() {
    std::vector<ShardMember> members;
    // What it said last, if the coordinator is away.
    db_->GetMembers(&members).IgnoreError();
    std::erase_if(members, [](const ShardMember& member) { return member.address.empty(); });
    return members;
  }

  void Audit() {
    const auto begun = std::chrono::steady_clock::now();
    Status audited;
    do {
      audited = AuditBank(db_.get(), plan_, book_.get());
    } while (!audited.ok() && std::chrono::steady_clock::now() - begun < kPatience);
    EXPECT_TRUE(IsOk(audited));
  }

  /// Each teller has something acknowledged that it was not asked for before this call.
  void AwaitProgress() {
    const auto begun = std::chrono::steady_clock::now();
    std::vector<uint64_t> before;
    for (size_t i = 0; i < book_->size(); ++i) before.push_back((*book_)[i].acknowledged);
    for (size_t i = 0; i < book_->size();) {
      if ((*book_)[i].acknowledged > before[i] + 1) {
        ++i;
        continue;
      }
      ASSERT_EQ(book_->Failure(), "");
      ASSERT_LT(std::chrono::steady_clock::now() - begun, kPatience)
          << "teller " << i << " stands still at " << before[i];
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  static void Sleep(milliseconds time) { std::this_thread::sleep_for(time); }

  void MoveOne() {
    const std::vector<ShardMember> servers = Servers();
    if (servers.empty()) return;
    const int64_t to = servers[random_.Uniform(servers.size())].id;
    const std::vector<ShardInfo> shards = db_->GetShards();
    const Status moved = db_->MoveShard(shards[random_.Uniform(shards.size())].id, to);
    // It may have ended by now, or etcd may be away.
    ++(moved.ok() ? counts_["moved"] : counts_["not moved"]);
  }

  /// There are about as many shards as at first.
  void ReshapeOne() {
    const std::vector<ShardInfo> shards = db_->GetShards();
    const size_t chosen = random_.Uniform(shards.size());
    if (chosen + 1 == shards.size() || random_.Uniform(2 * plan_.shards) >= shards.size()) {
      const Status split = db_->SplitShard(shards[chosen].id, Slice());
      ++(split.ok() ? counts_["split"] : counts_["not split"]);
      return;
    }
    // They have to have one owner.
    Status merged = db_->MoveShard(shards[chosen + 1].id, shards[chosen].owner);
    if (merged.ok()) merged = db_->MergeShards(shards[chosen].id, shards[chosen + 1].id);
    ++(merged.ok() ? counts_["merged"] : counts_["not merged"]);
  }

  void DrainOne() {
    const std::vector<ShardMember> servers = Servers();
    if (servers.size() < 2) return;
    const int64_t drained = servers[random_.Uniform(servers.size())].id;
    if (!db_->DrainMember(drained, true).ok()) return;
    const auto begun = std::chrono::steady_clock::now();
    for (bool empty = false; !empty;) {
      empty = true;
      for (const ShardMember& member : Servers()) {
        if (member.id == drained && member.shards > 0) empty = false;
      }
      ASSERT_LT(std::chrono::steady_clock::now() - begun, kPatience) << "it is not drained";
      Sleep(milliseconds(5));
    }
    ++counts_["drained"];
    // etcd may be away.
    Status status;
    while (!(status = db_->DrainMember(drained, false)).ok()) {
      ASSERT_LT(std::chrono::steady_clock::now() - begun, kPatience) << status.ToString();
    }
  }

  void Harm() {
    const size_t member = random_.Uniform(kMembers);
    switch (random_.Uniform(11)) {
      case 0:
        members_[member]->Kill();
        Sleep(milliseconds(random_.Uniform(1000)));
        members_[member] = NewMember(member);
        ++counts_["killed"];
        break;
      case 1:
        members_[member]->Freeze();
        Sleep(milliseconds(500 + random_.Uniform(3500)));
        members_[member]->Continue();
        ++counts_["frozen"];
        break;
      case 2:
        EXPECT_EQ(members_[member]->Close(), 0);
        members_[member] = NewMember(member);
        ++counts_["closed"];
        break;
      case 3:
        DrainOne();
        break;
      case 4:
        etcd_->Stop();
        Sleep(milliseconds(random_.Uniform(3000)));
        etcd_->Start();
        ++counts_["etcd restarted"];
        break;
      case 5:
      case 6:
      case 7:
        ReshapeOne();
        break;
      default:
        MoveOne();
    }
  }

  const TempFolder folder_;
  Random random_{TestSeed(static_cast<uint64_t>(::getpid()))};
  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<MemnodeProcesses> nodes_;
  BankPlan plan_;
  std::unique_ptr<BankBook> book_;
  std::vector<std::unique_ptr<BankProcess>> members_;
  std::unique_ptr<ShardedDB> db_;
  std::map<std::string, int> counts_;
};

TEST_F(KeyspaceSoakTest, NoMoneyIsLostAndNoneIsMade) {
  AwaitProgress();
  const auto end = std::chrono::steady_clock::now() + SoakTime();
  while (std::chrono::steady_clock::now() < end && !HasFailure()) {
    Harm();
    AwaitProgress();
    Audit();
  }
  for (const auto& member : members_) EXPECT_EQ(member->Close(), 0);
  EXPECT_EQ(book_->Failure(), "");
  uint64_t batches = 0;
  uint64_t open = 0;
  for (size_t i = 0; i < book_->size(); ++i) {
    batches += (*book_)[i].acknowledged;
    open += (*book_)[i].open;
  }
  std::cout << batches << " batches, " << open << " of them open for a while";
  for (const auto& [what, count] : counts_) std::cout << "; " << count << " " << what;
  std::cout << std::endl;
  ASSERT_TRUE(IsOk(db_->Close()));
  // Another member finds all of it.
  members_.clear();
  BankPlan alone = plan_;
  ASSERT_TRUE(IsOk(ShardedDB::Open(alone.Options(), plan_.keyspace, &db_)));
  Audit();
  ASSERT_TRUE(IsOk(db_->Close()));
}

}  // namespace
}  // namespace nacre
