// Goal: memory nodes that are slow keep no writer waiting for long, and cost nothing that was
// acknowledged; they serve again when they are as fast as others; and in a pool in which all are
// slow all goes on.
// Method: a small simulated cluster, some of whose nodes take long over all that they send and
// receive, while no operation ever fails: what waits for them, waits. For several seeds each.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ctl/database_view.h"
#include "nacre/db.h"
#include "nacre/listener.h"
#include "nacre/pool.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_slow.h"
#include "tests/support/test_db.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr uint64_t kMillisecond = 1'000'000;
constexpr uint64_t kSecond = 1000 * kMillisecond;

// ---- The log ------------------------------------------------------------------------------------

TEST(SlowCaseTest, NoPutWaitsForAReplicaOfTheLogThatIsSlowForGood) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const Options options = PatientOptions(c, "rep(3)");
        OwnedDatabase owner(scheduler, c, options);
        owner.Put(0, 200);
        std::vector<size_t> log = c->LogNodes();
        c->Expect(log.size() == 3, "the log has not three replicas");
        std::swap(log[0], log[scheduler->Uniform(3)]);
        SetSlowness(c, log[0], kSlow);
        // A few find it out: one for the log, and others where the manifest is there, too.
        const std::vector<uint64_t> first = owner.Put(200, 210);
        c->Expect(CountHeldUp(first) <= 2, "it is not left: " + Describe(first));
        const std::vector<uint64_t> then = owner.Put(210, 1000, microseconds(500));
        c->Expect(CountHeldUp(then) == 0, "writes are held up: " + Describe(then));
        // What was acknowledged before is in its replica only now, and it is slow for the next
        // owner as well.
        owner.Kill();
        c->cluster().KillNode(log[1], /*told=*/true);
        c->cluster().KillNode(log[2], /*told=*/scheduler->OneIn(2));
        OwnedDatabase next(scheduler, c, options, "next");
        next.Check(1000);
        return Describe(first);
      },
      6);
}

/// One replica of the log lacks what was written last when its owner dies; and the next owner finds
/// it, and others or not.
void LoseOthersThan(Scheduler* scheduler, Case* c, const std::string& redundancy) {
  const Options options = PatientOptions(c, redundancy);
  OwnedDatabase owner(scheduler, c, options);
  const size_t before = 20 + scheduler->Uniform(100);
  owner.Put(0, before);
  std::vector<size_t> log = c->LogNodes();
  std::swap(log[0], log[scheduler->Uniform(log.size())]);
  // What is on its way there arrives after seconds.
  constexpr uint64_t kStopped = 1'000'000;
  SetSlowness(c, log[0], kStopped);
  const size_t written = before + 1 + scheduler->Uniform(60);
  owner.Put(before, written);
  owner.Kill();
  SetSlowness(c, log[0], 1);
  // Others are lost, as many as may be, or the one that lacks something is.
  const bool keeps = !scheduler->OneIn(4);
  if (keeps) {
    for (size_t i = 1; i < log.size(); ++i) c->cluster().KillNode(log[i], /*told=*/true);
  } else {
    c->cluster().KillNode(log[0], /*told=*/true);
  }
  OwnedDatabase next(scheduler, c, options, "next");
  next.Check(written);
  // And once more, from what the takeover has left.
  next.Kill();
  OwnedDatabase last(scheduler, c, options, "last");
  last.Check(written);
}

TEST(SlowCaseTest, AReplicaThatLacksASuffixIsNotWhatATakeoverBelieves) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const bool of_two = scheduler->OneIn(2);
        LoseOthersThan(scheduler, c, of_two ? "rep(2)" : "rep(3)");
        return std::to_string(scheduler->steps());
      },
      6);
}

// ---- Two at once --------------------------------------------------------------------------------

/// Puts and Gets of keys below `keys` until then: how many nanoseconds each took.
std::vector<uint64_t> TimeUntil(Scheduler* scheduler, OwnedDatabase* owner, size_t keys,
                                uint64_t nanos) {
  std::vector<uint64_t> times;
  owner->In([&] {
    while (scheduler->TrueNanos() < nanos) {
      const size_t key = scheduler->Uniform(keys);
      const uint64_t start = scheduler->TrueNanos();
      if (scheduler->OneIn(2)) {
        owner->db()->Put({}, SlowKey(key), SlowValue(key)).IgnoreError();
      } else {
        owner->ExpectValue(key);
      }
      times.push_back(scheduler->TrueNanos() - start);
      Clock::System()->SleepFor(milliseconds(1));
    }
  });
  return times;
}

