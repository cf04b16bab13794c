// Goal: of an encrypted database no key and no value lies in the memory of nodes, be it in tables,
// in what the manifest says of them, or in the log; it is read with its keys only; keys are
// replaced without a stop; what is changed on a node is never answered; and all that a database
// does works as it does without.
// Method: nodes that are processes of their own, whose memory is searched; databases that are
// opened again with other key files; bits that are flipped; owners that take over, followers, and
// nodes that are lost.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "db/salvage/salvage.h"
#include "nacre/checkpoint.h"
#include "nacre/db.h"
#include "nacre/transaction_log.h"
#include "table/seal/table_keys.h"
#include "tests/support/key_file.h"
#include "tests/support/node_memory.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/table/stored_tables.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr uint64_t kNodeBytes = 64 << 20;
/// In all keys and values.
constexpr char kPlain[] = "PLAINTEXT";

std::string SecretKeyOf(int i) {
  char key[32];
  std::snprintf(key, sizeof(key), "%s-key-%05d", kPlain, i);
  return key;
}

/// Random but for a mark in the middle.
std::string SecretValueOf(int i, int version) {
  std::string value = TestValue(static_cast<uint64_t>(i * 10 + version), 300);
  return value.replace(100, sizeof(kPlain) - 1, kPlain);
}

class EncryptedDBTest : public testing::TestWithParam<const char*> {
 protected:
  EncryptedDBTest() { WriteKeyFile(key_file(), {"first"}); }

  std::string key_file() const { return folder_.path() + "/keys"; }
  Options OptionsOf(const std::string& keys) const {
    Options options = SmallTableOptions(nullptr);
    options.pool_uri = nodes_.pool_uri();
    options.redundancy = GetParam();
    options.encryption_key_file = keys;
    return options;
  }
  Status Open(const std::string& keys) { return DB::Open(OptionsOf(keys), "db", &db_); }
  void Reopen() {
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
    ASSERT_TRUE(IsOk(Open(key_file())));
  }
  void Put(int from, int to, int version) {
    for (int i = from; i < to; ++i) {
      ASSERT_TRUE(IsOk(db_->Put({}, SecretKeyOf(i), SecretValueOf(i, version))));
    }
  }
  static void CheckAll(DB* db, int from, int to, int version) {
    std::vector<std::string> keys;
    for (int i = from; i < to; ++i) keys.push_back(SecretKeyOf(i));
    for (int i = from; i < to; ++i) {
      std::string value;
      ASSERT_TRUE(IsOk(db->Get({}, SecretKeyOf(i), &value)));
      ASSERT_EQ(value, SecretValueOf(i, version)) << i;
    }
    const std::vector<Slice> slices(keys.begin(), keys.end());
    std::vector<std::string> values;
    for (const Status& status : db->MultiGet({}, slices, &values)) ASSERT_TRUE(IsOk(status));
    for (int i = from; i < to; ++i) {
      ASSERT_EQ(values[static_cast<size_t>(i - from)], SecretValueOf(i, version));
    }
    const std::unique_ptr<Iterator> iterator = db->NewIterator({});
    int at = from;
    for (iterator->Seek(SecretKeyOf(from)); iterator->Valid() && at < to; iterator->Next(), ++at) {
      ASSERT_EQ(iterator->key(), Slice(SecretKeyOf(at)));
      ASSERT_EQ(iterator->value(), Slice(SecretValueOf(at, version)));
    }
    ASSERT_TRUE(IsOk(iterator->status()));
    EXPECT_EQ(at, to);
  }
  /// Places in the memory of all nodes together.
  size_t CountPlain() {
    size_t found = 0;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].running()) continue;
      const NodeMemory memory(nodes_[i].pid(), kNodeBytes);
      EXPECT_TRUE(memory.found());
      constexpr uint64_t kStep = 1 << 20;
      std::string bytes;
      for (uint64_t at = 0; at + kStep <= memory.size(); at += kStep) {
        EXPECT_TRUE(memory.Read(at, kStep, &bytes));
        for (size_t place = bytes.find(kPlain); place != std::string::npos;
             place = bytes.find(kPlain, place + 1)) {
          ++found;
        }
      }
    }
    return found;
  }

  MemnodeProcesses nodes_{4, MemnodeProcessOptions{.size = "64MiB", .slab_size = "1MiB"}};
  TempFolder folder_;
  std::unique_ptr<DB> db_;
};

