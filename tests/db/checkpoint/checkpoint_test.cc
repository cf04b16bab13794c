// Goal: a checkpoint is the database as of its sequence number, whatever is written meanwhile, and
// what is restored from it is the same in any redundancy; further checkpoints write only what is
// new; a folder has whole checkpoints and nothing else; and either direction goes on where it was
// ended. Method: databases on embedded pools beside a model; writers whose n-th write is known, so
// that what is restored tells how many there were; calls that are ended by their callback at each
// piece.

#include "nacre/checkpoint.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cctype>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "db/checkpoint/checkpoint_folder.h"
#include "nacre/write_batch.h"
#include "pool/wire/node_stats.h"
#include "tests/support/checkpoint_fixture.h"
#include "tests/support/scale.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/stored_tables.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using Code = Status::Code;

std::map<uint64_t, uint32_t> LevelsOf(DB* db, pool::PoolImpl* pool) {
  std::map<uint64_t, uint32_t> levels;
  for (const TableMeta& meta : StoredTables(db, pool)) levels[meta.id] = meta.level;
  return levels;
}

class DBCheckpointTest : public CheckpointFixture {};

struct Change {
  const char* from;
  const char* to;
  size_t chunk_size;  ///< The chunk size of the restored database.
};

class DBCheckpointRedundancyTest : public CheckpointFixture,
                                   public testing::WithParamInterface<Change> {};