TEST(SlowCaseTest, PairsOfNodesThatPauseInTurnHoldNobodyUpForLong) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 400;
        // Waits follow one another: for the log, its next segment, the manifest and its root; and a
        // read asks all nodes again, with more patience each time.
        constexpr uint64_t kMost = 600 * kMillisecond;
        Options options = PatientOptions(c, "rs(4,2)");
        options.slow_operation_threshold = std::chrono::milliseconds(100);
        OwnedDatabase owner(scheduler, c, options);
        owner.WriteTables(kKeys);
        owner.Get(0, kKeys);
        std::vector<uint64_t> longest;
        for (size_t pair = 0; pair < 6; ++pair) {
          for (const size_t i : {0, 1}) {
            c->cluster().StopNode((2 * pair + i) % c->cluster().size(), 2 * kSecond);
          }
          const std::vector<uint64_t> times =
              TimeUntil(scheduler, &owner, kKeys, scheduler->TrueNanos() + 5 * kSecond / 2);
          longest.push_back(*std::max_element(times.begin(), times.end()));
        }
        c->Expect(*std::max_element(longest.begin(), longest.end()) < kMost, Describe(longest));
        owner.AwaitPrompt();
        owner.Check(kKeys);
        return Describe(longest);
      },
      {.nodes = 6, .region_bytes = 64 << 20}, 4);
}

TEST(SlowCaseTest, AnIdleLogTakesNoMoreSpaceWhileNodesAreSlowByTurns) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kTurns = 36;
        // The open segment, the next one, and those that were made for nodes which became slow.
        constexpr size_t kMost = 6;
        const ProcessId owner = c->NewProcess("owner");
        std::unique_ptr<DB> idle;
        std::unique_ptr<DB> busy;
        c->In(owner, [&] {
          Options options = PatientOptions(c, "rs(4,2)");
          c->Expect(Pool::Open(options.pool_uri, &options.pool));
          options.pool_uri.clear();
          c->Expect(DB::Open(options, "db", &idle));
          c->Expect(DB::Open(options, "busy", &busy));
          c->Expect(idle->Put({}, "key", "value"));
        });
        const auto write_for = [&](std::chrono::milliseconds time) {
          c->In(owner, [&] {
            const uint64_t end = scheduler->TrueNanos() + time.count() * kMillisecond;
            while (scheduler->TrueNanos() < end) {
              c->Expect(busy->Put({}, "key", "value"));
              Clock::System()->SleepFor(milliseconds(5));
            }
          });
        };
        size_t most = 0;
        uint64_t times_slow = 0;
        for (size_t turn = 0; turn < kTurns; ++turn) {
          const size_t node = turn % c->cluster().size();
          SetSlowness(c, node, kSlow);
          write_for(milliseconds(300));
          uint64_t slow = 0;
          c->Expect(idle->GetIntProperty("nacre.slow-nodes", &slow), "no slow-nodes");
          times_slow += slow;
          SetSlowness(c, node, 1);
          write_for(std::chrono::seconds(3));
          c->NodesOf([&](const ctl::DatabaseView& view) {
            most = std::max(most, view.state.segments.size());
            return std::vector<ExtentAddr>();
          });
        }
        c->Expect(times_slow >= kTurns / 4, "nodes were hardly ever slow");
        c->Expect(most <= kMost, "the log had " + std::to_string(most) + " segments");
        return std::to_string(most);
      },
      {.nodes = 6, .region_bytes = 64 << 20}, 4);
}

// ---- All nodes at once --------------------------------------------------------------------------

TEST(SlowCaseTest, AllNodesAreNeverSlowAtATimeAndThePoolGoesOn) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 400;
        OwnedDatabase owner(scheduler, c, PatientOptions(c, "rep(2)"));
        owner.WriteTables(kKeys);
        owner.Get(0, kKeys);
        SetAllSlowness(c, kSlow / 4);  // The latest packets take a second.
        bool rests = false;
        c->cluster().Run(owner.process(), "look", [&] {
          while (!rests) {
            const uint64_t slow = owner.Number("slow-nodes");
            c->Expect(2 * slow < c->cluster().size(), std::to_string(slow) + " nodes are slow");
            Clock::System()->SleepFor(milliseconds(10));
          }
        });
        for (size_t i = 0; i < 10; ++i) {
          owner.Put(kKeys + i, kKeys + i + 1);
          owner.Get(i * 10, i * 10 + 5);
        }
        owner.Flush();
        rests = true;
        SetAllSlowness(c, 1);
        owner.AwaitPrompt();
        const std::vector<uint64_t> puts = owner.Put(kKeys + 10, kKeys + 500);
        c->Expect(CountHeldUp(puts) == 0, "writes are held up: " + Describe(puts));
        owner.Check(kKeys + 500);
        return std::to_string(scheduler->steps());
      },
      5);
}

