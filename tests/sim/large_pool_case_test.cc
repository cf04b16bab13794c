// Goal: a pool of 256 nodes does what a small one does: a database is made, written, goes on when
// nodes with its log, its manifest and its tables die, and is taken over. Opening a pool with some
// silent nodes waits for all of them together. Method: a simulated cluster of that many small
// nodes.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "pool/connect/pool_device.h"
#include "pool/pool_client.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_run.h"
#include "tests/support/test_db.h"
#include "util/clock.h"
#include "util/uri.h"

namespace nacre::sim {
namespace {

constexpr size_t kLargePoolNodes = 256;
constexpr size_t kLargePoolKeys = 300;
constexpr size_t kSilentPool = 64;

std::string LargePoolKey(size_t i) { return fmt::format("key{:05}", i); }

TEST(LargePoolCaseTest, NodesDieAndAnOwnerIsReplaced) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const ProcessId first = c->NewProcess("first");
        const ProcessId second = c->NewProcess("second");
        const auto options = [c] {
          Options result = c->DatabaseOptions();
          result.redundancy = "rep(3)";
          return result;
        };
        auto* const db = new std::unique_ptr<DB>;  // Ends with its process.
        c->In(first, [&] {
          c->Expect(DB::Open(options(), "db", db));
          for (size_t i = 0; i < kLargePoolKeys; ++i) {
            c->Expect((*db)->Put({}, LargePoolKey(i), TestValue(i, 200)));
            if (i == kLargePoolKeys / 2) c->Expect((*db)->Flush({}));
          }
        });
        const std::vector<size_t> manifest = c->ManifestNodes();
        c->Expect(manifest.size() == 3, "the manifest has not three copies");
        c->cluster().KillNode(manifest[0], /*told=*/true);
        c->In(first, [&] {
          c->Expect((*db)->Put({}, LargePoolKey(kLargePoolKeys), "last"));
          c->Expect((*db)->Flush({}));
          c->Expect((*db)->Put({}, LargePoolKey(kLargePoolKeys), "later"));
        });
        c->cluster().KillNode(c->LogNodes().at(0), /*told=*/true);
        c->cluster().KillProcess(first, /*told=*/true);
        c->In(second, [&] {
          std::unique_ptr<DB> found;
          c->Await("opening", [&] { return DB::Open(options(), "db", &found).ok(); });
          std::string value;
          for (size_t i = 0; i < kLargePoolKeys; ++i) {
            c->Expect(found->Get({}, LargePoolKey(i), &value));
            c->Expect(value == TestValue(i, 200), LargePoolKey(i) + " has another value");
          }
          c->Expect(found->Get({}, LargePoolKey(kLargePoolKeys), &value));
          c->Expect(value == "later", "the last key has another value");
          c->Expect(found->Close());
        });
        return std::to_string(scheduler->steps());
      },
      {.nodes = kLargePoolNodes, .region_bytes = 4 << 20}, /*seeds=*/2);
}

TEST(LargePoolCaseTest, SilentNodesAreWaitedForTogether) {
  for (const size_t silent : {size_t{1}, size_t{40}}) {
    Tell(
        [silent](Scheduler* scheduler, Case* c) {
          const ProcessId client = c->NewProcess("client");
          for (size_t i = 0; i < silent; ++i) c->CutOff(client, 5 + i);
          c->In(client, [&] {
            Uri pool;
            c->Expect(ParseUri(c->cluster().pool_uri(), &pool));
            std::unique_ptr<rdma::Device> device;
            std::unique_ptr<pool::PoolClient> opened;
            c->Expect(pool::OpenPoolDevice(pool, {}, Clock::System(), &device));
            pool::PoolClientOptions options;
            options.slab_bytes = 0;
            const uint64_t start = Clock::System()->NowNanos();
            c->Expect(
                pool::PoolClient::Connect(pool, options, device.get(), Clock::System(), &opened));
            // In the simulation's time, in which nothing but waiting takes any: one attempt for
            // all, and a short one more for those that were not among the first sixteen.
            const uint64_t millis = (Clock::System()->NowNanos() - start) / 1'000'000;
            c->Expect(millis < 8000, fmt::format("it took {} ms", millis));
            const int alive = opened->alive_count();
            c->Expect(alive == static_cast<int>(kSilentPool - silent),
                      fmt::format("{} nodes are there", alive));
          });
          return std::to_string(scheduler->steps());
        },
        {.nodes = kSilentPool, .region_bytes = 4 << 20}, /*seeds=*/3);
  }
}

}  // namespace
}  // namespace nacre::sim
