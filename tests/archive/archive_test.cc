// Goal: an archive outlives all memory nodes and the owner, and gives back the database as it was
// at any sequence or time that it covers; what it does not cover it names. It goes on after its
// process died, and finds damage. Method: an owner over nacre-memnode processes that are all
// killed, an archiver with a client of its own, and a model of each sequence; all of it also with
// encryption.

#include "nacre/archive.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "nacre/utilities/transaction_db.h"
#include "tests/archive/archive_fixture.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// How many threads restore, and whether the archive is encrypted.
struct ArchiveHow {
  int threads;
  bool encrypted;
};

class ArchiveTest : public ArchiveFixture, public testing::WithParamInterface<ArchiveHow> {
 protected:
  void SetUp() override {
    threads_ = GetParam().threads;
    if (GetParam().encrypted) UseKeys({"2026-11"});
    ASSERT_NO_FATAL_FAILURE(ArchiveFixture::SetUp());
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, ArchiveTest,
                         testing::Values(ArchiveHow{1, false}, ArchiveHow{4, false},
                                         ArchiveHow{4, true}),
                         [](const auto& test) {
                           return (test.param.encrypted ? "Encrypted" : "Threads") +
                                  std::to_string(test.param.threads);
                         });

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
  ASSERT_NO_FATAL_FAILURE(GetInfo(&info));
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
  ASSERT_NO_FATAL_FAILURE(GetInfo(&info));
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
  const uint64_t cut = GetParam().encrypted ? 100 : 50;
  std::filesystem::resize_file(last, std::filesystem::file_size(last) - cut);
  Model model;
  {
    ArchiveInfo info;
    ASSERT_NO_FATAL_FAILURE(GetInfo(&info));
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
  // What is archived can be restored: that takes a base that has the family.
  ASSERT_NO_FATAL_FAILURE(AwaitArchive());
  EXPECT_GE(archiver_->GetStatus().bases, 2u);
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
  ASSERT_TRUE(IsOk(Archiver::Open(reading, "db", dir(), Encrypted(), &archiver_)));
  ASSERT_NO_FATAL_FAILURE(AwaitBase());
  ASSERT_NO_FATAL_FAILURE(prepare("second"));
  // The archive cannot tell that the family is the database's own. It waits for another base,
  // unless it had found the family in what was left of the log before it made the first one.
  ASSERT_TRUE(IsOk(locking->WaitForArchive(locking->GetLatestSequenceNumber(), kPatience)));
  const uint64_t bases = archiver_->GetStatus().bases;
  EXPECT_LE(bases, 2u);
  ASSERT_NO_FATAL_FAILURE(prepare("third"));
  ASSERT_TRUE(IsOk(locking->WaitForArchive(locking->GetLatestSequenceNumber(), kPatience)));
  EXPECT_EQ(archiver_->GetStatus().bases, bases) << "by then it knows it";
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
  EXPECT_TRUE(Archiver::Open(reading, "db", dir(), Encrypted(), &second).IsBusy());
  archiver_.reset();
  ASSERT_TRUE(IsOk(db_->Close()));
  ASSERT_TRUE(IsOk(DestroyDB("db", reading)));
  ASSERT_TRUE(IsOk(DB::Open(reading, "db", &db_)));
  const Status other = Archiver::Open(reading, "db", dir(), Encrypted(), &second);
  EXPECT_TRUE(other.IsInvalidArgument()) << other.ToString();
  ArchiveInfo info;
  EXPECT_TRUE(GetArchive(folder_.File("nowhere"), &info).IsNotFound());
}

}  // namespace
}  // namespace nacre
