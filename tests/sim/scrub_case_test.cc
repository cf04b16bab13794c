// Goal: damage in one copy of the log or of the manifest is healed before the other copies are
// lost, so that the next owner finds all that was acknowledged; and records of which no copy is
// whole are in tables by then.
// Method: a small simulated cluster. Bits of one node's copies are flipped, the owner scrubs, by
// itself or as it is asked to, and dies together with the nodes that have the other copies.

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

using std::chrono::seconds;

constexpr int kScrubKeys = 300;

std::vector<ExtentAddr> LogCopies(const ctl::DatabaseView& view) {
  std::vector<ExtentAddr> copies;
  for (const auto& [number, segment] : view.state.segments) {
    copies.insert(copies.end(), segment.copies.begin(), segment.copies.end());
  }
  return copies;
}

std::vector<ExtentAddr> ManifestCopies(const ctl::DatabaseView& view) {
  return view.manifest.copies;
}

class ScrubCase {
 public:
  ScrubCase(Case* c, uint64_t bytes_per_second) : case_(c), owner_(c->NewProcess("owner")) {
    options_ = c->DatabaseOptions();
    options_.scrub_bytes_per_second = bytes_per_second;
    case_->In(owner_, [this] {
      case_->Expect(DB::Open(options_, "db", db_));
      for (int i = 0; i < kScrubKeys; ++i) {
        case_->Expect((*db_)->Put({}, "key" + std::to_string(i), TestValue(i, 100)));
      }
    });
  }

  uint64_t Number(const char* name) {
    uint64_t number = 0;
    case_->In(owner_, [&] { number = GetNumber(db_->get(), name); });
    return number;
  }
  void Verify() {
    case_->In(owner_, [this] { case_->Expect((*db_)->VerifyChecksum()); });
  }
  /// The owner dies, and `nodes` with it; all is there nevertheless.
  void ExpectAllWithout(const std::vector<size_t>& nodes) {
    case_->cluster().KillProcess(owner_, /*told=*/true);
    for (const size_t node : nodes) case_->cluster().KillNode(node, /*told=*/true);
    case_->In(case_->NewProcess("next"), [this] {
      std::unique_ptr<DB> db;
      case_->Await("opening", [&] { return DB::Open(options_, "db", &db).ok(); });
      for (int i = 0; i < kScrubKeys; ++i) {
        std::string value;
        const std::string key = "key" + std::to_string(i);
        case_->Expect(db->Get({}, key, &value).WithContext(key));
        case_->Expect(value == TestValue(i, 100), "another value of " + key);
      }
    });
  }

  Case* const case_;
  const ProcessId owner_;
  Options options_;
  std::unique_ptr<DB>* const db_ = new std::unique_ptr<DB>;  // Ends with its process.
};

TEST(ScrubCaseTest, ACopyOfTheLogIsHealed) {
  for (const bool by_itself : {false, true}) {
    Tell(
        [by_itself](Scheduler* scheduler, Case* c) {
          ScrubCase scrub(c, by_itself ? 1 << 20 : 0);
          const std::vector<size_t> log = c->LogNodes();
          c->Expect(log.size() == 2, "the log has not two copies");
          c->Damage(log[0], /*step=*/1000, LogCopies);
          if (!by_itself) scrub.Verify();
          c->Await("healing", [&] { return scrub.Number("nacre.scrub.healed-copies") > 0; });
          scrub.Verify();
          c->Expect(scrub.Number("nacre.scrub.damaged-copies") ==
                        scrub.Number("nacre.scrub.healed-copies"),
                    "it is not healed");
          scrub.ExpectAllWithout({log[1]});
          return std::to_string(scheduler->steps());
        },
        4);
  }
}

TEST(ScrubCaseTest, RecordsOfWhichNoCopyIsWholeAreFlushed) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        ScrubCase scrub(c, 0);
        const std::vector<size_t> log = c->LogNodes();
        for (const size_t node : log) c->Damage(node, /*step=*/5000, LogCopies);
        scrub.Verify();
        c->Expect(scrub.Number("nacre.scrub.damaged-copies") == 2, "nothing is damaged");
        c->Await("a flush", [&] { return scrub.Number("nacre.num-live-tables") > 0; });
        // The damaged segment is given up with the flush.
        c->Await("another log", [&] {
          const uint64_t damaged = scrub.Number("nacre.scrub.damaged-copies");
          scrub.Verify();
          return scrub.Number("nacre.scrub.damaged-copies") == damaged;
        });
        scrub.ExpectAllWithout({});
        return std::to_string(scheduler->steps());
      },
      4);
}

TEST(ScrubCaseTest, ADamagedManifestIsRenewed) {
  for (const bool by_itself : {false, true}) {
    Tell(
        [by_itself](Scheduler* scheduler, Case* c) {
          ScrubCase scrub(c, by_itself ? 1 << 20 : 0);
          // An image update would meet the damage first.
          Clock::System()->SleepFor(seconds(2));
          const std::vector<size_t> manifest = c->ManifestNodes();
          c->Expect(manifest.size() == 2, "the manifest has not two copies");
          c->Damage(manifest[0], /*step=*/256, ManifestCopies);
          if (!by_itself) scrub.Verify();
          c->Await("healing", [&] { return scrub.Number("nacre.scrub.healed-copies") > 0; });
          const std::vector<size_t> now = c->ManifestNodes();
          c->Expect(now.size() == 2, "the new manifest has not two copies");
          // The node that was damaged is to be enough, if it has a copy.
          const bool has = std::find(now.begin(), now.end(), manifest[0]) != now.end();
          scrub.ExpectAllWithout({has && now[0] == manifest[0] ? now[1] : now[0]});
          return std::to_string(scheduler->steps());
        },
        4);
  }
}

}  // namespace
}  // namespace nacre::sim
