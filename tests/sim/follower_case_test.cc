// Goal: a follower takes nothing for damaged that is only out of its sight: what stories
// (tests/support/sim/sim_story.h) have found wrong there stays mended.
// Method: a small simulated cluster, in which just that happens, for several seeds each.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/database_view.h"
#include "nacre/db.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_run.h"
#include "tests/support/test_db.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string FollowerKey(size_t i) { return fmt::format("key{:05}", i); }

constexpr uint64_t kFollowerValueBytes = 1000;

std::vector<ExtentAddr> FirstTable(const ctl::DatabaseView& view) {
  return view.state.tables.begin()->second.second.placement.fragments;
}

/// Has `owner` open the database and write so many keys into a table of two copies. The nodes of
/// these.
std::vector<size_t> WriteTable(Case* c, ProcessId owner, size_t keys, std::unique_ptr<DB>* db) {
  c->In(owner, [&] {
    c->Expect(DB::Open(c->DatabaseOptions(), "db", db));
    for (size_t i = 0; i < keys; ++i)
      c->Expect((*db)->Put({}, FollowerKey(i), TestValue(i, kFollowerValueBytes)));
    c->Expect((*db)->Flush({}));
  });
  std::vector<size_t> nodes;
  c->Await("a look at the tables", [&] {
    nodes = c->NodesOf(FirstTable);
    return nodes.size() == 2;
  });
  return nodes;
}

std::vector<ExtentAddr> FollowedManifestCopies(const ctl::DatabaseView& view) {
  return view.manifest.copies;
}

TEST(FollowerCaseTest, AManifestThatIsDamagedWhereItIsKnownIsReadWhereNodesHaveJoined) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        FollowedDatabase followed(c);
        const size_t joined = c->cluster().size();
        c->AddNodes(1);
        for (size_t i = 1; i < joined; ++i) c->Drain(i);
        const std::vector<size_t> expected{0, joined};
        c->Await("the manifest to move", [&] { return c->ManifestNodes() == expected; });
        c->In(followed.owner, [&] { c->Expect(followed.db->Put({}, "key", "after")); });
        c->Damage(0, 64, FollowedManifestCopies);
        c->In(followed.follower, [&] {
          c->Expect(followed.following->TryCatchUpWithPrimary());
          std::string value;
          c->Expect(followed.following->Get({}, "key", &value));
          c->Expect(value == "after", "it shows " + value);
        });
        return std::to_string(scheduler->steps());
      },
      3);
}

TEST(FollowerCaseTest, DamageIsUnavailableWhoseOtherCopyIsOutOfSight) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 100;
        const ProcessId owner = c->NewProcess("owner");
        const ProcessId follower = c->NewProcess("follower");
        std::unique_ptr<DB> db;
        std::unique_ptr<DB> following;
        const std::vector<size_t> nodes = WriteTable(c, owner, kKeys, &db);
        c->In(follower,
              [&] { c->Expect(DB::OpenAsSecondary(c->DatabaseOptions(), "db", &following)); });
        // The follower loses sight of one copy of everything, and the other is damaged.
        c->CutOff(follower, nodes[0]);
        c->Damage(nodes[1], kFollowerValueBytes / 2, FirstTable);
        c->In(follower, [&] {
          std::string value;
          Status status = following->Get({}, FollowerKey(0), &value);
          c->Expect(status.IsUnavailable() || status.IsTimedOut(), status.ToString());
          const std::unique_ptr<Iterator> iterator(following->NewIterator({}));
          iterator->SeekToFirst();
          status = iterator->status();
          c->Expect(status.IsUnavailable() || status.IsTimedOut(), status.ToString());
        });
        c->Heal();
        c->In(follower, [&] {
          for (size_t i = 0; i < kKeys; ++i) {
            std::string value;
            c->Await("a read", [&] { return following->Get({}, FollowerKey(i), &value).ok(); });
            c->Expect(value == TestValue(i, kFollowerValueBytes),
                      "another value of " + FollowerKey(i));
          }
        });
        return std::to_string(scheduler->steps());
      },
      3);
}

