// Goal: no space is lost because an answer was.
// Method: a small simulated cluster, in which just that happens, for several seeds.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "pool/connect/pool_device.h"
#include "pool/databases.h"
#include "pool/reports.h"
#include "pool/space/space_allocator.h"
#include "pool/wire/node_stats.h"
#include "tests/support/sim/sim_case.h"
#include "util/clock.h"
#include "util/uri.h"

namespace nacre::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(SpaceCaseTest, SlabsWhoseReturnWasNotAnsweredAreReturnedAgain) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const ProcessId owner = c->NewProcess("owner");
        c->In(owner, [&] {
          Uri pool;
          c->Expect(ParseUri(c->cluster().pool_uri(), &pool));
          std::unique_ptr<rdma::Device> device;
          std::unique_ptr<pool::PoolClient> client;
          pool::PoolClientOptions options;
          options.slab_bytes = 1 << 20;
          options.operation_timeout = milliseconds(500);
          c->Expect(pool::OpenPoolDevice(pool, {}, Clock::System(), &device));
          c->Expect(
              pool::PoolClient::Connect(pool, options, device.get(), Clock::System(), &client));
          pool::DatabaseLease lease;
          c->Expect(client->databases()->Open("db", {.create_if_missing = true}, &lease));
          c->Expect(client->databases()->PublishRoot(lease.database_id, "root"));
          pool::SpaceAllocator space(client.get(), lease.database_id, 1 << 20, 4096);
          const auto leased = [&] {
            pool::NodeStats stats;
            return pool::GetStats(client.get(), 0, &stats).ok() ? stats.slabs_leased : UINT64_MAX;
          };
          const auto reserve = [&] {
            Placement placement;
            c->Expect(space.Reserve(Redundancy::Copies(1), 900 << 10, 0, &placement));
            return placement;
          };
          std::vector<Placement> tables;
          for (int i = 0; i < 3; ++i) tables.push_back(reserve());
          c->Await("slabs", [&] { return leased() >= 3 && leased() != UINT64_MAX; });
          c->CutOff(owner, 0);
          for (const Placement& table : tables) space.Free(table);
          scheduler->SleepFor(seconds(5));
          c->Heal();
          c->Await("the node", [&] { return client->alive(0); });
          // What is still to be done is done with what comes next.
          space.Free(reserve());
          c->Await("the slabs' return", [&] { return leased() == 0; });
        });
        return std::to_string(scheduler->steps());
      },
      3);
}

}  // namespace
}  // namespace nacre::sim
