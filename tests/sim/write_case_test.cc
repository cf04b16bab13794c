// Goal: a caller that waits for a log that is stuck is told, however far behind, and what ended the
// wait is the answer, whatever has become of the log since. Method: a small simulated cluster, in
// which too few nodes for the log can be reached for a while, for several seeds.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "nacre/db.h"
#include "nacre/write_batch.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_run.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::milliseconds;

/// The result of one simulation's process.
bool gave_up = false;
bool goes_on = false;

/// Opens the database, which ends with its process, and writes a key.
std::unique_ptr<DB>* OpenAndPut(Case* c, ProcessId owner) {
  auto* const db = new std::unique_ptr<DB>;
  c->In(owner, [&] {
    c->Expect(DB::Open(c->DatabaseOptions(), "db", db));
    c->Expect((*db)->Put({}, "acknowledged", "value"));
  });
  return db;
}

/// Leaves the owner one of three nodes, which is too few for a log of two replicas.
void CutOffFromLog(Case* c, ProcessId owner) {
  c->CutOff(owner, 1);
  c->CutOff(owner, 2);
}

TEST(WriteCaseTest, AFlushThatWasGivenUpKeepsItsMemTable) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const ProcessId owner = c->NewProcess("owner");
        std::unique_ptr<DB>* const db = OpenAndPut(c, owner);
        SetPointVisitor([](const char* name) {
          if (std::string_view(name) != "flush.given-up") return;
          gave_up = true;
          while (!goes_on) Clock::System()->SleepFor(milliseconds(10));
        });
        CutOffFromLog(c, owner);
        c->In(owner, [&] {
          c->Expect(!(*db)->Put({}, "refused", "value").ok(), "one copy was enough");
          FlushOptions options;
          options.wait = false;
          c->Expect((*db)->Flush(options));
        });
        c->Await("the flush to give up", [] { return gave_up; });
        c->Heal();
        c->In(owner, [&] {
          c->Await("the log", [&] { return (*db)->Put({}, "after", "value").ok(); });
          goes_on = true;
          c->Expect((*db)->Flush({}));
          std::string value;
          c->Expect((*db)->Get({}, "acknowledged", &value));
        });
        c->cluster().KillProcess(owner, /*told=*/true);
        c->In(c->NewProcess("next"), [&] {
          std::unique_ptr<DB> next;
          c->Await("opening", [&] { return DB::Open(c->DatabaseOptions(), "db", &next).ok(); });
          std::string value;
          c->Expect(next->Get({}, "acknowledged", &value));
          c->Expect(next->Get({}, "after", &value));
        });
        return std::to_string(scheduler->steps());
      },
      3);
}

TEST(WriteCaseTest, AWriteFarBehindOneThatWaitsForTheLogIsTold) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const ProcessId owner = c->NewProcess("owner");
        std::unique_ptr<DB>* const db = OpenAndPut(c, owner);
        CutOffFromLog(c, owner);
        c->In(owner, [&] {
          // More sequence numbers than may be unpublished at once.
          WriteBatch batch;
          for (int i = 0; i < 20'000; ++i) c->Expect(batch.Put("stuck", std::to_string(i)));
          c->Expect(!(*db)->Write({}, &batch).ok(), "one copy was enough");
          WriteOptions unlogged;
          unlogged.disable_wal = true;
          c->Expect(!(*db)->Put(unlogged, "behind", "value").ok(), "it is not published");
          c->Expect(!(*db)->Put(unlogged, "behind", "value").ok(), "nor is the next one");
        });
        c->Heal();
        c->In(owner, [&] {
          c->Await("the log", [&] { return (*db)->Put({}, "after", "value").ok(); });
          c->Expect((*db)->Put({}, "behind", "last"));
          c->Expect((*db)->Flush({}));
          std::string value;
          c->Expect((*db)->Get({}, "behind", &value));
          c->Expect(value == "last", value);
          c->Expect((*db)->Get({}, "stuck", &value));
          c->Expect(value == "19999", value);
          c->Expect((*db)->Close());
          db->reset();
        });
        return std::to_string(scheduler->steps());
      },
      3);
}

}  // namespace
}  // namespace nacre::sim
