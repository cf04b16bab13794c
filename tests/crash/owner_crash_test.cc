// Goal: whatever step of its life the owner of a database dies at, and then whatever step of its
// recovery the next one dies at, what was acknowledged is there for the one after: batches whole,
// at most the last write without an acknowledgement, no damage, no leaks; and it can go on.
// Method: an owner process that kills itself at a point (util/named_point.h), for each point and
// each time that a whole run reaches it; a take-over by the test, which compares with a model,
// writes on, has fsck look at the closed database, and destroys it. Nodes are in the test's
// process; in some runs one of them dies with the owner. One crash alone is replayed by
// NACRE_CRASH_AT=POINT:HIT.

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/fsck.h"
#include "nacre/checkpoint.h"
#include "pool/reports.h"
#include "pool/wire/database_report.h"
#include "tests/support/process/crash_points.h"
#include "tests/support/process/crash_workload.h"
#include "tests/support/process/served_nodes.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/named_point.h"

CRASH_PROCESS_CHILD()

namespace nacre {
namespace {

constexpr size_t kNodes = 4;
constexpr size_t kOwnerShards = 2;
constexpr uint64_t kMadeBefore = 30;  ///< Writes, before an owner drains or takes over.

struct OwnerCase {
  CrashPlan::Course course;
  const char* redundancy;
  bool lose_node;  ///< Also one of the nodes.
  size_t shard;
};

class OwnerCrash : public testing::Test {
 protected:
  OwnerCrash() : nodes_(kNodes, 64 << 20, 1 << 20) {
    std::vector<std::string> addresses;
    for (size_t i = 0; i < kNodes; ++i) {
      addresses.push_back(nodes_.address(i));
      if (i + 2 == kNodes) without_last_ = PoolUriOf(addresses);
    }
    with_all_ = PoolUriOf(addresses);
    Connect();
  }

  /// What the owners to come do.
  void Use(CrashPlan::Course course, const std::string& redundancy) {
    options_ = CrashOptions("", redundancy);
    options_.pool = pool_;
    plan_ = CrashPlan();
    plan_.course = course;
    plan_.redundancy = redundancy;
    plan_.seed = seed_;
    plan_.pool_uri = course == CrashPlan::Course::kDrain ? without_last_ : with_all_;
    plan_.dir = folder_.File("checkpoints");
    if (course != CrashPlan::Course::kLife) {
      plan_.first = kMadeBefore + 1;
      plan_.writes = 12;
    }
  }

  /// What is there before the owner of the plan comes.
  void Prepare() {
    if (plan_.course == CrashPlan::Course::kTakeOver) {
      CrashPlan before = plan_;
      before.course = CrashPlan::Course::kLife;
      before.first = 1;
      before.writes = kMadeBefore;
      before.die_at_end = true;
      before.pool_uri = without_last_;  // The next owner has a node that knows nothing yet.
      points_.Aim({});
      std::string output;
      ASSERT_EQ(RunInCrashProcess("crash_tests", before, points_, &output), -1) << output;
      ASSERT_EQ(points_.acknowledged(), kMadeBefore) << output;
    }
    if (plan_.course == CrashPlan::Course::kDrain ||
        plan_.course == CrashPlan::Course::kCheckpoint) {
      Options options = options_;
      if (plan_.course == CrashPlan::Course::kDrain) options.pool = ConnectTestPool(without_last_);
      std::unique_ptr<DB> db;
      ASSERT_TRUE(IsOk(DB::Open(options, kCrashDatabase, &db)));
      for (uint64_t number = 1; number <= kMadeBefore; ++number) {
        ASSERT_TRUE(IsOk(WriteOne(db.get(), plan_.seed, number)));
      }
      ASSERT_TRUE(IsOk(db->Close()));
    }
    if (plan_.course == CrashPlan::Course::kDrain) {
      plan_.added = nodes_.address(kNodes - 1);
      plan_.directions_version = ++directions_version_;
    }
  }

  void Direct(pool::Directions directions) {
    directions.version = ++directions_version_;
    for (NodeId node = 0; node < kNodes; ++node) {
      pool::Directions now;
      ASSERT_TRUE(IsOk(pool::SetDirections(pool_->client(), node, directions, &now)));
    }
  }

  /// One owner, from what is there before it to what it leaves behind.
  void RunOne(const CrashAt& at) {
    ASSERT_NO_FATAL_FAILURE(Prepare());
    points_.Aim(at);
    std::string output;
    RunInCrashProcess("crash_tests", plan_, points_, &output);
    ASSERT_EQ(points_.failure(), "") << output;
    const size_t victim = (at.point.size() + at.hit) % kNodes;
    if (lose_node_) nodes_.Kill(victim);
    ASSERT_NO_FATAL_FAILURE(Check());
    if (lose_node_) {
      nodes_.StartAnew(victim);
      Connect();
    }
    ASSERT_NO_FATAL_FAILURE(Remove());
  }

  void Connect() {
    pool_ = ConnectTestPool(with_all_);
    options_.pool = pool_;
  }

