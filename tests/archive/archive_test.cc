// Goal: an archive outlives all memory nodes and the owner, and gives back the database as it was
// at any sequence or time that it covers; what it does not cover it names. It goes on after its
// process died, and finds damage. Method: an owner over nacre-memnode processes that are all
// killed, an archiver with a client of its own, and a model of each sequence.

#include "nacre/archive.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "nacre/utilities/transaction_db.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Model = std::map<std::string, std::string>;

constexpr milliseconds kPatience{60'000};

/// The parameter is the number of threads that restore.
class ArchiveTest : public testing::TestWithParam<int> {
 protected:
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
    return options;
  }
  void OpenArchiver(const ArchiveOptions& archive = {}) {
    archive_pool_ = ConnectTestPool(nodes_->pool_uri());
    Options reading = OwnerOptions();
    reading.pool = archive_pool_;
    ASSERT_TRUE(IsOk(Archiver::Open(reading, "db", dir(), archive, &archiver_)));
    // From here on the owner keeps the log for it.
    ASSERT_TRUE(Eventually([&] {
      uint64_t readers = 0;
      return db_->GetIntProperty("nacre.log.readers", &readers) && readers > 0;
    }));
  }
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
    archive.restore.threads = GetParam();
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

INSTANTIATE_TEST_SUITE_P(Threads, ArchiveTest, testing::Values(1, 4));

TEST_P(ArchiveTest, OutlivesAllNodesAndTheOwner) {
  WriteMany(200);
  ASSERT_NO_FATAL_FAILURE(OpenArchiver({.log_file_bytes = 64 << 10}));
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  WriteMany(1500);
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  WriteMany(300);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  EXPECT_EQ(archiver_->GetStatus().gaps, 0u);
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  ASSERT_TRUE(IsOk(Restore()));
  EXPECT_EQ(restored_, models_.rbegin()->first);
  ASSERT_NO_FATAL_FAILURE(CheckRestored(model_));
}

TEST_P(ArchiveTest, IsRestoredToAnySequenceBehindItsFirstBase) {
  ASSERT_NO_FATAL_FAILURE(OpenArchiver({.base_interval = seconds(1), .log_file_bytes = 32 << 10}));
  for (int round = 0; round < 4; ++round) {
    WriteMany(400);
    if (round % 2 == 0) {
      ASSERT_TRUE(IsOk(db_->Flush({})));
    }
    std::this_thread::sleep_for(milliseconds(600));
  }
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  ASSERT_NO_FATAL_FAILURE(AwaitBase(2));
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  ArchiveInfo info;
  ASSERT_TRUE(IsOk(GetArchive(dir(), &info)));
  ASSERT_EQ(info.log.size(), 1u);
  EXPECT_EQ(info.database, "db");
  const uint64_t first = info.bases.front().sequence;
  const uint64_t last = info.log.back().last;
  ASSERT_EQ(last, models_.rbegin()->first);
  for (int i = 0; i < 6; ++i) {
    const uint64_t to = i == 0 ? last : first + random_.Uniform(last - first + 1);
    // Batches are whole or not there.
    const auto model = std::prev(models_.upper_bound(to));
    const std::string name = "restored" + std::to_string(i);
    ASSERT_TRUE(IsOk(Restore({.to_sequence = to}, name)));
    EXPECT_EQ(restored_, model->first);
    ASSERT_NO_FATAL_FAILURE(CheckRestored(model->second, name));
  }
  const Status beyond = Restore({.to_sequence = last + 1}, "beyond");
  EXPECT_TRUE(beyond.IsNotFound()) << beyond.ToString();
  EXPECT_NE(beyond.ToString().find("to " + std::to_string(last)), std::string::npos)
      << beyond.ToString();
}

TEST_P(ArchiveTest, IsRestoredToATime) {
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  std::this_thread::sleep_for(milliseconds(2100));  // Times of bases are whole seconds.
  WriteMany(100);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  const Model then = model_;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::this_thread::sleep_for(milliseconds(50));
  WriteMany(100);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  ASSERT_TRUE(IsOk(Restore({.to_micros = static_cast<uint64_t>(micros)})));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(then));
}

