#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/archive.h"
#include "nacre/db.h"
#include "tests/support/key_file.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {

/// An owner over nacre-memnode processes that are all killed, an archiver with a client of its own,
/// and a model of each sequence.
class ArchiveFixture : public testing::Test {
 protected:
  using Model = std::map<std::string, std::string>;
  using milliseconds = std::chrono::milliseconds;

  static constexpr milliseconds kPatience{60'000};

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartNodes());
    ASSERT_TRUE(IsOk(DB::Open(OwnerOptions(), "db", &db_)));
  }
  void StartNodes() {
    nodes_ = std::make_unique<MemnodeProcesses>(
        3, MemnodeProcessOptions{.size = "96MiB", .slab_size = "1MiB"});
    // The owner is closed when the nodes are gone.
    pool_ = ConnectTestPool(nodes_->pool_uri(), {.operation_timeout = milliseconds(3000)});
    ASSERT_NE(pool_, nullptr);
  }
  Options OwnerOptions() const {
    Options options = SmallTableOptions(pool_);
    options.redundancy = "rep(2)";
    options.write_buffer_size = 256 << 10;
    options.max_archive_lag_MB = archive_lag_;
    options.encryption_key_file = database_key_file_;
    return options;
  }
  void OpenArchiver(const ArchiveOptions& archive = {}) {
    archive_pool_ = ConnectTestPool(nodes_->pool_uri());
    Options reading = OwnerOptions();
    reading.pool = archive_pool_;
    ASSERT_TRUE(IsOk(Archiver::Open(reading, "db", dir(), Encrypted(archive), &archiver_)));
    // From here on the owner keeps the log for it.
    ASSERT_TRUE(Eventually([&] {
      uint64_t readers = 0;
      return db_->GetIntProperty("nacre.log.readers", &readers) && readers > 0;
    }));
  }
  /// These, with the key file if there is one.
  ArchiveOptions Encrypted(ArchiveOptions archive = {}) const {
    archive.encryption_key_file = key_file_;
    return archive;
  }
  void UseKeys(const std::vector<std::string>& ids) {
    key_file_ = folder_.File("keys");
    WriteKeyFile(key_file_, ids);
  }
  void GetInfo(ArchiveInfo* info) const { ASSERT_TRUE(IsOk(GetArchive(dir(), info, key_file_))); }
  std::string dir() const { return folder_.File("archive"); }

  /// A batch of puts, deletions and a range deletion, with its model.
  void WriteOne(const WriteOptions& how = {}) {
    WriteBatch batch;
    for (uint64_t i = random_.Uniform(5) + 1; i > 0; --i) {
      const std::string key = Key(random_.Uniform(400));
      if (random_.OneIn(40)) {
        const std::string end = key + "5";
        ASSERT_TRUE(IsOk(batch.DeleteRange(key, end)));
        model_.erase(model_.lower_bound(key), model_.lower_bound(end));
      } else if (random_.OneIn(6)) {
        ASSERT_TRUE(IsOk(batch.Delete(key)));
        model_.erase(key);
      } else {
        const std::string value = TestValue(random_.Next(), random_.Uniform(800));
        ASSERT_TRUE(IsOk(batch.Put(key, value)));
        model_[key] = value;
      }
    }
    ASSERT_TRUE(IsOk(db_->Write(how, &batch)));
    models_[db_->GetLatestSequenceNumber()] = model_;
  }
  void WriteMany(int batches) {
    for (int i = 0; i < batches; ++i) ASSERT_NO_FATAL_FAILURE(WriteOne());
  }
  static std::string Key(uint64_t i) { return "key" + std::to_string(i); }

  void AwaitArchive() {
    ASSERT_TRUE(IsOk(db_->WaitForArchive(db_->GetLatestSequenceNumber(), kPatience)));
    EXPECT_TRUE(IsOk(archiver_->WaitForArchive(db_->GetLatestSequenceNumber(), milliseconds(0))));
  }
  void AwaitBase(uint64_t count = 1) {
    ASSERT_TRUE(Eventually([&] { return archiver_->GetStatus().bases >= count; }))
        << archiver_->GetStatus().status.ToString();
  }
  /// All nodes, the owner and the archiver are gone; there are new, empty nodes.
  void LoseAll() {
    archiver_.reset();
    nodes_.reset();
    db_.reset();
    pool_.reset();
    archive_pool_.reset();
    ASSERT_NO_FATAL_FAILURE(StartNodes());
  }
  Status Restore(ArchiveRestoreOptions archive = {}, const std::string& name = "restored") {
    Options options = OwnerOptions();
    options.redundancy = "rs(2,1)";
    archive.restore.threads = threads_;
    archive.restore.encryption.key_file = key_file_;
    return RestoreArchive(options, name, dir(), archive, &restored_);
  }
  void CheckRestored(const Model& model, const std::string& name = "restored") {
    Options options = OwnerOptions();
    options.create_if_missing = false;
    std::unique_ptr<DB> db;
    ASSERT_TRUE(IsOk(DB::Open(options, name, &db)));
    EXPECT_EQ(db->GetLatestSequenceNumber(), restored_);
    Model there;
    const std::unique_ptr<Iterator> iterator = db->NewIterator({});
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      there[iterator->key().ToString()] = iterator->value().ToString();
    }
    ASSERT_TRUE(IsOk(iterator->status()));
    EXPECT_EQ(there.size(), model.size());
    EXPECT_TRUE(there == model) << "restored to sequence " << restored_;
  }

  const TempFolder folder_;
  std::string key_file_;           ///< Empty: the archive is not encrypted.
  std::string database_key_file_;  ///< Empty: the database is not encrypted.
  int threads_ = 2;                ///< Threads that restore.
  uint64_t archive_lag_ = 16;
  std::unique_ptr<MemnodeProcesses> nodes_;
  std::shared_ptr<pool::PoolImpl> pool_;
  std::shared_ptr<pool::PoolImpl> archive_pool_;
  std::unique_ptr<DB> db_;
  std::unique_ptr<Archiver> archiver_;
  Model model_;
  std::map<uint64_t, Model> models_{{0, {}}};  ///< By the last sequence of each batch.
  uint64_t restored_ = 0;
  Random random_{TestSeed(1)};
};

}  // namespace nacre