  /// Takes over, and leaves the database closed.
  void Check() {
    if (lose_node_) Connect();
    std::unique_ptr<DB> db = OpenAfterCrash(options_);
    ASSERT_NE(db, nullptr);
    const uint64_t acknowledged = points_.acknowledged();
    CrashModel found = Contents(db.get());
    const bool before = found == ModelOf(plan_.seed, acknowledged);
    const bool after = !before && found == ModelOf(plan_.seed, acknowledged + 1);
    const bool gone = points_.destroying() && found.empty();
    ASSERT_TRUE(before || after || gone)
        << acknowledged << " writes were acknowledged; found " << found.size() << " keys";

    for (int i = 0; i < 5; ++i) {
      const std::string key = "next" + std::to_string(i);
      found[key] = TestValue(static_cast<uint64_t>(i), 3000);
      ASSERT_TRUE(IsOk(db->Put({}, key, found[key])));
    }
    ASSERT_TRUE(IsOk(db->Flush({})));
    ASSERT_TRUE(Contents(db.get()) == found);
    if (plan_.course == CrashPlan::Course::kCheckpoint) {
      ASSERT_NO_FATAL_FAILURE(CheckCheckpoints(db.get()));
    }
    ASSERT_TRUE(IsOk(db->Close()));
  }

  /// What is in the folder is whole, and so is what is restored of it. What the owner has left of a
  /// checkpoint, and of a restore, hinders no later one.
  void CheckCheckpoints(DB* db) {
    std::vector<CheckpointInfo> infos;
    ASSERT_TRUE(IsOk(GetCheckpoints(plan_.dir, &infos)));
    for (const CheckpointInfo& info : infos) {
      ASSERT_TRUE(IsOk(VerifyCheckpoint(plan_.dir, info.number, {})));
    }
    if (!infos.empty()) {
      Status status;
      ASSERT_TRUE(Eventually([&] {
        status = RestoreDB(options_, kCrashCopy, plan_.dir, {.checkpoint = infos.back().number});
        return !status.IsBusy();
      }));
      const bool ended = status.IsInvalidArgument();
      ASSERT_TRUE(ended || IsOk(status)) << status.ToString();
      std::unique_ptr<DB> copy;
      ASSERT_TRUE(IsOk(DB::Open(options_, kCrashCopy, &copy)));
      // The first is made after half of the writes.
      const uint64_t writes = infos.back().number == 1 ? plan_.writes / 2 : plan_.writes;
      ASSERT_TRUE(Contents(copy.get()) == ModelOf(plan_.seed, kMadeBefore + writes));
      ASSERT_TRUE(IsOk(copy->Close()));
    }
    std::unique_ptr<Checkpoint> checkpoint;
    ASSERT_TRUE(IsOk(Checkpoint::Create(db, &checkpoint)));
    CheckpointInfo info;
    ASSERT_TRUE(IsOk(checkpoint->CreateCheckpoint(plan_.dir, {}, &info)));
    ASSERT_TRUE(IsOk(VerifyCheckpoint(plan_.dir, info.number, {})));
    std::filesystem::remove_all(plan_.dir);
    ASSERT_TRUE(IsOk(DestroyDB(kCrashCopy, options_)));
  }

  /// All is as it should be, and then nothing is left.
  void Remove() {
    const ctl::FsckReport report = ctl::Fsck(pool_->client(), {.full = true});
    for (const ctl::Finding& finding : report.findings) {
      // Repair takes its time; node_crash_test.cc tests it.
      const bool lost = lose_node_ && finding.problem == ctl::Problem::kDegraded;
      EXPECT_TRUE(lost) << ToString(finding);
    }
    for (const Status& failure : report.failures) ADD_FAILURE() << failure.ToString();
    ASSERT_EQ(report.databases.size(), 1u);
    Direct({});
    ASSERT_TRUE(IsOk(DestroyDB(kCrashDatabase, options_)));
    ASSERT_EQ(nodes_.leased_slabs(), 0u);
  }

