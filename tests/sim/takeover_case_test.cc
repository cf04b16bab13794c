// Goal: a new owner owns what it shows, and the fenced one learns of it: what stories
// (tests/support/sim/sim_story.h) have found wrong there stays mended. Method: a small simulated
// cluster, in which just that happens, for several seeds each.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/db.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_run.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(TakeoverCaseTest, WhatANewOwnerFindsInOneCopyOfTheLogOutlivesThatCopy) {
  for (const size_t kept : {size_t{0}, size_t{1}}) {
    Tell(
        [kept](Scheduler* scheduler, Case* c) {
          const ProcessId first = c->NewProcess("first");
          const ProcessId second = c->NewProcess("second");
          auto* const lost = new std::unique_ptr<DB>;  // Ends with its process.
          c->In(first, [&] {
            c->Expect(DB::Open(c->DatabaseOptions(), "db", lost));
            c->Expect((*lost)->Put({}, "before", "value"));
          });
          const std::vector<size_t> log = c->LogNodes();
          c->Expect(log.size() == 2, "the log has not two copies");
          c->CutOff(first, log[1 - kept]);
          c->cluster().Run(first, "put", [&] { (*lost)->Put({}, "begun", "value").IgnoreError(); });
          Clock::System()->SleepFor(milliseconds(5));
          c->cluster().KillProcess(first, /*told=*/true);
          c->Heal();
          // A flush would put it elsewhere; in a full pool there is none for long.
          SetPointVisitor([](const char* name) {
            if (std::string_view(name) != "flush.begin") return;
            Clock::System()->SleepFor(seconds(1000));
          });
          c->In(second, [&] {
            auto* const db = new std::unique_ptr<DB>;  // Likewise.
            c->Await("opening", [&] { return DB::Open(c->DatabaseOptions(), "db", db).ok(); });
            std::string value;
            c->Expect((*db)->Get({}, "begun", &value));
            c->Expect((*db)->Put({}, "after", "value"));
          });
          c->cluster().KillNode(log[kept], /*told=*/true);
          c->cluster().KillProcess(second, /*told=*/true);
          SetPointVisitor(nullptr);
          c->In(c->NewProcess("third"), [&] {
            std::unique_ptr<DB> db;
            c->Await("opening", [&] { return DB::Open(c->DatabaseOptions(), "db", &db).ok(); });
            std::string value;
            c->Expect(db->Get({}, "before", &value));
            c->Expect(db->Get({}, "after", &value));
            c->Expect(db->Get({}, "begun", &value));
          });
          return std::to_string(scheduler->steps());
        },
        5);
  }
}

// A write of the log fails when one copy has it, and the owner dies when the header of the next
// segment says where this one ends, which is before that write.
TEST(TakeoverCaseTest, WhatAFollowerSawOfASegmentThatFailedIsNotHiddenByTheNextOne) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const ProcessId first = c->NewProcess("first");
        const ProcessId follower = c->NewProcess("follower");
        auto* const lost = new std::unique_ptr<DB>;  // Ends with its process.
        c->In(first, [&] {
          // The follower is to look at the segment before the owner has left it.
          Options options = c->DatabaseOptions();
          options.slow_node_patience_max = milliseconds(0);
          c->Expect(DB::Open(options, "db", lost));
          c->Expect((*lost)->Put({}, "before", "value"));
        });
        std::unique_ptr<DB> following;
        c->In(follower,
              [&] { c->Expect(DB::OpenAsSecondary(c->DatabaseOptions(), "db", &following)); });
        bool next_has_header = false;
        SetPointVisitor([&](const char* name) {
          if (std::string_view(name) != "log.header-acknowledged") return;
          next_has_header = true;
          Clock::System()->SleepFor(seconds(1000));
        });
        const std::vector<size_t> log = c->LogNodes();
        c->CutOff(first, log[1]);
        c->cluster().Run(first, "put", [&] { (*lost)->Put({}, "begun", "value").IgnoreError(); });
        ReadOptions latest;
        latest.linearizable = true;
        std::string value;
        c->In(follower, [&] {
          c->Await("a look at it", [&] { return following->Get(latest, "begun", &value).ok(); });
          c->Expect(!next_has_header, "it is not the first segment's");
        });
        c->Await("the next segment", [&] { return next_has_header; });
        SetPointVisitor(nullptr);
        c->cluster().KillProcess(first, /*told=*/true);
        c->Heal();
        c->In(c->NewProcess("second"), [&] {
          std::unique_ptr<DB> db;
          c->Await("opening", [&] { return DB::Open(c->DatabaseOptions(), "db", &db).ok(); });
          c->Expect(db->Get({}, "before", &value));
          c->Expect(db->Get({}, "begun", &value));
        });
        return std::to_string(scheduler->steps());
      },
      5);
}

