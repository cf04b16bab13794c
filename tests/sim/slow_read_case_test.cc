// Goal: a read whose node is slow is answered by others, no more often than that may be, and what
// the node still sends is stored where nothing else is; followers show the latest state meanwhile.
// Method: a small simulated cluster, some of whose nodes take long over all that they send and
// receive, while no operation ever fails: what waits for them, waits. For several seeds each.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_slow.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

/// Packets take 0.2 to 1.2 ms, which is usual if it is so on all nodes.
constexpr uint64_t kLeisurely = 200;

// ---- An owner
// --------------------------------------------------------------------------------------

std::string ReadWhileANodeIsSlow(Scheduler* scheduler, Case* c, const std::string& redundancy) {
  constexpr size_t kKeys = 2000;
  Options options = PatientOptions(c, redundancy);
  options.target_file_size_base = 128 << 10;  // Smaller ones are replicated.
  OwnedDatabase owner(scheduler, c, options);
  owner.WriteTables(kKeys);
  owner.Get(0, kKeys);
  const std::vector<size_t> nodes = c->NodesOf(FragmentsOfTables);
  c->Expect(!nodes.empty(), "there are no tables");
  const size_t slow = nodes[scheduler->Uniform(nodes.size())];
  SetSlowness(c, slow, kSlow);
  const std::vector<uint64_t> gets = owner.Get(0, kKeys);
  c->Expect(CountHeldUp(gets) == 0, "reads are held up: " + Describe(gets));
  const uint64_t hedged = owner.Number("reads.hedged");
  c->Expect(hedged <= 3,
            std::to_string(hedged) + " reads were, though the node is known to be slow");
  c->Expect(hedged == 0 || owner.Number("slow-nodes") == 1, "it does not count as slow");
  owner.Check(kKeys);
  // It takes part again.
  SetSlowness(c, slow, 1);
  owner.AwaitPrompt();
  owner.Check(kKeys);
  return std::to_string(hedged);
}

/// As a rule it is a read that finds it out.
void ExpectHedges(const std::vector<std::string>& summaries) {
  EXPECT_TRUE(std::any_of(summaries.begin(), summaries.end(), [](const std::string& hedged) {
    return std::stoul("0" + hedged) > 0;
  })) << "no read was asked of others";
}

TEST(SlowReadCaseTest, AReadThatIsLateIsAnsweredByAnotherReplica) {
  ExpectHedges(Tell(
      [](Scheduler* scheduler, Case* c) { return ReadWhileANodeIsSlow(scheduler, c, "rep(2)"); },
      5));
}

TEST(SlowReadCaseTest, AReadThatIsLateIsDecodedFromOtherFragments) {
  ExpectHedges(Tell(
      [](Scheduler* scheduler, Case* c) { return ReadWhileANodeIsSlow(scheduler, c, "rs(2,2)"); },
      6));
}

TEST(SlowReadCaseTest, ASlowCopyIsReadWhereTheOtherOneIsDamaged) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 100;
        OwnedDatabase owner(scheduler, c, PatientOptions(c, "rep(2)"));
        owner.WriteTables(kKeys);
        const std::vector<size_t> nodes = c->NodesOf(FragmentsOfTables);
        c->Expect(nodes.size() == 2, "there is more than one table");
        const size_t slow = scheduler->Uniform(2);
        SetSlowness(c, nodes[slow], kSlow / 4);
        owner.Get(0, kKeys);
        c->Damage(nodes[1 - slow], 50, FragmentsOfTables);
        owner.Check(kKeys);
        return std::to_string(scheduler->steps());
      },
      4);
}

TEST(SlowReadCaseTest, AReplicaOnProbationIsAskedBeforeALateOneIsWaitedFor) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 200;
        constexpr uint64_t kMostNanos = 100'000'000;
        OwnedDatabase owner(scheduler, c, PatientOptions(c, "rep(3)"));
        owner.WriteTables(kKeys);
        std::vector<size_t> nodes = c->NodesOf(FragmentsOfTables);
        c->Expect(nodes.size() == 3, "there is more than one table");
        std::swap(nodes[0], nodes[scheduler->Uniform(nodes.size())]);
        // What is read once is read from here afterwards.
        size_t next = scheduler->OneIn(2) ? kKeys / 2 : 0;
        owner.Get(0, next);
        SetSlowness(c, nodes[0], kSlow);
        while (next < kKeys - 3 && owner.Number("slow-nodes") == 0) {
          owner.Get(next, next + 1);
          ++next;
        }
        c->Expect(owner.Number("slow-nodes") == 1, "it does not count as slow");
        // It is well again, but was not asked yet. No more than two of six count as slow.
        SetSlowness(c, nodes[0], 1);
        SetSlowness(c, nodes[1], kSlow);
        SetSlowness(c, nodes[2], kSlow);
        const std::vector<uint64_t> gets = owner.Get(next, next + 3);
        c->Expect(*std::max_element(gets.begin(), gets.end()) < kMostNanos, Describe(gets));
        return Describe(gets);
      },
      {.nodes = 6}, 6);
}