// ---- Back again ---------------------------------------------------------------------------------

/// Counts what it hears, and checks that each node is slow and prompt by turns.
class PaceListener : public EventListener {
 public:
  explicit PaceListener(Case* c) : case_(c) {}
  void OnNodeSlow(DB* /*db*/, const NodeInfo& info) override {
    case_->Expect(!std::exchange(is_slow_[info.address], true), info.address + " is slow twice");
    ++slow_;
  }
  void OnNodePrompt(DB* /*db*/, const NodeInfo& info) override {
    case_->Expect(std::exchange(is_slow_[info.address], false), info.address + " was not slow");
    ++prompt_;
  }
  void OnNodeLost(DB* /*db*/, const NodeInfo& /*info*/) override { ++lost_; }
  bool IsSlow(const std::string& address) { return is_slow_[address]; }
  int slow() const { return slow_; }
  int prompt() const { return prompt_; }
  int lost() const { return lost_; }

 private:
  Case* const case_;
  std::map<std::string, bool> is_slow_;
  int slow_ = 0;
  int prompt_ = 0;
  int lost_ = 0;
};

/// Until then writes other keys, and reads these from their tables, so that nodes are met.
void UseUntil(Scheduler* scheduler, Case* c, OwnedDatabase* owner, size_t keys, uint64_t nanos) {
  owner->In([&] {
    while (scheduler->TrueNanos() < nanos) {
      c->Expect(owner->db()->Put({}, "other", "value"));
      owner->ExpectValue(scheduler->Uniform(keys));
      Clock::System()->SleepFor(milliseconds(5));
    }
  });
}

TEST(SlowCaseTest, ListenersHearOnceThatANodeIsSlowAndOnceThatItIsNot) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 500;
        Options options = PatientOptions(c, "rep(2)");
        const auto listener = std::make_shared<PaceListener>(c);
        options.listeners.push_back(listener);
        OwnedDatabase owner(scheduler, c, options);
        owner.WriteTables(kKeys);
        owner.Get(0, kKeys);
        // One that is met for certain: a replica of a table may be read by none.
        const size_t slow = c->LogNodes().front();
        SetSlowness(c, slow, kSlow);
        UseUntil(scheduler, c, &owner, kKeys, scheduler->TrueNanos() + 3 * kSecond);
        c->Expect(listener->slow() == 1 && listener->prompt() == 0, "it is not told of once");
        SetSlowness(c, slow, 1);
        owner.AwaitPrompt();
        c->Await("the event", [&] { return listener->prompt() >= 1; });
        UseUntil(scheduler, c, &owner, kKeys, scheduler->TrueNanos() + kSecond);
        // What was on its way when it became prompt may have made it slow once more, and in one of
        // some fifty seeds a few times.
        owner.AwaitPrompt();
        c->Await("the event", [&] { return listener->prompt() == listener->slow(); });
        c->Expect(listener->slow() <= 4, std::to_string(listener->slow()) + " times slow");
        return std::to_string(scheduler->steps());
      },
      5);
}

TEST(SlowCaseTest, ANodeThatPausesIsNotTakenForLost) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 500;
        Options options = PatientOptions(c, "rep(2)");
        const auto listener = std::make_shared<PaceListener>(c);
        options.listeners.push_back(listener);
        OwnedDatabase owner(scheduler, c, options);
        owner.WriteTables(kKeys);
        owner.Get(0, kKeys);
        for (int round = 0; round < 4; ++round) {
          const uint64_t start = scheduler->TrueNanos();
          c->cluster().StopNode(scheduler->Uniform(c->cluster().size()), 3 * kSecond / 2);
          // Tables are written and read over connections that are made meanwhile.
          for (int i = 0; i < 10; ++i) {
            UseUntil(scheduler, c, &owner, kKeys, start + (i + 1) * kSecond / 10);
            owner.Flush();
          }
          // What has waited in front of it may do so for a second more.
          UseUntil(scheduler, c, &owner, kKeys, start + 3 * kSecond);
          owner.AwaitPrompt();
        }
        c->Expect(listener->slow() >= 2, std::to_string(listener->slow()) + " times slow");
        c->Expect(listener->lost() == 0, std::to_string(listener->lost()) + " times lost");
        return std::to_string(scheduler->steps());
      },
      4);
}

