// Goal: RocksDB works over the pool as over any file system: what it acknowledged is there after
// flushes, compactions and reopening in this process, from tables and from its log.
// Method: random updates against a map in memory, with small tables so that several levels arise;
// scans in both directions and lookups, singly, in batches, and with reads ahead.

#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <map>
#include <string>

#include "tests/rocksdb_fs/files_fixture.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/seed.h"
#include "util/random.h"

namespace nacre::rocksfs {
namespace {

class DatabaseTest : public FilesTest {
 protected:
  void TearDown() override { db_.reset(); }

  void OpenDatabase(bool fresh) {
    db_.reset();
    if (env_ == nullptr) env_ = rocksdb::NewCompositeEnv(files_);
    rocksdb::Options options;
    options.env = env_.get();
    options.create_if_missing = fresh;
    options.error_if_exists = fresh;
    options.compression = rocksdb::kNoCompression;
    options.write_buffer_size = 128 << 10;
    options.target_file_size_base = 128 << 10;
    options.max_bytes_for_level_base = 512 << 10;
    options.compaction_readahead_size = 1 << 20;
    options.max_background_jobs = 2;
    rocksdb::BlockBasedTableOptions table;
    table.block_size = 2048;
    table.block_cache = rocksdb::NewLRUCache(64 << 10);
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    rocksdb::DB* db = nullptr;
    ASSERT_TRUE(IsOk(rocksdb::DB::Open(options, "/db", &db)));
    db_.reset(db);
  }

  void Update(int count, bool sync) {
    rocksdb::WriteOptions options;
    for (int i = 0; i < count; ++i) {
      options.sync = sync && i % 100 == 0;
      const std::string key = "key" + std::to_string(random_.Uniform(5000));
      if (random_.Uniform(5) == 0) {
        ASSERT_TRUE(IsOk(db_->Delete(options, key)));
        model_.erase(key);
      } else {
        const std::string value = pool::RandomBytes(random_.Next(), random_.Uniform(400));
        ASSERT_TRUE(IsOk(db_->Put(options, key, value)));
        model_[key] = value;
      }
    }
  }

  void CheckScans(bool ahead) {
    rocksdb::ReadOptions options;
    options.async_io = ahead;
    options.adaptive_readahead = ahead;
    options.readahead_size = ahead ? 512 << 10 : 0;
    const std::unique_ptr<rocksdb::Iterator> iterator(db_->NewIterator(options));
    iterator->SeekToFirst();
    for (const auto& [key, value] : model_) {
      ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
      ASSERT_EQ(iterator->key().ToString(), key);
      ASSERT_EQ(iterator->value().ToString(), value);
      iterator->Next();
    }
    ASSERT_FALSE(iterator->Valid());
    ASSERT_TRUE(IsOk(iterator->status()));
    iterator->SeekToLast();
    for (auto entry = model_.rbegin(); entry != model_.rend(); ++entry) {
      ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
      ASSERT_EQ(iterator->key().ToString(), entry->first);
      iterator->Prev();
    }
    ASSERT_FALSE(iterator->Valid());
  }

  void CheckLookups() {
    constexpr size_t kBatch = 32;
    for (int round = 0; round < 20; ++round) {
      std::vector<std::string> keys;
      for (size_t i = 0; i < kBatch; ++i) {
        keys.push_back("key" + std::to_string(random_.Uniform(5000)));
      }
      const std::vector<rocksdb::Slice> slices(keys.begin(), keys.end());
      std::vector<rocksdb::PinnableSlice> values(kBatch);
      std::vector<rocksdb::Status> statuses(kBatch);
      db_->MultiGet(rocksdb::ReadOptions(), db_->DefaultColumnFamily(), kBatch, slices.data(),
                    values.data(), statuses.data());
      for (size_t i = 0; i < kBatch; ++i) {
        const auto entry = model_.find(keys[i]);
        std::string alone;
        const rocksdb::Status got = db_->Get(rocksdb::ReadOptions(), keys[i], &alone);
        if (entry == model_.end()) {
          ASSERT_TRUE(got.IsNotFound()) << got.ToString();
          ASSERT_TRUE(statuses[i].IsNotFound()) << statuses[i].ToString();
        } else {
          ASSERT_TRUE(IsOk(got));
          ASSERT_TRUE(IsOk(statuses[i]));
          ASSERT_EQ(alone, entry->second);
          ASSERT_EQ(values[i].ToString(), entry->second);
        }
      }
    }
  }

  void CheckAll() {
    ASSERT_NO_FATAL_FAILURE(CheckScans(/*ahead=*/false));
    ASSERT_NO_FATAL_FAILURE(CheckScans(/*ahead=*/true));
    ASSERT_NO_FATAL_FAILURE(CheckLookups());
    ASSERT_TRUE(IsOk(db_->VerifyChecksum()));
  }

  void FillCompactAndReopen() {
    ASSERT_NO_FATAL_FAILURE(OpenDatabase(/*fresh=*/true));
    ASSERT_NO_FATAL_FAILURE(Update(5000, /*sync=*/false));
    ASSERT_NO_FATAL_FAILURE(CheckAll());
    ASSERT_TRUE(IsOk(db_->Flush(rocksdb::FlushOptions())));
    ASSERT_TRUE(IsOk(db_->CompactRange(rocksdb::CompactRangeOptions(), nullptr, nullptr)));
    ASSERT_NO_FATAL_FAILURE(CheckAll());
    // These are only in the log when it is closed.
    ASSERT_NO_FATAL_FAILURE(Update(200, /*sync=*/true));
    ASSERT_NO_FATAL_FAILURE(OpenDatabase(/*fresh=*/false));
    ASSERT_NO_FATAL_FAILURE(CheckAll());
    ASSERT_NO_FATAL_FAILURE(Update(5000, /*sync=*/false));
    ASSERT_NO_FATAL_FAILURE(CheckAll());
  }

  Random random_{TestSeed(20260102)};
  std::map<std::string, std::string> model_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
};

TEST_F(DatabaseTest, KeepsWhatItAcknowledged) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles("none", "embedded:?nodes=3&size=256MiB"));
  ASSERT_NO_FATAL_FAILURE(FillCompactAndReopen());
}

TEST_F(DatabaseTest, KeepsItInCopies) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles("rep(2)", "embedded:?nodes=3&size=256MiB"));
  ASSERT_NO_FATAL_FAILURE(FillCompactAndReopen());
  pool_->KillEmbeddedNode(2);
  ASSERT_NO_FATAL_FAILURE(CheckAll());
}

TEST_F(DatabaseTest, KeepsItFarAway) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles("none", "embedded:?nodes=3&size=256MiB&rtt_us=20"));
  ASSERT_NO_FATAL_FAILURE(FillCompactAndReopen());
}

TEST_F(DatabaseTest, GivesItsMemoryBackWhenItIsDestroyed) {
  ASSERT_NO_FATAL_FAILURE(OpenFiles("none", "embedded:?nodes=3&size=256MiB"));
  ASSERT_NO_FATAL_FAILURE(OpenDatabase(/*fresh=*/true));
  ASSERT_NO_FATAL_FAILURE(Update(5000, /*sync=*/false));
  db_.reset();
  EXPECT_GT(files_->Usage().used_bytes, 0U);
  rocksdb::Options options;
  options.env = env_.get();
  ASSERT_TRUE(IsOk(rocksdb::DestroyDB("/db", options)));
  EXPECT_EQ(files_->Usage().used_bytes, 0U);
}

}  // namespace
}  // namespace nacre::rocksfs