INSTANTIATE_TEST_SUITE_P(Redundancies, EncryptedDBTest,
                         testing::Values("none", "rep(2)", "rs(2,1)"), [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase_if(name, [](char c) { return std::isalnum(c) == 0; });
                           return name;
                         });

TEST_P(EncryptedDBTest, NothingPlainLiesInTheMemoryOfNodes) {
  for (const bool encrypted : {true, false}) {  // Plain at last, as what is freed stays there.
    SCOPED_TRACE(encrypted);
    ASSERT_TRUE(IsOk(Open(encrypted ? key_file() : "")));
    ASSERT_NO_FATAL_FAILURE(Put(0, 4000, 0));
    ASSERT_TRUE(IsOk(db_->DeleteRange({}, SecretKeyOf(100), SecretKeyOf(200))));
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(Put(0, 2000, 1));
    ASSERT_NO_FATAL_FAILURE(CheckAll(db_.get(), 0, 2000, 1));
    ASSERT_NO_FATAL_FAILURE(CheckAll(db_.get(), 2000, 4000, 0));
    EXPECT_GT(db_->NumberLevels(), 1);
    ASSERT_NO_FATAL_FAILURE(encrypted ? Reopen() : void());
    EXPECT_EQ(CountPlain() > 0, !encrypted);
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
    ASSERT_TRUE(IsOk(DestroyDB("db", OptionsOf(""))));
  }
}

TEST_P(EncryptedDBTest, ReadWithItsKeysOnly) {
  ASSERT_TRUE(IsOk(Open(key_file())));
  ASSERT_NO_FATAL_FAILURE(Put(0, 500, 0));
  const std::string other = folder_.path() + "/other";
  WriteKeyFile(other, {"second"});
  // What is in the log only, and then in tables.
  for (const bool flushed : {false, true}) {
    SCOPED_TRACE(flushed);
    if (flushed) {
      ASSERT_TRUE(IsOk(db_->Flush({})));
    }
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
    EXPECT_TRUE(IsFailure(Open(""), Status::Code::kInvalidArgument, "encrypted"));
    EXPECT_TRUE(IsFailure(Open(other), Status::Code::kInvalidArgument, other));
    std::unique_ptr<DB> follower;
    EXPECT_TRUE(IsFailure(DB::OpenForReadOnly(OptionsOf(""), "db", &follower),
                          Status::Code::kInvalidArgument, "encrypted"));
    ASSERT_TRUE(IsOk(Open(key_file())));
    ASSERT_NO_FATAL_FAILURE(CheckAll(db_.get(), 0, 500, 0));
  }
  // A key of the same name with other bytes.
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
  const std::string false_friend = folder_.path() + "/false";
  WriteKeyFile(false_friend, {"first"});
  ASSERT_EQ(std::system(("sed -i s/a/b/g " + false_friend).c_str()), 0);
  EXPECT_TRUE(IsFailure(Open(false_friend), Status::Code::kCorruption, "another key"));
  EXPECT_TRUE(IsFailure(Open(folder_.path() + "/none"), Status::Code::kIOError, "none"));
}

TEST_P(EncryptedDBTest, KeysAreReplaced) {
  ASSERT_TRUE(IsOk(Open("")));
  ASSERT_NO_FATAL_FAILURE(Put(0, 1000, 0));
  const std::vector<std::vector<std::string>> files = {
      {"first"}, {"second", "first"}, {"second"}, {"third", "second"}, {"third"}};
  for (size_t step = 0; step < files.size(); ++step) {
    SCOPED_TRACE(step);
    WriteKeyFile(key_file(), files[step]);
    ASSERT_NO_FATAL_FAILURE(Reopen());
    ASSERT_NO_FATAL_FAILURE(CheckAll(db_.get(), 0, 1000, 0));
    const int here = 1000 + static_cast<int>(step) * 100;
    ASSERT_NO_FATAL_FAILURE(Put(here, here + 100, 0));
    // All that there is, the deepest level too, is written with the first key.
    ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
    std::map<std::string, std::string> keys;
    ASSERT_TRUE(db_->GetMapProperty("nacre.encryption-keys", &keys));
    ASSERT_EQ(keys.size(), 1u) << GetTextProperty(db_.get(), "nacre.encryption-keys");
    EXPECT_EQ(keys.begin()->first, files[step].front());
  }
  ASSERT_NO_FATAL_FAILURE(CheckAll(db_.get(), 0, 1500, 0));
}

