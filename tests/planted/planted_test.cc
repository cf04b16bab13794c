// Goal: the simulation is worth something: it finds each of some subtle bugs, and soon.
// Method: the sources in which they are planted (util/planted_bug.h) are compiled once more for
// this program, and of each bug stories are told (tests/support/sim/sim_story.h), seed by seed, in
// processes that have it, until one fails; without the bug that one passes. `--table [SEEDS]`
// prints how many seeds each of them took, `--find BUG FIRST SEEDS` seeks one in other seeds,
// `--replay BUG SEED` prints the event log of one. For what stories hardly meet there are cases:
// tests of sim_tests that are run with the bug, which has to fail them, and without.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/process/memnode_process.h"
#include "tests/support/sim/sim_run.h"
#include "tests/support/sim/sim_story.h"
#include "util/planted_bug.h"

namespace nacre {

namespace {

/// Within so many seeds each has to be found.
constexpr uint64_t kSeeds = 10'000;

struct Bug {
  const char* name;
  const char* what;    ///< Is wrong.
  uint64_t first = 1;  ///< Seed: some way before the one that finds it, to save time.
  sim::StoryOptions stories{};
};

constexpr sim::StoryOptions kManyFlips{.many_flips = true};
constexpr sim::StoryOptions kManyScans{.many_scans = true};
constexpr sim::StoryOptions kManySplits{.many_splits = true, .one_family = true};
constexpr sim::StoryOptions kOneFamily{.one_family = true};
constexpr sim::StoryOptions kSmallRings{.small_rings = true};
constexpr sim::StoryOptions kManyFollowers{.many_followers = true};
constexpr sim::StoryOptions kManyFamilies{.many_families = true};
constexpr sim::StoryOptions kManyFollowersAndSmallRings{.small_rings = true,
                                                        .many_followers = true};

constexpr Bug kBugs[] = {
    {"log.acknowledged-before-its-copies-have-it", "a write is acknowledged when it is sent"},
    {"log.one-copy-too-few", "log and manifest have one copy less than promised"},
    {"log.torn-record-accepted", "records are read without a look at their checksums", 380},
    {"log.header-of-another-segment-accepted", "what is in a recycled segment passes for its head",
     430},
    {"log.recycled-segment-read-as-new", "records of the segment that was there before are read"},
    {"log.one-copy-read", "recovery asks one copy of the log only", 201},
    {"log.released-before-the-flush", "the log is dropped when a flush begins"},
    {"log.record-cut-at-the-end-of-the-ring",
     "what does not fit before the ring's end is not there"},
    {"log.segment-begun-unannounced", "no header says that records of a failed segment come", 545,
     kManyFollowers},
    {"recovery.sequences-given-again", "sequence numbers of the log are given once more"},
    {"recovery.log-taken-for-free-space", "a new owner writes over the log that it was read from"},
    {"fence.keys-not-revoked", "a replaced owner can go on writing to its slabs"},
    {"fence.lease-ignored", "a new owner is let in while the one before may still be read", 50},
    {"root.first-value-preferred", "of several values of the root, any one is taken", 21},
    {"root.half-is-enough-to-open", "half of the members let a new owner in", 4, kManySplits},
    {"root.one-node-too-few-to-write", "less than half of the members acknowledge a root", 1,
     kManySplits},
    {"manifest.end-of-the-ring-taken-for-the-last-edit", "edits after the ring's end are not read",
     140, kSmallRings},
    {"manifest.edits-sought-in-the-wrong-place", "an image does not say which edits follow it"},
    {"manifest.stale-slots-preferred", "parts of an older image are taken for the latest", 121},
    {"table.parity-not-rewritten-by-repair", "a rebuilt parity fragment has no parity", 1065,
     kOneFamily},
    {"table.damage-copied-by-repair", "repair does not check what it reads", 125, kManyFlips},
    {"table.recorded-before-its-fragments-are-written", "a table is live while it is on its way",
     81},
    {"table.freed-while-a-reader-pins-it", "what a reader looks at is freed under it", 371,
     kManyScans},
    {"snapshot.forgotten-by-a-flush", "a flush drops versions that a snapshot shows"},
    {"batch.seen-in-half", "a reader sees one update more than is published"},
    {"follower.segment-without-a-mark-taken-for-the-last",
     "a follower trusts that an owner marks each segment that ends", 61, kManyFollowers},
    {"follower.ring-that-has-gone-around-taken-for-its-end",
     "a follower takes the end of a later lap of the ring of edits for its place", 125,
     kManyFollowersAndSmallRings},
    {"follower.operands-of-log-and-tables-applied",
     "a follower applies operands to a value that has them"},
    {"recovery.other-families-of-a-batch-left-out",
     "of what the log has, only the default family's is there again"},
    {"table.range-deletion-forgotten-by-a-flush", "range deletions end with their MemTable"},
    {"family.space-kept-when-it-is-dropped", "a dropped family's tables stay", 1, kManyFamilies},
    {"family.that-was-dropped-comes-back", "an image of the manifest has dropped families", 1,
     kManyFamilies},
};

/// What stories hardly meet. A test of sim_tests does just what shows it.
struct CaseOfBug {
  const char* name;
  const char* test;
};

constexpr CaseOfBug kCases[] = {
    {"fence.claim-of-an-old-epoch-granted",
     "TakeoverCaseTest.OfTwoThatHaveReadTheSameRootOneBecomesTheOwner"},
    {"job.keys-kept-when-it-is-ended",
     "JobCaseTest.ACompactionThatIsStoppedBeforeAWriteWritesOverNothing"},
    {"job.keys-kept-when-it-is-ended",
     "JobCaseTest.ARepairThatIsStoppedBeforeAWriteWritesOverNothing"},
    {"job.keys-kept-when-it-is-ended", "JobCaseTest.AStoppedFlushWritesOverNothing"},
    {"write.forgotten-when-it-is-given-up",
     "JobCaseTest.WhatAnOwnersFlushHasGivenUpIsStoredOverNothing"},
    {"write.forgotten-when-it-is-given-up",
     "JobCaseTest.WhatAnOwnersCompactionHasGivenUpIsStoredOverNothing"},
    {"log.late-copy-counted-as-if-it-had-the-write",
     "SlowCaseTest.AReplicaThatLacksASuffixIsNotWhatATakeoverBelieves"},
    {"log.segment-ends-at-what-one-copy-has",
     "SlowCaseTest.AReplicaThatLacksASuffixIsNotWhatATakeoverBelieves"},
    {"log.rest-of-a-segment-not-sent-again",
     "SlowCaseTest.AReplicaThatLacksASuffixIsNotWhatATakeoverBelieves"},
    {"log.write-forgotten-since-its-copy-is-late",
     "SlowCaseTest.AWriteOfTheLogThatIsStillUnderWayIsStoredOverNothing"},
    {"updates.kept-of-a-log-that-is-forgotten",
     "UpdatesCaseTest.EachBatchIsGivenOutOnceWhateverBecomesOfOwners"},
    {"archive.log-not-kept-for-it",
     "UpdatesCaseTest.WhatAReaderHasNotAcknowledgedIsKeptWhateverBecomesOfOwners"},
    {"archive.log-not-kept-by-a-new-owner",
     "UpdatesCaseTest.WhatAReaderHasNotAcknowledgedIsKeptWhateverBecomesOfOwners"},
    {"pace.all-nodes-slow-at-a-time", "SlowCaseTest.AllNodesAreNeverSlowAtATimeAndThePoolGoesOn"},
    {"pace.hedges-without-end", "SlowReadCaseTest.ReadsAreAskedOfOthersNoMoreOftenThanTheyMay"},
    {"pace.relapse-forgotten", "SlowCaseTest.ANodeThatIsSlowByTurnsStaysSlowForLongerAndLonger"},
    {"pace.slow-for-ever", "SlowCaseTest.ListenersHearOnceThatANodeIsSlowAndOnceThatItIsNot"},
    {"read.late-read-lands-where-others-do",
     "SlowReadCaseTest.WhatArrivesLateIsStoredWhereNothingElseIs"},
    {"read.memory-of-a-late-read-given-back",
     "SlowReadCaseTest.WhatArrivesLateIsStoredWhereNothingElseIs"},
    {"batch.checks-are-left-out", "KeyspaceCaseTest.AllMembersReadAndWriteAllShardsWhileTheseMove"},
    {"batch.committed-while-a-snapshot-is-taken",
     "ShardedCaseTest.BatchesOverShardsAreWholeWheneverTheOwnerDies"},
    {"batch.decided-is-dropped", "ShardedCaseTest.BatchesOverShardsAreWholeWheneverTheOwnerDies"},
    {"batch.decided-unprepared", "ShardedCaseTest.BatchesOverShardsAreWholeWheneverTheOwnerDies"},
    {"batch.decision-deleted-too-early",
     "ShardedCaseTest.BatchesOverShardsAreWholeWheneverTheOwnerDies"},
    {"batch.decision-not-recorded",
     "ShardedCaseTest.BatchesOverShardsAreWholeWheneverTheOwnerDies"},
    {"batch.held-keys-are-used", "ShardedCaseTest.BatchesOverShardsAreWholeWheneverTheOwnerDies"},
    {"batch.in-doubt-is-committed", "KeyspaceCaseTest.ShardsOfMembersThatDieGoToOthers"},
    {"batch.left-alone-is-aborted", "KeyspaceCaseTest.ShardsOfMembersThatDieGoToOthers"},
    {"batch.undecided-is-committed",
     "ShardedCaseTest.BatchesOverShardsAreWholeWheneverTheOwnerDies"},
    {"family.named-without-its-id", "KeyspaceCaseTest.MembersMakeAndDropFamilies"},
    {"family.not-there-yet-is-none", "KeyspaceCaseTest.MembersMakeAndDropFamilies"},
    {"locks.lost-ones-are-not-missed",
     "LockedKeyspaceCaseTest.AShardThatHasMovedToAndFroHasNoLocks"},
    {"locks.of-the-dead-are-kept", "LockedKeyspaceCaseTest.LocksOfAMemberThatDiesAreGivenUp"},
    {"reshaping.decisions-are-left", "ShardedCaseTest.ShardsAreSplitAndMergedWheneverTheOwnerDies"},
    {"reshaping.last-writes-are-not-copied",
     "ShardedCaseTest.ShardsAreSplitAndMergedWheneverTheOwnerDies"},
    {"reshaping.prepared-batches-are-left",
     "ShardedCaseTest.ShardsAreSplitAndMergedWheneverTheOwnerDies"},
    {"reshaping.whole-too-early", "ShardedCaseTest.ShardsAreSplitAndMergedWheneverTheOwnerDies"},
    {"members.leads-for-ever", "MemberCaseTest.OneLeadsAndNoChangeOfTheMapIsLost"},
    {"members.map-changed-without-leading", "MemberCaseTest.OneLeadsAndNoChangeOfTheMapIsLost"},
    {"snapshot.not-looked-at-again", "ShardedCaseTest.SnapshotsContradictNothingThatWasSeen"},
    {"snapshot.of-several-moments",
     "ShardedCaseTest.BatchesOverShardsAreWholeWheneverTheOwnerDies"},
    {"snapshot.recent-one-is-for-ever",
     "ShardedCaseTest.BatchesOverShardsAreWholeWheneverTheOwnerDies"},
    {"snapshot.taken-while-operations-begin",
     "ShardedCaseTest.SnapshotsContradictNothingThatWasSeen"},
    {"table.narrow-code-tolerates-less",
     "SlowCaseTest.TablesThatAreWrittenNarrowTolerateAsMuchAsWasPromised"},
};

/// None of the bugs needs a node that is stopped for longer than any timeout.
sim::StoryOptions StoriesOf(const Bug& bug) {
  sim::StoryOptions stories = bug.stories;
  stories.no_long_stops = true;
  return stories;
}

/// Set for a process that runs one of the cases.
constexpr char kPlantedVariable[] = "NACRE_PLANTED_BUG";

/// The bug of this process.
const char* planted = "";

// The linker's: where the names of the bugs that are compiled in begin and end.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern const char* const __start_nacre_bugs[];
[[gnu::weak, gnu::visibility("hidden")]] extern const char* const __stop_nacre_bugs[];
}

}  // namespace

