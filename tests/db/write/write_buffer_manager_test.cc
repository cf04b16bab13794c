// Goal: MemTables of all databases and families that share a WriteBufferManager stay within its
// bound, those that have most are flushed, and what they took is given back. Method: databases over
// one pool that are written to in turn and from several threads; the manager's own figures.

#include "nacre/write_buffer_manager.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/db.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

constexpr size_t kValueBytes = 1000;

class WriteBufferManagerTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
  }

  Options OptionsWith(std::shared_ptr<WriteBufferManager> manager) const {
    Options options = SmallTableOptions(pool_);
    options.write_buffer_size = 64 << 20;
    options.disable_auto_compactions = true;
    options.write_buffer_manager = std::move(manager);
    return options;
  }
  std::unique_ptr<DB> Open(const Options& options, const std::string& name) {
    std::unique_ptr<DB> db;
    EXPECT_TRUE(IsOk(DB::Open(options, name, &db)));
    return db;
  }
  void Write(DB* db, size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) {
      ASSERT_TRUE(IsOk(db->Put(NoLog(), std::to_string(i), TestValue(i, kValueBytes))));
    }
  }
  void Check(DB* db, size_t count) {
    std::string value;
    for (size_t i = 0; i < count; i += 7) {
      ASSERT_TRUE(IsOk(db->Get({}, std::to_string(i), &value))) << i;
      ASSERT_EQ(value, TestValue(i, kValueBytes));
    }
  }
  static uint64_t Flushes(DB* db) {
    std::map<std::string, std::string> numbers;
    EXPECT_TRUE(db->GetMapProperty("nacre.dbstats", &numbers));
    return std::stoull(numbers["flushes"]);
  }

  std::shared_ptr<pool::PoolImpl> pool_;
};

TEST_F(WriteBufferManagerTest, CountsWhatMemTablesTakeAndGivesItBack) {
  const auto manager = std::make_shared<WriteBufferManager>(0);
  EXPECT_FALSE(manager->enabled());
  std::unique_ptr<DB> a = Open(OptionsWith(manager), "a");
  std::unique_ptr<DB> b = Open(OptionsWith(manager), "b");
  Write(a.get(), 0, 1000);
  const size_t of_a = manager->memory_usage();
  EXPECT_GE(of_a, 1000 * kValueBytes);
  Write(b.get(), 0, 1000);
  EXPECT_GE(manager->memory_usage(), of_a + 1000 * kValueBytes);
  EXPECT_EQ(manager->mutable_memtable_memory_usage(), manager->memory_usage());
  EXPECT_FALSE(manager->ShouldFlush());
  ASSERT_TRUE(IsOk(a->Flush({})));
  EXPECT_TRUE(Eventually([&] { return manager->memory_usage() < of_a + 500 * kValueBytes; }));
  EXPECT_EQ(manager->mutable_memtable_memory_usage(), manager->memory_usage());
  a.reset();
  b.reset();
  EXPECT_EQ(manager->memory_usage(), 0u);
  EXPECT_EQ(manager->mutable_memtable_memory_usage(), 0u);
}

