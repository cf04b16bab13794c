// Goal: a checkpoint of a database that another process owns is the database as of one of its
// flushes, though the owner, which does not know of it, compacts tables away while they are copied.
// Method: an owner that writes numbered batches and compacts all the time, over small nodes whose
// memory is used again at once; a reader with a client of its own; each checkpoint is restored.

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/checkpoint.h"
#include "nacre/db.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

constexpr uint64_t kKeys = 300;

class ReaderCheckpointTest : public testing::Test {
 protected:
  void SetUp() override {
    options_ = SmallTableOptions(ConnectTestPool(nodes_.pool_uri()));
    options_.redundancy = "rep(2)";
    options_.write_buffer_size = 64 << 10;
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
    reading_ = options_;
    reading_.pool = ConnectTestPool(nodes_.pool_uri());
  }

  /// Batch number n sets key n modulo kKeys to n.
  Status Write(uint64_t n) {
    return db_->Put({}, std::to_string(n % kKeys),
                    std::to_string(n) + " " + TestValue(n, 100 + n % 700));
  }
  /// What was restored as `name` has the batches up to its sequence, which is their number.
  void Check(const std::string& name, uint64_t sequence) {
    Options options = options_;
    options.create_if_missing = false;
    std::unique_ptr<DB> restored;
    ASSERT_TRUE(IsOk(DB::Open(options, name, &restored)));
    for (uint64_t key = 0; key < kKeys; ++key) {
      const uint64_t behind = (sequence % kKeys + kKeys - key) % kKeys;
      std::string value;
      const Status status = restored->Get({}, std::to_string(key), &value);
      if (behind >= sequence) {
        EXPECT_TRUE(status.IsNotFound()) << key << ": " << status.ToString();
        continue;
      }
      ASSERT_TRUE(IsOk(status));
      EXPECT_EQ(std::stoull(value), sequence - behind) << "key " << key;
    }
    ASSERT_TRUE(IsOk(restored->Close()));
    restored.reset();
    ASSERT_TRUE(IsOk(DestroyDB(name, options_)));
  }

  MemnodeProcesses nodes_{3, {.size = "32MiB", .slab_size = "1MiB"}};
  const TempFolder folder_;
  Options options_;
  Options reading_;
  std::unique_ptr<DB> db_;
};

TEST_F(ReaderCheckpointTest, IsOfOneFlushWhateverIsCompactedMeanwhile) {
  std::atomic<bool> stop{false};
  for (uint64_t n = 1; n <= 2 * kKeys; ++n) ASSERT_TRUE(IsOk(Write(n)));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  std::thread owner([&] {
    for (uint64_t n = 2 * kKeys + 1; !stop.load(); ++n) {
      EXPECT_TRUE(IsOk(Write(n)));
      if (n % 500 == 0) {
        EXPECT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
      }
    }
  });
  std::unique_ptr<DB> reader;
  EXPECT_TRUE(IsOk(DB::OpenAsSecondary(reading_, "db", &reader)));
  std::unique_ptr<Checkpoint> checkpoint;
  EXPECT_TRUE(IsOk(Checkpoint::Create(reader.get(), &checkpoint)));
  std::vector<CheckpointInfo> made(5);
  for (CheckpointInfo& info : made) {
    EXPECT_TRUE(IsOk(checkpoint->CreateCheckpoint(folder_.path(), {}, &info)));
  }
  stop.store(true);
  owner.join();
  for (const CheckpointInfo& info : made) {
    ASSERT_GE(info.sequence, 2 * kKeys);
    ASSERT_TRUE(IsOk(
        RestoreDB(options_, "copy", folder_.path(), RestoreOptions{.checkpoint = info.number})));
    ASSERT_NO_FATAL_FAILURE(Check("copy", info.sequence));
  }
}

TEST_F(ReaderCheckpointTest, AllFamiliesHaveToBeOpen) {
  ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily(options_, "other", &other)));
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(other)));
  std::unique_ptr<DB> reader;
  ASSERT_TRUE(IsOk(DB::OpenAsSecondary(reading_, "db", &reader)));
  std::unique_ptr<Checkpoint> checkpoint;
  ASSERT_TRUE(IsOk(Checkpoint::Create(reader.get(), &checkpoint)));
  const Status status = checkpoint->CreateCheckpoint(folder_.path(), {}, nullptr);
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_NE(status.ToString().find("other"), std::string::npos) << status.ToString();
}

}  // namespace
}  // namespace nacre
