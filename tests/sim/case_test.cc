// Goal: what stories (tests/support/sim/sim_story.h) have found wrong stays mended: a short case of
// each, which does not depend on what seeds mean.
// Method: a small simulated cluster, in which just that happens, for several seeds each.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/db.h"
#include "nacre/merge_operator.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_run.h"
#include "tests/support/test_db.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::string Key(size_t i) { return fmt::format("key{:05}", i); }

TEST(CaseTest, AFollowerFindsAManifestThatHasMovedToNodesThatJoined) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        FollowedDatabase followed(c);
        const size_t before = c->cluster().size();
        c->AddNodes(2);
        for (size_t i = 0; i < before; ++i) c->Drain(i);
        c->Await("the manifest to move", [&] {
          const std::vector<size_t> nodes = c->ManifestNodes();
          return !nodes.empty() && nodes.front() >= before;
        });
        c->In(followed.owner, [&] { c->Expect(followed.db->Put({}, "key", "after")); });
        c->In(followed.follower, [&] {
          c->Await("catching up", [&] { return followed.following->TryCatchUpWithPrimary().ok(); });
          std::string value;
          c->Expect(followed.following->Get({}, "key", &value));
          c->Expect(value == "after", "it shows " + value);
        });
        return std::to_string(scheduler->steps());
      },
      3);
}

TEST(CaseTest, AFollowerThatCannotAskWhoseBytesItReadsDoesNotTakeThemForDamaged) {
  const std::vector<std::string> summaries = Tell(
      [](Scheduler*, Case* c) {
        constexpr size_t kKeys = 400;
        const ProcessId owner = c->NewProcess("owner");
        const ProcessId follower = c->NewProcess("follower");
        std::unique_ptr<DB> db;
        std::unique_ptr<DB> following;
        const auto write = [&](uint64_t round) {
          for (size_t i = 0; i < kKeys; ++i) {
            c->Expect(db->Put({}, Key(i), TestValue(round * kKeys + i, 1000)));
          }
          c->Expect(db->Flush({}));
          c->Expect(db->CompactRange({}, nullptr, nullptr));
        };
        c->In(owner, [&] {
          c->Expect(DB::Open(c->DatabaseOptions(), "db", &db));
          write(1);
        });
        c->In(follower,
              [&] { c->Expect(DB::OpenAsSecondary(c->DatabaseOptions(), "db", &following)); });
        c->In(owner, [&] {
          for (uint64_t round = 2; round < 6; ++round) write(round);
        });
        // The root's majority is out of its sight.
        c->CutOff(follower, 0);
        c->CutOff(follower, 1);
        size_t refused = 0;
        c->In(follower, [&] {
          // Each refusal takes seconds.
          for (size_t i = 0; i < kKeys && refused < 5; i += 7) {
            std::string value;
            const Status status = following->Get({}, Key(i), &value);
            if (status.ok()) continue;
            c->Expect(status.IsUnavailable() || status.IsTimedOut(), status.ToString());
            ++refused;
          }
        });
        return std::to_string(refused);
      },
      3);
  size_t refused = 0;
  for (const std::string& summary : summaries) refused += std::stoul("0" + summary);
  EXPECT_GT(refused, 0u) << "no memory was used again";
}

TEST(CaseTest, AFollowerForgetsWhatANewOwnerHasNotFoundInTheLog) {
  const std::vector<std::string> summaries = Tell(
      [](Scheduler*, Case* c) {
        const ProcessId first = c->NewProcess("first");
        const ProcessId second = c->NewProcess("second");
        const ProcessId follower = c->NewProcess("follower");
        auto* const lost = new std::unique_ptr<DB>;  // Ends with its process.
        std::unique_ptr<DB> db;
        std::unique_ptr<DB> following;
        c->In(first, [&] {
          Options options = c->DatabaseOptions();
          // It waits for both copies, and does not go on elsewhere.
          options.slow_node_patience_max = milliseconds(0);
          c->Expect(DB::Open(options, "db", lost));
          c->Expect((*lost)->Put({}, "before", "value"));
        });
        c->In(follower,
              [&] { c->Expect(DB::OpenAsSecondary(c->DatabaseOptions(), "db", &following)); });
        const std::vector<size_t> log = c->LogNodes();
        c->Expect(log.size() == 2, "the log has not two copies");
        // A record that one copy has only, which its owner's successor loses sight of.
        c->CutOff(first, log[0]);
        c->cluster().Run(first, "put", [&] { (*lost)->Put({}, "lost", "value").IgnoreError(); });
        Clock::System()->SleepFor(milliseconds(100));
        c->cluster().KillProcess(first, /*told=*/true);
        // The follower meets the successor before this has told where that log ends.
        bool waits = false;
        bool goes_on = false;
        SetPointVisitor([&](const char* name) {
          if (std::string_view(name) == "open.tables-opened") c->CutOff(second, log[1]);
          if (std::string_view(name) != "open.manifest-created") return;
          waits = true;
          while (!goes_on) Clock::System()->SleepFor(milliseconds(10));
        });
        bool opened = false;
        c->cluster().Run(second, "open", [&] {
          c->Await("opening", [&] { return DB::Open(c->DatabaseOptions(), "db", &db).ok(); });
          opened = true;
        });
        c->Await("a manifest", [&] { return waits; });
        c->CutOff(follower, log[0]);
        std::string value;
        c->In(follower, [&] {
          c->Await("catching up", [&] { return following->TryCatchUpWithPrimary().ok(); });
          c->Expect(following->Get({}, "before", &value));
        });
        bool shown = false;
        c->In(follower, [&] { shown = following->Get({}, "lost", &value).ok(); });
        goes_on = true;
        c->Await("the opening's end", [&] { return opened; });
        c->In(second, [&] { c->Expect(db->Put({}, "after", "value")); });
        c->Heal();
        c->In(follower, [&] {
          c->Await("catching up", [&] { return following->TryCatchUpWithPrimary().ok(); });
          c->Expect(following->Get({}, "after", &value));
          c->Expect(following->Get({}, "before", &value));
          c->Expect(following->Get({}, "lost", &value).IsNotFound(), "it shows what was lost");
        });
        return std::string(shown ? "1" : "0");
      },
      5);
  EXPECT_TRUE(std::find(summaries.begin(), summaries.end(), "1") != summaries.end())
      << "no follower has seen it";
}

