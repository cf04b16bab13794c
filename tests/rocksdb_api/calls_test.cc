// Goal: calls at the edges of rocksdb::DB answer over Nacre as over RocksDB: none of them ends the
// process, failures have RocksDB's codes, and what there is to know of tables is told.
// Method: each call on both databases. The functions of RocksDB that are not virtual are called as
// an application calls them, on a RocksDB as well: it has to get RocksDB's.

#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/metadata.h>
#include <rocksdb/utilities/write_batch_with_index.h>
#include <rocksdb/wide_columns.h>

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/rocksdb_api/both_databases.h"

namespace nacre::rocksdb_api {
namespace {

class JoinOperator final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice* existing, const rocksdb::Slice& value,
             std::string* result, rocksdb::Logger*) const override {
    *result = (existing == nullptr ? "" : existing->ToString() + ",") + value.ToString();
    return true;
  }
  const char* Name() const override { return "AppendOperator"; }
};

class CallsTest : public BothDatabases {
 protected:
  void OpenBoth() {
    ASSERT_NO_FATAL_FAILURE(OpenRocksdb());
    ASSERT_NO_FATAL_FAILURE(OpenNacre());
    both_ = {nacre_db_.get(), rocksdb_.get()};
  }
  static std::string KeysOf(rocksdb::Iterator* iterator) {
    std::string keys;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      keys += iterator->key().ToString() + " ";
    }
    EXPECT_TRUE(iterator->status().ok()) << iterator->status().ToString();
    return keys;
  }

  std::array<rocksdb::DB*, 2> both_{};
};

TEST_F(CallsTest, NullIsNoBatch) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  for (rocksdb::DB* db : both_) EXPECT_TRUE(db->Write({}, nullptr).IsInvalidArgument());
}

TEST_F(CallsTest, ValuesAreColumnsToo) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  for (rocksdb::DB* db : both_) {
    ASSERT_TRUE(db->Put({}, "a", "1").ok());
    ASSERT_TRUE(db->Put({}, "b", "2").ok());
    const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator({}));
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      EXPECT_EQ(iterator->columns(),
                (rocksdb::WideColumns{{rocksdb::kDefaultWideColumnName, iterator->value()}}));
    }
    iterator->SeekForPrev("a");
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->columns().at(0).value(), "1");
  }
}

TEST_F(CallsTest, BoundsMayBeChangedBetweenSeeks) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  for (rocksdb::DB* db : both_) {
    for (const char* key : {"a", "b", "c", "d"}) ASSERT_TRUE(db->Put({}, key, "1").ok());
    rocksdb::Slice lower("b");
    rocksdb::Slice upper("c");
    rocksdb::ReadOptions options;
    options.iterate_lower_bound = &lower;
    options.iterate_upper_bound = &upper;
    const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(options));
    EXPECT_EQ(KeysOf(iterator.get()), "b ");
    lower = "a";
    upper = "d";
    EXPECT_EQ(KeysOf(iterator.get()), "a b c ");
    upper = "b";
    iterator->SeekToLast();
    ASSERT_TRUE(iterator->Valid());
    EXPECT_EQ(iterator->key(), "a");
  }
}

TEST_F(CallsTest, IteratorsRefreshAndTail) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  for (rocksdb::DB* db : both_) {
    ASSERT_TRUE(db->Put({}, "a", "1").ok());
    const rocksdb::Snapshot* const snapshot = db->GetSnapshot();
    rocksdb::ReadOptions then;
    then.snapshot = snapshot;
    rocksdb::ReadOptions tail;
    tail.tailing = true;
    const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator({}));
    const std::unique_ptr<rocksdb::Iterator> old(db->NewIterator(then));
    const std::unique_ptr<rocksdb::Iterator> tailing(db->NewIterator(tail));
    EXPECT_EQ(KeysOf(tailing.get()), "a ");
    ASSERT_TRUE(db->Put({}, "b", "2").ok());
    EXPECT_EQ(KeysOf(iterator.get()), "a ");
    EXPECT_EQ(KeysOf(tailing.get()), "a b ");
    ASSERT_TRUE(iterator->Refresh().ok());
    EXPECT_EQ(KeysOf(iterator.get()), "a b ");
    EXPECT_TRUE(old->Refresh().IsNotSupported());
    EXPECT_EQ(KeysOf(old.get()), "a ");
    tailing->SeekToLast();
    EXPECT_FALSE(tailing->Valid());
    EXPECT_TRUE(tailing->status().IsNotSupported());
    EXPECT_EQ(KeysOf(tailing.get()), "a b ");
    std::string value;
    iterator->SeekToFirst();
    EXPECT_TRUE(iterator->GetProperty("rocksdb.iterator.is-key-pinned", &value).ok());
    EXPECT_EQ(value, "0");
    EXPECT_TRUE(iterator->GetProperty("nonsense", &value).IsInvalidArgument());
    db->ReleaseSnapshot(snapshot);
  }
}

