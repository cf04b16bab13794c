// Goal: over a real etcd the members of a keyspace know one another, one of them leads and changes
// the map, and they go on by themselves when etcd was gone.
// Method: a process of the installed etcd that is frozen and killed, and several members within
// this process.

#include "sharding/members/membership.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "nacre/utilities/etcd.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

void Await(const char* what, const std::function<bool()>& done) {
  const Deadline deadline = Ample();
  while (!done()) {
    ASSERT_FALSE(deadline.Expired()) << what;
    Clock::System()->SleepFor(milliseconds(5));
  }
}

class MembershipTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
    UseEtcd();
    etcd_ = std::make_unique<EtcdProcess>();
    for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(Join("tcp:host" + std::to_string(i)));
  }

  void Join(const std::string& address) {
    std::shared_ptr<Coordinator> coordinator;
    ASSERT_TRUE(IsOk(OpenCoordinator("etcd:" + etcd_->endpoint(), &coordinator)));
    ASSERT_TRUE(IsOk(Membership::Join(
        coordinator, Clock::System(), {.keyspace = "keys", .address = address},
        [](const std::shared_ptr<const KeyspaceState>&) {}, Ample(), &members_.emplace_back())));
  }
  Membership* Leader() const {
    for (const auto& member : members_) {
      if (member->leads()) return member.get();
    }
    return nullptr;
  }
  /// All see all, and the same leader.
  bool Agree() const {
    return std::ranges::all_of(members_, [&](const auto& member) {
      const std::shared_ptr<const KeyspaceState> state = member->state();
      return member->id() != 0 && state->members.size() == members_.size() &&
             state->Find(member->id()) != nullptr && state->Find(state->leader) != nullptr &&
             state->leader == members_.front()->state()->leader && Leader() != nullptr;
    });
  }
  /// The leader makes it the map, which all see.
  void ChangeMap(const std::string& map) {
    bool done = false;
    Await("a change of the map", [&] {
      Membership* const leader = Leader();
      if (leader == nullptr) return false;
      EXPECT_TRUE(IsOk(leader->ChangeMap(leader->state()->map_changed, map, Ample(), &done)));
      return done;
    });
    Await("the map", [&] {
      return std::ranges::all_of(members_,
                                 [&](const auto& member) { return member->state()->map == map; });
    });
  }

  std::unique_ptr<EtcdProcess> etcd_;
  std::vector<std::unique_ptr<Membership>> members_;
};

TEST_F(MembershipTest, MembersComeAndGoAndOneChangesTheMap) {
  Await("agreement", [&] { return Agree(); });
  EXPECT_EQ(members_[0]->state()->Find(members_[2]->id())->address, "tcp:host2");
  ASSERT_NO_FATAL_FAILURE(ChangeMap("one"));
  Membership* const leader = Leader();
  bool done = true;
  // From a state that was, and by one that does not lead.
  EXPECT_TRUE(IsOk(leader->ChangeMap(/*expected=*/0, "lost", Ample(), &done)));
  EXPECT_FALSE(done);
  for (const auto& member : members_) {
    if (member.get() == leader) continue;
    done = true;
    EXPECT_TRUE(IsOk(member->ChangeMap(member->state()->map_changed, "lost", Ample(), &done)));
    EXPECT_FALSE(done);
  }

  std::erase_if(members_, [&](const auto& member) { return member.get() == leader; });
  Await("another leader", [&] { return Agree(); });
  EXPECT_EQ(members_.front()->state()->map, "one");
  ASSERT_NO_FATAL_FAILURE(ChangeMap("two"));

  // One that is taken for dead comes back as another one.
  const Coordinator::Lease ended = members_[0]->id();
  ASSERT_TRUE(IsOk(members_[1]->EndMember(ended, Ample())));
  Await("its return", [&] { return members_[0]->id() != ended && Agree(); });
}

TEST_F(MembershipTest, TheyGoOnByThemselvesWhenEtcdIsBack) {
  Await("agreement", [&] { return Agree(); });
  ASSERT_NO_FATAL_FAILURE(ChangeMap("one"));
  for (const bool frozen : {true, false}) {
    frozen ? etcd_->Freeze() : etcd_->Kill();
    Await("its loss", [&] {
      return Leader() == nullptr && std::ranges::none_of(members_, [](const auto& member) {
               return member->coordinator_status().ok();
             });
    });
    EXPECT_EQ(members_.front()->state()->map, "one");
    frozen ? etcd_->Continue() : etcd_->Start();
    Await("agreement", [&] { return Agree(); });
    EXPECT_EQ(members_.front()->state()->map, "one");
    ASSERT_NO_FATAL_FAILURE(ChangeMap("two"));
    ASSERT_NO_FATAL_FAILURE(ChangeMap("one"));
  }
}

}  // namespace
}  // namespace nacre
