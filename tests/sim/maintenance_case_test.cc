// Goal: a node in maintenance may be away for its time: the database does without it from the
// start, copies nothing meanwhile, and loses nothing if another node dies; and it repairs what was
// there as soon as the node is known not to come back, or is late.
// Method: the network to a node is cut off from the owner, or the node is killed, after nacre-ctl's
// order, and the bytes that were repaired are counted.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ctl/maintenance_command.h"
#include "nacre/db.h"
#include "nacre/logger.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/test_db.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::sim {
namespace {

using std::chrono::seconds;

constexpr size_t kFirstKeys = 64;
constexpr size_t kKeysOfTable = 8;
constexpr uint64_t kMaintenanceSeeds = 4;

std::string StoredKey(size_t i) { return "key" + std::to_string(1000 + i); }

class WarningLog final : public Logger {
 public:
  /// `next` gets all lines, and may be null.
  explicit WarningLog(std::shared_ptr<Logger> next) : next_(std::move(next)) {}
  void Log(LogLevel level, std::string_view message) override {
    if (next_ != nullptr) next_->Log(level, message);
    MutexLock lock(&mutex_);
    if (level == LogLevel::kWarn) text_ += std::string(message) + '\n';
  }
  bool Has(const std::string& text) const {
    MutexLock lock(&mutex_);
    return text_.find(text) != std::string::npos;
  }

 private:
  const std::shared_ptr<Logger> next_;
  mutable Mutex mutex_;
  std::string text_ GUARDED_BY(mutex_);
};

/// A database under rep(3) with some tables, and a node that has a part of the first of them.
struct Maintained {
  explicit Maintained(Case* test_case) : c(test_case), owner(c->NewProcess("owner")) {
    Options options = c->DatabaseOptions();
    options.redundancy = "rep(3)";
    options.disable_auto_compactions = true;
    options.level0_slowdown_writes_trigger = 1000;
    options.level0_stop_writes_trigger = 1000;
    options.info_log = log;
    c->In(owner, [&] {
      c->Expect(DB::Open(options, "db", &db));
      Write(kFirstKeys);
    });
    const std::vector<size_t> nodes = TableNodes(1);
    c->Expect(!nodes.empty(), "there is no table");
    away = nodes.front();
  }

  /// By the owner's process. Each write is acknowledged.
  void Write(size_t count) {
    for (size_t end = keys + count; keys < end; ++keys) {
      c->Expect(db->Put({}, StoredKey(keys), TestValue(keys, 3000)));
      if (keys % kKeysOfTable == kKeysOfTable - 1) c->Expect(db->Flush({}));
    }
  }
  void WriteForAWhile() {
    c->In(owner, [&] {
      for (int i = 0; i < 10; ++i) {
        Write(kKeysOfTable);
        Clock::System()->SleepFor(seconds(3));
      }
    });
  }
  void ExpectAll() {
    c->In(owner, [&] {
      for (size_t i = 0; i < keys; ++i) {
        std::string value;
        c->Expect(db->Get({}, StoredKey(i), &value));
        c->Expect(value == TestValue(i, 3000), "another value of " + StoredKey(i));
      }
    });
  }
  uint64_t Property(const std::string& name) {
    uint64_t value = 0;
    c->In(owner, [&] { c->Expect(db->GetIntProperty(name, &value), "no property " + name); });
    return value;
  }
  uint64_t Repaired() { return Property("nacre.repair.bytes-done"); }

  /// The nodes of those tables that were made first.
  std::vector<size_t> TableNodes(size_t tables) {
    return c->NodesOf([&](const ctl::DatabaseView& view) {
      std::vector<ExtentAddr> extents;
      size_t seen = 0;
      for (const auto& [id, table] : view.state.tables) {
        if (seen++ == tables) break;
        const auto& fragments = table.second.placement.fragments;
        extents.insert(extents.end(), fragments.begin(), fragments.end());
      }
      return extents;
    });
  }
  /// The nodes of those that were made last.
  std::vector<size_t> NewestNodes(size_t tables) {
    return c->NodesOf([&](const ctl::DatabaseView& view) {
      std::vector<ExtentAddr> extents;
      for (auto it = view.state.tables.rbegin(); it != view.state.tables.rend() && tables > 0;
           ++it, --tables) {
        const auto& fragments = it->second.second.placement.fragments;
        extents.insert(extents.end(), fragments.begin(), fragments.end());
      }
      return extents;
    });
  }
  static bool Has(const std::vector<size_t>& nodes, size_t node) {
    return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
  }

  /// Returns when the node can be stopped.
  void Begin(seconds time) {
    c->Expect(c->WithPool([&](pool::PoolClient* client) {
      return ctl::BeginMaintenance(client, {.node = c->cluster().AddressOf(away), .time = time});
    }));
    c->Expect(!Has(c->ManifestNodes(), away), "its manifest is there");
    c->Expect(!Has(c->LogNodes(), away), "its log is there");
  }
  void CutOffNode() {
    c->CutOff(owner, away);
    c->Await("the owner to notice", [&] { return c->RootMembers() == c->cluster().size() - 1; });
  }

