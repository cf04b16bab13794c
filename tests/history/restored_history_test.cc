// Goal: what is restored from an archive, after all memory nodes, the owner and the archiver have
// died while clients wrote, is a state that the clients' answers allow: everything that was
// archived is there, batches are whole, and no write is there without one that came before it.
//
// Method: the clients of history_test.cc note, beside each operation, the last sequence that the
// database had before and after it. The restore says up to which sequence S it went. A write has a
// sequence above the one noted before it and, if it was acknowledged, not above the one noted
// after it. So of the history up to the end, what happened up to S is known but for few writes:
//
//   - a write with S at or above what was noted after it is in the restored state: it stays as it
//     was, acknowledged;
//   - a write with S at or below what was noted before it is not there, and leaves the history;
//   - a write that has S between is one of those that were under way when S was: at most one of
//   each
//     client. It becomes one of unknown outcome, and the restored state may have it or not;
//   - a read that returned when the database was not beyond S saw a state up to S, and stays. The
//     others may have seen what was lost, and leave the history. Leaving out a read asks for less.
//
// Then all keys are read from the restored database, as the last operations. If it is as of S, the
// order of sequences explains this history: so nothing right is refused. If a write that stayed was
// lost or torn, if one that left is there, or if one is there without another that had returned
// before it began, no order explains it, and porcupine says so. The test makes such histories of
// the right one; and a BatchLoader::Insert that left out one update of a hundred was found in each
// run.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nacre/archive.h"
#include "nacre/db.h"
#include "tests/history/run_checker.h"
#include "tests/support/model/history.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

using RestoredHistories = std::vector<std::vector<HistoryOperation>>;

/// What is known of the history up to a sequence.
struct ThroughSequence {
  RestoredHistories histories;
  uint64_t kept = 0;                           ///< Writes.
  uint64_t ambiguous = 0;                      ///< Writes.
  uint64_t lost = 0;                           ///< Writes.
  std::optional<HistoryOperation> one_lost{};  ///< With a value.
};

ThroughSequence Through(uint64_t sequence, const RestoredHistories& all) {
  ThroughSequence through;
  for (const std::vector<HistoryOperation>& history : all) {
    std::vector<HistoryOperation>& kept = through.histories.emplace_back();
    for (const HistoryOperation& operation : history) {
      if (operation.write && operation.sequence_before >= sequence) {
        ++through.lost;
        // Deletions cannot be told from those before.
        const bool told = std::any_of(operation.values.begin(), operation.values.end(),
                                      [](const auto& value) { return value.has_value(); });
        if (told) through.one_lost = operation;
        continue;
      }
      const bool known = operation.return_ns != 0 && operation.sequence_after <= sequence;
      if (!operation.write && !known) continue;
      kept.push_back(operation);
      if (!known) kept.back().return_ns = 0;
      ++(known ? through.kept : through.ambiguous);
    }
  }
  return through;
}

/// The parameter is how many of 100 operations are on several keys.
class RestoredHistoryTest : public testing::TestWithParam<uint64_t> {
 protected:
  void StartNodes() {
    nodes_ = std::make_unique<MemnodeProcesses>(
        3, MemnodeProcessOptions{.size = "192MiB", .slab_size = "1MiB"});
  }
  Options OptionsOf(const std::string& redundancy) const {
    // What is asked of nodes that were killed ends soon.
    Options options = SmallTableOptions(ConnectTestPool(
        nodes_->pool_uri(), {.operation_timeout = std::chrono::milliseconds(3000)}));
    options.redundancy = redundancy;
    return options;
  }
  std::string dir() const { return folder_.File("db"); }

  /// An owner, an archiver that follows it, and clients.
  void Start() {
    ASSERT_NO_FATAL_FAILURE(StartNodes());
    std::unique_ptr<DB> db;
    ASSERT_TRUE(IsOk(DB::Open(OptionsOf("rep(2)"), "db", &db)));
    owner_ = std::move(db);
    archiver_ = std::make_unique<ChildProcess>(
        "nacre-archive",
        std::vector<std::string>{"--pool=" + nodes_->pool_uri(), "--to=" + folder_.path(), "db"});
    ASSERT_TRUE(Eventually([&] {
      ArchiveInfo info;
      return GetArchive(dir(), &info).ok() && !info.bases.empty() &&
             GetNumber(owner_.get(), "nacre.log.readers") > 0;
    }));
    HistoryOptions history;
    history.percent_of_many = GetParam();
    // What is lost shows only if nothing has overwritten it, and in small groups a good part of
    // the writes are the last ones of their keys.
    history.operations_in_group = 40;
    history.note_sequences = true;
    history.longest_pause = std::chrono::milliseconds(2);  // The archive is to keep up.
    history.seed = random_.Next();
    run_ = std::make_unique<HistoryRun>(owner_, history);
    run_->Start();
  }