TEST_F(CallsTest, DroppedFamiliesHaveTheirCode) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  for (rocksdb::DB* db : both_) {
    rocksdb::ColumnFamilyHandle* made = nullptr;
    ASSERT_TRUE(db->CreateColumnFamily(options_, "dropped", &made).ok());
    const std::unique_ptr<rocksdb::ColumnFamilyHandle> family(made);
    ASSERT_TRUE(db->Put({}, made, "a", "1").ok());
    ASSERT_TRUE(db->DropColumnFamily(made).ok());
    EXPECT_TRUE(db->CompactRange({}, made, nullptr, nullptr).IsColumnFamilyDropped());
    // RocksDB may have nothing to flush any more, and so say nothing of it.
    if (db == nacre_db_.get()) {
      EXPECT_TRUE(db->Flush({}, made).IsColumnFamilyDropped());
    }
    EXPECT_TRUE(db->DropColumnFamily(made).IsInvalidArgument());
    EXPECT_TRUE(db->Put({}, made, "a", "1").IsInvalidArgument());
  }
}

TEST_F(CallsTest, WrongOptionsAndFlagsHaveTheirCodes) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  const rocksdb::Range all("a", "z");
  uint64_t size = 0;
  for (rocksdb::DB* db : both_) {
    ASSERT_TRUE(db->Put({}, "a", std::string(1000, 'v')).ok());
    const auto set = [&](const char* name, const char* value) {
      return db->SetDBOptions({{name, value}}).ToString();
    };
    EXPECT_TRUE(set("nonsense", "1").starts_with("NotFound: ")) << set("nonsense", "1");
    const std::string wrong = set("max_background_jobs", "many");
    EXPECT_TRUE(wrong.starts_with("Invalid argument: ")) << wrong;
    const std::string fixed = set("create_if_missing", "true");
    EXPECT_TRUE(fixed.starts_with("NotFound: ")) << fixed;
    EXPECT_EQ(set("max_background_jobs", "3"), "OK");
    EXPECT_TRUE(db->SetDBOptions({}).IsInvalidArgument());
    EXPECT_TRUE(db->SetOptions({}).IsInvalidArgument());
    rocksdb::SizeApproximationOptions options;
    options.include_files = options.include_memtables = false;
    EXPECT_TRUE(db->GetApproximateSizes(options, db->DefaultColumnFamily(), &all, 1, &size)
                    .IsInvalidArgument());
    options.include_memtables = true;
    EXPECT_TRUE(db->GetApproximateSizes(options, db->DefaultColumnFamily(), &all, 1, &size).ok());
    EXPECT_GT(size, 0U);
  }
}