TEST_P(DBCheckpointRedundancyTest, RestoresTheSameInAnyRedundancy) {
  options_.disable_auto_compactions = true;
  ASSERT_NO_FATAL_FAILURE(Open(GetParam().from, 5));
  ASSERT_NO_FATAL_FAILURE(Fill(Scaled(6000)));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_NO_FATAL_FAILURE(Fill(Scaled(600)));
  // Two tables at least are merged: one alone would be moved, and its metadata kept.
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(Fill(Scaled(3000)));
  // Older versions are in the tables, but invisible.
  const Snapshot* const snapshot = db_->GetSnapshot();
  ASSERT_NO_FATAL_FAILURE(Fill(Scaled(2000)));
  model_["large"] = TestValue(1, 3 << 20);
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), "large", model_["large"])));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  db_->ReleaseSnapshot(snapshot);
  CheckpointInfo info;
  ASSERT_TRUE(IsOk(MakeCheckpoint(&info)));
  EXPECT_EQ(info.sequence, db_->GetLatestSequenceNumber());
  EXPECT_EQ(info.bytes_new, info.bytes);
  const std::map<uint64_t, uint32_t> levels = LevelsOf(db_.get(), pool_.get());
  ASSERT_GT(levels.size(), 1u);
  ASSERT_TRUE(IsOk(VerifyCheckpoint(dir(), 0, {})));

  options_.redundancy = GetParam().to;
  options_.chunk_size = GetParam().chunk_size;
  ASSERT_TRUE(IsOk(Restore("copy")));
  ASSERT_NO_FATAL_FAILURE(TurnTo("copy"));
  EXPECT_EQ(LevelsOf(db_.get(), pool_.get()), levels);
  EXPECT_EQ(db_->GetLatestSequenceNumber(), info.sequence);
  RedundancyPolicy policy;
  ASSERT_TRUE(IsOk(RedundancyPolicy::Parse(GetParam().to, &policy)));
  for (const TableMeta& meta : StoredTables(db_.get(), pool_.get())) {
    EXPECT_EQ(meta.placement.redundancy.parity, policy.For(static_cast<int>(meta.level)).parity);
  }
  ASSERT_NO_FATAL_FAILURE(Check());
  EXPECT_TRUE(IsOk(db_->VerifyChecksum()));

  // It lives: what it had is compacted with what comes, and it can be opened again.
  ASSERT_NO_FATAL_FAILURE(Fill(Scaled(3000)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_TRUE(IsOk(db_->Close()));
  ASSERT_NO_FATAL_FAILURE(TurnTo("copy"));
  ASSERT_NO_FATAL_FAILURE(Check());
  std::string value;
  ASSERT_TRUE(IsOk(db_->Get({}, "large", &value)));
  EXPECT_TRUE(value == model_["large"]);
}

INSTANTIATE_TEST_SUITE_P(Changes, DBCheckpointRedundancyTest,
                         testing::Values(Change{"none", "rs(2,1)", 4 << 10},
                                         Change{"rs(3,2)", "rep(3)", 256 << 10},
                                         Change{"rep(2)", "none", 16 << 10},
                                         Change{"rs(2,1)", "L0:rep(2),*:rs(4,1)", 4 << 10}),
                         [](const auto& test) { return "Case" + std::to_string(test.index); });

/// Writers with keys of their own, whose n-th writes follow from n: so the database tells how many
/// there were of each, and, as each takes one sequence number, which number that is.
class CountingWriters {
 public:
  static constexpr uint64_t kThreads = 3;
  static constexpr uint64_t kKeys = 40;

  explicit CountingWriters(DB* db) : db_(db) {
    for (uint64_t thread = 0; thread < kThreads; ++thread) {
      threads_.emplace_back([this, thread] {
        for (uint64_t n = 1; !stop_.load(); ++n) {
          EXPECT_TRUE(IsOk(db_->Put({}, Key(thread, n % kKeys), Value(n))));
          done_[thread].store(n);
        }
      });
    }
  }
  ~CountingWriters() {
    stop_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }

  uint64_t done(uint64_t thread) const { return done_[thread].load(); }
  bool AwaitWrites(uint64_t more) const {
    const uint64_t before[] = {done(0), done(1), done(2)};
    return Eventually([&] {
      return done(0) > before[0] + more && done(1) > before[1] + more && done(2) > before[2] + more;
    });
  }

  /// How many writes of `thread` are in `db`; anything but just these fails the test.
  static uint64_t Count(DB* db, uint64_t thread) {
    std::vector<uint64_t> found(kKeys, 0);
    uint64_t last = 0;
    for (uint64_t key = 0; key < kKeys; ++key) {
      std::string value;
      const Status status = db->Get({}, Key(thread, key), &value);
      if (status.IsNotFound()) continue;
      EXPECT_TRUE(IsOk(status));
      found[key] = std::stoull(value);
      EXPECT_TRUE(value == Value(found[key]));
      last = std::max(last, found[key]);
    }
    for (uint64_t key = 0; key < kKeys; ++key) {
      // The last write to that key among the first `last`.
      const uint64_t back = (last % kKeys + kKeys - key) % kKeys;
      EXPECT_EQ(found[key], back < last ? last - back : 0) << "key " << key << " of " << last;
    }
    return last;
  }

 private:
  static std::string Key(uint64_t thread, uint64_t key) {
    return "writer" + std::to_string(thread) + "-" + std::to_string(key);
  }
  static std::string Value(uint64_t n) {
    return std::to_string(n) + " " + TestValue(n, 50 + n % 700);
  }

  DB* const db_;
  std::atomic<bool> stop_{false};
  std::atomic<uint64_t> done_[kThreads] = {};
  std::vector<std::thread> threads_;
};

TEST_F(DBCheckpointTest, IsOfItsSequenceNumberWhoeverWrites) {
  ASSERT_NO_FATAL_FAILURE(Open("rep(2)", 4));
  std::vector<CheckpointInfo> infos;
  std::vector<std::vector<uint64_t>> before;
  {
    CountingWriters writers(db_.get());
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(writers.AwaitWrites(300));
      before.push_back({writers.done(0), writers.done(1), writers.done(2)});
      ASSERT_TRUE(IsOk(MakeCheckpoint(&infos.emplace_back())));
    }
  }
  db_.reset();
  for (size_t i = 0; i < infos.size(); ++i) {
    SCOPED_TRACE("checkpoint " + std::to_string(infos[i].number));
    RestoreOptions restore;
    restore.checkpoint = infos[i].number;
    ASSERT_TRUE(IsOk(Restore("copy", restore)));
    ASSERT_NO_FATAL_FAILURE(TurnTo("copy"));
    uint64_t writes = 0;
    for (uint64_t thread = 0; thread < CountingWriters::kThreads; ++thread) {
      const uint64_t count = CountingWriters::Count(db_.get(), thread);
      EXPECT_GE(count, before[i][thread]);
      writes += count;
    }
    EXPECT_EQ(writes, infos[i].sequence);
    EXPECT_EQ(db_->GetLatestSequenceNumber(), infos[i].sequence);
    db_.reset();
    ASSERT_TRUE(IsOk(DestroyDB("copy", options_)));
  }
}

