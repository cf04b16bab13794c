// Goal: a job that a node runs, and a write of the owner itself, changes nothing any more once the
// owner has given it up, however long the node was stopped meanwhile.
// Method: a small simulated cluster, in which just that happens, for several seeds each.

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ctl/database_view.h"
#include "ctl/fsck.h"
#include "nacre/db.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_run.h"
#include "util/clock.h"
#include "util/named_point.h"

namespace nacre::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kJobKeys = 200;
/// Tables are written in pieces that are longer; answers to requests are shorter.
constexpr uint64_t kPieceBytes = 1 << 10;

/// Each round has keys of its own between those of all others, so nothing is ever shadowed, and
/// what was written over by mistake stays so.
std::string JobKey(int i, int round) { return "key" + std::to_string(100'000 + 100 * i + round); }
std::string JobValue(int i, int round) {
  return std::string(600, static_cast<char>('a' + (i + round) % 26)) + std::to_string(round);
}

void Write(Case* c, DB* db, int round) {
  for (int i = 0; i < kJobKeys; ++i) c->Expect(db->Put({}, JobKey(i, round), JobValue(i, round)));
}

/// That no copy and no parity of anything is damaged.
void CheckNodes(Case* c) {
  c->Expect(c->WithPool([&](pool::PoolClient* client) {
    const ctl::FsckReport report = ctl::Fsck(client, {.database = "db", .full = true});
    for (const Status& failure : report.failures) c->Expect(failure);
    for (const ctl::Finding& finding : report.findings) c->Fail(ctl::ToString(finding));
    return Status::OK();
  }));
}

/// All keys, by reading each byte of each table.
void CheckRounds(Case* c, DB* db, int rounds) {
  c->Expect(db->VerifyChecksum());
  // Redundancy hides what one node lost, and a scrub has it repaired; here nothing is lost.
  for (const char* property : {"nacre.damage.reads", "nacre.scrub.damaged-fragments"}) {
    uint64_t damaged = 0;
    c->Expect(db->GetIntProperty(property, &damaged), "no such property");
    c->Expect(damaged == 0, property + (" is " + std::to_string(damaged)));
  }
  for (int round = 1; round <= rounds; ++round) {
    for (int i = 0; i < kJobKeys; ++i) {
      std::string value;
      c->Expect(db->Get({}, JobKey(i, round), &value));
      c->Expect(value == JobValue(i, round), JobKey(i, round) + " has another value");
    }
  }
}

struct Progress {
  bool armed = false;
  ProcessId stopped = 0;
  bool written = false;
};

struct Stop {
  Options options;
  /// What has a node run a job once tables are there.
  std::function<void(ProcessId owner, const Progress* progress)> begin{};
  /// The node is stopped when it is about to write something of the job to another node: then
  /// nothing keeps it from that when it goes on. Else in the middle of anything.
  bool before_write = false;
};

/// Has a node that takes a job once `progress` is armed stopped.
void StopWhoTakesAJob(Scheduler* scheduler, Case* c, bool before_write, Progress* progress) {
  SetPointVisitor([=](const char* name) {
    if (!progress->armed || std::string_view(name) != "node.job-begun") return;
    const ProcessId node = scheduler->process();
    const auto stop_node = [=] {
      if (!std::exchange(progress->armed, false)) return;
      progress->stopped = node;
      scheduler->Stop(node);
    };
    rdma::SimNetwork* const network = &c->cluster().network();
    if (before_write) {
      network->BeforeWrite(node, kPieceBytes, 1 + scheduler->Uniform(4), stop_node);
    } else {
      network->AtRequest(node, 1 + scheduler->Uniform(25), stop_node);
    }
  });
}

/// The node goes on while nothing changes what is there, and then all is sound.
void GoOnAndCheck(Scheduler* scheduler, Case* c, ProcessId owner, DB* db, int rounds,
                  const Progress& progress) {
  c->Expect(progress.stopped != 0, "no node was stopped");
  SetPointVisitor(nullptr);
  c->In(owner, [=] {
    c->Await("whole tables", [=] { return db->WaitForCompact().ok(); });
    scheduler->Continue(progress.stopped);
    scheduler->SleepFor(seconds(5));
  });
  for (size_t i = 0; i < c->cluster().size(); ++i) {
    if (!c->cluster().running(i)) c->cluster().StartNode(i);
  }
  c->cluster().AwaitNodes();
  CheckNodes(c);
  c->In(owner, [=] {
    CheckRounds(c, db, rounds);
    c->Expect(db->Close());
  });
}

/// Writes more rounds after `*round`, for longer than any timeout.
void WriteForLong(Scheduler* scheduler, Case* c, ProcessId owner, DB* db, int* round,
                  Progress* progress) {
  constexpr uint64_t kStopNanos = 40'000'000'000;
  c->cluster().Run(owner, "writes", [=] {
    const uint64_t end = scheduler->TrueNanos() + kStopNanos;
    while (scheduler->TrueNanos() < end) {
      Write(c, db, ++*round);
      db->Flush({}).IgnoreError();
      scheduler->SleepFor(seconds(4));
    }
    progress->written = true;
  });
  c->Await("the writes", [=] { return progress->written; });
}

/// A node that has taken a job of the database's is stopped for longer than any timeout, while the
/// owner goes on, and uses the space again. Then the node goes on with the job.
std::string StopAnExecutor(Scheduler* scheduler, Case* c, const Stop& stop) {
  const ProcessId owner = c->NewProcess("owner");
  auto* const db = new std::unique_ptr<DB>;  // Ends with its process.
  auto* const progress = new Progress;
  StopWhoTakesAJob(scheduler, c, stop.before_write, progress);
  int round = 0;
  c->In(owner, [&] {
    c->Expect(DB::Open(stop.options, "db", db));
    Write(c, db->get(), ++round);
    c->Expect((*db)->Flush({}));
    progress->armed = true;
  });
  if (stop.begin != nullptr) stop.begin(owner, progress);
  WriteForLong(scheduler, c, owner, db->get(), &round, progress);
  GoOnAndCheck(scheduler, c, owner, db->get(), round, *progress);
  return std::to_string(scheduler->steps());
}

/// The same, but it is the owner that dies when the node is stopped, and the next one that goes on.
std::string StopAnExecutorAndReplaceItsOwner(Scheduler* scheduler, Case* c, Options options) {
  const ProcessId first = c->NewProcess("first");
  const ProcessId second = c->NewProcess("second");
  auto* const db = new std::unique_ptr<DB>;
  auto* const next = new std::unique_ptr<DB>;
  auto* const progress = new Progress;
  StopWhoTakesAJob(scheduler, c, /*before_write=*/true, progress);
  int round = 0;
  c->In(first, [&] {
    c->Expect(DB::Open(options, "db", db));
    progress->armed = true;
    for (int i = 0; i < 2; ++i) {
      Write(c, db->get(), ++round);
      c->Expect((*db)->Flush({}));
    }
  });
  c->Await("a job", [=] { return progress->stopped != 0; });
  c->cluster().KillProcess(first, /*told=*/true);
  options.take_over = true;
  c->In(second, [&] { c->Expect(DB::Open(options, "db", next)); });
  WriteForLong(scheduler, c, second, next->get(), &round, progress);
  GoOnAndCheck(scheduler, c, second, next->get(), round, *progress);
  return std::to_string(scheduler->steps());
}

/// A node is stopped while the owner itself writes tables there, so long that the owner gives the
/// writes up and frees their space: at one of the owner's next `requests` after it has come to
/// `point`. Then the node goes on, and stores what waited in its sockets
/// while the owner writes new tables.
std::string StopATarget(Scheduler* scheduler, Case* c, const Options& options, const char* point,
                        uint64_t requests) {
  constexpr uint64_t kStopNanos = 30'000'000'000;
  const ProcessId owner = c->NewProcess("owner");
  auto* const db = new std::unique_ptr<DB>;  // Ends with its process.
  struct Armed {
    bool armed = false;
    uint64_t goes_on_at = 0;
  };
  auto* const progress = new Armed;
  SetPointVisitor([=](const char* name) {
    if (!progress->armed || std::string_view(name) != point) return;
    progress->armed = false;
    c->cluster().network().AtRequest(owner, 1 + scheduler->Random() % requests, [=] {
      progress->goes_on_at = scheduler->TrueNanos() + kStopNanos;
      c->cluster().StopNode(scheduler->Random() % c->cluster().size(), kStopNanos);
    });
  });
  int round = 0;
  c->In(owner, [&] {
    c->Expect(DB::Open(options, "db", db));
    for (int i = 0; i < 3; ++i) {
      Write(c, db->get(), ++round);
      c->Expect((*db)->Flush({}));
    }
  });
  auto* const written = new bool(false);
  c->cluster().Run(owner, "writes", [&, c] {
    progress->armed = true;
    for (int i = 0; progress->goes_on_at == 0 && i < 4; ++i) {
      Write(c, db->get(), ++round);
      (*db)->Flush({}).IgnoreError();
    }
    c->Expect(progress->goes_on_at != 0, "no node was stopped");
    // What was given up has been freed by then.
    while (scheduler->TrueNanos() < progress->goes_on_at) scheduler->SleepFor(milliseconds(20));
    for (int i = 0; i < 30; ++i) {
      Write(c, db->get(), ++round);
      c->Expect((*db)->Flush({}));
      scheduler->SleepFor(milliseconds(50));
    }
    *written = true;
  });
  c->Await("the writes", [=] { return *written; });
  SetPointVisitor(nullptr);
  c->In(owner, [&] {
    c->Await("whole tables", [&] { return (*db)->WaitForCompact().ok(); });
    CheckRounds(c, db->get(), round);
    c->Await("the end of what was given up", [&] {
      uint64_t bytes = 0;
      return (*db)->GetIntProperty("nacre.space.quarantined-bytes", &bytes) && bytes == 0;
    });
    c->Expect((*db)->Close());
  });
  return std::to_string(scheduler->steps());
}

/// The owner flushes and compacts by itself.
Options OwnerWorks(Case* c) {
  Options options = c->DatabaseOptions();
  options.near_data_flush = NearDataFlush::kOff;
  options.compaction = CompactionSite::kCompute;
  // The target is awaited for as long as any operation may take, so it has much to store when it
  // goes on: a slow one is left before.
  options.slow_node_patience_max = std::chrono::milliseconds(0);
  return options;
}

TEST(JobCaseTest, WhatAnOwnersFlushHasGivenUpIsStoredOverNothing) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        Options options = OwnerWorks(c);
        options.disable_auto_compactions = true;
        options.level0_slowdown_writes_trigger = 100;
        options.level0_stop_writes_trigger = 100;
        return StopATarget(scheduler, c, options, "flush.begin", 12);
      },
      4);
}