TEST_F(CallsTest, TablesAreToldOf) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  for (rocksdb::DB* db : both_) {
    rocksdb::ColumnFamilyHandle* made = nullptr;
    ASSERT_TRUE(db->CreateColumnFamily(options_, "empty", &made).ok());
    const std::unique_ptr<rocksdb::ColumnFamilyHandle> family(made);
    for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(db->Put({}, key, "1").ok());
    ASSERT_TRUE(db->Flush({}).ok());
    std::vector<rocksdb::LiveFileMetaData> files;
    db->GetLiveFilesMetaData(&files);
    ASSERT_EQ(files.size(), 1U);
    EXPECT_EQ(files[0].column_family_name, "default");
    EXPECT_EQ(files[0].smallestkey, "a");
    EXPECT_EQ(files[0].largestkey, "c");
    EXPECT_EQ(files[0].num_entries, 3U);
    EXPECT_EQ(files[0].num_deletions, 0U);
    EXPECT_EQ(files[0].level, 0);
    EXPECT_GT(files[0].size, 0U);
    EXPECT_EQ(files[0].name, "/" + files[0].relative_filename);
    rocksdb::ColumnFamilyMetaData metadata;
    db->GetColumnFamilyMetaData(&metadata);
    EXPECT_EQ(metadata.name, "default");
    EXPECT_EQ(metadata.file_count, 1U);
    ASSERT_EQ(metadata.levels.size(), 7U);
    EXPECT_EQ(metadata.levels[0].files.size(), 1U);
    EXPECT_EQ(metadata.size, files[0].size);
    std::vector<rocksdb::ColumnFamilyMetaData> all;
    db->GetAllColumnFamilyMetaData(&all);
    ASSERT_EQ(all.size(), 2U);
    EXPECT_EQ(all[0].file_count, 1U);
    EXPECT_EQ(all[1].name, "empty");
    EXPECT_EQ(all[1].file_count, 0U);
  }
}

TEST_F(CallsTest, HasAnIdentity) {
  ASSERT_NO_FATAL_FAILURE(OpenNacre());
  std::string identity;
  std::string session;
  ASSERT_TRUE(nacre_db_->GetDbIdentity(identity).ok());
  ASSERT_TRUE(nacre_db_->GetDbSessionId(session).ok());
  EXPECT_EQ(session.size(), 20U);
  ASSERT_NO_FATAL_FAILURE(OpenNacre());
  std::string again;
  ASSERT_TRUE(nacre_db_->GetDbIdentity(again).ok());
  EXPECT_EQ(again, identity);
  ASSERT_TRUE(nacre_db_->GetDbSessionId(again).ok());
  EXPECT_NE(again, session);
}

