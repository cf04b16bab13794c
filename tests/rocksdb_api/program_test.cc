// Goal: code that takes a rocksdb::DB* does the same over Nacre as over RocksDB; what Nacre has not
// got says so, and options that would change what is read are refused.
// Method: one program, with updates drawn from a seed, writes down whatever it is answered; it runs
// on RocksDB in memory and on Nacre in an embedded pool, and both transcripts must be equal. Two
// databases are compared, not one with a model: RocksDB is what it is to be like.

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/snapshot.h>
#include <rocksdb/write_batch.h>

#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "adapters/rocksdb/nacre_rocksdb.h"
#include "tests/rocksdb_api/both_databases.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::rocksdb_api {
namespace {

/// What an application might do with its database; knows nothing of Nacre.
class Program {
 public:
  Program(rocksdb::DB* db, uint64_t seed) : db_(db), random_(seed) {}

  std::string Run() {
    Update(2000);
    Scan("memtable", rocksdb::ReadOptions());
    const rocksdb::Snapshot* const snapshot = db_->GetSnapshot();
    Note("flush", db_->Flush(rocksdb::FlushOptions()));
    Update(2000);
    Note("flush", db_->Flush(rocksdb::FlushOptions(), db_->DefaultColumnFamily()));
    Update(500);
    rocksdb::ReadOptions then;
    then.snapshot = snapshot;
    Scan("snapshot", then);
    LookUp(then);
    Note("compact", db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr));
    Scan("compacted", rocksdb::ReadOptions());
    Scan("snapshot after compaction", then);
    db_->ReleaseSnapshot(snapshot);
    LookUp(rocksdb::ReadOptions());
    Bounds();
    Note("verify", db_->VerifyChecksum());
    Note("log", db_->FlushWAL(/*sync=*/false));
    return text_.str();
  }

  /// Runs after it was opened again.
  std::string RunAgain() {
    Scan("reopened", rocksdb::ReadOptions());
    LookUp(rocksdb::ReadOptions());
    return text_.str();
  }

 private:
  void Note(const std::string& what, const rocksdb::Status& status) {
    text_ << what << ": " << status.ToString() << "\n";
  }
  std::string Key() { return "key" + std::to_string(random_.Uniform(1500)); }

  void Update(int count) {
    rocksdb::WriteOptions options;
    for (int i = 0; i < count; ++i) {
      const std::string value = pool::RandomBytes(random_.Next(), random_.Uniform(100));
      options.sync = i % 50 == 0;
      switch (random_.Uniform(6)) {
        case 0:
          Note("delete", db_->Delete(options, Key()));
          break;
        case 1: {
          rocksdb::WriteBatch batch;
          for (uint64_t n = random_.Uniform(10); n > 0; --n) {
            random_.OneIn(3) ? batch.Delete(Key()) : batch.Put(Key(), value + std::to_string(n));
          }
          Note("write of " + std::to_string(batch.Count()), db_->Write(options, &batch));
          break;
        }
        case 2: {
          // This is only for a key that was put once.
          const std::string key = "single" + std::to_string(serial_++);
          Note("put", db_->Put(options, key, value));
          if (random_.OneIn(2)) Note("single delete", db_->SingleDelete(options, key));
          break;
        }
        default:
          Note("put", db_->Put(options, db_->DefaultColumnFamily(), Key(), value));
      }
    }
  }