TEST_F(DBCheckpointTest, LaterOnesWriteOnlyNewTables) {
  options_.disable_auto_compactions = true;
  ASSERT_NO_FATAL_FAILURE(Open("rs(2,1)", 3));
  ASSERT_NO_FATAL_FAILURE(Fill(Scaled(5000)));
  CheckpointInfo first;
  ASSERT_TRUE(IsOk(MakeCheckpoint(&first)));
  const std::map<std::string, std::string> model_then = model_;
  CheckpointInfo same;
  ASSERT_TRUE(IsOk(MakeCheckpoint(&same)));
  EXPECT_EQ(same.number, first.number + 1);
  EXPECT_EQ(same.sequence, first.sequence);
  EXPECT_EQ(same.bytes_new, 0u);
  EXPECT_NE(same.id, first.id);
  ASSERT_NO_FATAL_FAILURE(Fill(500));
  CheckpointInfo third;
  ASSERT_TRUE(IsOk(MakeCheckpoint(&third)));
  EXPECT_GT(third.bytes_new, 0u);
  EXPECT_EQ(third.bytes_new, third.bytes - first.bytes);
  // All tables are others.
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  CheckpointInfo fourth;
  ASSERT_TRUE(IsOk(MakeCheckpoint(&fourth)));
  EXPECT_EQ(fourth.bytes_new, fourth.bytes);

  std::vector<CheckpointInfo> all;
  ASSERT_TRUE(IsOk(GetCheckpoints(dir(), &all)));
  ASSERT_EQ(all.size(), 4u);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(all[i].number, i + 1);
    EXPECT_EQ(all[i].database, "db");
    EXPECT_EQ(all[i].comparator, options_.comparator->Name());
    EXPECT_GT(all[i].created_at, 0u);
  }
  EXPECT_EQ(all[3].id, fourth.id);
  EXPECT_EQ(all[3].sequence, fourth.sequence);
  EXPECT_EQ(Files(".table").size(), third.tables + fourth.tables);

  // What other checkpoints have stays, and the rest goes.
  WriteAll(dir() + "/notes.table", "of somebody else");
  ASSERT_TRUE(IsOk(DeleteCheckpoint(dir(), third.number)));
  EXPECT_EQ(Files(".table").size(), first.tables + fourth.tables + 1);
  ASSERT_TRUE(IsOk(DeleteCheckpoint(dir(), first.number)));
  EXPECT_TRUE(IsOk(VerifyCheckpoint(dir(), same.number, {})));
  EXPECT_TRUE(IsOk(VerifyCheckpoint(dir(), 0, {})));
  EXPECT_TRUE(IsFailure(DeleteCheckpoint(dir(), first.number), Code::kNotFound, "checkpoint 1"));
  EXPECT_TRUE(IsFailure(VerifyCheckpoint(dir(), 1, {}), Code::kNotFound, "checkpoint 1"));
  RestoreOptions restore;
  restore.checkpoint = same.number;
  ASSERT_TRUE(IsOk(Restore("then", restore)));
  ASSERT_TRUE(IsOk(Restore("now")));
  ASSERT_NO_FATAL_FAILURE(TurnTo("now"));
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_NO_FATAL_FAILURE(TurnTo("then"));
  model_ = model_then;
  ASSERT_NO_FATAL_FAILURE(Check());
  db_.reset();
  for (const uint64_t number : {same.number, fourth.number}) {
    ASSERT_TRUE(IsOk(DeleteCheckpoint(dir(), number)));
  }
  EXPECT_EQ(Files(".table").size(), 1u);
  EXPECT_TRUE(IsFailure(VerifyCheckpoint(dir(), 0, {}), Code::kNotFound, "no checkpoint"));
}