TEST(SlowReadCaseTest, AReadGoesBackToAReplicaThatIsWellAgain) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 200;
        constexpr uint64_t kSilent = 2'000'000;  // Packets take seconds.
        constexpr uint64_t kMostNanos = 2'000'000'000;
        OwnedDatabase owner(scheduler, c, PatientOptions(c, "rep(3)"));
        owner.WriteTables(kKeys);
        owner.Get(0, kKeys / 2);
        const std::vector<size_t> nodes = c->NodesOf(FragmentsOfTables);
        c->Expect(nodes.size() == 3, "there is more than one table");
        for (const size_t node : nodes) SetSlowness(c, node, kSilent);
        uint64_t took = 0;
        c->cluster().Run(owner.process(), "get", [&] {
          const uint64_t start = scheduler->TrueNanos();
          owner.ExpectValue(kKeys - 1);
          took = scheduler->TrueNanos() - start;
        });
        // All have been late by then, and one of them is waited for.
        Clock::System()->SleepFor(milliseconds(300));
        SetSlowness(c, nodes[scheduler->Uniform(nodes.size())], 1);
        c->Await("the read", [&] { return took > 0; });
        for (const size_t node : nodes) SetSlowness(c, node, 1);
        c->Expect(took < kMostNanos, std::to_string(took / 1000) + " microseconds");
        return std::to_string(took);
      },
      {.nodes = 6}, 8);
}

/// Reads by all ways, of which some are late, while others are under way: without checksums, so
/// that bytes that do not belong there show.
void ReadEverything(Scheduler* scheduler, Case* c, OwnedDatabase* owner, size_t keys) {
  constexpr int kRounds = 120;
  constexpr size_t kAtOnce = 40;
  ReadOptions unchecked;
  unchecked.verify_checksums = false;
  const auto multi_get = [&] {
    for (int round = 0; round < kRounds; ++round) {
      std::vector<size_t> numbers;
      std::vector<std::string> names;
      for (size_t i = 0; i < kAtOnce; ++i) {
        numbers.push_back(scheduler->Uniform(keys));
        names.push_back(SlowKey(numbers.back()));
      }
      const std::vector<Slice> slices(names.begin(), names.end());
      std::vector<std::string> values;
      const std::vector<Status> statuses = owner->db()->MultiGet(unchecked, slices, &values);
      for (size_t i = 0; i < kAtOnce; ++i) {
        c->Expect(statuses[i].ok(), names[i] + ": " + statuses[i].ToString());
        c->Expect(values[i] == SlowValue(numbers[i]), "MultiGet: another value of " + names[i]);
      }
    }
  };
  const auto iterate = [&] {
    for (int round = 0; round < kRounds / 12; ++round) {
      const std::unique_ptr<Iterator> iterator(owner->db()->NewIterator(unchecked));
      size_t i = scheduler->Uniform(keys);
      for (iterator->Seek(SlowKey(i)); iterator->Valid() && i < keys; iterator->Next(), ++i) {
        c->Expect(iterator->key() == Slice(SlowKey(i)), "an iterator shows another key");
        c->Expect(iterator->value() == Slice(SlowValue(i)), "an iterator: another value");
        // What it has read stays in use meanwhile.
        if (scheduler->OneIn(8)) Clock::System()->SleepFor(milliseconds(1));
      }
      c->Expect(iterator->status());
    }
  };
  int ended = 0;
  c->cluster().Run(owner->process(), "multi-get", [&] {
    multi_get();
    ++ended;
  });
  constexpr int kIterating = 8;
  for (int i = 0; i < kIterating; ++i) {
    c->cluster().Run(owner->process(), "iterate", [&] {
      iterate();
      ++ended;
    });
  }
  c->Await("the readers", [&] { return ended == 1 + kIterating; });
}

TEST(SlowReadCaseTest, WhatArrivesLateIsStoredWhereNothingElseIs) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 2000;
        const std::string redundancy = scheduler->OneIn(2) ? "rep(2)" : "rs(2,2)";
        Options options = PatientOptions(c, redundancy);
        options.target_file_size_base = 128 << 10;
        OwnedDatabase owner(scheduler, c, options);
        owner.WriteTables(kKeys);
        // Reads of several nodes take different times, and some arrive when others are under way
        // that began much later.
        SetAllSlowness(c, kLeisurely);
        ReadEverything(scheduler, c, &owner, kKeys);
        // These are 5 ms at least, as all takes 200 times as long.
        SetAllTails(c, 64, microseconds(25));
        ReadEverything(scheduler, c, &owner, kKeys);
        owner.In([&] { c->Expect(owner.Number("reads.hedged") > 0, "none was late"); });
        SetAllTails(c, 0, {});
        SetAllSlowness(c, 1);
        owner.AwaitPrompt();
        owner.Check(kKeys);
        return std::to_string(scheduler->steps());
      },
      {.nodes = 6}, 24);  // One in four finds memory that was given back too early.
}

