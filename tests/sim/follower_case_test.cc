// Goal: a follower takes nothing for damaged that is only out of its sight: what stories
// (tests/support/sim_story.h) have found wrong there stays mended.
// Method: a small simulated cluster, in which just that happens, for several seeds each.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "tests/support/sim_case.h"

namespace nacre::sim {
namespace {

std::vector<ExtentAddr> ManifestCopies(const ctl::DatabaseView& view) {
  return view.manifest.copies;
}

TEST(FollowerCaseTest, AManifestThatIsDamagedWhereItIsKnownIsReadWhereNodesHaveJoined) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        const ProcessId owner = c->NewProcess("owner");
        const ProcessId follower = c->NewProcess("follower");
        std::unique_ptr<DB> db;
        std::unique_ptr<DB> following;
        c->In(owner, [&] {
          c->Expect(DB::Open(c->DatabaseOptions(), "db", &db));
          c->Expect(db->Put({}, "key", "before"));
        });
        c->In(follower,
              [&] { c->Expect(DB::OpenAsSecondary(c->DatabaseOptions(), "db", &following)); });
        const size_t joined = c->cluster().size();
        c->AddNodes(1);
        for (size_t i = 1; i < joined; ++i) c->Drain(i);
        const std::vector<size_t> expected{0, joined};
        c->Await("the manifest to move", [&] { return c->ManifestNodes() == expected; });
        c->In(owner, [&] { c->Expect(db->Put({}, "key", "after")); });
        c->Damage(0, 64, ManifestCopies);
        c->In(follower, [&] {
          c->Expect(following->TryCatchUpWithPrimary());
          std::string value;
          c->Expect(following->Get({}, "key", &value));
          c->Expect(value == "after", "it shows " + value);
        });
        return std::to_string(scheduler->steps());
      },
      3);
}

}  // namespace
}  // namespace nacre::sim