bool IsPlanted(const char* name) {
  const auto has_name = [=](const auto& each) { return std::strcmp(each.name, name) == 0; };
  const bool known = std::any_of(std::begin(kBugs), std::end(kBugs), has_name) ||
                     std::any_of(std::begin(kCases), std::end(kCases), has_name);
  if (!known) {
    std::fprintf(stderr, "nobody knows of a planted bug '%s'\n", name);
    std::abort();
  }
  return std::strcmp(name, planted) == 0;
}

namespace sim {
namespace {

/// Those of the bug, with it or with none ("").
Scenario StoriesWith(const Bug& bug, const char* name) {
  return [&bug, name](Scheduler* scheduler, uint64_t seed) {
    planted = name;
    return sim::TellStoryWith(StoriesOf(bug), scheduler, seed);
  };
}

/// The first seed that fails with this bug; one that passed if there is none.
Outcome Find(const Bug& bug, uint64_t seeds) {
  Outcome found;
  RunSeeds(bug.first, seeds, StoriesWith(bug, bug.name), {}, [&found](const Outcome& outcome) {
    found = outcome;
    return outcome.passed;
  });
  return found;
}

int Replay(const Bug& bug, uint64_t seed) {
  const Outcome outcome = RunSeed(seed, StoriesWith(bug, bug.name), {.log = true});
  std::cout << (outcome.passed ? "passed" : outcome.failure) << "\n";
  return outcome.passed ? 0 : 1;
}

/// What was seen of it, in a line.
std::string FirstLine(const Outcome& outcome) {
  return outcome.failure.substr(0, outcome.failure.find('\n'));
}

class PlantedBug : public testing::TestWithParam<Bug> {};

std::string TestName(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == '.' || c == '-'; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(, PlantedBug, testing::ValuesIn(kBugs),
                         [](const testing::TestParamInfo<Bug>& bug) {
                           return TestName(bug.param.name);
                         });

TEST(PlantedBugs, AreThoseThatAreKnown) {
  const std::set<std::string> there(__start_nacre_bugs, __stop_nacre_bugs);
  std::set<std::string> known;
  for (const Bug& bug : kBugs) known.insert(bug.name);
  for (const CaseOfBug& each : kCases) known.insert(each.name);
  EXPECT_EQ(there, known) << "has cmake been run since the first bug of a source was planted?";
}

class PlantedBugOfCase : public testing::TestWithParam<CaseOfBug> {};

INSTANTIATE_TEST_SUITE_P(, PlantedBugOfCase, testing::ValuesIn(kCases),
                         [](const testing::TestParamInfo<CaseOfBug>& each) {
                           return TestName(each.param.name) + '_' + TestName(each.param.test);
                         });

TEST_P(PlantedBugOfCase, IsFound) {
  constexpr int kSeedsOfCase = 300;  // The first failure ends it.
  constexpr int kSeedsWithout = 2;   // sim_tests tells them all.
  const CaseOfBug& each = GetParam();
  // Without any bug each case is told once.
  const auto* const first =
      std::find_if(std::begin(kCases), std::end(kCases),
                   [&](const auto& other) { return std::string_view(other.test) == each.test; });
  std::vector<std::string> bugs = {each.name};
  if (std::string_view(first->name) == each.name) bugs.emplace_back();
  for (const std::string& bug : bugs) {
    const int seeds = bug.empty() ? kSeedsWithout : kSeedsOfCase;
    const ProcessResult result = RunBinary(
        "planted_tests", {std::string("--gtest_filter=") + each.test}, 500,
        {std::string(kPlantedVariable) + '=' + bug, "NACRE_CASE_SEEDS=" + std::to_string(seeds)});
    EXPECT_EQ(result.exit_code, bug.empty() ? 0 : 1) << each.name << ": " << result.output;
  }
}

TEST_P(PlantedBug, IsFound) {
  const Outcome outcome = Find(GetParam(), kSeeds);
  EXPECT_FALSE(outcome.passed) << "not within " << kSeeds << " seeds";
  std::cout << "found by seed " << outcome.seed << " " << FirstLine(outcome) << "\n";
  const Outcome without = RunSeed(outcome.seed, StoriesWith(GetParam(), ""));
  EXPECT_TRUE(without.passed) << "without the bug: " << FirstLine(without);
}

void PrintRow(const Bug& bug, uint64_t seeds) {
  const Outcome outcome = Find(bug, seeds);
  std::cout << "| `" << bug.name << "` | " << bug.what << " | "
            << (outcome.passed ? "-" : std::to_string(outcome.seed)) << " | " << FirstLine(outcome)
            << " |\n"
            << std::flush;
}

int PrintTable(uint64_t seeds) {
  for (const Bug& bug : kBugs) PrintRow(bug, seeds);
  return 0;
}

int PrintFound(Bug bug, uint64_t first, uint64_t seeds) {
  bug.first = first;
  PrintRow(bug, seeds);
  return 0;
}

}  // namespace
}  // namespace sim
}  // namespace nacre

int main(int argc, char** argv) {
  nacre::sim::FixAddresses(argv);
  if (argc > 1 && std::string_view(argv[1]) == "--table") {
    return nacre::sim::PrintTable(argc > 2 ? std::stoull(argv[2]) : nacre::kSeeds);
  }
  const bool replay = argc == 4 && std::string_view(argv[1]) == "--replay";
  const bool find = argc == 5 && std::string_view(argv[1]) == "--find";
  for (const auto& bug : nacre::kBugs) {
    if (!(replay || find) || std::string_view(argv[2]) != bug.name) continue;
    if (replay) return nacre::sim::Replay(bug, std::stoull(argv[3]));
    return nacre::sim::PrintFound(bug, std::stoull(argv[3]), std::stoull(argv[4]));
  }
  if (const char* const bug = std::getenv(nacre::kPlantedVariable)) nacre::planted = bug;
  testing::FLAGS_gtest_filter = "-*CaseTest.*";  // They are run with bugs, one by one.
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