TEST(JobCaseTest, WhatAnOwnersCompactionHasGivenUpIsStoredOverNothing) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        return StopATarget(scheduler, c, OwnerWorks(c), "compaction.space-reserved", 150);
      },
      12);
}

/// Flushes are this process's, so what a node runs is a compaction, or a repair.
Options NodesCompact(Case* c) {
  Options options = c->DatabaseOptions();
  options.near_data_flush = NearDataFlush::kOff;
  options.compaction = CompactionSite::kAuto;
  // A job that is done again writes each part of a table to another node: the same bytes in the
  // same place would show nothing.
  options.redundancy = "rs(2,1)";
  options.target_file_size_base = 160 << 10;
  return options;
}

TEST(JobCaseTest, AStoppedFlushWritesOverNothing) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        Options options = c->DatabaseOptions();
        options.near_data_flush = NearDataFlush::kOn;
        options.compaction = CompactionSite::kCompute;
        return StopAnExecutor(scheduler, c, {.options = options});
      },
      4);
}

TEST(JobCaseTest, ACompactionThatIsStoppedBeforeAWriteWritesOverNothing) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        return StopAnExecutor(scheduler, c, {.options = NodesCompact(c), .before_write = true});
      },
      4);
}

TEST(JobCaseTest, ARepairThatIsStoppedBeforeAWriteWritesOverNothing) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        Options options = NodesCompact(c);
        options.disable_auto_compactions = true;
        options.level0_slowdown_writes_trigger = options.level0_stop_writes_trigger = 1000;
        options.redundancy = "rs(2,2)";
        constexpr size_t kFragments = 4;
        const auto nodes_of_the_table = [=] {
          return c->NodesOf([](const ctl::DatabaseView& view) {
            return view.state.tables.begin()->second.second.placement.fragments;
          });
        };
        // A node repairs what it gets itself; of two fragments another one gets the second, if the
        // owner has heard of both deaths when it plans.
        const auto kill = [=](ProcessId owner, const Progress* progress) {
          std::vector<size_t> nodes;
          const auto whole = [&] {
            return progress->stopped != 0 || (nodes = nodes_of_the_table()).size() == kFragments;
          };
          c->Await("a whole table", whole);
          for (int tries = 0; tries < 8 && progress->stopped == 0; ++tries) {
            const std::vector<size_t> killed{nodes[0], nodes[1]};
            scheduler->Stop(owner);
            for (const size_t node : killed) c->cluster().KillNode(node, /*told=*/true);
            scheduler->SleepFor(seconds(1));
            scheduler->Continue(owner);
            c->Await("a repaired table", whole);
            if (progress->stopped != 0) break;
            for (const size_t node : killed) c->cluster().StartNode(node);
          }
        };
        return StopAnExecutor(scheduler, c,
                              {.options = options, .begin = kill, .before_write = true});
      },
      16);
}

TEST(JobCaseTest, ACompactionOfADeadOwnerWritesOverNothingOfTheNext) {
  Tell([](Scheduler* scheduler,
          Case* c) { return StopAnExecutorAndReplaceItsOwner(scheduler, c, NodesCompact(c)); },
       4);
}

}  // namespace
}  // namespace nacre::sim
