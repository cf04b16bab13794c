// Goal: while tables are repaired slowly, the database follows its nodes, and what is nearest to
// being lost is repaired first whenever that changes.
// Method: a limit so low that one repair lasts for the whole story; nodes die one after another.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "ctl/database_view.h"
#include "nacre/db.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/test_db.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr size_t kRepairKeys = 512;
constexpr size_t kKeysPerTable = 8;
constexpr size_t kRepairValueBytes = 7000;

std::string RepairKey(size_t i) { return "key" + std::to_string(1000 + i); }

/// Makes enough tables for several batches of a repair.
Options ManyTables(Case* c) {
  Options options = c->DatabaseOptions();
  options.redundancy = "rep(3)";
  options.disable_auto_compactions = true;
  options.level0_slowdown_writes_trigger = 2 * kRepairKeys;
  options.level0_stop_writes_trigger = 2 * kRepairKeys;
  return options;
}

void Fill(Case* c, DB* db) {
  for (size_t i = 0; i < kRepairKeys; ++i) {
    c->Expect(db->Put({}, RepairKey(i), TestValue(i, kRepairValueBytes)));
    if (i % kKeysPerTable == kKeysPerTable - 1) c->Expect(db->Flush({}));
  }
}

void CheckRepaired(Case* c, DB* db) {
  for (size_t i = 0; i < kRepairKeys; i += 7) {
    std::string value;
    c->Expect(db->Get({}, RepairKey(i), &value));
    c->Expect(value == TestValue(i, kRepairValueBytes), "another value of " + RepairKey(i));
  }
}

/// For each table, the nodes that have a fragment of it.
std::vector<std::vector<size_t>> NodesOfTables(Case* c) {
  std::vector<std::vector<size_t>> tables;
  c->Await("a look at the tables", [&] {
    tables.clear();
    return c
        ->WithPool([&](pool::PoolClient* client) {
          ctl::DatabaseView view;
          NACRE_RETURN_IF_ERROR(ctl::ViewDatabase(client, "db", &view));
          for (const auto& [id, table] : view.state.tables) {
            std::vector<size_t>& nodes = tables.emplace_back();
            for (const ExtentAddr& extent : table.second.placement.fragments) {
              const auto node = static_cast<NodeId>(extent.start.node);
              if (node == kLostNode || !client->alive(node)) continue;
              for (size_t i = 0; i < c->cluster().size(); ++i) {
                if (c->cluster().AddressOf(i) == client->node_address(node)) nodes.push_back(i);
              }
            }
          }
          return Status::OK();
        })
        .ok();
  });
  return tables;
}

// Most of the nodes that there were die, and none but the first has a table.
TEST(RepairCaseTest, TheMembersOfTheRootFollowTheNodesWhileARepairGoesOn) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kJoin = 8;
        const ProcessId owner = c->NewProcess("owner");
        Options options = ManyTables(c);
        options.repair_bytes_per_second = 1;
        std::unique_ptr<DB> db;
        c->In(owner, [&] {
          c->Expect(DB::Open(options, "db", &db));
          Fill(c, db.get());
        });
        const size_t before = c->cluster().size();
        c->AddNodes(kJoin);
        size_t members = before + kJoin;
        c->Await("the nodes to join", [&] { return c->RootMembers() == members; });
        // There are no writes: the database has only its thread to notice what dies.
        for (size_t dead = 0; dead < 7; ++dead) {
          c->cluster().KillNode(dead == 0 ? 0 : before + dead, /*told=*/true);
          --members;
          c->Await("the root to follow", [&] { return c->RootMembers() == members; });
        }
        uint64_t left = 0;
        c->In(owner, [&] {
          c->Expect(db->GetIntProperty("nacre.repair.tables-left", &left), "no such property");
          CheckRepaired(c, db.get());
          c->Expect(db->Put({}, "after", "value"));
          c->Expect(db->Flush({}));
        });
        c->Expect(left > 0, "the repair was over");
        return std::to_string(scheduler->steps());
      },
      4);
}

TEST(RepairCaseTest, WhatIsNearestToBeingLostComesFirstAlsoIfThatChanges) {
  Tell(
      [](Scheduler*, Case* c) {
        const ProcessId owner = c->NewProcess("owner");
        Options options = ManyTables(c);
        // A batch of 16 tables takes some seconds.
        options.repair_bytes_per_second = 256 << 10;
        std::unique_ptr<DB> db;
        c->In(owner, [&] {
          c->Expect(DB::Open(options, "db", &db));
          Fill(c, db.get());
        });
        c->AddNodes(2);
        c->Await("the nodes to join", [&] { return c->RootMembers() == c->cluster().size(); });
        const std::vector<std::vector<size_t>> tables = NodesOfTables(c);
        c->Expect(tables.size() > 40, "there are " + std::to_string(tables.size()) + " tables");
        const auto has = [](const std::vector<size_t>& nodes, size_t node) {
          return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
        };
        c->cluster().KillNode(0, /*told=*/true);
        Clock::System()->SleepFor(seconds(1));
        c->cluster().KillNode(1, /*told=*/true);
        // Those that lost one fragment to the first node, and none to the second, can wait.
        size_t waiting = 0;
        c->Await("those that lost two to be repaired", [&] {
          const std::vector<std::vector<size_t>> now = NodesOfTables(c);
          if (now.size() != tables.size()) return false;
          waiting = 0;
          bool none = true;
          for (size_t i = 0; i < now.size(); ++i) {
            if (now[i].size() == 1) none = false;
            if (now[i].size() == 2 && has(tables[i], 0) && !has(tables[i], 1)) ++waiting;
          }
          return none;
        });
        size_t both = 0;
        size_t first = 0;
        for (const auto& nodes : tables) {
          both += has(nodes, 0) && has(nodes, 1) ? 1 : 0;
          first += has(nodes, 0) && !has(nodes, 1) ? 1 : 0;
        }
        c->Expect(both > 16, "only " + std::to_string(both) + " tables were near to being lost");
        // Some were repaired before the second node died. In the order of the tables' numbers
        // hardly any would be left.
        c->Expect(3 * waiting > first, "of " + std::to_string(first) + " tables that could wait " +
                                           std::to_string(waiting) + " did");
        return std::to_string(waiting);
      },
      4);
}

}  // namespace
}  // namespace nacre::sim