TEST(CaseTest, AFollowerAppliesOperandsOnceThatAreInTheLogAndInTables) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const ProcessId owner = c->NewProcess("owner");
        const ProcessId follower = c->NewProcess("follower");
        std::unique_ptr<DB> db;
        std::unique_ptr<DB> following;
        Options options = c->DatabaseOptions();
        options.merge_operator = MergeOperators::CreateStringAppendOperator();
        const auto expect = [&](const std::string& key, const std::string& expected) {
          c->In(follower, [&] {
            c->Await("catching up", [&] { return following->TryCatchUpWithPrimary().ok(); });
            std::string value;
            const Status status = following->Get({}, key, &value);
            c->Expect((status.ok() ? value : "none") == expected, key + " is " + value);
            const std::unique_ptr<Iterator> iterator(following->NewIterator({}));
            iterator->Seek(key);
            const bool found = iterator->Valid() && iterator->key() == Slice(key);
            value = found ? iterator->value().ToString() : "none";
            c->Expect(value == expected, "an iterator shows " + key + " as " + value);
          });
        };
        c->In(owner, [&] { c->Expect(DB::Open(options, "db", &db)); });
        c->In(follower, [&] { c->Expect(DB::OpenAsSecondary(options, "db", &following)); });
        c->In(owner, [&] {
          c->Expect(db->Put({}, "deleted", "1"));
          c->Expect(db->Merge({}, "key", "1"));
          c->Expect(db->Merge({}, "key", "2"));
        });
        expect("key", "1,2");
        // What is in the log is read before the manifest that has the tables.
        c->In(owner, [&] {
          c->Expect(db->Flush({}));
          c->Expect(db->Merge({}, "key", "3"));
          c->Expect(db->DeleteRange({}, nullptr, "d", "e"));
        });
        expect("key", "1,2,3");
        expect("deleted", "none");
        c->In(owner, [&] { c->Expect(db->Flush({})); });
        expect("key", "1,2,3");
        expect("deleted", "none");
        return std::to_string(scheduler->steps());
      },
      3);
}

TEST(CaseTest, SpaceOfAnEditOfUnknownFateComesBack) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const ProcessId owner = c->NewProcess("owner");
        std::unique_ptr<DB> db;
        c->In(owner, [&] {
          c->Expect(DB::Open(c->DatabaseOptions(), "db", &db));
          for (size_t i = 0; i < 100; ++i) c->Expect(db->Put({}, Key(i), TestValue(i, 1000)));
        });
        bool flushed = false;
        bool cut = false;
        SetPointVisitor([&](const char* name) {
          flushed = flushed || std::string_view(name) == "flush.tables-written";
          if (cut || !flushed || std::string_view(name) != "edit.encoded") return;
          cut = true;
          c->CutOffFromAll(owner);
        });
        c->cluster().Run(owner, "flush", [&] { db->Flush({}).IgnoreError(); });
        c->Await("the edit", [&] { return cut; });
        // No call waits for an answer any more after this.
        Clock::System()->SleepFor(seconds(5));
        c->Heal();
        c->In(owner, [&] {
          c->Await("a flush", [&] { return db->Flush({}).ok(); });
          c->Await("an account of all space", [&] {
            uint64_t unlinked = 1;
            return db->WaitForCompact().ok() &&
                   db->GetIntProperty("nacre.space.unlinked-bytes", &unlinked) && unlinked == 0;
          });
        });
        return std::to_string(scheduler->steps());
      },
      3);
}