TEST(FollowerCaseTest, DamageIsNotToldOfATableThatWasReadWhileItsOtherCopyWasAway) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 40;
        constexpr int kTimes = 20;
        const ProcessId owner = c->NewProcess("owner");
        const ProcessId follower = c->NewProcess("follower");
        std::unique_ptr<DB> db;
        std::unique_ptr<DB> following;
        const std::vector<size_t> nodes = WriteTable(c, owner, kKeys, &db);
        Options options = c->DatabaseOptions();
        options.operation_timeout = milliseconds(100);
        c->In(follower, [&] { c->Expect(DB::OpenAsSecondary(options, "db", &following)); });
        c->Damage(nodes[1], kFollowerValueBytes / 2, FirstTable);
        bool done = false;
        bool ended = false;
        c->cluster().Run(follower, "reader", [&] {
          std::string value;
          for (size_t i = 0; !done; i = (i + 1) % kKeys) {
            const Status status = following->Get({}, FollowerKey(i), &value);
            const bool unreachable = status.IsUnavailable() || status.IsTimedOut();
            c->Expect(status.ok() || unreachable, status.ToString());
            if (status.ok())
              c->Expect(value == TestValue(i, kFollowerValueBytes), "another " + FollowerKey(i));
            const std::unique_ptr<Iterator> iterator(following->NewIterator({}));
            iterator->Seek(FollowerKey(i));
            const Status found = iterator->status();
            c->Expect(found.ok() || found.IsUnavailable() || found.IsTimedOut(), found.ToString());
            Clock::System()->SleepFor(microseconds(100));
          }
          ended = true;
        });
        for (int i = 0; i < kTimes; ++i) {
          c->CutOff(follower, nodes[0]);
          Clock::System()->SleepFor(milliseconds(30 + 17 * i));
          c->Heal();
          Clock::System()->SleepFor(milliseconds(150));
        }
        done = true;
        c->Await("the reader's end", [&] { return ended; });
        return std::to_string(scheduler->steps());
      },
      3);
}

// A follower reads the log anew for a second owner, cannot finish, and by the time that it can read
// the segments a third owner has freed them and used them for its own: they look like a log that
// ends early, and the follower cannot learn from the root that its manifest is out of date.
TEST(FollowerCaseTest, OneThatWasCutOffReadsOverNewConnections) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kKeys = 40;
        const ProcessId owner = c->NewProcess("owner");
        const ProcessId follower = c->NewProcess("follower");
        std::unique_ptr<DB> db;
        std::unique_ptr<DB> following;
        WriteTable(c, owner, kKeys, &db);
        const auto read = [&](size_t i) {
          std::string value;
          return following->Get({}, FollowerKey(i % kKeys), &value);
        };
        bool connected = false;
        bool goes_on = false;
        bool done = false;
        c->cluster().Run(follower, "read", [&] {
          c->Expect(DB::OpenAsSecondary(c->DatabaseOptions(), "db", &following));
          for (size_t i = 0; i < kKeys; ++i) c->Expect(read(i));
          connected = true;
          while (!goes_on) Clock::System()->SleepFor(milliseconds(10));
          // Its connections have broken, which another thread has long found out.
          for (size_t i = 0; i < kKeys; ++i) c->Expect(read(i));
          done = true;
        });
        c->Await("the connections", [&] { return connected; });
        c->CutOffFromAll(follower);
        Clock::System()->SleepFor(seconds(5 + scheduler->Uniform(10)));
        c->Heal();
        size_t reads = 0;
        c->In(follower, [&] {
          c->Await("reads of another thread", [&] { return read(reads++).ok() && reads > 100; });
        });
        goes_on = true;
        c->Await("the reads", [&] { return done; });
        return std::to_string(scheduler->steps());
      },
      6);
}