TEST(SlowCaseTest, ASlowNodeThatIsDownIsNotToldToBePromptBeforeItIsBack) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 500;
        Options options = PatientOptions(c, "rep(2)");
        const auto listener = std::make_shared<PaceListener>(c);
        options.listeners.push_back(listener);
        OwnedDatabase owner(scheduler, c, options);
        owner.WriteTables(kKeys);
        owner.Get(0, kKeys);
        const std::vector<size_t> nodes = c->NodesOf(FragmentsOfTables);
        const uint64_t start = scheduler->TrueNanos();
        // After three seconds of silence it is down.
        c->cluster().StopNode(nodes[0], 40 * kSecond);
        UseUntil(scheduler, c, &owner, kKeys, start + 6 * kSecond);
        const std::string address = c->cluster().AddressOf(nodes[0]);
        c->Expect(listener->IsSlow(address), "it is not slow");
        c->Expect(listener->lost() == 1, "it is not down");
        // The owner looks at all nodes when one of them changes.
        SetSlowness(c, nodes[1], kSlow);
        UseUntil(scheduler, c, &owner, kKeys, start + 8 * kSecond);
        c->Expect(listener->slow() >= 2, "the other one is not slow");
        c->Expect(listener->IsSlow(address), "it is told to be prompt");
        SetSlowness(c, nodes[1], 1);
        UseUntil(scheduler, c, &owner, kKeys, start + 42 * kSecond);
        owner.AwaitPrompt();
        c->Await("the event", [&] { return !listener->IsSlow(address); });
        return std::to_string(scheduler->steps());
      },
      4);
}

TEST(SlowCaseTest, ANodeThatIsSlowByTurnsStaysSlowForLongerAndLonger) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 500;
        Options options = PatientOptions(c, "rep(2)");
        const auto listener = std::make_shared<PaceListener>(c);
        options.listeners.push_back(listener);
        OwnedDatabase owner(scheduler, c, options);
        owner.WriteTables(kKeys);
        owner.Get(0, kKeys);
        const size_t slow = c->NodesOf(FragmentsOfTables).front();
        constexpr int kTurns = 100;
        for (int i = 0; i < kTurns; ++i) {
          SetSlowness(c, slow, kSlow);
          UseUntil(scheduler, c, &owner, kKeys, scheduler->TrueNanos() + 200 * kMillisecond);
          SetSlowness(c, slow, 1);
          UseUntil(scheduler, c, &owner, kKeys, scheduler->TrueNanos() + 400 * kMillisecond);
        }
        // Within a minute the pause between two attempts has grown to ten seconds.
        c->Expect(listener->slow() >= 2, "it was not slow");
        c->Expect(listener->slow() <= 20, std::to_string(listener->slow()) + " times slow");
        owner.AwaitPrompt();
        c->Await("the event", [&] { return listener->prompt() == listener->slow(); });
        return std::to_string(listener->slow());
      },
      3);
}

// ---- Tables -------------------------------------------------------------------------------------

TEST(SlowCaseTest, TablesThatAreWrittenNarrowTolerateAsMuchAsWasPromised) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 2000;
        constexpr int kParity = 2;
        Options options = PatientOptions(c, "rs(4,2)");
        options.disable_auto_compactions = true;
        options.target_file_size_base = 1 << 20;
        OwnedDatabase owner(scheduler, c, options);
        owner.Put(0, 100);
        const std::vector<size_t> log = c->LogNodes();
        const size_t slow = log[scheduler->Uniform(log.size())];
        SetSlowness(c, slow, kSlow);
        owner.Put(100, kKeys);
        owner.Flush();
        // They are on all nodes but one.
        size_t narrow = 0;
        const std::vector<size_t> nodes = c->NodesOf([&](const ctl::DatabaseView& view) {
          narrow = 0;
          for (const auto& [id, table] : view.state.tables) {
            const Redundancy& redundancy = table.second.placement.redundancy;
            c->Expect(redundancy.parity == kParity || !redundancy.striped(),
                      redundancy.ToString() + " tolerates another number");
            narrow += redundancy.striped() && redundancy.data == 3 ? 1 : 0;
          }
          return FragmentsOfTables(view);
        });
        c->Expect(narrow > 0, "no table was written narrow");
        std::vector<size_t> lost = nodes;
        std::erase(lost, slow);
        while (lost.size() > kParity) {
          lost.erase(lost.begin() + static_cast<ptrdiff_t>(scheduler->Uniform(lost.size())));
        }
        for (const size_t node : lost) c->cluster().KillNode(node, /*told=*/true);
        owner.Check(kKeys);
        owner.Kill();
        SetSlowness(c, slow, 1);
        OwnedDatabase next(scheduler, c, options, "next");
        next.Check(kKeys);
        return std::to_string(narrow);
      },
      {.nodes = 6}, 4);
}