  const uint64_t seed_ = TestSeed(808);
  bool lose_node_ = false;
  ServedNodes nodes_;
  CrashPoints points_;
  const TempFolder folder_;
  std::string without_last_;
  std::string with_all_;
  std::shared_ptr<pool::PoolImpl> pool_;
  Options options_;
  CrashPlan plan_;
  uint64_t directions_version_ = 0;
};

/// The simulation has them.
bool IsOfKeyspace(const NamedPoint& point) {
  return std::string_view(point.file).find("/sharding/") != std::string_view::npos ||
         std::string_view(point.name).starts_with("copy.");
}

TEST_F(OwnerCrash, ReachesEveryPoint) {
  std::map<std::string, uint64_t> hits;
  using Course = CrashPlan::Course;
  for (const Course course :
       {Course::kLife, Course::kDrain, Course::kTakeOver, Course::kCheckpoint}) {
    Use(course, "rep(2)");
    ASSERT_NO_FATAL_FAILURE(RunOne({}));
    for (const auto& [point, count] : points_.Hits()) hits[point] += count;
  }
  for (const NamedPoint* point : AllPoints()) {
    if (IsOfNode(*point)) continue;  // See node_crash_test.cc.
    if (IsOfKeyspace(*point)) continue;
    // Waits that end in vain change nothing; tests/sim/write_case_test.cc has them.
    if (std::string_view(point->name).ends_with(".given-up")) continue;
    // Nodes rebuild, and change nothing there; tests/db/redundancy/db_repair_test.cc has them.
    if (std::string_view(point->name).starts_with("rebuild.")) continue;
    EXPECT_GT(hits[point->name], 0u)
        << point->name << " (" << point->file << ":" << point->line << ") is not reached";
  }
}

TEST_F(OwnerCrash, WhatIsHalfMadeOrHalfDestroyedIsNoDatabaseAndIsSeen) {
  Use(CrashPlan::Course::kLife, "rep(2)");
  options_.create_if_missing = false;
  for (const CrashAt& at : {CrashAt{"root.members-joined", 1}, CrashAt{"destroy.next-node", 3}}) {
    SCOPED_TRACE(ToString(at));
    points_.Aim(at);
    std::string output;
    ASSERT_EQ(RunInCrashProcess("crash_tests", plan_, points_, &output), -1) << output;
    std::unique_ptr<DB> db;
    Status status;
    ASSERT_TRUE(Eventually([&] {
      status = DB::Open(options_, kCrashDatabase, &db);
      return !status.IsBusy();
    }));
    EXPECT_TRUE(IsFailure(status, Status::Code::kInvalidArgument, "does not exist"));
    ctl::FsckReport report = ctl::Fsck(pool_->client(), {});
    EXPECT_EQ(report.exit_status(), 1);
    for (const ctl::Finding& finding : report.findings) {
      EXPECT_EQ(finding.problem, ctl::Problem::kLeak) << ToString(finding);
    }
    EXPECT_GT(nodes_.leased_slabs(), 0u);
    ASSERT_TRUE(IsOk(DestroyDB(kCrashDatabase, options_)));
    EXPECT_EQ(nodes_.leased_slabs(), 0u);
    report = ctl::Fsck(pool_->client(), {});
    EXPECT_EQ(report.exit_status(), 0);
  }
}

TEST(CrashPointsTest, HaveDifferentNames) {
  std::set<std::string> names;
  for (const NamedPoint* point : AllPoints()) {
    if (IsOfKeyspace(*point)) continue;  // Several places have the same one.
    EXPECT_TRUE(names.insert(point->name).second) << point->name;
  }
  EXPECT_GT(names.size(), 50u);
}

class OwnerCrashTest : public OwnerCrash, public testing::WithParamInterface<OwnerCase> {};

TEST_P(OwnerCrashTest, AtEachPoint) {
  Use(GetParam().course, GetParam().redundancy);
  lose_node_ = GetParam().lose_node;
  const bool of_copies = GetParam().course == CrashPlan::Course::kCheckpoint;
  // All of them with a code, which has more steps; half of them with copies, unless there is time.
  const bool all = GetParam().redundancy != std::string("rep(2)") || of_copies || Scaled(2) > 2;
  RunWithEachCrash(
      points_, GetParam().shard, all ? kOwnerShards : 2 * kOwnerShards,
      [this](const CrashAt& at) { RunOne(at); },
      [of_copies](const std::string& point) {
        // The other points are met by the other courses.
        return !of_copies || point.starts_with("checkpoint.") || point.starts_with("restore.");
      });
}

std::vector<OwnerCase> AllOwnerCases() {
  std::vector<OwnerCase> cases;
  using Course = CrashPlan::Course;
  for (size_t shard = 0; shard < kOwnerShards; ++shard) {
    for (const Course course : {Course::kLife, Course::kDrain, Course::kTakeOver}) {
      cases.push_back({course, "rep(2)", false, shard});
      cases.push_back({course, "rs(2,1)", false, shard});
      cases.push_back({course, "rep(2)", true, shard});
    }
    cases.push_back({Course::kCheckpoint, "rep(2)", shard == 1, shard});
  }
  return cases;
}

std::string NameOfOwnerCase(const testing::TestParamInfo<OwnerCase>& tested) {
  const OwnerCase& c = tested.param;
  std::string name = c.course == CrashPlan::Course::kLife       ? "Life"
                     : c.course == CrashPlan::Course::kDrain    ? "Drain"
                     : c.course == CrashPlan::Course::kTakeOver ? "TakeOver"
                                                                : "Checkpoint";
  name += c.redundancy == std::string("rep(2)") ? "Rep2" : "Rs21";
  if (c.lose_node) name += "AndANode";
  return name + "Part" + std::to_string(c.shard);
}

INSTANTIATE_TEST_SUITE_P(Owners, OwnerCrashTest, testing::ValuesIn(AllOwnerCases()),
                         NameOfOwnerCase);

}  // namespace
}  // namespace nacre