  /// All processes and the owner end while the clients are at work.
  void LoseAll() {
    const auto kill_nodes = [&] { nodes_.reset(); };
    const auto kill_archiver = [&] { archiver_->Kill(); };
    if (random_.OneIn(2)) {
      kill_archiver();
      ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(random_.Uniform(200)));
      kill_nodes();
    } else {
      kill_nodes();
      kill_archiver();
    }
    run_->Stop();
    owner_.reset();
  }

  void Check(const RestoredHistories& histories, bool explained) {
    const std::string path = folder_.File("history");
    ASSERT_NO_FATAL_FAILURE(WriteHistories(histories, path));
    for (const std::string by : {"keys", "groups"}) {
      const ProcessResult result = RunChecker(by, path);
      EXPECT_EQ(result.exit_code, explained ? kExplained : kNotExplained)
          << by << ": " << result.output;
    }
  }

  const TempFolder folder_;
  Random random_{TestSeed(603)};
  std::unique_ptr<MemnodeProcesses> nodes_;
  std::shared_ptr<DB> owner_;
  std::unique_ptr<ChildProcess> archiver_;
  std::unique_ptr<HistoryRun> run_;
};

/// What `operation` gave `key`, or found it to have; null if there is no value of that key.
const std::string* FindValue(const HistoryOperation& operation, const std::string& key) {
  const auto found = std::find(operation.keys.begin(), operation.keys.end(), key);
  if (found == operation.keys.end()) return nullptr;
  const auto& value = operation.values[static_cast<size_t>(found - operation.keys.begin())];
  return value.has_value() ? &*value : nullptr;
}

/// Makes a read of the restored database, which are the last ones of the first client, answer a
/// value that had been overwritten before the write began whose value it did answer: as if that
/// write had been lost. False if there is no such read.
bool LoseOneWrite(RestoredHistories* histories) {
  std::vector<const HistoryOperation*> writes;
  for (const std::vector<HistoryOperation>& history : *histories) {
    for (const HistoryOperation& operation : history) {
      if (operation.write && operation.return_ns != 0) writes.push_back(&operation);
    }
  }
  for (auto read = histories->front().rbegin(); !read->write; ++read) {
    for (size_t i = 0; i < read->keys.size(); ++i) {
      if (!read->values[i].has_value()) continue;
      const auto newest = std::find_if(writes.begin(), writes.end(), [&](const auto* write) {
        const std::string* const value = FindValue(*write, read->keys[i]);
        return value != nullptr && *value == *read->values[i];
      });
      if (newest == writes.end()) continue;
      for (const HistoryOperation* const write : writes) {
        const std::string* const value = FindValue(*write, read->keys[i]);
        if (value == nullptr || write->return_ns >= (*newest)->call_ns) continue;
        read->values[i] = *value;
        return true;
      }
    }
  }
  return false;
}

INSTANTIATE_TEST_SUITE_P(PercentOfMany, RestoredHistoryTest, testing::Values(5, 80));

TEST_P(RestoredHistoryTest, WhatIsRestoredIsAStateThatTheClientsMayHaveMade) {
  ASSERT_NO_FATAL_FAILURE(Start());
  ASSERT_NO_FATAL_FAILURE(run_->AwaitOperations(Scaled(4000) + random_.Uniform(1000)));
  // It is not awaited, and looked at once more.
  owner_->WaitForArchive(owner_->GetLatestSequenceNumber(), std::chrono::milliseconds(0))
      .IgnoreError();
  const uint64_t archived = GetNumber(owner_.get(), "nacre.archived-sequence");
  ASSERT_NO_FATAL_FAILURE(LoseAll());

  ASSERT_NO_FATAL_FAILURE(StartNodes());
  Options options = OptionsOf("rs(2,1)");
  ArchiveRestoreOptions how;
  how.restore.threads = 4;
  uint64_t sequence = 0;
  ASSERT_TRUE(IsOk(RestoreArchive(options, "restored", dir(), how, &sequence)));
  EXPECT_GE(sequence, archived);
  std::unique_ptr<DB> restored;
  options.create_if_missing = false;
  ASSERT_TRUE(IsOk(DB::Open(options, "restored", &restored)));
  EXPECT_EQ(restored->GetLatestSequenceNumber(), sequence);
  run_->SetDB(std::move(restored));
  run_->ReadAll();

  ThroughSequence through = Through(sequence, run_->histories());
  std::cout << "restored up to sequence " << sequence << ", archived were " << archived
            << ": operations kept " << through.kept << ", ambiguous writes " << through.ambiguous
            << ", lost writes " << through.lost << '\n';
  ASSERT_NO_FATAL_FAILURE(Check(through.histories, /*explained=*/true));

  // It can fail: with one write less, and with one that came behind the sequence.
  RestoredHistories faulty = through.histories;
  ASSERT_TRUE(LoseOneWrite(&faulty));
  ASSERT_NO_FATAL_FAILURE(Check(faulty, /*explained=*/false));
  if (!through.one_lost.has_value()) return;
  faulty = through.histories;
  HistoryOperation read = *through.one_lost;
  read.write = false;
  read.call_ns = faulty.front().back().return_ns + 1;
  read.return_ns = read.call_ns + 1;
  faulty.front().push_back(std::move(read));
  ASSERT_NO_FATAL_FAILURE(Check(faulty, /*explained=*/false));
}

}  // namespace
}  // namespace nacre