  void Show(rocksdb::Iterator* iterator) {
    text_ << iterator->key().ToString() << "=" << iterator->value().ToString(/*hex=*/true) << "\n";
  }
  void Scan(const std::string& what, const rocksdb::ReadOptions& options) {
    text_ << "scan " << what << "\n";
    const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(options));
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) Show(iterator.get());
    Note("end", iterator->status());
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) Show(iterator.get());
    Note("end", iterator->status());
    for (int i = 0; i < 20; ++i) {
      const std::string target = Key();
      i % 2 == 0 ? iterator->Seek(target) : iterator->SeekForPrev(target);
      if (iterator->Valid()) Show(iterator.get());
    }
  }
  void Bounds() {
    const std::string low = "key3";
    const std::string high = "key7";
    const rocksdb::Slice lower = low;
    const rocksdb::Slice upper = high;
    rocksdb::ReadOptions options;
    options.iterate_lower_bound = &lower;
    options.iterate_upper_bound = &upper;
    Scan("bounds", options);
  }
  void LookUp(const rocksdb::ReadOptions& options) {
    for (int i = 0; i < 50; ++i) {
      std::string value;
      Note("get", db_->Get(options, Key(), &value));
      text_ << rocksdb::Slice(value).ToString(/*hex=*/true) << "\n";
    }
    std::vector<std::string> keys(20);
    for (std::string& key : keys) key = Key();
    const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
    std::vector<std::string> values;
    for (const rocksdb::Status& status : db_->MultiGet(options, slices, &values)) {
      Note("one of many", status);
    }
    for (const std::string& value : values) {
      text_ << rocksdb::Slice(value).ToString(/*hex=*/true) << "\n";
    }
    std::vector<rocksdb::PinnableSlice> pinned(slices.size());
    std::vector<rocksdb::Status> statuses(slices.size());
    db_->MultiGet(options, db_->DefaultColumnFamily(), slices.size(), slices.data(), pinned.data(),
                  statuses.data());
    for (size_t i = 0; i < slices.size(); ++i) {
      Note("one of a batch", statuses[i]);
      if (statuses[i].ok()) text_ << pinned[i].ToString(/*hex=*/true) << "\n";
    }
  }

  rocksdb::DB* const db_;
  Random random_;
  int serial_ = 0;
  std::ostringstream text_;
};

class ProgramTest : public BothDatabases {};

TEST_F(ProgramTest, DoesTheSameOnBoth) {
  const uint64_t seed = TestSeed(20260103);
  ASSERT_NO_FATAL_FAILURE(OpenRocksdb());
  ASSERT_NO_FATAL_FAILURE(OpenNacre());
  const std::string expected = Program(rocksdb_.get(), seed).Run();
  EXPECT_GT(expected.size(), 100000U);
  EXPECT_EQ(FirstDifference(Program(nacre_db_.get(), seed).Run(), expected), "");
  ASSERT_TRUE(nacre_db_->Close().ok());
  ASSERT_NO_FATAL_FAILURE(OpenRocksdb());
  ASSERT_NO_FATAL_FAILURE(OpenNacre());
  EXPECT_EQ(FirstDifference(Program(nacre_db_.get(), seed + 1).RunAgain(),
                            Program(rocksdb_.get(), seed + 1).RunAgain()),
            "");
}

TEST_F(ProgramTest, IsToldWhatThereIsNot) {
  ASSERT_NO_FATAL_FAILURE(OpenNacre());
  rocksdb::DB* const db = nacre_db_.get();
  const rocksdb::WriteOptions write;
  ASSERT_TRUE(db->Put(write, "a", "1").ok());
  EXPECT_TRUE(db->Merge(write, "a", "2").IsNotSupported());  // There is no operator.
  rocksdb::PinnableSlice operand;
  int count = 0;
  rocksdb::GetMergeOperandsOptions operands;
  operands.expected_max_number_of_operands = 1;
  EXPECT_TRUE(db->GetMergeOperands(rocksdb::ReadOptions(), db->DefaultColumnFamily(), "a", &operand,
                                   &operands, &count)
                  .ok());
  EXPECT_EQ(count, 1);
  EXPECT_EQ(operand.ToString(), "1");
  operands.expected_max_number_of_operands = 0;
  EXPECT_TRUE(db->GetMergeOperands(rocksdb::ReadOptions(), db->DefaultColumnFamily(), "a", &operand,
                                   &operands, &count)
                  .IsIncomplete());
  EXPECT_TRUE(db->PutEntity(write, db->DefaultColumnFamily(), "a", {}).IsNotSupported());
  EXPECT_TRUE(db->Put(write, db->DefaultColumnFamily(), "a", "timestamp", "2").IsNotSupported());
  rocksdb::WriteBatch batch;
  ASSERT_TRUE(batch.Put("b", "1").ok());
  ASSERT_TRUE(batch.PutEntity(db->DefaultColumnFamily(), "a", {{"column", "2"}}).ok());
  EXPECT_TRUE(db->Write(write, &batch).IsNotSupported());
  std::vector<std::string> files;
  uint64_t bytes = 0;
  EXPECT_TRUE(db->GetLiveFiles(files, &bytes).IsNotSupported());
  rocksdb::ReadOptions filtered;
  filtered.table_filter = [](const rocksdb::TableProperties&) { return true; };
  const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(filtered));
  iterator->SeekToFirst();
  EXPECT_FALSE(iterator->Valid());
  EXPECT_TRUE(iterator->status().IsNotSupported());
  // Nothing of a refused batch was written.
  std::string value;
  EXPECT_TRUE(db->Get(rocksdb::ReadOptions(), "b", &value).IsNotFound());
  EXPECT_TRUE(db->Get(rocksdb::ReadOptions(), "a", &value).ok());
  EXPECT_EQ(value, "1");
}