TEST(TakeoverCaseTest, AnOwnerThatMissesAllOfItsSuccessorIsFenced) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const ProcessId first = c->NewProcess("first");
        Options options = c->DatabaseOptions();
        options.operation_timeout = milliseconds(100);
        std::unique_ptr<DB> db;
        c->In(first, [&] {
          c->Expect(DB::Open(options, "db", &db));
          c->Expect(db->Put({}, "key", "first"));
        });
        c->CutOffFromAll(first);
        c->In(c->NewProcess("second"), [&] {
          std::unique_ptr<DB> next;
          c->Await("opening", [&] { return DB::Open(options, "db", &next).ok(); });
          c->Expect(next->Put({}, "key", "second"));
          c->Expect(next->Close());
        });
        c->Heal();
        c->In(first, [&] {
          Status status;
          c->Await("word of it", [&] {
            status = db->Put({}, "key", "first again");
            c->Expect(!status.ok(), "it writes on");
            return status.IsFenced();
          });
          std::string value;
          status = db->Get({}, "key", &value);
          c->Expect(status.IsFenced(), status.ToString());
          db.reset();
        });
        return std::to_string(scheduler->steps());
      },
      4);
}

TEST(TakeoverCaseTest, OfTwoThatHaveReadTheSameRootOneBecomesTheOwner) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const ProcessId slow = c->NewProcess("slow");
        const ProcessId fast = c->NewProcess("fast");
        Options options = c->DatabaseOptions();
        c->In(c->NewProcess("first"), [&] {
          std::unique_ptr<DB> db;
          c->Expect(DB::Open(options, "db", &db));
          c->Expect(db->Close());
        });
        options.take_over = true;
        bool has_read = false;
        SetPointVisitor([&](const char* name) {
          if (scheduler->process() != slow || std::string_view(name) != "claim.roots-read") return;
          has_read = true;
          Clock::System()->SleepFor(seconds(1));
        });
        bool done = false;
        Status late;
        c->cluster().Run(slow, "open", [&] {
          std::unique_ptr<DB> db;
          late = DB::Open(options, "db", &db);
          done = true;
        });
        c->Await("a look at the root", [&] { return has_read; });
        std::unique_ptr<DB> db;
        c->In(fast, [&] { c->Expect(DB::Open(options, "db", &db)); });
        c->Await("the answer", [&] { return done; });
        SetPointVisitor(nullptr);
        c->Expect(late.IsBusy(), late.ToString());
        c->In(fast, [&] {
          c->Expect(db->Put({}, "key", "value"));
          c->Expect(db->Close());
          db.reset();
        });
        return std::to_string(scheduler->steps());
      },
      4);
}

TEST(TakeoverCaseTest, AnOwnerWhoseDatabaseWasDestroyedIsFenced) {
  for (const bool made_anew : {false, true}) {
    Tell(
        [made_anew](Scheduler* scheduler, Case* c) {
          const ProcessId first = c->NewProcess("first");
          const ProcessId second = c->NewProcess("second");
          Options options = c->DatabaseOptions();
          options.operation_timeout = milliseconds(100);
          std::unique_ptr<DB> db;
          std::unique_ptr<DB> next;
          c->In(first, [&] {
            c->Expect(DB::Open(options, "db", &db));
            c->Expect(db->Put({}, "key", "first"));
          });
          c->CutOffFromAll(first);
          c->In(second, [&] {
            c->Await("the end", [&] { return DestroyDB("db", options).ok(); });
            if (!made_anew) return;
            c->Expect(DB::Open(options, "db", &next));
            c->Expect(next->Put({}, "other", "second"));
          });
          c->Heal();
          c->In(first, [&] {
            c->Await("word of it", [&] {
              const Status status = db->Put({}, "key", "first again");
              c->Expect(!status.ok(), "it writes on");
              return status.IsFenced();
            });
            db.reset();
          });
          c->In(second, [&] {
            std::vector<std::string> names;
            c->Expect(ListDBs(options, &names));
            c->Expect(names.size() == (made_anew ? 1 : 0), "it is back");
            if (!made_anew) return;
            std::string value;
            c->Expect(next->Get({}, "other", &value));
            c->Expect(next->Get({}, "key", &value).IsNotFound(), "it has what was destroyed");
            next.reset();
          });
          return std::to_string(scheduler->steps());
        },
        4);
  }
}

}  // namespace
}  // namespace nacre::sim