TEST_P(EncryptedDBTest, TheNextOwnerAndFollowersReadWhatIsInTheLog) {
  ASSERT_TRUE(IsOk(Open(key_file())));
  ASSERT_NO_FATAL_FAILURE(Put(0, 1000, 0));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_NO_FATAL_FAILURE(Put(500, 1500, 1));
  std::unique_ptr<DB> follower;
  ASSERT_TRUE(IsOk(DB::OpenAsSecondary(OptionsOf(key_file()), "db", &follower)));
  ASSERT_NO_FATAL_FAILURE(CheckAll(follower.get(), 500, 1500, 1));
  std::unique_ptr<TransactionLogIterator> updates;
  ASSERT_TRUE(IsOk(db_->GetUpdatesSince(db_->GetLatestSequenceNumber() - 100, &updates)));
  int batches = 0;
  for (; updates->Valid(); updates->Next(), ++batches) {
    EXPECT_NE(updates->GetBatch().write_batch->Data().find(kPlain), std::string::npos);
  }
  EXPECT_EQ(batches, 101);

  std::unique_ptr<DB> last = std::move(db_);
  Options taking = OptionsOf(key_file());
  taking.take_over = true;
  ASSERT_TRUE(IsOk(DB::Open(taking, "db", &db_)));
  ASSERT_NO_FATAL_FAILURE(CheckAll(db_.get(), 0, 500, 0));
  ASSERT_NO_FATAL_FAILURE(CheckAll(db_.get(), 500, 1500, 1));
  ASSERT_NO_FATAL_FAILURE(Put(1500, 1600, 2));
  ASSERT_TRUE(IsOk(follower->TryCatchUpWithPrimary()));
  ASSERT_NO_FATAL_FAILURE(CheckAll(follower.get(), 1500, 1600, 2));
  last->Close().IgnoreError();
}

TEST_P(EncryptedDBTest, WhatNodesLoseIsMadeAnewWithoutBeingDecrypted) {
  if (GetParam() == std::string("none")) return;  // There is nothing to make it from.
  ASSERT_TRUE(IsOk(Open(key_file())));
  ASSERT_NO_FATAL_FAILURE(Put(0, 3000, 0));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  nodes_[0].Kill();
  ASSERT_NO_FATAL_FAILURE(CheckAll(db_.get(), 0, 3000, 0));
  ASSERT_TRUE(Eventually([&] {
    return GetNumber(db_.get(), "nacre.repair.bytes-done") > 0 &&
           GetNumber(db_.get(), "nacre.repair.tables-left") == 0;
  }));
  nodes_[1].Kill();
  ASSERT_NO_FATAL_FAILURE(CheckAll(db_.get(), 0, 3000, 0));
  EXPECT_EQ(CountPlain(), 0u);
}

// ---- Copies, and what is left
// ---------------------------------------------------------------------