TEST_F(DBCheckpointTest, SeveralDatabasesShareAFolder) {
  ASSERT_NO_FATAL_FAILURE(Open("none", 2));
  ASSERT_NO_FATAL_FAILURE(Fill(1000));
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  const std::map<std::string, std::string> first = model_;
  db_.reset();
  // The restored database is another one: it has the same table ids.
  ASSERT_TRUE(IsOk(Restore("other")));
  ASSERT_NO_FATAL_FAILURE(TurnTo("other"));
  ASSERT_NO_FATAL_FAILURE(Fill(1000));
  CheckpointInfo info;
  ASSERT_TRUE(IsOk(MakeCheckpoint(&info)));
  EXPECT_EQ(info.database, "other");
  EXPECT_EQ(info.bytes_new, info.bytes);
  ASSERT_TRUE(IsOk(VerifyCheckpoint(dir(), 1, {})));
  RestoreOptions restore;
  ASSERT_TRUE(IsOk(Restore("third", restore)));
  ASSERT_NO_FATAL_FAILURE(TurnTo("third"));
  ASSERT_NO_FATAL_FAILURE(Check());
  restore.checkpoint = 1;
  ASSERT_TRUE(IsOk(Restore("fourth", restore)));
  ASSERT_NO_FATAL_FAILURE(TurnTo("fourth"));
  model_ = first;
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBCheckpointTest, OfAnEmptyDatabase) {
  ASSERT_NO_FATAL_FAILURE(Open("rs(2,1)", 3));
  CheckpointInfo info;
  ASSERT_TRUE(IsOk(MakeCheckpoint(&info)));
  EXPECT_EQ(info.tables, 0u);
  EXPECT_EQ(info.sequence, 0u);
  ASSERT_TRUE(IsOk(VerifyCheckpoint(dir(), 0, {})));
  ASSERT_TRUE(IsOk(Restore("copy")));
  ASSERT_NO_FATAL_FAILURE(TurnTo("copy"));
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_NO_FATAL_FAILURE(Fill(500));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBCheckpointTest, RefusesWhatDoesNotFit) {
  std::vector<CheckpointInfo> all;
  EXPECT_TRUE(IsFailure(GetCheckpoints(dir(), &all), Code::kNotFound, dir()));
  EXPECT_TRUE(IsFailure(DeleteCheckpoint(dir(), 1), Code::kNotFound, dir()));
  EXPECT_TRUE(IsFailure(VerifyCheckpoint(dir(), 1, {}), Code::kNotFound, dir()));
  ASSERT_NO_FATAL_FAILURE(Open("none", 2));
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kNotFound, dir()));
  ASSERT_NO_FATAL_FAILURE(Fill(500));
  CheckpointOptions absurd;
  absurd.threads = 0;
  EXPECT_TRUE(IsFailure(MakeCheckpoint(nullptr, absurd), Code::kInvalidArgument, "threads"));
  {
    std::unique_ptr<CheckpointFolder> busy;
    ASSERT_TRUE(IsOk(CheckpointFolder::Open(dir(), FileLock::Kind::kExclusive, {}, &busy)));
    EXPECT_TRUE(IsFailure(MakeCheckpoint(), Code::kBusy, "LOCK"));
    EXPECT_TRUE(IsFailure(Restore("copy"), Code::kBusy, "LOCK"));
  }
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kNotFound, "no checkpoint"));
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  WriteAll(folder_.File("file"), "no folder");
  std::unique_ptr<Checkpoint> checkpoint;
  ASSERT_TRUE(IsOk(Checkpoint::Create(db_.get(), &checkpoint)));
  EXPECT_TRUE(IsFailure(checkpoint->CreateCheckpoint(folder_.File("file"), {}, nullptr),
                        Code::kIOError, "file"));

  EXPECT_TRUE(IsFailure(Restore("db"), Code::kBusy));
  EXPECT_TRUE(
      IsFailure(RestoreDB(Options(), "copy", dir()), Code::kInvalidArgument, "Options::pool"));
  db_.reset();
  EXPECT_TRUE(IsFailure(Restore("db"), Code::kInvalidArgument, "there is one already"));
  options_.num_levels = 3;
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kInvalidArgument, "num_levels"));
  options_.num_levels = 7;
  class OtherComparator final : public Comparator {
   public:
    const char* Name() const override { return "test.Other"; }
    int Compare(const Slice& a, const Slice& b) const override {
      return BytewiseComparator()->Compare(a, b);
    }
    void FindShortestSeparator(std::string*, const Slice&) const override {}
    void FindShortSuccessor(std::string*) const override {}
  } other;
  options_.comparator = &other;
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kInvalidArgument, "test.Other"));
  options_.comparator = BytewiseComparator();
  // None of these has left anything.
  std::vector<std::string> names;
  ASSERT_TRUE(IsOk(ListDBs(options_, &names)));
  EXPECT_EQ(names, std::vector<std::string>{"db"});
  ASSERT_NO_FATAL_FAILURE(TurnTo("db"));
  ASSERT_NO_FATAL_FAILURE(Check());
}