TEST_P(ArchiveTest, GoesOnWhereItWas) {
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  for (int round = 0; round < 3; ++round) {
    WriteMany(300);
    if (round == 1) {
      ASSERT_NO_FATAL_FAILURE(AwaitArchive());
    }
    archiver_.reset();
    WriteMany(200);  // The log keeps it meanwhile.
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  }
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  EXPECT_EQ(archiver_->GetStatus().gaps, 0u);
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  ASSERT_TRUE(IsOk(Restore()));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(model_));
}

TEST_P(ArchiveTest, AGapIsNamedAndANewBaseMade) {
  archive_lag_ = 0;
  ASSERT_TRUE(IsOk(db_->Close()));
  ASSERT_TRUE(IsOk(DB::Open(OwnerOptions(), "db", &db_)));
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  WriteMany(100);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  archiver_.reset();
  const uint64_t before = models_.rbegin()->first;
  const Model then = model_;
  WriteMany(1000);
  ASSERT_TRUE(IsOk(db_->Flush({})));
  const uint64_t missed = models_.rbegin()->first;
  WriteMany(10);
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  EXPECT_EQ(archiver_->GetStatus().gaps, 1u);
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  ArchiveInfo info;
  ASSERT_TRUE(IsOk(GetArchive(dir(), &info)));
  ASSERT_EQ(info.log.size(), 2u);
  EXPECT_EQ(info.log.front().last, before);
  const Status within = Restore({.to_sequence = missed - 500}, "within");
  EXPECT_TRUE(within.IsNotFound()) << within.ToString();
  ASSERT_TRUE(IsOk(Restore({.to_sequence = before}, "earlier")));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(then, "earlier"));
  ASSERT_TRUE(IsOk(Restore()));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(model_));
}

TEST_P(ArchiveTest, ARecordThatWasCutShortIsNone) {
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  WriteMany(100);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  archiver_.reset();
  // As a process leaves it that died in the middle of a write: without its end, and in a record.
  std::filesystem::path last;
  for (const auto& file : std::filesystem::directory_iterator(dir() + "/log")) {
    last = std::max(last, file.path());
  }
  std::filesystem::resize_file(last, std::filesystem::file_size(last) - 50);
  Model model;
  {
    ArchiveInfo info;
    ASSERT_TRUE(IsOk(GetArchive(dir(), &info)));
    ASSERT_LT(info.log.back().last, models_.rbegin()->first);
    ASSERT_TRUE(models_.contains(info.log.back().last)) << "a batch in half";
  }
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  WriteMany(20);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  EXPECT_EQ(archiver_->GetStatus().gaps, 0u);
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  ASSERT_TRUE(IsOk(Restore()));
  ASSERT_NO_FATAL_FAILURE(CheckRestored(model_));
}

TEST_P(ArchiveTest, DamageIsFound) {
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  WriteMany(100);
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  const auto file = std::filesystem::directory_iterator(dir() + "/log")->path();
  {
    std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
    const auto at = static_cast<std::streamoff>(std::filesystem::file_size(file) / 2);
    bytes.seekg(at);
    const char flipped = static_cast<char>(bytes.get() ^ 1);
    bytes.seekp(at);
    bytes.put(flipped);
  }
  const Status status = Restore();
  EXPECT_TRUE(status.IsCorruption()) << status.ToString();
  EXPECT_NE(status.ToString().find(file.filename().string()), std::string::npos)
      << status.ToString();
  std::unique_ptr<DB> db;
  const Status half = DB::Open(OwnerOptions(), "restored", &db);
  EXPECT_TRUE(half.IsIncomplete()) << "a restore in half was opened: " << half.ToString();
}

