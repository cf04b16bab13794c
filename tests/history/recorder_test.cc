// Goal: what clients write down of a database that is wrong gives it away, and what they write down
// of one that is right does not, whatever they were not told.
// Method: clients on a database that lies in one way, on one whose owner is fenced under them, and
// histories of a right one in which outcomes are blotted out or one read is made a stale one.

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "nacre/db.h"
#include "tests/history/faulty_db.h"
#include "tests/history/run_checker.h"
#include "tests/support/model/history.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

using Histories = std::vector<std::vector<HistoryOperation>>;

class HistoryRecorderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::unique_ptr<DB> db;
    ASSERT_TRUE(
        IsOk(DB::Open(SmallTableOptions(OpenTestPool({.node_bytes = 64 << 20})), "db", &db)));
    db_ = std::move(db);
    options_.write = NoLog();
    options_.value_bytes = 100;
    options_.seed = random_.Next();
  }

  /// What clients write down of `db`.
  Histories Record(std::shared_ptr<DB> db) {
    HistoryRun run(std::move(db), options_);
    run.Start();
    run.AwaitOperations(4000);
    run.Stop();
    run.ReadAll();
    return run.histories();
  }

  void Check(const Histories& histories, int by_keys, int by_groups) {
    const std::string path = folder_.File("history");
    ASSERT_NO_FATAL_FAILURE(WriteHistories(histories, path));
    const ProcessResult keys = RunChecker("keys", path);
    EXPECT_EQ(keys.exit_code, by_keys) << keys.output;
    const ProcessResult groups = RunChecker("groups", path);
    EXPECT_EQ(groups.exit_code, by_groups) << groups.output;
  }

  const TempFolder folder_;
  Random random_{TestSeed(611)};
  HistoryOptions options_;
  std::shared_ptr<DB> db_;
};

/// What `operation` gave `key`, or found it to have; null if it has nothing to do with it.
std::optional<std::string>* ValueOf(HistoryOperation* operation, const std::string& key) {
  const auto found = std::find(operation->keys.begin(), operation->keys.end(), key);
  if (found == operation->keys.end()) return nullptr;
  return &operation->values[static_cast<size_t>(found - operation->keys.begin())];
}

/// Makes a late read answer what had been overwritten before its call; false if there is none such.
bool MakeOneReadStale(Histories* histories) {
  std::vector<HistoryOperation*> writes;
  std::vector<HistoryOperation*> reads;
  for (std::vector<HistoryOperation>& history : *histories) {
    for (HistoryOperation& operation : history) {
      (operation.write ? writes : reads).push_back(&operation);
    }
  }
  for (HistoryOperation* const read : reads) {
    for (HistoryOperation* const first : writes) {
      const std::optional<std::string>* const value = ValueOf(first, read->keys[0]);
      if (value == nullptr || !value->has_value()) continue;
      for (HistoryOperation* const second : writes) {
        if (first->return_ns < second->call_ns && second->return_ns < read->call_ns &&
            ValueOf(second, read->keys[0]) != nullptr) {
          read->values[0] = *value;
          return true;
        }
      }
    }
  }
  return false;
}

TEST_F(HistoryRecorderTest, ARightHistoryIsExplained) {
  ASSERT_NO_FATAL_FAILURE(Check(Record(db_), kExplained, kExplained));
}

TEST_F(HistoryRecorderTest, OneStaleReadIsFound) {
  Histories histories = Record(db_);
  ASSERT_TRUE(MakeOneReadStale(&histories));
  ASSERT_NO_FATAL_FAILURE(Check(histories, kNotExplained, kNotExplained));
}

TEST_F(HistoryRecorderTest, UnknownOutcomesAreExplainedInTime) {
  Histories histories = Record(db_);
  for (std::vector<HistoryOperation>& history : histories) {
    for (HistoryOperation& operation : history) {
      if (operation.write && random_.OneIn(20)) operation.return_ns = 0;
    }
  }
  ASSERT_NO_FATAL_FAILURE(Check(histories, kExplained, kExplained));
}

TEST_F(HistoryRecorderTest, StaleGetsAreFound) {
  const auto faulty = std::make_shared<FaultyDB>(db_, FaultyDB::Fault::kStaleGets);
  ASSERT_NO_FATAL_FAILURE(Check(Record(faulty), kNotExplained, kNotExplained));
}

TEST_F(HistoryRecorderTest, LostWritesAreFound) {
  const auto faulty = std::make_shared<FaultyDB>(db_, FaultyDB::Fault::kLostWrites);
  ASSERT_NO_FATAL_FAILURE(Check(Record(faulty), kNotExplained, kNotExplained));
}

TEST_F(HistoryRecorderTest, TornBatchesAreFoundByGroup) {
  const auto faulty = std::make_shared<FaultyDB>(db_, FaultyDB::Fault::kTornBatches);
  options_.longest_pause = std::chrono::microseconds(0);
  ASSERT_NO_FATAL_FAILURE(Check(Record(faulty), kExplained, kNotExplained));
}

TEST_F(HistoryRecorderTest, FencedClientsGoToTheNextDatabase) {
  HistoryRun run(std::make_shared<FaultyDB>(db_, FaultyDB::Fault::kFenced), options_);
  run.Start();
  for (int takeover = 0; takeover < 3; ++takeover) {
    ASSERT_NO_FATAL_FAILURE(run.AwaitAllFenced());
    run.SetDB(std::make_shared<FaultyDB>(db_, FaultyDB::Fault::kFenced));
  }
  run.SetDB(db_);
  ASSERT_NO_FATAL_FAILURE(run.AwaitOperations(1000));
  run.Stop();
  run.ReadAll();
  EXPECT_GT(run.counts().unknown_writes, 0u);
  EXPECT_GT(run.counts().failed_reads, 0u);
  ASSERT_NO_FATAL_FAILURE(Check(run.histories(), kExplained, kExplained));
}

TEST(SharedDBTest, WhoWaitsForAnotherDatabaseIsWoken) {
  SharedDB shared(nullptr);
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(SmallTableOptions(OpenTestPool()), "db", &db)));
  bool another = false;
  std::thread waits([&] { another = shared.AwaitAfter(0, std::chrono::seconds(60)); });
  shared.Set(std::move(db));
  waits.join();
  EXPECT_TRUE(another);
  EXPECT_NE(shared.Get().db, nullptr);
  EXPECT_EQ(shared.Get().number, 1u);
  EXPECT_FALSE(shared.AwaitAfter(1, std::chrono::seconds(0)));
  std::thread waits_again([&] { another = shared.AwaitAfter(1, std::chrono::seconds(60)); });
  shared.Stop();
  waits_again.join();
  EXPECT_FALSE(another);
}

}  // namespace
}  // namespace nacre