/// A callback that ends the call when it has been called `calls` times.
CheckpointCallback EndAfter(uint64_t calls, uint64_t* called) {
  *called = 0;
  return [calls, called](const CheckpointProgress& progress) {
    EXPECT_LE(progress.bytes_done, progress.bytes);
    EXPECT_LE(progress.tables_done, progress.tables);
    return ++*called <= calls;
  };
}

TEST_F(DBCheckpointTest, GoesOnWhereItWasEnded) {
  options_.disable_auto_compactions = true;
  ASSERT_NO_FATAL_FAILURE(Open("rep(2)", 3));
  ASSERT_NO_FATAL_FAILURE(Fill(Scaled(5000)));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(Fill(1000));
  CheckpointOptions options;
  uint64_t called = 0;
  CheckpointInfo info;
  uint64_t copied = UINT64_MAX;
  int ended = 0;
  for (uint64_t calls = 0;; calls += 1 + random_.Uniform(3)) {
    options.threads = 1 + static_cast<int>(random_.Uniform(3));
    options.progress = EndAfter(calls, &called);
    const Status status = MakeCheckpoint(&info, options);
    if (status.ok()) break;
    ASSERT_TRUE(IsFailure(status, Code::kAborted));
    ++ended;
    std::vector<CheckpointInfo> none;
    ASSERT_TRUE(IsOk(GetCheckpoints(dir(), &none)));
    ASSERT_TRUE(none.empty());
    ASSERT_TRUE(IsFailure(Restore("copy"), Code::kNotFound, "no checkpoint"));
  }
  EXPECT_GT(ended, 2);
  EXPECT_LT(info.bytes_new, info.bytes);
  EXPECT_TRUE(Files(".tmp").empty());
  EXPECT_EQ(Files(".table").size(), info.tables);
  ASSERT_TRUE(IsOk(VerifyCheckpoint(dir(), 0, {})));

  RestoreOptions restore;
  ended = 0;
  for (uint64_t calls = 0;; calls += 1 + random_.Uniform(8)) {
    restore.threads = 1 + static_cast<int>(random_.Uniform(3));
    restore.progress = EndAfter(calls, &called);
    const Status status = Restore("copy", restore);
    if (status.ok()) break;
    ASSERT_TRUE(IsFailure(status, Code::kAborted));
    ++ended;
    std::unique_ptr<DB> half;
    ASSERT_TRUE(IsFailure(DB::Open(options_, "copy", &half), Code::kIncomplete, "being restored"));
  }
  EXPECT_GT(ended, 2);
  copied = called;
  EXPECT_GT(copied, 0u);
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kInvalidArgument, "there is one already"));
  ASSERT_NO_FATAL_FAILURE(TurnTo("copy"));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(DBCheckpointTest, ARestoreKeepsRoomToWriteAndCompactIn) {
  TestPoolOptions small;
  small.nodes = 2;
  small.node_bytes = 64 << 20;
  const auto pool = OpenTestPool(small);
  ASSERT_NE(pool, nullptr);
  const auto options = [](std::shared_ptr<Pool> where) {
    Options made = SmallTableOptions(std::move(where));
    made.redundancy = "none";
    return made;
  };
  // As much as half of the small pool, most of it in level 0 and 1.
  std::unique_ptr<DB> from;
  Options merged = options(OpenTestPool());
  merged.max_bytes_for_level_base = 1 << 30;
  ASSERT_TRUE(IsOk(DB::Open(merged, "db", &from)));
  const auto key = [](size_t i) { return "key" + std::to_string(i); };
  constexpr size_t kMany = 75'000;
  for (size_t i = 0; i < kMany; ++i) {
    ASSERT_TRUE(IsOk(from->Put(NoLog(), key(i), TestValue(i, 1000))));
  }
  ASSERT_TRUE(IsOk(from->CompactRange({}, nullptr, nullptr)));
  std::unique_ptr<Checkpoint> checkpoint;
  CheckpointInfo info;
  ASSERT_TRUE(IsOk(Checkpoint::Create(from.get(), &checkpoint)));
  ASSERT_TRUE(IsOk(checkpoint->CreateCheckpoint(dir(), {}, &info)));
  Options target = options(pool);
  target.max_bytes_for_level_base = 1 << 30;
  const Status status = RestoreDB(target, "copy", dir(), {});
  EXPECT_TRUE(IsFailure(status, Code::kNoSpace, "tables to restore")) << status.ToString();
}

