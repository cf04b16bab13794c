// Goal: programs that have a keyspace open ask one another whatever they like, by the connections
// that its members have; who asks learns whether the other one has seen it.
// Method: two members in this process over memory nodes and an etcd, both real.
// What readers may ask: member_rights_test.cc. Between processes: tests/server/cluster_test.cc.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/utilities/etcd.h"
#include "nacre/utilities/sharded_db.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAnswerPatience(10'000);

/// Answers with its name and what it was asked, or as it was told.
class Answering final : public ShardObserver {
 public:
  explicit Answering(std::string name) : name_(std::move(name)) {}
  void OnShardServed(const ShardInfo& /*shard*/, DB* /*db*/) override {}
  void OnShardLeaving(uint32_t /*shard*/) override {}
  Status OnRequest(const Slice& request, std::string* answer) override {
    ++asked;
    if (request == Slice("fail")) return Status::Busy("that is how it is");
    if (request == Slice("sleep")) std::this_thread::sleep_for(milliseconds(500));
    *answer = name_ + ": " + request.ToString();
    return Status::OK();
  }

  std::atomic<int> asked{0};

 private:
  const std::string name_;
};

class MemberRequestsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
    UseEtcd();
    etcd_ = std::make_unique<EtcdProcess>();
    nodes_ = std::make_unique<MemnodeProcesses>(3, MemnodeProcessOptions{.size = "256MiB"});
    Open(one_, &first_);
    Open(two_, &second_);
  }
  void Open(const std::shared_ptr<ShardObserver>& observer, std::unique_ptr<ShardedDB>* db) const {
    ShardedOptions options(SmallTableOptions(nullptr));
    options.pool_uri = nodes_->pool_uri();
    options.redundancy = "rep(2)";
    options.coordinator = "etcd:" + etcd_->endpoint();
    options.member_address = "tcp:127.0.0.1:0";
    options.shard_observer = observer;
    ASSERT_TRUE(IsOk(ShardedDB::Open(options, "keys", db)));
  }
  static int64_t IdOf(const std::unique_ptr<ShardedDB>& db) {
    std::vector<ShardMember> members;
    EXPECT_TRUE(IsOk(db->GetMembers(&members)));
    for (const ShardMember& member : members) {
      if (member.self) return member.id;
    }
    ADD_FAILURE() << "it is no member";
    return 0;
  }

  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<MemnodeProcesses> nodes_;
  const std::shared_ptr<Answering> one_ = std::make_shared<Answering>("one");
  const std::shared_ptr<Answering> two_ = std::make_shared<Answering>("two");
  std::unique_ptr<ShardedDB> first_;
  std::unique_ptr<ShardedDB> second_;
};

TEST_F(MemberRequestsTest, AreAnsweredByTheMemberThatIsAsked) {
  std::string answer;
  const std::string large(3 << 20, 'x');
  for (const std::string& request : {std::string("a"), std::string(), large}) {
    EXPECT_TRUE(Eventually(
        [&] { return first_->AskMember(IdOf(second_), request, kAnswerPatience, &answer).ok(); }));
    EXPECT_TRUE(answer == "two: " + request);
    EXPECT_TRUE(IsOk(second_->AskMember(IdOf(first_), request, kAnswerPatience, &answer)));
    EXPECT_TRUE(answer == "one: " + request);
  }
  EXPECT_TRUE(IsFailure(first_->AskMember(IdOf(second_), "fail", kAnswerPatience, &answer),
                        Status::Code::kBusy, "that is how it is"));
}

TEST_F(MemberRequestsTest, TellWhetherTheyMayHaveBeenSeen) {
  std::string answer;
  const int64_t second = IdOf(second_);
  ASSERT_TRUE(
      Eventually([&] { return first_->AskMember(second, "a", kAnswerPatience, &answer).ok(); }));
  const int asked = two_->asked;
  EXPECT_TRUE(first_->AskMember(second, "sleep", milliseconds(20), &answer).IsTimedOut());
  EXPECT_TRUE(Eventually([&] { return two_->asked == asked + 1; }));
  EXPECT_TRUE(first_->AskMember(second + 1000, "a", kAnswerPatience, &answer).IsUnavailable());
  ASSERT_TRUE(IsOk(second_->Close()));
  EXPECT_TRUE(first_->AskMember(second, "a", kAnswerPatience, &answer).IsUnavailable());
  EXPECT_EQ(two_->asked, asked + 1);
}

TEST_F(MemberRequestsTest, NeedAnObserverThatAnswers) {
  std::unique_ptr<ShardedDB> third;
  Open(nullptr, &third);
  std::string answer;
  Status status;
  // The first member hears of the third a moment later.
  EXPECT_TRUE(Eventually([&] {
    status = first_->AskMember(IdOf(third), "a", kAnswerPatience, &answer);
    return !status.IsUnavailable();
  }));
  EXPECT_TRUE(status.IsNotSupported()) << status.ToString();
}

}  // namespace
}  // namespace nacre