TEST_P(EncryptedDBTest, NoCopyOfItIsPlain) {
  ASSERT_TRUE(IsOk(Open(key_file())));
  ASSERT_NO_FATAL_FAILURE(Put(0, 2000, 0));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  std::unique_ptr<Checkpoint> checkpoint;
  ASSERT_TRUE(IsOk(Checkpoint::Create(db_.get(), &checkpoint)));
  const std::string dir = folder_.path() + "/copy";
  EXPECT_TRUE(IsFailure(checkpoint->CreateCheckpoint(dir, {}, nullptr),
                        Status::Code::kInvalidArgument, "encrypted"));
  CheckpointOptions sealed;
  sealed.encryption.key_file = folder_.path() + "/copies";
  WriteKeyFile(sealed.encryption.key_file, {"copies"});
  ASSERT_TRUE(IsOk(checkpoint->CreateCheckpoint(dir, sealed, nullptr)));
  RestoreOptions restore;
  restore.encryption = sealed.encryption;
  // To one that is encrypted, with another key than the first one, and to one that is not.
  WriteKeyFile(key_file(), {"second", "first"});
  ASSERT_TRUE(IsOk(RestoreDB(OptionsOf(key_file()), "restored", dir, restore)));
  EXPECT_EQ(CountPlain(), 0u);
  std::unique_ptr<DB> restored;
  ASSERT_TRUE(IsOk(DB::Open(OptionsOf(key_file()), "restored", &restored)));
  ASSERT_NO_FATAL_FAILURE(CheckAll(restored.get(), 0, 2000, 0));
  EXPECT_EQ(GetTextProperty(restored.get(), "nacre.encryption-keys").substr(0, 7), "second:");
  ASSERT_TRUE(IsOk(RestoreDB(OptionsOf(""), "plain", dir, restore)));
  ASSERT_TRUE(IsOk(DB::Open(OptionsOf(""), "plain", &restored)));
  ASSERT_NO_FATAL_FAILURE(CheckAll(restored.get(), 0, 2000, 0));
}

TEST_P(EncryptedDBTest, ItsManifestIsMadeAnewWithItsKeys) {
  ASSERT_TRUE(IsOk(Open(key_file())));
  ASSERT_NO_FATAL_FAILURE(Put(0, 3000, 0));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(Put(2900, 3100, 1));  // In the log.
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
  const auto pool = ConnectTestPool(nodes_.pool_uri());
  ASSERT_NE(pool, nullptr);
  SalvageOptions options{.force = true};
  SalvageReport report;
  EXPECT_TRUE(IsFailure(SalvageDatabase(pool->client(), "db", options, &report),
                        Status::Code::kInvalidArgument, "'first'"));
  ASSERT_TRUE(IsOk(ReadTableKeys(key_file(), &options.defaults.keys)));
  ASSERT_TRUE(IsOk(SalvageDatabase(pool->client(), "db", options, &report)));
  ASSERT_TRUE(IsOk(Open(key_file())));
  ASSERT_NO_FATAL_FAILURE(CheckAll(db_.get(), 0, 2900, 0));
  ASSERT_NO_FATAL_FAILURE(CheckAll(db_.get(), 2900, 3100, 1));
}

// ---- What is changed on a node ------------------------------------------------------------------

class ChangedOnNodesTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    WriteKeyFile(folder_.path() + "/keys", {"first"});
    options_ = SmallTableOptions(pool_);
    options_.encryption_key_file = folder_.path() + "/keys";
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  }

  const TempFolder folder_;
  std::shared_ptr<pool::PoolImpl> pool_;
  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(ChangedOnNodesTest, IsNeverAnswered) {
  constexpr int kKeys = 2000;
  for (int i = 0; i < kKeys; ++i) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), SecretKeyOf(i), SecretValueOf(i, 0))));
  }
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  Random random(TestSeed(2611));
  for (const TableMeta& table : StoredTables(db_.get(), pool_.get())) {
    for (int flips = 0; flips < 8; ++flips) {
      const auto at = static_cast<int64_t>(random.Uniform(table.records.length));
      *StoredByte(pool_.get(), table, 0, at) ^= 1;
    }
  }
  int failures = 0;
  for (const bool verify : {true, false}) {  // What is encrypted is always compared.
    SCOPED_TRACE(verify);
    ReadOptions read;
    read.verify_checksums = verify;
    for (int i = 0; i < kKeys; ++i) {
      std::string value;
      const Status status = db_->Get(read, SecretKeyOf(i), &value);
      if (status.ok()) {
        ASSERT_EQ(value, SecretValueOf(i, 0)) << i;
      } else {
        ASSERT_TRUE(status.IsCorruption()) << status.ToString();
        ++failures;
      }
    }
    const std::unique_ptr<Iterator> iterator = db_->NewIterator(read);
    int at = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++at) {
      ASSERT_EQ(iterator->value(), Slice(SecretValueOf(at, 0)));
    }
    EXPECT_TRUE(iterator->status().IsCorruption()) << iterator->status().ToString();
  }
  EXPECT_GT(failures, 0);
}

}  // namespace
}  // namespace nacre