/// All that RocksDB has, but for what it answers in some configurations only.
TEST_F(CallsTest, HasRocksdbsProperties) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  for (rocksdb::DB* db : both_) {
    ASSERT_TRUE(db->Put({}, "a", "1").ok());
    const rocksdb::Snapshot* const snapshot = db->GetSnapshot();
    std::string text;
    using P = rocksdb::DB::Properties;
    for (const std::string& name :
         {P::kStats, P::kSSTables, P::kCFStats, P::kCFStatsNoFileHistogram, P::kCFFileHistogram,
          P::kDBStats, P::kLevelStats, P::kBlockCacheEntryStats, P::kFastBlockCacheEntryStats,
          P::kBlobStats, P::kAggregatedTableProperties, P::kNumFilesAtLevelPrefix + "0",
          P::kCompressionRatioAtLevelPrefix + "0", P::kAggregatedTablePropertiesAtLevel + "0",
          P::kLiveSstFilesSizeAtTemperature + "0"}) {
      EXPECT_TRUE(db->GetProperty(name, &text)) << name;
    }
    for (const std::string& name : {P::kNumImmutableMemTable,
                                    P::kNumImmutableMemTableFlushed,
                                    P::kMemTableFlushPending,
                                    P::kNumRunningFlushes,
                                    P::kCompactionPending,
                                    P::kNumRunningCompactions,
                                    P::kBackgroundErrors,
                                    P::kCurSizeActiveMemTable,
                                    P::kCurSizeAllMemTables,
                                    P::kSizeAllMemTables,
                                    P::kNumEntriesActiveMemTable,
                                    P::kNumEntriesImmMemTables,
                                    P::kNumDeletesActiveMemTable,
                                    P::kNumDeletesImmMemTables,
                                    P::kEstimateNumKeys,
                                    P::kEstimateTableReadersMem,
                                    P::kIsFileDeletionsEnabled,
                                    P::kNumSnapshots,
                                    P::kOldestSnapshotTime,
                                    P::kOldestSnapshotSequence,
                                    P::kNumLiveVersions,
                                    P::kCurrentSuperVersionNumber,
                                    P::kEstimateLiveDataSize,
                                    P::kMinLogNumberToKeep,
                                    P::kMinObsoleteSstNumberToKeep,
                                    P::kTotalSstFilesSize,
                                    P::kLiveSstFilesSize,
                                    P::kBaseLevel,
                                    P::kEstimatePendingCompactionBytes,
                                    P::kActualDelayedWriteRate,
                                    P::kIsWriteStopped,
                                    P::kBlockCacheCapacity,
                                    P::kBlockCacheUsage,
                                    P::kBlockCachePinnedUsage,
                                    P::kNumBlobFiles,
                                    P::kTotalBlobFileSize,
                                    P::kLiveBlobFileSize,
                                    P::kLiveBlobFileGarbageSize}) {
      uint64_t number = 0;
      EXPECT_TRUE(db->GetIntProperty(name, &number)) << name;
      EXPECT_TRUE(db->GetProperty(name, &text)) << name;
    }
    std::map<std::string, std::string> map;
    for (const std::string& name : {P::kCFStats, P::kDBStats, P::kBlockCacheEntryStats,
                                    P::kFastBlockCacheEntryStats, P::kAggregatedTableProperties}) {
      EXPECT_TRUE(db->GetMapProperty(name, &map)) << name;
    }
    EXPECT_FALSE(db->GetProperty("rocksdb.invalid", &text));
    EXPECT_FALSE(db->GetProperty(P::kCompressionRatioAtLevelPrefix + "99", &text));
    uint64_t time = 0;
    EXPECT_TRUE(db->GetIntProperty(P::kOldestSnapshotTime, &time));
    EXPECT_EQ(time, static_cast<uint64_t>(snapshot->GetUnixTime()));
    db->ReleaseSnapshot(snapshot);
    EXPECT_TRUE(db->GetIntProperty(P::kOldestSnapshotTime, &time));
    EXPECT_EQ(time, 0U);
    uint64_t enabled = 0;
    EXPECT_TRUE(db->DisableFileDeletions().ok());
    EXPECT_TRUE(db->GetIntProperty(P::kIsFileDeletionsEnabled, &enabled));
    EXPECT_EQ(enabled, 0U);
    EXPECT_TRUE(db->EnableFileDeletions(/*force=*/false).ok());
    EXPECT_TRUE(db->GetIntProperty(P::kIsFileDeletionsEnabled, &enabled));
    EXPECT_EQ(enabled, 1U);
  }
}

TEST_F(CallsTest, FilesOfARangeAreDeleted) {
  options_.disable_auto_compactions = true;
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  for (rocksdb::DB* db : both_) {
    for (const char* key : {"a", "b", "c"}) ASSERT_TRUE(db->Put({}, key, "1").ok());
    ASSERT_TRUE(db->CompactRange({}, nullptr, nullptr).ok());
    const rocksdb::Slice begin("a");
    const rocksdb::Slice end("b");
    rocksdb::ColumnFamilyHandle* const family = db->DefaultColumnFamily();
    // No table lies in it whole.
    EXPECT_TRUE(rocksdb::DeleteFilesInRange(db, family, &begin, &end).ok());
    const std::unique_ptr<rocksdb::Iterator> before(db->NewIterator({}));
    EXPECT_EQ(KeysOf(before.get()), "a b c ");
    EXPECT_TRUE(rocksdb::DeleteFilesInRange(db, family, nullptr, nullptr).ok());
    const std::unique_ptr<rocksdb::Iterator> after(db->NewIterator({}));
    EXPECT_EQ(KeysOf(after.get()), "");
  }
}

TEST_F(CallsTest, BackgroundWorkCanBeGivenUp) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  for (rocksdb::DB* db : both_) {
    ASSERT_TRUE(db->Put({}, "a", "1").ok());
    rocksdb::CancelAllBackgroundWork(db, /*wait=*/true);
    EXPECT_TRUE(db->CompactRange({}, nullptr, nullptr).IsShutdownInProgress() ||
                db == rocksdb_.get());
    std::string value;
    EXPECT_TRUE(db->Get({}, "a", &value).ok());
    EXPECT_TRUE(db->Close().ok());
  }
}