TEST_F(WriteBufferManagerTest, TheDatabaseThatHasMostFlushesWhicheverIsWrittenTo) {
  const auto manager = std::make_shared<WriteBufferManager>(4 << 20, /*allow_stall=*/true);
  std::unique_ptr<DB> large = Open(OptionsWith(manager), "large");
  std::unique_ptr<DB> small = Open(OptionsWith(manager), "small");
  Write(large.get(), 0, 2000);
  EXPECT_EQ(Flushes(large.get()), 0u);
  size_t written = 0;
  while (Flushes(large.get()) + Flushes(small.get()) == 0) {
    Write(small.get(), written, 100);
    written += 100;
    ASSERT_LT(written, 10'000u);
  }
  ASSERT_TRUE(Eventually([&] { return Flushes(large.get()) > 0; }));
  EXPECT_EQ(Flushes(small.get()), 0u);
  Check(large.get(), 2000);
  Check(small.get(), written);
}

TEST_F(WriteBufferManagerTest, ManyDatabasesAndWritersStayWithinTheBound) {
  constexpr size_t kDatabases = 8;
  constexpr size_t kBound = 8 << 20;
  const auto manager = std::make_shared<WriteBufferManager>(kBound, /*allow_stall=*/true);
  std::vector<std::unique_ptr<DB>> databases;
  for (size_t i = 0; i < kDatabases; ++i) {
    databases.push_back(Open(OptionsWith(manager), std::to_string(i)));
  }
  std::atomic<bool> done{false};
  size_t most = 0;
  std::thread watcher([&] {
    while (!done) {
      most = std::max(most, manager->memory_usage());
      std::this_thread::yield();
    }
  });
  std::vector<std::thread> writers;
  for (size_t i = 0; i < kDatabases; ++i) {
    writers.emplace_back([&, i] { Write(databases[i].get(), 0, 4000); });
  }
  for (std::thread& writer : writers) writer.join();
  done = true;
  watcher.join();
  // Each writer may have taken a chunk, and an index that grows has its new size beside the old
  // one.
  EXPECT_LT(most, 2 * kBound);
  for (const std::unique_ptr<DB>& db : databases) Check(db.get(), 4000);
}

TEST_F(WriteBufferManagerTest, FamiliesOfADatabaseShareABound) {
  constexpr size_t kFamilies = 50;
  Options options = OptionsWith(nullptr);
  options.write_buffer_manager =
      std::make_shared<WriteBufferManager>(4 << 20, /*allow_stall=*/true);
  std::unique_ptr<DB> db = Open(options, "db");
  std::vector<ColumnFamilyHandle*> handles(kFamilies);
  for (size_t i = 0; i < kFamilies; ++i) {
    ASSERT_TRUE(IsOk(db->CreateColumnFamily(options, "f" + std::to_string(i), &handles[i])));
  }
  for (size_t i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(IsOk(
        db->Put(NoLog(), handles[i % kFamilies], std::to_string(i), TestValue(i, kValueBytes))));
  }
  EXPECT_TRUE(Eventually([&] { return Flushes(db.get()) > 1; }));
  EXPECT_LT(GetNumber(db.get(), "nacre.cur-size-all-mem-tables"), 6u << 20);
  std::string value;
  for (size_t i = 0; i < 10'000; i += 7) {
    ASSERT_TRUE(IsOk(db->Get({}, handles[i % kFamilies], std::to_string(i), &value))) << i;
    ASSERT_EQ(value, TestValue(i, kValueBytes));
  }
  for (ColumnFamilyHandle* handle : handles) {
    ASSERT_TRUE(IsOk(db->DestroyColumnFamilyHandle(handle)));
  }
}

TEST_F(WriteBufferManagerTest, ADatabaseHasABoundOfItsOwn) {
  Options options = OptionsWith(nullptr);
  options.db_write_buffer_size = 1 << 20;
  std::unique_ptr<DB> db = Open(options, "db");
  Write(db.get(), 0, 5000);
  EXPECT_TRUE(Eventually([&] { return Flushes(db.get()) > 0; }));
  Check(db.get(), 5000);
}

TEST_F(WriteBufferManagerTest, AWriterThatDoesNotWantToWaitGoesOn) {
  const auto manager = std::make_shared<WriteBufferManager>(64 << 10, /*allow_stall=*/true);
  std::unique_ptr<DB> db = Open(OptionsWith(manager), "db");
  WriteOptions impatient = NoLog();
  impatient.no_slowdown = true;
  for (size_t i = 0; i < 500; ++i) {
    const Status status = db->Put(impatient, std::to_string(i), TestValue(i, kValueBytes));
    ASSERT_TRUE(status.ok() || status.IsIncomplete()) << status.ToString();
  }
  manager->SetAllowStall(false);
  EXPECT_FALSE(manager->ShouldStall());
  Write(db.get(), 0, 500);
  Check(db.get(), 500);
}

TEST_F(WriteBufferManagerTest, AWiderBoundLetsWritersGoOn) {
  const auto manager = std::make_shared<WriteBufferManager>(1, /*allow_stall=*/true);
  std::unique_ptr<DB> db = Open(OptionsWith(manager), "db");
  std::atomic<bool> done{false};
  std::thread writer([&] {
    Write(db.get(), 0, 500);
    done = true;
  });
  // Each write that takes memory waits until flushes have given back all, so it comes to an end.
  manager->SetBufferSize(64 << 20);
  EXPECT_TRUE(Eventually([&] { return done.load(); }));
  writer.join();
  Check(db.get(), 500);
}

}  // namespace
}  // namespace nacre