TEST_F(DBCheckpointTest, AHalfRestoredDatabaseIsOfItsCheckpointOrGoes) {
  ASSERT_NO_FATAL_FAILURE(Open("rep(2)", 3));
  ASSERT_NO_FATAL_FAILURE(Fill(Scaled(3000)));
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  ASSERT_NO_FATAL_FAILURE(Fill(100));
  ASSERT_TRUE(IsOk(MakeCheckpoint()));
  db_.reset();
  RestoreOptions restore;
  restore.checkpoint = 1;
  uint64_t called = 0;
  restore.progress = EndAfter(5, &called);
  ASSERT_TRUE(IsFailure(Restore("copy", restore), Code::kAborted));
  EXPECT_TRUE(IsFailure(Restore("copy"), Code::kInvalidArgument, "another checkpoint"));
  ASSERT_TRUE(IsOk(DestroyDB("copy", options_)));
  ASSERT_TRUE(IsOk(Restore("copy")));
  ASSERT_NO_FATAL_FAILURE(TurnTo("copy"));
  ASSERT_NO_FATAL_FAILURE(Check());
  db_.reset();
  ASSERT_TRUE(IsOk(DestroyDB("copy", options_)));
  ASSERT_TRUE(IsOk(DestroyDB("db", options_)));
  EXPECT_EQ(SumOverNodes(pool_.get(), &pool::NodeStats::slabs_leased), 0u);
}

TEST_F(DBCheckpointTest, HasTablesThatAreDroppedMeanwhile) {
  ASSERT_NO_FATAL_FAILURE(Open("none", 2));
  ASSERT_NO_FATAL_FAILURE(Fill(Scaled(4000)));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  CheckpointOptions options;
  options.threads = 1;
  std::atomic<bool> began{false};
  std::atomic<bool> compacted{false};
  options.progress = [&](const CheckpointProgress&) {
    began.store(true);
    return Eventually([&] { return compacted.load(); });
  };
  std::thread copying([&] { EXPECT_TRUE(IsOk(MakeCheckpoint(nullptr, options))); });
  ASSERT_TRUE(Eventually([&] { return began.load(); }));
  // What the checkpoint is of is dropped meanwhile.
  const std::map<std::string, std::string> model_then = model_;
  ASSERT_NO_FATAL_FAILURE(Fill(Scaled(2000)));
  EXPECT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  const std::map<std::string, std::string> model_now = model_;
  compacted.store(true);
  copying.join();
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_TRUE(IsOk(Restore("copy")));
  ASSERT_NO_FATAL_FAILURE(TurnTo("copy"));
  model_ = model_then;
  ASSERT_NO_FATAL_FAILURE(Check());
}

}  // namespace
}  // namespace nacre