TEST(FollowerCaseTest, ALogThatWasFreedMeanwhileIsNotTakenForAShorterOne) {
  constexpr size_t kNodes = 9;
  constexpr size_t kKeys = 400;
  const auto tell = [](Scheduler* scheduler, Case* c) {
    const ProcessId first = c->NewProcess("first");
    const ProcessId second = c->NewProcess("second");
    const ProcessId follower = c->NewProcess("follower");
    Options options = c->DatabaseOptions();
    options.operation_timeout = milliseconds(100);
    std::unique_ptr<DB> following;
    c->In(first, [&] {
      auto* const db = new std::unique_ptr<DB>;  // Ends with its process.
      c->Expect(DB::Open(options, "db", db));
      c->Expect((*db)->Put({}, "key", "in the log"));
    });
    const auto expect_shown = [&] {
      std::string value;
      c->Expect(following->Get({}, "key", &value));
      c->Expect(value == "in the log", "it shows " + value);
    };
    c->In(follower, [&] {
      Options on_demand = options;
      on_demand.follow_interval = milliseconds(0);
      c->Expect(DB::OpenAsSecondary(on_demand, "db", &following));
      expect_shown();
    });
    const std::vector<size_t> log = c->LogNodes();
    for (const size_t node : log) c->CutOff(follower, node);
    c->In(follower,
          [&] { c->Await("to notice", [&] { return !following->TryCatchUpWithPrimary().ok(); }); });

    SetPointVisitor([](const char* name) {
      if (std::string_view(name) == "flush.begin") Clock::System()->SleepFor(seconds(1000));
    });
    c->cluster().KillProcess(first, /*told=*/true);
    c->In(second, [&] {
      auto* const db = new std::unique_ptr<DB>;  // Likewise.
      c->Await("opening", [&] { return DB::Open(options, "db", db).ok(); });
    });
    c->In(follower,
          [&] { c->Expect(!following->TryCatchUpWithPrimary().ok(), "it sees the log"); });
    std::vector<ExtentAddr> segments;
    const std::vector<size_t> of_segments = c->NodesOf([&](const ctl::DatabaseView& view) {
      segments.clear();
      for (const auto& [number, segment] : view.state.segments) {
        segments.insert(segments.end(), segment.copies.begin(), segment.copies.end());
      }
      return segments;
    });
    c->cluster().KillProcess(second, /*told=*/true);
    SetPointVisitor(nullptr);

    c->In(c->NewProcess("third"), [&] {
      std::unique_ptr<DB> db;
      c->Await("opening", [&] { return DB::Open(options, "db", &db).ok(); });
      for (size_t i = 0; i < kKeys; ++i) {
        c->Expect(db->Put({}, FollowerKey(i), TestValue(i, kFollowerValueBytes)));
        if (i % 40 == 0) c->Expect(db->Flush({}));
      }
      c->Expect(db->Close());
    });
    // Only a part of the space need be in use again, so the rest is made to look like that.
    const auto flip = [&] {
      for (size_t node = 0; node < kNodes; ++node) {
        c->Damage(node, 64, [&](const ctl::DatabaseView&) { return segments; });
      }
    };
    flip();
    c->Heal();
    // The follower sees one copy of each segment, and too few nodes for the root.
    std::set<size_t> seen;
    for (size_t i = 0; i < of_segments.size(); i += 2) {
      if (!seen.contains(of_segments[i + 1])) seen.insert(of_segments[i]);
    }
    c->Expect(2 * seen.size() < kNodes, "too many nodes have the segments");
    for (size_t node = 0; node < kNodes; ++node) {
      if (!seen.contains(node)) c->CutOff(follower, node);
    }
    c->In(follower, [&] {
      for (int i = 0; i < 30; ++i) {
        c->Expect(!following->TryCatchUpWithPrimary().ok(), "it sees the root");
        expect_shown();
        Clock::System()->SleepFor(milliseconds(100));
      }
    });
    flip();  // This flips it back.
    c->Heal();
    c->In(follower, [&] {
      std::string value;
      c->Await("to catch up", [&] {
        following->TryCatchUpWithPrimary().IgnoreError();
        return following->Get({}, FollowerKey(kKeys - 1), &value).ok();
      });
      c->Await("the table", [&] { return following->Get({}, "key", &value).ok(); });
      c->Expect(value == "in the log", "it shows " + value);
    });
    return std::to_string(scheduler->steps());
  };
  Tell(tell, kNodes);
}

}  // namespace
}  // namespace nacre::sim
