// Goal: a node that falls silent while its connections stand (a process that is stopped, over a
// transport that its process serves) holds others up once, and is there again when it answers.
// Method: all between an owner and a node is held back, which no connection without requests
// notices.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "nacre/db.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/test_db.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kSilenceSecond = 1'000'000'000;

TEST(SilenceCaseTest, ASilentNodeHoldsWritesUpOnceAndComesBack) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kNodes = 4;
        const ProcessId owner = c->NewProcess("owner");
        std::unique_ptr<DB> db;
        c->In(owner, [&] { c->Expect(DB::Open(c->DatabaseOptions(), "db", &db)); });
        const std::vector<size_t> log = c->LogNodes();
        c->Expect(log.size() == 2, "the log has not two copies");
        c->CutOff(owner, log[0]);
        size_t slow = 0;
        uint64_t written = 0;
        c->In(owner, [&] {
          const uint64_t end = scheduler->TrueNanos() + 30 * kSilenceSecond;
          for (; scheduler->TrueNanos() < end; ++written) {
            const uint64_t start = scheduler->TrueNanos();
            c->Expect(db->Put({}, "key" + std::to_string(written), TestValue(written, 5000)));
            if (scheduler->TrueNanos() - start > kSilenceSecond / 5) ++slow;
            Clock::System()->SleepFor(milliseconds(50));
          }
        });
        // The log's open segment, and what a flush or the manifest has on its way there.
        c->Expect(slow <= 4, std::to_string(slow) + " writes were held up");
        c->Await("the root to do without it", [&] { return c->RootMembers() == kNodes - 1; });
        for (int look = 0; look < 30; ++look) {
          c->Expect(c->RootMembers() != kNodes, "the root names it though it is silent");
          Clock::System()->SleepFor(milliseconds(100));
        }
        c->Heal();
        c->Await("the node to be back", [&] { return c->RootMembers() == kNodes; });
        c->In(owner, [&] {
          c->Expect(db->Flush({}));
          for (uint64_t i = 0; i < written; i += 11) {
            std::string value;
            c->Expect(db->Get({}, "key" + std::to_string(i), &value));
            c->Expect(value == TestValue(i, 5000), "another value");
          }
        });
        return std::to_string(slow);
      },
      4);
}

TEST(SilenceCaseTest, NodesThatDoNotAnswerDoNotKeepOthersFromJoining) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        constexpr size_t kSilent = 12;
        const ProcessId owner = c->NewProcess("owner");
        std::unique_ptr<DB> db;
        c->In(owner, [&] { c->Expect(DB::Open(c->DatabaseOptions(), "db", &db)); });
        const size_t before = c->cluster().size();
        c->AddNodesCutOffFrom(owner, kSilent);
        Clock::System()->SleepFor(seconds(5));
        const uint64_t start = scheduler->TrueNanos();
        c->AddNodes(1);
        c->Await("the node to join", [&] { return c->RootMembers() == before + 1; });
        // It takes the owner a second to hear of it.
        c->Expect(scheduler->TrueNanos() - start < 2 * kSilenceSecond, "it was held up");
        return std::to_string(scheduler->steps());
      },
      3);
}

}  // namespace
}  // namespace nacre::sim