TEST_P(ArchiveTest, AFamilyThatIsMadeLaterGetsABase) {
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  WriteMany(50);
  ColumnFamilyHandle* made = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily(OwnerOptions(), "later", &made)));
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(IsOk(db_->Put({}, made, Key(static_cast<uint64_t>(i)), "of the family")));
  }
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  ASSERT_NO_FATAL_FAILURE(AwaitBase(2));
  ASSERT_TRUE(IsOk(db_->Put({}, made, "last", "one")));
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(made)));
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  ASSERT_TRUE(IsOk(Restore()));
  std::vector<ColumnFamilyHandle*> handles;
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(OwnerOptions(), "restored",
                            {{kDefaultColumnFamilyName, OwnerOptions()}, {"later", OwnerOptions()}},
                            &handles, &db)));
  std::string value;
  EXPECT_TRUE(IsOk(db->Get({}, handles[1], Key(99), &value)));
  EXPECT_EQ(value, "of the family");
  EXPECT_TRUE(IsOk(db->Get({}, handles[1], "last", &value)));
  for (const auto& [key, expected] : model_) {
    EXPECT_TRUE(IsOk(db->Get({}, handles[0], key, &value)));
    EXPECT_TRUE(value == expected);
  }
  for (ColumnFamilyHandle* const handle : handles) {
    ASSERT_TRUE(IsOk(db->DestroyColumnFamilyHandle(handle)));
  }
}

TEST_P(ArchiveTest, PreparedTransactionsAreInIt) {
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
  std::unique_ptr<TransactionDB> locking;
  ASSERT_TRUE(IsOk(TransactionDB::Open(OwnerOptions(), {}, "db", &locking)));
  const auto prepare = [&](const std::string& name) {
    const std::unique_ptr<Transaction> transaction = locking->BeginTransaction({});
    ASSERT_TRUE(IsOk(transaction->SetName(name)));
    ASSERT_TRUE(IsOk(transaction->Put(name, "prepared")));
    ASSERT_TRUE(IsOk(transaction->Prepare()));
  };
  // The first one is in a base, the others in the log behind it.
  ASSERT_NO_FATAL_FAILURE(prepare("first"));
  ASSERT_TRUE(IsOk(locking->Flush({})));
  archive_pool_ = ConnectTestPool(nodes_->pool_uri());
  Options reading = OwnerOptions();
  reading.pool = archive_pool_;
  ASSERT_TRUE(IsOk(Archiver::Open(reading, "db", dir(), {}, &archiver_)));
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  ASSERT_NO_FATAL_FAILURE(prepare("second"));
  // The archive cannot tell that the family is the database's own.
  ASSERT_NO_FATAL_FAILURE(AwaitBase(2));
  ASSERT_NO_FATAL_FAILURE(prepare("third"));
  ASSERT_TRUE(IsOk(locking->WaitForArchive(locking->GetLatestSequenceNumber(), kPatience)));
  EXPECT_EQ(archiver_->GetStatus().bases, 2u) << "by then it knows it";
  locking.reset();
  ASSERT_NO_FATAL_FAILURE(LoseAll());
  ASSERT_TRUE(IsOk(Restore()));
  ASSERT_TRUE(IsOk(TransactionDB::Open(OwnerOptions(), {}, "restored", &locking)));
  for (const std::string name : {"first", "second", "third"}) {
    Transaction* const transaction = locking->GetTransactionByName(name);
    ASSERT_NE(transaction, nullptr) << name;
    ASSERT_TRUE(IsOk(transaction->Commit()));
    std::string value;
    ASSERT_TRUE(IsOk(locking->Get({}, name, &value)));
    EXPECT_EQ(value, "prepared");
  }
}

TEST_P(ArchiveTest, AnotherDatabasesArchiveIsLeftAlone) {
  ASSERT_NO_FATAL_FAILURE(OpenArchiver());
  std::unique_ptr<Archiver> second;
  Options reading = OwnerOptions();
  EXPECT_TRUE(Archiver::Open(reading, "db", dir(), {}, &second).IsBusy());
  archiver_.reset();
  ASSERT_TRUE(IsOk(db_->Close()));
  ASSERT_TRUE(IsOk(DestroyDB("db", reading)));
  ASSERT_TRUE(IsOk(DB::Open(reading, "db", &db_)));
  const Status other = Archiver::Open(reading, "db", dir(), {}, &second);
  EXPECT_TRUE(other.IsInvalidArgument()) << other.ToString();
  ArchiveInfo info;
  EXPECT_TRUE(GetArchive(folder_.File("nowhere"), &info).IsNotFound());
}

}  // namespace
}  // namespace nacre