/// Counts the failures that applications are told of.
class FailureListener : public EventListener {
 public:
  explicit FailureListener(Case* c) : case_(c) {}
  void OnBackgroundError(BackgroundErrorReason /*reason*/, Status* error) override {
    case_->Expect(false, "background work fails: " + error->ToString());
  }

 private:
  Case* const case_;
};

TEST(SlowCaseTest, NoBackgroundWorkFailsSinceANodeIsSlow) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 400;
        constexpr int kRounds = 8;
        const char* const redundancies[] = {"none", "rep(2)", "rs(2,1)"};
        Options options = PatientOptions(c, redundancies[scheduler->Uniform(3)]);
        if (scheduler->OneIn(2)) options.compaction = CompactionSite::kCompute;
        options.target_file_size_base = 128 << 10;
        options.level0_file_num_compaction_trigger = 2;
        options.listeners.push_back(std::make_shared<FailureListener>(c));
        for (int round = 0; round < kRounds; ++round) {
          // It has no connections yet.
          OwnedDatabase owner(scheduler, c, options);
          const size_t slow = scheduler->Uniform(c->cluster().size());
          bool rests = false;
          c->cluster().Run(owner.process(), "slow", [&] {
            Clock::System()->SleepFor(milliseconds(scheduler->Uniform(40)));
            SetSlowness(c, slow, kSlow / 4);
            Clock::System()->SleepFor(milliseconds(20 + scheduler->Uniform(400)));
            SetSlowness(c, slow, 1);
            rests = true;
          });
          owner.In([&] {
            // The log would find out which node is slow.
            WriteOptions unlogged;
            unlogged.disable_wal = true;
            for (size_t i = 0; i < kKeys; ++i) {
              c->Expect(owner.db()->Put(unlogged, SlowKey(i), SlowValue(i)));
              if (i % 40 == 0) c->Expect(owner.db()->Flush({}));
            }
            c->Expect(owner.db()->Flush({}));
            c->Expect(owner.db()->CompactRange({}, nullptr, nullptr));
            c->Expect(owner.db()->WaitForCompact());
          });
          c->Await("it to be prompt", [&] { return rests; });
          owner.Check(kKeys);
          owner.Kill();
        }
        return std::to_string(scheduler->steps());
      },
      {.nodes = 6}, 12);
}

// ---- Space --------------------------------------------------------------------------------------

TEST(SlowCaseTest, AWriteOfTheLogThatIsStillUnderWayIsStoredOverNothing) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 20;
        // Less than it takes a node to be down: it is slow, and then it goes on.
        constexpr uint64_t kPause = 3 * kSecond / 2;
        OwnedDatabase owner(scheduler, c, PatientOptions(c, "rep(2)"));
        uint64_t written = 0;
        // Large records, so that much is on its way at a time.
        const auto value_of = [](uint64_t number) { return TestValue(number, 8000); };
        const auto write = [&] {
          for (size_t i = 0; i < kKeys; ++i) {
            c->Expect(owner.db()->Put({}, SlowKey(i), value_of(written++)));
          }
        };
        const auto expect_sound = [&] {
          c->Expect(owner.db()->VerifyChecksum());
          for (const char* name :
               {"damage.reads", "scrub.damaged-fragments", "scrub.damaged-copies"}) {
            c->Expect(owner.Number(name) == 0, std::string(name) + " is not 0");
          }
        };
        owner.In(write);
        for (int round = 0; round < 8; ++round) {
          std::vector<size_t> log;
          c->Await("a look at the log", [&] { return !(log = c->LogNodes()).empty(); });
          const uint64_t goes_on = scheduler->TrueNanos() + kPause;
          c->cluster().StopNode(log[scheduler->Uniform(log.size())], kPause);
          owner.In([&] {
            // Segments are freed after each flush. A second after the node has gone on it has
            // stored what had waited, where there may be other segments and tables by then.
            while (scheduler->TrueNanos() < goes_on + 6 * kSecond / 5) {
              write();
              c->Expect(owner.db()->Flush({}));
              if (scheduler->TrueNanos() > goes_on) expect_sound();
              Clock::System()->SleepFor(milliseconds(20));
            }
          });
        }
        owner.In([&] {
          expect_sound();
          for (size_t i = 0; i < kKeys; ++i) {
            std::string value;
            c->Expect(owner.db()->Get({}, SlowKey(i), &value));
            c->Expect(value == value_of(written - kKeys + i), "another value of " + SlowKey(i));
          }
        });
        return std::to_string(scheduler->steps());
      },
      3);
}

}  // namespace
}  // namespace nacre::sim