TEST_F(ProgramTest, HasPropertiesAndSizes) {
  ASSERT_NO_FATAL_FAILURE(OpenNacre());
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(nacre_db_->Put({}, "key" + std::to_string(i), std::string(1000, 'v')).ok());
  }
  ASSERT_TRUE(nacre_db_->Flush({}).ok());
  std::string text;
  EXPECT_TRUE(nacre_db_->GetProperty("rocksdb.levelstats", &text));
  EXPECT_NE(text.find("Level Files Size(MB)"), std::string::npos) << text;
  EXPECT_FALSE(nacre_db_->GetProperty("rocksdb.no-such-thing", &text));
  const rocksdb::Range all("a", "z");
  uint64_t size = 0;
  ASSERT_TRUE(nacre_db_->GetApproximateSizes(&all, 1, &size).ok());
  EXPECT_GT(size, 900'000U);
  EXPECT_LT(size, 1'300'000U);
  EXPECT_EQ(nacre_db_->GetLatestSequenceNumber(), 1000U);
  EXPECT_EQ(nacre_db_->DefaultColumnFamily()->GetName(), "default");
  EXPECT_EQ(nacre_db_->GetOptions().write_buffer_size, options_.write_buffer_size);
}

class Listener final : public rocksdb::EventListener {};

TEST_F(ProgramTest, OptionsThatWouldMeanNothingAreRefused) {
  options_.listeners.push_back(std::make_shared<Listener>());
  rocksdb::Status status = Open(options_, nacre_options_, "program", &nacre_db_);
  EXPECT_TRUE(status.IsNotSupported());
  EXPECT_NE(status.ToString().find("listeners"), std::string::npos) << status.ToString();
  options_.listeners.clear();
  options_.compaction_style = rocksdb::kCompactionStyleUniversal;
  status = Open(options_, nacre_options_, "program", &nacre_db_);
  EXPECT_TRUE(status.IsNotSupported());
  EXPECT_NE(status.ToString().find("compaction_style"), std::string::npos) << status.ToString();
  options_.compaction_style = rocksdb::kCompactionStyleLevel;
  options_.create_if_missing = false;
  EXPECT_TRUE(Open(options_, nacre_options_, "program", &nacre_db_).IsInvalidArgument());
}

TEST_F(ProgramTest, DestroysItsDatabase) {
  ASSERT_NO_FATAL_FAILURE(OpenNacre());
  ASSERT_TRUE(nacre_db_->Put({}, "a", "1").ok());
  EXPECT_TRUE(Destroy(nacre_options_, "program").IsBusy());
  nacre_db_.reset();
  EXPECT_TRUE(Destroy(nacre_options_, "program").ok());
  ASSERT_NO_FATAL_FAILURE(OpenNacre());
  std::string value;
  EXPECT_TRUE(nacre_db_->Get(rocksdb::ReadOptions(), "a", &value).IsNotFound());
}

}  // namespace
}  // namespace nacre::rocksdb_api
