// Goal: a database that is closed for a handover is whole for its next owner, though nothing of its
// log is flushed and the flushes and compactions that run are given up; and what applications hold
// of it still, such as iterators, tells what it was or that it is closed, and disturbs nothing.
// Method: memory nodes in this process, which two clients hand a small database to one another, at
// named points in the middle of its work, too. What one holds is used after the other has
// overwritten everything, in the memory that the tables had.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "nacre/db.h"
#include "tests/support/process/served_nodes.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/named_point.h"
#include "util/random.h"

namespace nacre {
namespace {

using Code = Status::Code;
using Model = std::map<std::string, std::string>;

/// The point at which a thread waits until the database is about to be closed, and whether one has
/// come there.
const char* held_point = nullptr;
std::atomic<bool> held{false};
std::atomic<bool> released{false};

void HoldAtPoint(const NamedPoint& point) {
  const std::string_view name(point.name);
  if (name == "close.begin") released = true;
  if (held_point == nullptr || name != held_point) return;
  held = true;
  while (!released) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

class HandoverTest : public testing::Test {
 protected:
  static constexpr int kKeys = 2000;

  ~HandoverTest() override { SetPointHandler(nullptr); }

  void StartNodes(const std::string& redundancy, bool map = true) {
    nodes_ = std::make_unique<ServedNodes>(4, 128 << 20, 1 << 20);
    std::vector<std::string> addresses;
    for (size_t i = 0; i < 4; ++i) addresses.push_back(nodes_->address(i));
    for (auto& pool : pools_) pool = ConnectTestPool(PoolUriOf(addresses), {.map = map});
    redundancy_ = redundancy;
  }
  /// By the client `number`.
  void Open(size_t number, std::unique_ptr<DB>* db) {
    Options options = SmallTableOptions(pools_[number]);
    options.redundancy = redundancy_;
    options.take_over = true;
    options.disable_auto_compactions = no_compactions_;
    ASSERT_TRUE(IsOk(DB::Open(options, "db", db)));
  }
  static Status HandOver(DB* db) { return static_cast<DBImpl*>(db)->CloseForHandover(); }

  void Write(DB* db, int writes, const WriteOptions& options = {}) {
    for (int i = 0; i < writes; ++i) {
      const std::string key = "key" + std::to_string(random_.Uniform(kKeys));
      const std::string value = TestValue(random_.Next(), 200 + random_.Uniform(800));
      ASSERT_TRUE(IsOk(db->Put(options, key, value)));
      model_[key] = value;
    }
  }
  static Model Contents(Iterator* iterator) {
    Model contents;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      contents[iterator->key().ToString()] = iterator->value().ToString();
    }
    return contents;
  }
  void Check(DB* db) {
    const std::unique_ptr<Iterator> iterator = db->NewIterator({});
    EXPECT_TRUE(Contents(iterator.get()) == model_);
    EXPECT_TRUE(IsOk(iterator->status()));
    for (const auto& [key, value] : model_) {
      std::string found;
      ASSERT_TRUE(IsOk(db->Get({}, key, &found)));
      ASSERT_TRUE(found == value) << key;
    }
  }
  /// Goes on with an iterator that saw `before`, in one direction. It says what was, or that the
  /// database is closed.
  static void GoOn(Iterator* iterator, const Model& before, bool forward) {
    while (iterator->Valid()) {
      const auto found = before.find(iterator->key().ToString());
      ASSERT_TRUE(found != before.end());
      ASSERT_TRUE(iterator->value() == Slice(found->second));
      if (forward) {
        iterator->Next();
      } else {
        iterator->Prev();
      }
    }
  }

  void HandOverInTheMiddleOf(const char* point);
  void UseWhatIsHeld(size_t next_owner);

  bool no_compactions_ = false;
  std::string redundancy_;
  Random random_{TestSeed(707)};
  std::unique_ptr<ServedNodes> nodes_;
  std::shared_ptr<pool::PoolImpl> pools_[2];
  Model model_;
};

TEST_F(HandoverTest, WhatTheLogHasIsNotFlushed) {
  StartNodes("rs(2,1)");
  std::unique_ptr<DB> db;
  std::unique_ptr<DB> next;
  ASSERT_NO_FATAL_FAILURE(Open(0, &db));
  Write(db.get(), 100);
  ASSERT_TRUE(IsOk(HandOver(db.get())));
  EXPECT_EQ(GetNumber(db.get(), "nacre.num-files-at-level0"), 0u);
  EXPECT_TRUE(IsOk(db->Close())) << "it is closed";
  ASSERT_NO_FATAL_FAILURE(Open(1, &next));
  Check(next.get());
}

TEST_F(HandoverTest, OfAPreparedOneLittleIsLeftToReplay) {
  StartNodes("rs(2,1)");
  std::unique_ptr<DB> db;
  std::unique_ptr<DB> next;
  ASSERT_NO_FATAL_FAILURE(Open(0, &db));
  const auto prepare = [&] { return static_cast<DBImpl*>(db.get())->PrepareHandover(); };
  ASSERT_TRUE(IsOk(prepare())) << "there is nothing to flush";
  Write(db.get(), 700);
  Write(db.get(), 10, NoLog());
  ASSERT_TRUE(IsOk(prepare()));
  EXPECT_EQ(GetNumber(db.get(), "nacre.num-entries-active-mem-table"), 0u);
  EXPECT_EQ(GetNumber(db.get(), "nacre.num-entries-imm-mem-tables"), 0u);
  Write(db.get(), 10);
  ASSERT_TRUE(IsOk(HandOver(db.get())));
  ASSERT_NO_FATAL_FAILURE(Open(1, &next));
  Check(next.get());
}

TEST_F(HandoverTest, ItsMemTablesCountNoMore) {
  StartNodes("rep(2)");
  const auto manager = std::make_shared<WriteBufferManager>(64 << 20);
  std::unique_ptr<DB> db;
  Options options = SmallTableOptions(pools_[0]);
  options.write_buffer_manager = manager;
  options.write_buffer_size = 8 << 20;
  ASSERT_TRUE(IsOk(DB::Open(options, "db", &db)));
  Write(db.get(), 1000);
  std::unique_ptr<Iterator> iterator = db->NewIterator({});
  const size_t before = manager->memory_usage();
  EXPECT_GT(before, 0u);
  ASSERT_TRUE(IsOk(HandOver(db.get())));
  EXPECT_EQ(manager->memory_usage(), before) << "an iterator looks through them";
  EXPECT_TRUE(Contents(iterator.get()) == model_);
  iterator.reset();
  EXPECT_EQ(manager->memory_usage(), 0u);
}

TEST_F(HandoverTest, WhatNoLogHasIsFlushed) {
  StartNodes("rs(2,1)");
  std::unique_ptr<DB> db;
  std::unique_ptr<DB> next;
  ASSERT_NO_FATAL_FAILURE(Open(0, &db));
  Write(db.get(), 100);
  Write(db.get(), 100, NoLog());
  ASSERT_TRUE(IsOk(HandOver(db.get())));
  ASSERT_NO_FATAL_FAILURE(Open(1, &next));
  Check(next.get());
}

TEST_F(HandoverTest, WhatALogHasThatWasReplayed) {
  StartNodes("rep(2)");
  std::unique_ptr<DB> db[2];
  ASSERT_NO_FATAL_FAILURE(Open(0, &db[0]));
  for (size_t round = 0; round < 6; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    // Some owners get nothing to tables, so the log of the one before is needed once more.
    DB* const owner = db[round % 2].get();
    if (round % 3 == 0) {
      ASSERT_TRUE(IsOk(owner->PauseBackgroundWork()));
    }
    Write(owner, 50);
    ASSERT_TRUE(IsOk(HandOver(owner)));
    ASSERT_NO_FATAL_FAILURE(Open(1 - round % 2, &db[1 - round % 2]));
    Check(db[1 - round % 2].get());
  }
}

void HandoverTest::HandOverInTheMiddleOf(const char* point) {
  SCOPED_TRACE(point);
  held_point = point;
  held = released = false;
  SetPointHandler(HoldAtPoint);
  std::unique_ptr<DB> db;
  ASSERT_NO_FATAL_FAILURE(Open(0, &db));
  const auto flushing = [&] { return GetNumber(db.get(), "nacre.num-immutable-mem-table") > 0; };
  ASSERT_TRUE(Eventually([&] {
    // None begins while one is held, which would be waited for.
    Write(db.get(), 60);
    FlushOptions options;
    options.wait = false;
    if (!held && !flushing()) {
      EXPECT_TRUE(IsOk(db->Flush(options)));
    }
    return Eventually([&] { return held || !flushing(); }) && held;
  }));
  ASSERT_TRUE(IsOk(HandOver(db.get())));
  SetPointHandler(nullptr);
  std::unique_ptr<DB> next;
  ASSERT_NO_FATAL_FAILURE(Open(1, &next));
  Check(next.get());
  ASSERT_TRUE(IsOk(next->Flush({})));
  ASSERT_TRUE(IsOk(next->VerifyChecksum()));
  ASSERT_TRUE(IsOk(next->Close()));
}

TEST_F(HandoverTest, InTheMiddleOfFlushesAndCompactions) {
  StartNodes("rs(2,1)");
  for (const char* point : {"flush.begin", "flush.space-reserved", "flush.tables-written",
                            "flush.committed", "compaction.space-reserved", "job.begun",
                            "compaction.tables-written", "compaction.committed"}) {
    ASSERT_NO_FATAL_FAILURE(HandOverInTheMiddleOf(point));
  }
}

TEST_F(HandoverTest, BackAndForthWhileItIsWrittenTo) {
  StartNodes("rs(2,1)");
  std::unique_ptr<DB> db[2];
  ASSERT_NO_FATAL_FAILURE(Open(0, &db[0]));
  for (size_t round = 0; round < 12; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    DB* const owner = db[round % 2].get();
    Write(owner, static_cast<int>(random_.Uniform(4000)));
    if (random_.OneIn(2)) {
      ASSERT_TRUE(IsOk(static_cast<DBImpl*>(owner)->PrepareHandover()));
      Write(owner, static_cast<int>(random_.Uniform(100)));
    }
    ASSERT_TRUE(IsOk(HandOver(owner)));
    ASSERT_NO_FATAL_FAILURE(Open(1 - round % 2, &db[1 - round % 2]));
    Check(db[1 - round % 2].get());
  }
  // Nothing that was given up is left over.
  DB* const owner = db[0].get();
  ASSERT_TRUE(IsOk(owner->CompactRange({}, nullptr, nullptr)));
  EXPECT_LE(GetNumber(owner, "nacre.space.used-bytes"),
            GetNumber(owner, "nacre.space.stored-bytes") + (4 << 20));
}

void HandoverTest::UseWhatIsHeld(size_t next_owner) {
  std::unique_ptr<DB> db;
  ASSERT_NO_FATAL_FAILURE(Open(0, &db));
  ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(IsOk(db->CreateColumnFamily(ColumnFamilyOptions(), "other", &family)));
  ASSERT_TRUE(IsOk(db->Put({}, family, "k", "v")));
  Write(db.get(), 4000);
  ASSERT_TRUE(IsOk(db->Flush({})));
  Write(db.get(), 200);
  const Model before = model_;
  const Snapshot* const snapshot = db->GetSnapshot();
  ReadOptions at_snapshot;
  at_snapshot.snapshot = snapshot;
  PinnableSlice pinned;
  ASSERT_TRUE(IsOk(db->Get({}, nullptr, before.begin()->first, &pinned)));
  std::vector<std::unique_ptr<Iterator>> iterators;
  for (int i = 0; i < 40; ++i) {
    iterators.push_back(db->NewIterator(at_snapshot));
    if (i % 4 == 0) continue;  // It stands nowhere.
    iterators.back()->Seek("key" + std::to_string(random_.Uniform(kKeys)));
    for (uint64_t steps = random_.Uniform(100); steps > 0 && iterators.back()->Valid(); --steps) {
      iterators.back()->Next();
    }
  }
  // From here on only iterators keep the tables that they look through.
  ASSERT_TRUE(IsOk(db->CompactRange({}, nullptr, nullptr)));
  Write(db.get(), 200);
  ASSERT_TRUE(IsOk(HandOver(db.get())));

  std::unique_ptr<DB> next;
  {
    Options options = SmallTableOptions(pools_[next_owner]);
    options.redundancy = redundancy_;
    std::vector<ColumnFamilyHandle*> handles;
    ASSERT_TRUE(
        IsOk(DB::Open(options, "db", {{"default", options}, {"other", options}}, &handles, &next)));
    for (ColumnFamilyHandle* handle : handles) {
      ASSERT_TRUE(IsOk(next->DestroyColumnFamilyHandle(handle)));
    }
  }
  // What the tables had is reused.
  for (int round = 0; round < 3; ++round) {
    Write(next.get(), 4000);
    ASSERT_TRUE(IsOk(next->CompactRange({}, nullptr, nullptr)));
  }

  std::string value;
  EXPECT_TRUE(IsFailure(db->Get({}, before.begin()->first, &value), Code::kShutdownInProgress));
  EXPECT_TRUE(
      IsFailure(db->Get(at_snapshot, before.begin()->first, &value), Code::kShutdownInProgress));
  EXPECT_TRUE(IsFailure(db->Get({}, family, "k", &value), Code::kShutdownInProgress));
  EXPECT_TRUE(IsFailure(db->NewIterator({})->status(), Code::kShutdownInProgress));
  EXPECT_TRUE(IsFailure(db->Put({}, "k", "v"), Code::kShutdownInProgress));
  EXPECT_TRUE(pinned == before.begin()->second);
  size_t told = 0;
  for (size_t i = 0; i < iterators.size(); ++i) {
    Iterator* const iterator = iterators[i].get();
    if (i % 4 == 0) iterator->SeekToFirst();
    ASSERT_NO_FATAL_FAILURE(GoOn(iterator, before, /*forward=*/i % 2 == 0));
    if (!iterator->status().ok()) {
      ++told;
      EXPECT_TRUE(IsFailure(iterator->status(), Code::kShutdownInProgress));
    }
    iterator->SeekToLast();
    EXPECT_TRUE(IsFailure(iterator->status(), Code::kShutdownInProgress));
    EXPECT_FALSE(iterator->Valid());
  }
  EXPECT_GT(told, 0u) << "the tables are larger than what iterators have at hand";
  // With them go the last views of the tables.
  iterators.clear();
  db->ReleaseSnapshot(snapshot);
  EXPECT_TRUE(IsOk(db->DestroyColumnFamilyHandle(family)));
  db.reset();
  EXPECT_TRUE(pinned == before.begin()->second);

  // The next owner has its slabs still.
  Write(next.get(), 4000);
  ASSERT_TRUE(IsOk(next->Flush({})));
  Check(next.get());
  ASSERT_TRUE(IsOk(next->VerifyChecksum()));
  ASSERT_TRUE(IsOk(next->Close()));
}

TEST_F(HandoverTest, WhatIsHeldWhileAnotherClientOwnsIt) {
  for (const bool map : {true, false}) {
    SCOPED_TRACE(map);
    model_.clear();
    StartNodes("rs(2,1)", map);
    ASSERT_NO_FATAL_FAILURE(UseWhatIsHeld(1));
  }
}

TEST_F(HandoverTest, WhatIsHeldWhileTheSameClientOwnsItAgain) {
  StartNodes("rep(2)");
  ASSERT_NO_FATAL_FAILURE(UseWhatIsHeld(0));
}

}  // namespace
}  // namespace nacre