  Case* const c;
  const ProcessId owner;
  const std::shared_ptr<WarningLog> log = std::make_shared<WarningLog>(c->cluster().NewLogger());
  std::unique_ptr<DB> db;
  size_t keys = 0;
  size_t away = 0;
};

TEST(MaintenanceCaseTest, ANodeThatComesBackInTimeIsWhatItWasAndNothingWasCopied) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        auto* const m = new Maintained(c);
        m->Begin(seconds(600));
        m->CutOffNode();
        m->WriteForAWhile();
        m->ExpectAll();
        c->Expect(m->Repaired() == 0, "something was repaired while it was away");
        c->Expect(m->Property("nacre.repair.tables-left") == 0, "something waits to be repaired");
        c->Heal();
        c->Await("the node", [&] { return c->RootMembers() == c->cluster().size(); });
        Clock::System()->SleepFor(seconds(5));
        // Afterwards connections that were cut off are met, and the node is down for a moment.
        c->Expect(m->Repaired() == 0, "something was repaired after it was back");
        c->Expect(c->WithPool([&](pool::PoolClient* client) {
          return ctl::EndMaintenance(client, c->cluster().AddressOf(m->away));
        }));
        c->AwaitSpare(2);
        c->Expect(Maintained::Has(m->TableNodes(1), m->away), "the table has left it");
        // The database uses it again, once what is there is no more than what the others have.
        c->Await("a new table there", [&] {
          c->In(m->owner, [&] { m->Write(kKeysOfTable); });
          return Maintained::Has(m->NewestNodes(1), m->away);
        });
        m->ExpectAll();
        return std::to_string(scheduler->steps());
      },
      {.nodes = 6}, kMaintenanceSeeds);
}

TEST(MaintenanceCaseTest, WhenAnotherNodeDiesWhatHasLostBothIsRepairedAndNothingIsLost) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        auto* const m = new Maintained(c);
        m->Begin(seconds(600));
        m->CutOffNode();
        // One that shares a table with the node that is away.
        const std::vector<size_t> nodes = m->TableNodes(1);
        const auto other =
            std::find_if(nodes.begin(), nodes.end(), [&](size_t node) { return node != m->away; });
        c->Expect(other != nodes.end(), "the table is nowhere else");
        c->cluster().KillNode(*other, /*told=*/true);
        m->ExpectAll();
        c->Await("repair",
                 [&] { return m->Repaired() > 0 && m->Property("nacre.repair.tables-left") == 0; });
        c->In(m->owner, [&] { m->Write(kKeysOfTable); });
        // A third one: what has lost two of three by now is not among what had lost two before.
        const std::vector<size_t> now = m->TableNodes(1);
        const auto third =
            std::find_if(now.begin(), now.end(), [&](size_t node) { return node != m->away; });
        c->Expect(third != now.end(), "the table is nowhere");
        c->cluster().KillNode(*third, /*told=*/true);
        m->ExpectAll();
        c->In(m->owner, [&] { m->Write(kKeysOfTable); });
        m->ExpectAll();
        return std::to_string(scheduler->steps());
      },
      {.nodes = 7}, kMaintenanceSeeds);
}

TEST(MaintenanceCaseTest, WhatIsOnANodeThatIsLateIsRepairedAndTheLogSaysWhy) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        auto* const m = new Maintained(c);
        m->Begin(seconds(20));
        m->CutOffNode();
        c->Expect(m->Repaired() == 0, "something was repaired too early");
        c->Await("repair", [&] { return m->Repaired() > 0; });
        c->Expect(m->log->Has("has not come back from maintenance"), "the log does not say why");
        c->Await("its end", [&] { return m->Property("nacre.repair.tables-left") == 0; });
        m->ExpectAll();
        return std::to_string(scheduler->steps());
      },
      {.nodes = 6}, kMaintenanceSeeds);
}

TEST(MaintenanceCaseTest, WhatWasOnANodeThatComesBackEmptyIsRepairedAtOnce) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        auto* const m = new Maintained(c);
        m->Begin(seconds(24 * 3600));
        c->cluster().KillNode(m->away, /*told=*/true);
        m->WriteForAWhile();
        c->Expect(m->Repaired() == 0, "something was repaired while it was away");
        c->cluster().StartNode(m->away);
        c->cluster().AwaitNodes();
        c->Await("repair",
                 [&] { return m->Repaired() > 0 && m->Property("nacre.repair.tables-left") == 0; });
        c->Expect(m->log->Has("has not come back from maintenance"), "the log does not say why");
        c->AwaitSpare(2);
        m->ExpectAll();
        return std::to_string(scheduler->steps());
      },
      {.nodes = 6}, kMaintenanceSeeds);
}

}  // namespace
}  // namespace nacre::sim