TEST(SlowReadCaseTest, ReadsAreAskedOfOthersNoMoreOftenThanTheyMay) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 100;
        constexpr uint64_t kFree = 64;
        Options options = PatientOptions(c, "rep(2)");
        options.hedged_reads_percent = 2;
        OwnedDatabase owner(scheduler, c, options);
        owner.WriteTables(kKeys);
        owner.Get(0, kKeys);
        // As a rule all is fast, and nothing else tells which answers will be late.
        SetAllTails(c, 3, milliseconds(25));
        owner.Get(0, kKeys);
        const uint64_t hedged = owner.Number("reads.hedged");
        // The read that follows one that is late may be late, too.
        const uint64_t most = kFree + 2 * 2 * (kKeys + kFree) / 100;
        c->Expect(hedged > 10, std::to_string(hedged) + " reads only were asked of others");
        c->Expect(hedged <= most, std::to_string(hedged) + " reads were asked of others");
        SetAllTails(c, 0, {});
        owner.AwaitPrompt();
        owner.Check(kKeys);
        return std::to_string(hedged);
      },
      4);
}

// ---- Slow operations ----------------------------------------------------------------------------

TEST(SlowReadCaseTest, ASlowOperationIsDescribedWithTheNodeThatItWaitedFor) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 300;
        Options options = PatientOptions(c, "rep(2)");
        options.slow_operation_threshold = milliseconds(20);
        options.slow_node_patience_max = milliseconds(0);  // No other node is asked instead.
        OwnedDatabase owner(scheduler, c, options);
        owner.WriteTables(kKeys);
        const std::vector<size_t> nodes = c->NodesOf(FragmentsOfTables);
        c->Expect(!nodes.empty(), "there are no tables");
        const size_t slow = nodes[scheduler->Uniform(nodes.size())];
        const uint64_t before = owner.Number("slow-operations");
        SetSlowness(c, slow, kSlow);
        owner.Get(0, kKeys);
        owner.Put(kKeys, kKeys + 20);
        SetSlowness(c, slow, 1);
        c->Expect(owner.Number("slow-operations") > before, "no operation was slow");
        std::map<std::string, std::string> lines;
        c->Expect(owner.db()->GetMapProperty("nacre.slow-operations", &lines), "no lines");
        const std::string name = "sim:n" + std::to_string(slow);
        size_t gets = 0;
        size_t named = 0;
        for (const auto& [at, line] : lines) {
          const bool names = line.find("waited for") != std::string::npos;
          if (line.find(" s ago: Get of \"") == std::string::npos) continue;
          ++gets;
          named += line.find(name) != std::string::npos ? 1 : 0;
          c->Expect(names && line.find("for reads of nodes") != std::string::npos, line);
        }
        // Other nodes may be late by chance, too.
        c->Expect(gets > 0 && 2 * named > gets,
                  std::to_string(named) + " of " + std::to_string(gets) + " name " + name);
        return std::to_string(gets);
      },
      6);
}

// ---- Followers ----------------------------------------------------------------------------------

TEST(SlowReadCaseTest, AFollowersLatestReadIsRightWhileReplicasOfTheLogLag) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const Options options = PatientOptions(c, "rep(3)");
        OwnedDatabase owner(scheduler, c, options);
        owner.Put(0, 50);
        const ProcessId process = c->NewProcess("follower");
        std::unique_ptr<DB> following;
        c->In(process, [&] { c->Expect(DB::OpenAsSecondary(options, "db", &following)); });
        size_t acknowledged = 0;
        bool ended = false;
        bool rests = false;
        c->cluster().Run(owner.process(), "write", [&] {
          for (size_t i = 1; !rests; ++i) {
            c->Expect(owner.db()->Put({}, "counter", SlowKey(i)));
            acknowledged = i;
            Clock::System()->SleepFor(microseconds(scheduler->Uniform(6000)));
          }
          ended = true;
        });
        ReadOptions latest;
        latest.linearizable = true;
        const auto look = [&] {
          const size_t before = acknowledged;
          std::string value;
          const Status status = following->Get(latest, "counter", &value);
          if (before == 0 && status.IsNotFound()) return;
          c->Expect(status);
          c->Expect(SlowKey(before) <= value, "it shows " + value + " after " + SlowKey(before));
        };
        for (int turn = 0; turn < 20; ++turn) {
          // One takes long over all, or the packets of all are late at times.
          const size_t slow = scheduler->Uniform(c->cluster().size());
          if (scheduler->OneIn(3)) {
            SetAllTails(c, 32, milliseconds(5));
          } else {
            SetSlowness(c, slow, scheduler->OneIn(2) ? kSlow : 2000);
          }
          c->In(process, [&] {
            for (int i = 0; i < 20; ++i) {
              look();
              Clock::System()->SleepFor(microseconds(scheduler->Uniform(5000)));
            }
          });
          SetSlowness(c, slow, 1);
          SetAllTails(c, 0, {});
          c->In(process, look);
        }
        rests = true;
        c->Await("the writer", [&] { return ended; });
        c->In(process, [&] { following.reset(); });
        return std::to_string(acknowledged);
      },
      6);
}

}  // namespace
}  // namespace nacre::sim