TEST_F(CallsTest, IndexedBatchesLieOverTheDatabase) {
  options_.merge_operator = std::make_shared<JoinOperator>();
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  for (rocksdb::DB* db : both_) {
    SCOPED_TRACE(db == nacre_db_.get() ? "Nacre" : "RocksDB");
    rocksdb::ColumnFamilyHandle* const family = db->DefaultColumnFamily();
    for (const char* key : {"a", "c", "e", "g"}) ASSERT_TRUE(db->Put({}, key, "db").ok());
    for (const bool overwrite : {false, true}) {
      rocksdb::WriteBatchWithIndex batch(rocksdb::BytewiseComparator(), 0, overwrite);
      ASSERT_TRUE(batch.Put(family, "b", "new").ok());
      ASSERT_TRUE(batch.Merge(family, "b", "more").ok());
      ASSERT_TRUE(batch.Merge(family, "c", "1").ok());
      ASSERT_TRUE(batch.Merge(family, "c", "2").ok());
      ASSERT_TRUE(batch.Delete(family, "e").ok());
      ASSERT_TRUE(batch.Merge(family, "f", "1").ok());
      ASSERT_TRUE(batch.Delete(family, "g").ok());
      ASSERT_TRUE(batch.Merge(family, "g", "3").ok());
      const std::map<std::string, std::string> expected = {
          {"a", "db"}, {"b", "new,more"}, {"c", "db,1,2"}, {"f", "1"}, {"g", "3"}};
      const std::vector<rocksdb::Slice> keys = {"a", "b", "c", "d", "e", "f", "g"};
      std::vector<rocksdb::PinnableSlice> values(keys.size());
      std::vector<rocksdb::Status> statuses(keys.size());
      batch.MultiGetFromBatchAndDB(db, {}, family, keys.size(), keys.data(), values.data(),
                                   statuses.data(), false);
      for (size_t i = 0; i < keys.size(); ++i) {
        const auto found = expected.find(keys[i].ToString());
        std::string value;
        rocksdb::PinnableSlice pinned;
        const bool there = found != expected.end();
        EXPECT_EQ(batch.GetFromBatchAndDB(db, {}, keys[i], &value).ok(), there);
        EXPECT_EQ(batch.GetFromBatchAndDB(db, {}, family, keys[i], &pinned).ok(), there);
        EXPECT_EQ(statuses[i].ok(), there) << statuses[i].ToString();
        if (!there) {
          EXPECT_TRUE(statuses[i].IsNotFound());
          continue;
        }
        EXPECT_EQ(value, found->second);
        EXPECT_EQ(pinned.ToString(), found->second);
        EXPECT_EQ(values[i].ToString(), found->second);
      }
      std::string value;
      EXPECT_TRUE(batch.GetFromBatch(family, options_, "b", &value).ok());
      EXPECT_EQ(value, "new,more");
      EXPECT_TRUE(batch.GetFromBatch(family, options_, "c", &value).IsMergeInProgress());
      EXPECT_TRUE(batch.GetFromBatch(family, options_, "e", &value).IsNotFound());
      std::string forward;
      std::string backward;
      const std::unique_ptr<rocksdb::Iterator> both(
          batch.NewIteratorWithBase(family, db->NewIterator({}, family)));
      for (both->SeekToFirst(); both->Valid(); both->Next()) {
        forward += both->key().ToString() + "=" + both->value().ToString() + " ";
      }
      for (both->SeekToLast(); both->Valid(); both->Prev()) {
        backward = both->key().ToString() + "=" + both->value().ToString() + " " + backward;
      }
      EXPECT_TRUE(both->status().ok());
      EXPECT_EQ(forward, "a=db b=new,more c=db,1,2 f=1 g=3 ");
      EXPECT_EQ(backward, forward);
      both->Seek("c");
      both->Prev();
      EXPECT_EQ(both->key(), "b");
      both->Next();
      EXPECT_EQ(both->key(), "c");
      both->SeekForPrev("e");
      EXPECT_EQ(both->key(), "c");
    }
  }
}

}  // namespace
}  // namespace nacre::rocksdb_api