TEST(CaseTest, WhatAnOpeningDoesNotReachIsThereForTheNext) {
  const std::vector<std::string> summaries = Tell(
      [](Scheduler*, Case* c) {
        constexpr size_t kKeys = 20;
        const ProcessId first = c->NewProcess("first");
        const ProcessId second = c->NewProcess("second");
        std::unique_ptr<DB> db;
        c->In(first, [&] {
          auto* const lost = new std::unique_ptr<DB>;  // Ends with its process.
          c->Expect(DB::Open(c->DatabaseOptions(), "db", lost));
          for (size_t i = 0; i < kKeys; ++i) {
            c->Expect((*lost)->Put({}, Key(i), TestValue(i, 100)));
          }
        });
        c->cluster().KillProcess(first, /*told=*/true);
        const std::vector<size_t> log = c->LogNodes();
        for (const size_t node : log) c->CutOff(second, node);
        c->In(second, [&] {
          const Status status = DB::Open(c->DatabaseOptions(), "db", &db);
          c->Expect(!status.ok(), "it opens without its log");
        });
        const bool manifest_seen = c->ManifestNodes() != log;
        c->Heal();
        c->In(c->NewProcess("third"), [&] {
          c->Await("opening", [&] { return DB::Open(c->DatabaseOptions(), "db", &db).ok(); });
          for (size_t i = 0; i < kKeys; ++i) {
            std::string value;
            c->Expect(db->Get({}, Key(i), &value));
            c->Expect(value == TestValue(i, 100), "another value of " + Key(i));
          }
        });
        return std::string(manifest_seen ? "1" : "0");
      },
      5);
  size_t seen = 0;
  for (const std::string& summary : summaries) seen += summary == "1" ? 1 : 0;
  EXPECT_GT(seen, 0u) << "no opening came as far as the manifest";
}

uint64_t ManifestBytesRead(DB* follower) {
  std::string bytes;
  follower->GetProperty("nacre.follower.manifest-bytes-read", &bytes);
  return std::stoull(bytes);
}

TEST(CaseTest, MarksTellAFollowerWhatWasAcknowledged) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const ProcessId owner = c->NewProcess("owner");
        const ProcessId follower = c->NewProcess("follower");
        std::unique_ptr<DB> db;
        std::unique_ptr<DB> following;
        c->In(owner, [&] { c->Expect(DB::Open(c->DatabaseOptions(), "db", &db)); });
        c->In(follower,
              [&] { c->Expect(DB::OpenAsSecondary(c->DatabaseOptions(), "db", &following)); });
        ReadOptions latest;
        latest.linearizable = true;
        uint64_t looks = 0;
        constexpr size_t kWrites = 20;
        for (size_t i = 0; i < kWrites; ++i) {
          c->In(owner, [&] { c->Expect(db->Put({}, "key", Key(i))); });
          c->In(follower, [&] {
            const uint64_t before = ManifestBytesRead(following.get());
            // As marks hold for a while only, the first read looks at all, and the second need not.
            for (int read = 0; read < 2; ++read) {
              std::string value;
              c->Expect(following->Get(latest, "key", &value));
              c->Expect(value == Key(i), "it shows " + value + " after " + Key(i));
            }
            if (ManifestBytesRead(following.get()) != before) ++looks;
          });
        }
        c->Expect(looks > 0 && looks <= kWrites, "it looked " + std::to_string(looks) + " times");
        return std::to_string(scheduler->steps());
      },
      3);
}

TEST(CaseTest, AFollowerSeesWhatWasWrittenSinceNoCopyOfTheLogCouldBeMarked) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const ProcessId owner = c->NewProcess("owner");
        const ProcessId follower = c->NewProcess("follower");
        Options options = c->DatabaseOptions();
        options.operation_timeout = milliseconds(20);
        std::unique_ptr<DB> db;
        std::unique_ptr<DB> following;
        c->In(owner, [&] {
          c->Expect(DB::Open(options, "db", &db));
          c->Expect(db->Put({}, "key", "before"));
        });
        const std::vector<size_t> nodes = c->LogNodes();
        ReadOptions latest;
        latest.linearizable = true;
        c->In(follower,
              [&] { c->Expect(DB::OpenAsSecondary(c->DatabaseOptions(), "db", &following)); });
        // The owner loses what it cannot do without, and goes on elsewhere.
        for (const size_t node : nodes) c->CutOff(owner, node);
        bool written = false;
        std::string seen;
        c->cluster().Run(owner, "writer", [&] {
          while (!db->Put({}, "key", "after").ok()) Clock::System()->SleepFor(milliseconds(1));
          written = true;
        });
        c->In(follower, [&] {
          for (bool last = false; !last;) {
            last = written;
            const Status status = following->Get(latest, "key", &seen);
            c->Expect(status);
            if (last) c->Expect(seen == "after", "it shows " + seen);
            Clock::System()->SleepFor(milliseconds(1));
          }
        });
        return std::to_string(scheduler->steps());
      },
      7);
}

}  // namespace
}  // namespace nacre::sim
