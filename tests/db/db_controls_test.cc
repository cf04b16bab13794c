// Goal: a database is looked at and steered by the calls that RocksDB has for it: properties under
// both names, metadata of tables, options that change while it is open, work in the background that
// is paused, asked for and forbidden, and what a thread counts of its own operations.
// Method: small databases of which all numbers are known beforehand, on embedded nodes.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "nacre/compaction_filter.h"
#include "nacre/db.h"
#include "nacre/perf_context.h"
#include "nacre/utilities/stackable_db.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

using Changes = std::unordered_map<std::string, std::string>;

class DBControlsTest : public testing::Test {
 protected:
  void SetUp() override {
    options_ = SmallTableOptions(OpenTestPool());
    options_.disable_auto_compactions = true;
    ASSERT_TRUE(IsOk(DB::Open(options_, "db", &db_)));
  }
  ~DBControlsTest() override { SetPerfLevel(kDisable); }

  void Put(const std::string& key, const std::string& value) {
    ASSERT_TRUE(IsOk(db_->Put(NoLog(), key, value)));
  }
  void PutAndFlush(const std::string& key, const std::string& value) {
    Put(key, value);
    ASSERT_TRUE(IsOk(db_->Flush({})));
  }
  std::vector<LiveTableMetaData> Tables() {
    std::vector<LiveTableMetaData> tables;
    db_->GetLiveTablesMetaData(&tables);
    return tables;
  }

  Options options_;
  std::unique_ptr<DB> db_;
};

TEST_F(DBControlsTest, PropertiesHaveBothNames) {
  Put("a", "1");
  ASSERT_TRUE(IsOk(db_->Delete(NoLog(), "b")));
  for (const char* name : {"num-entries-active-mem-table", "num-deletes-active-mem-table",
                           "estimate-num-keys", "num-files-at-level0", "stats", "sstables"}) {
    std::string ours;
    std::string theirs;
    ASSERT_TRUE(db_->GetProperty("nacre." + std::string(name), &ours)) << name;
    ASSERT_TRUE(db_->GetProperty("rocksdb." + std::string(name), &theirs)) << name;
    EXPECT_EQ(ours, theirs);
  }
  EXPECT_EQ(GetNumber(db_.get(), "rocksdb.num-entries-active-mem-table"), 2u);
  EXPECT_EQ(GetNumber(db_.get(), "rocksdb.num-deletes-active-mem-table"), 1u);
  EXPECT_EQ(GetNumber(db_.get(), "rocksdb.num-entries-imm-mem-tables"), 0u);
  EXPECT_EQ(GetNumber(db_.get(), "rocksdb.oldest-snapshot-sequence"), 0u);
  const Snapshot* snapshot = db_->GetSnapshot();
  EXPECT_EQ(GetNumber(db_.get(), "rocksdb.oldest-snapshot-sequence"),
            snapshot->GetSequenceNumber());
  db_->ReleaseSnapshot(snapshot);
  std::string value;
  EXPECT_FALSE(db_->GetProperty("rocksdb.no-such-thing", &value));
  EXPECT_FALSE(db_->GetProperty("leveldb.stats", &value));
}

TEST_F(DBControlsTest, MapsAndSums) {
  ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily(options_, "other", &other)));
  ASSERT_TRUE(IsOk(db_->Put(NoLog(), other, "x", "1")));
  PutAndFlush("a", "12345");
  std::map<std::string, std::string> map;
  ASSERT_TRUE(db_->GetMapProperty("rocksdb.cfstats", &map));
  EXPECT_EQ(map["L0.num-files"], "1");
  ASSERT_TRUE(db_->GetMapProperty("nacre.dbstats", &map));
  EXPECT_EQ(map["flushes"], "2");
  ASSERT_TRUE(db_->GetMapProperty(other, "nacre.aggregated-table-properties", &map));
  EXPECT_EQ(map["num-entries"], "1");
  EXPECT_EQ(map["raw-bytes"], "2");
  ASSERT_TRUE(db_->GetMapProperty("nacre.space", &map));
  EXPECT_EQ(map["user-bytes"], "8");
  EXPECT_FALSE(db_->GetMapProperty("nacre.num-snapshots", &map));

  uint64_t sum = 0;
  ASSERT_TRUE(db_->GetAggregatedIntProperty("rocksdb.num-files-at-level0", &sum));
  EXPECT_EQ(sum, 2u);
  ASSERT_TRUE(db_->GetAggregatedIntProperty("rocksdb.estimate-num-keys", &sum));
  EXPECT_EQ(sum, 2u);
  const Snapshot* snapshot = db_->GetSnapshot();
  ASSERT_TRUE(db_->GetAggregatedIntProperty("rocksdb.num-snapshots", &sum));
  EXPECT_EQ(sum, 1u) << "there is one of the database, and not one for each family";
  db_->ReleaseSnapshot(snapshot);
  EXPECT_FALSE(db_->GetAggregatedIntProperty("rocksdb.stats", &sum));

  ASSERT_TRUE(IsOk(db_->ResetStats()));
  ASSERT_TRUE(db_->GetMapProperty("nacre.dbstats", &map));
  EXPECT_EQ(map["flushes"], "0");
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(other)));
}

TEST_F(DBControlsTest, MetadataOfTables) {
  Put("a", "1");
  ASSERT_TRUE(IsOk(db_->Delete(NoLog(), "c")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  PutAndFlush("b", "22");
  const std::vector<LiveTableMetaData> tables = Tables();
  ASSERT_EQ(tables.size(), 2u);
  const LiveTableMetaData& newest = tables[0];
  EXPECT_EQ(newest.column_family_name, "default");
  EXPECT_EQ(newest.level, 0);
  EXPECT_EQ(newest.smallestkey, "b");
  EXPECT_EQ(newest.largestkey, "b");
  EXPECT_EQ(newest.num_entries, 1u);
  EXPECT_LE(newest.smallest_seqno, newest.largest_seqno);
  EXPECT_FALSE(newest.being_compacted);
  EXPECT_EQ(newest.redundancy, "none");
  EXPECT_EQ(newest.nodes.size(), 1u);
  EXPECT_GE(newest.stored_bytes, newest.size);
  EXPECT_EQ(newest.name, "table " + std::to_string(newest.file_number));
  EXPECT_NE(newest.file_number, tables[1].file_number);

  ColumnFamilyMetaData family;
  db_->GetColumnFamilyMetaData(&family);
  EXPECT_EQ(family.name, "default");
  EXPECT_EQ(family.file_count, 2u);
  EXPECT_EQ(family.size, tables[0].size + tables[1].size);
  ASSERT_EQ(family.levels.size(), static_cast<size_t>(db_->NumberLevels()));
  EXPECT_EQ(family.levels[0].files.size(), 2u);
  EXPECT_TRUE(family.levels[1].files.empty());

  std::unique_ptr<DB> reader;
  ASSERT_TRUE(IsOk(DB::OpenForReadOnly(options_, "db", &reader)));
  std::vector<LiveTableMetaData> seen;
  reader->GetLiveTablesMetaData(&seen);
  ASSERT_EQ(seen.size(), 2u);
  EXPECT_EQ(seen[0].file_number, newest.file_number);
  EXPECT_EQ(reader->NumberLevels(), db_->NumberLevels());
  EXPECT_EQ(reader->GetOptions().write_buffer_size, options_.write_buffer_size);
  EXPECT_TRUE(reader->SetOptions({{"write_buffer_size", "1m"}}).IsNotSupported());
  EXPECT_TRUE(reader->PauseBackgroundWork().IsNotSupported());
}

TEST_F(DBControlsTest, StatsOfMemTables) {
  ASSERT_TRUE(IsOk(db_->SetOptions({{"write_buffer_size", "64m"}})));
  uint64_t count = 1;
  uint64_t size = 1;
  db_->GetApproximateMemTableStats(Range{"a", "z"}, &count, &size);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(size, 0u);
  for (char c = 'a'; c <= 'j'; ++c) Put(std::string(1, c), "123456789");
  db_->GetApproximateMemTableStats(Range{"c", "f"}, &count, &size);
  EXPECT_EQ(count, 3u);
  EXPECT_EQ(size, 30u);
  // So many that they are estimated.
  for (int i = 0; i < 10'000; ++i) Put("k" + std::to_string(10'000 + i), "1");
  db_->GetApproximateMemTableStats(Range{"k10000", "k15000"}, &count, &size);
  EXPECT_GT(count, 3500u);
  EXPECT_LT(count, 6500u);
}

TEST_F(DBControlsTest, KeysThatMayExist) {
  PutAndFlush("in a table", "1");
  Put("in memory", "2");
  ASSERT_TRUE(IsOk(db_->Delete(NoLog(), "gone")));
  std::string value;
  bool found = false;
  EXPECT_TRUE(db_->KeyMayExist({}, "in memory", &value, &found));
  EXPECT_TRUE(found);
  EXPECT_EQ(value, "2");
  EXPECT_TRUE(db_->KeyMayExist({}, "in a table", &value, &found));
  EXPECT_FALSE(found) << "the value is not in this process";
  EXPECT_FALSE(db_->KeyMayExist({}, "gone", &value));
  EXPECT_TRUE(db_->KeyMayExist({}, "in memory", nullptr));
  // A fingerprint of the index may be that of another key, seldom.
  int may_exist = 0;
  for (int i = 0; i < 100; ++i) may_exist += db_->KeyMayExist({}, std::to_string(i), nullptr);
  EXPECT_LT(may_exist, 50);
}

TEST_F(DBControlsTest, OptionsOfAFamilyChange) {
  ASSERT_TRUE(IsOk(db_->SetOptions({{"write_buffer_size", "128k"},
                                    {"level0_file_num_compaction_trigger", "2"},
                                    {"level0_slowdown_writes_trigger", "10"}})));
  EXPECT_EQ(db_->GetOptions().write_buffer_size, size_t{128} << 10);
  EXPECT_EQ(db_->GetOptions().level0_file_num_compaction_trigger, 2);
  PutAndFlush("a", "1");
  PutAndFlush("a", "2");
  EXPECT_EQ(Tables().size(), 2u);
  ASSERT_TRUE(IsOk(db_->EnableAutoCompaction({db_->DefaultColumnFamily()})));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  EXPECT_EQ(Tables().size(), 1u) << "two flushes are a compaction's worth now";

  for (const Changes& wrong :
       {Changes{}, Changes{{"no_such_option", "1"}}, Changes{{"num_levels", "3"}},
        Changes{{"write_buffer_size", "many"}},
        Changes{{"max_bytes_for_level_base", "1m"}, {"comparator", "nacre.BytewiseComparator"}}}) {
    EXPECT_TRUE(db_->SetOptions(wrong).IsInvalidArgument());
  }
  EXPECT_EQ(db_->GetOptions().max_bytes_for_level_base, options_.max_bytes_for_level_base)
      << "all or none";
}

TEST_F(DBControlsTest, ASmallerMemTableIsFullSooner) {
  ASSERT_TRUE(IsOk(db_->SetOptions({{"write_buffer_size", "64k"}})));
  for (size_t i = 0; i < 1000; ++i) Put("key" + std::to_string(i), TestValue(i, 500));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  const size_t small = Tables().size();
  ASSERT_TRUE(IsOk(db_->SetOptions({{"write_buffer_size", "64m"}})));
  for (size_t i = 0; i < 1000; ++i) Put("key" + std::to_string(i), TestValue(i, 500));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_GT(small, 2u);
  EXPECT_EQ(Tables().size(), small + 1);
}

TEST_F(DBControlsTest, OptionsOfTheDatabaseChange) {
  ASSERT_TRUE(IsOk(db_->SetDBOptions({{"delayed_write_rate", "1m"}, {"near_data_flush", "kOff"}})));
  EXPECT_EQ(db_->GetDBOptions().delayed_write_rate, uint64_t{1} << 20);
  EXPECT_EQ(db_->GetDBOptions().near_data_flush, NearDataFlush::kOff);
  for (const Changes& wrong :
       {Changes{}, Changes{{"slab_size", "1m"}}, Changes{{"write_buffer_size", "1m"}},
        Changes{{"delayed_write_rate", "2m"}, {"max_subcompactions", "-1"}}}) {
    EXPECT_TRUE(db_->SetDBOptions(wrong).IsInvalidArgument());
  }
  const Status fixed = db_->SetDBOptions({{"slab_size", "1m"}});
  EXPECT_NE(fixed.ToString().find("slab_size"), std::string::npos) << fixed.ToString();
  EXPECT_EQ(db_->GetDBOptions().delayed_write_rate, uint64_t{1} << 20) << "all or none";
}

/// Has each compaction wait for another one.
class MeetingFactory final : public CompactionFilterFactory {
 public:
  std::unique_ptr<CompactionFilter> CreateCompactionFilter(
      const CompactionFilter::Context& /*context*/) override {
    arrived.fetch_add(1);
    if (Eventually([this] { return arrived.load() >= 2; })) met.fetch_add(1);
    return nullptr;
  }
  const char* Name() const override { return "Meeting"; }
  std::atomic<int> arrived{0};
  std::atomic<int> met{0};
};

TEST_F(DBControlsTest, MoreJobsRunAtOnce) {
  const auto meeting = std::make_shared<MeetingFactory>();
  options_.compaction_filter_factory = meeting;
  options_.max_background_jobs = 1;
  std::unique_ptr<DB> db;
  ASSERT_TRUE(IsOk(DB::Open(options_, "jobs", &db)));
  ColumnFamilyHandle* other = nullptr;
  ASSERT_TRUE(IsOk(db->CreateColumnFamily(options_, "other", &other)));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(IsOk(db->Put(NoLog(), "a", "1")));
    ASSERT_TRUE(IsOk(db->Put(NoLog(), other, "a", "1")));
    ASSERT_TRUE(IsOk(db->Flush({})));
  }
  ASSERT_TRUE(IsOk(db->EnableAutoCompaction({db->DefaultColumnFamily(), other})));
  ASSERT_TRUE(Eventually([&] { return meeting->arrived.load() > 0; }));
  EXPECT_EQ(meeting->arrived.load(), 1) << "one job at once";
  ASSERT_TRUE(IsOk(db->SetDBOptions({{"max_background_jobs", "3"}})));
  EXPECT_EQ(db->GetDBOptions().max_background_jobs, 3);
  ASSERT_TRUE(IsOk(db->WaitForCompact()));
  EXPECT_EQ(meeting->met.load(), 2) << "two at once";

  EXPECT_TRUE(db->SetDBOptions({{"max_background_jobs", "many"}}).IsInvalidArgument());
  ASSERT_TRUE(IsOk(db->SetDBOptions({{"max_background_jobs", "1"}})));
  EXPECT_EQ(db->GetDBOptions().max_background_jobs, 1);
  ASSERT_TRUE(IsOk(db->DestroyColumnFamilyHandle(other)));
}

TEST_F(DBControlsTest, WorkIsPausedAndGoesOn) {
  EXPECT_TRUE(db_->ContinueBackgroundWork().IsInvalidArgument());
  ASSERT_TRUE(IsOk(db_->PauseBackgroundWork()));
  ASSERT_TRUE(IsOk(db_->PauseBackgroundWork()));
  Put("a", "1");
  FlushOptions no_wait;
  no_wait.wait = false;
  ASSERT_TRUE(IsOk(db_->Flush(no_wait)));
  EXPECT_EQ(GetNumber(db_.get(), "rocksdb.num-immutable-mem-table"), 1u);
  EXPECT_EQ(GetNumber(db_.get(), "rocksdb.num-running-flushes"), 0u);
  ASSERT_TRUE(IsOk(db_->ContinueBackgroundWork()));
  EXPECT_EQ(GetNumber(db_.get(), "rocksdb.num-immutable-mem-table"), 1u) << "paused twice";
  ASSERT_TRUE(IsOk(db_->ContinueBackgroundWork()));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  EXPECT_EQ(GetNumber(db_.get(), "rocksdb.num-immutable-mem-table"), 0u);
  EXPECT_EQ(Tables().size(), 1u);
  // Closing ends a pause.
  ASSERT_TRUE(IsOk(db_->PauseBackgroundWork()));
  Put("b", "1");
  ASSERT_TRUE(IsOk(db_->Close()));
}

TEST_F(DBControlsTest, CompactionsThatAreAskedForAreForbidden) {
  PutAndFlush("a", "1");
  db_->DisableManualCompaction();
  db_->DisableManualCompaction();
  EXPECT_TRUE(db_->CompactRange({}, nullptr, nullptr).IsIncomplete());
  db_->EnableManualCompaction();
  EXPECT_TRUE(db_->CompactRange({}, nullptr, nullptr).IsIncomplete());
  EXPECT_EQ(Tables()[0].level, 0);
  db_->EnableManualCompaction();
  EXPECT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  EXPECT_EQ(Tables()[0].level, 1);
}

TEST_F(DBControlsTest, ACompactRangeThatWaitsIsSentAway) {
  PutAndFlush("a", "1");
  ASSERT_TRUE(IsOk(db_->PauseBackgroundWork()));
  Status status;
  std::thread waiting([&] { status = db_->CompactRange({}, nullptr, nullptr); });
  db_->DisableManualCompaction();
  waiting.join();
  EXPECT_TRUE(status.IsIncomplete()) << status.ToString();
  db_->EnableManualCompaction();
  ASSERT_TRUE(IsOk(db_->ContinueBackgroundWork()));
}

TEST_F(DBControlsTest, CompactionsAreSuggested) {
  PutAndFlush("a", "1");
  PutAndFlush("b", "1");
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  PutAndFlush("c", "1");
  ASSERT_TRUE(IsOk(db_->EnableAutoCompaction({db_->DefaultColumnFamily()})));
  const Slice a("a");
  const Slice b("b");
  ASSERT_TRUE(IsOk(db_->SuggestCompactRange(nullptr, &a, &b)));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  EXPECT_EQ(GetNumber(db_.get(), "nacre.num-files-at-level0"), 1u) << "none of it is in level 0";
  ASSERT_TRUE(IsOk(db_->SuggestCompactRange(nullptr, nullptr, nullptr)));
  ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  EXPECT_EQ(GetNumber(db_.get(), "nacre.num-files-at-level0"), 0u);
  EXPECT_EQ(GetNumber(db_.get(), "nacre.num-files-at-level2"), 0u);
}

TEST_F(DBControlsTest, ResumeFlushes) {
  Put("a", "1");
  ASSERT_TRUE(IsOk(db_->Resume()));
  EXPECT_EQ(Tables().size(), 1u);
}

TEST_F(DBControlsTest, AThreadCountsWhatItReads) {
  PutAndFlush("a", "12345");
  PerfContext& counted = *get_perf_context();
  std::string value;
  counted.Reset();
  ASSERT_TRUE(IsOk(db_->Get({}, "a", &value)));
  EXPECT_EQ(counted.ToString(/*exclude_zero_counters=*/true), "") << "it is off";

  SetPerfLevel(kEnableTime);
  ASSERT_TRUE(IsOk(db_->Get({}, "a", &value)));
  EXPECT_EQ(counted.remote_read_count, 1u);
  EXPECT_GE(counted.remote_read_bytes, 6u);
  EXPECT_GT(counted.remote_read_wait_nanos, 0u);
  EXPECT_EQ(counted.get_from_memtable_count, 1u);
  EXPECT_GE(counted.get_from_output_files_time, counted.remote_read_wait_nanos);
  EXPECT_EQ(counted.get_read_bytes, 5u);

  counted.Reset();
  Put("b", "1");
  ASSERT_TRUE(IsOk(db_->Delete(NoLog(), "a")));
  EXPECT_GT(counted.write_memtable_time, 0u);
  std::vector<std::string> values;
  db_->MultiGet({}, {"a", "b"}, &values);
  EXPECT_EQ(counted.multiget_read_bytes, 1u);
  EXPECT_EQ(counted.remote_read_count, 0u) << "all of it is in memory";

  counted.Reset();
  const std::unique_ptr<Iterator> iterator = db_->NewIterator({});
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), "b");
  EXPECT_EQ(counted.internal_delete_skipped_count, 1u);
  EXPECT_EQ(counted.internal_key_skipped_count, 1u) << "the version that was deleted";
  EXPECT_EQ(counted.iter_read_bytes, 2u);
  EXPECT_GT(counted.find_next_user_entry_time, 0u);
}

TEST_F(DBControlsTest, ADatabaseOverAnotherPassesAllOn) {
  PutAndFlush("a", "1");
  StackableDB over(std::move(db_));
  std::vector<LiveTableMetaData> tables;
  over.GetLiveTablesMetaData(&tables);
  EXPECT_EQ(tables.size(), 1u);
  ColumnFamilyMetaData family;
  over.GetColumnFamilyMetaData(&family);
  EXPECT_EQ(family.file_count, 1u);
  EXPECT_FALSE(over.KeyMayExist({}, "x", nullptr) && over.KeyMayExist({}, "y", nullptr) &&
               over.KeyMayExist({}, "z", nullptr));
  EXPECT_TRUE(IsOk(over.SetOptions({{"write_buffer_size", "128k"}})));
  EXPECT_EQ(over.GetOptions().write_buffer_size, size_t{128} << 10);
  EXPECT_TRUE(IsOk(over.SetDBOptions({{"delayed_write_rate", "1m"}})));
  EXPECT_EQ(over.GetDBOptions().delayed_write_rate, uint64_t{1} << 20);
  EXPECT_TRUE(IsOk(over.PauseBackgroundWork()));
  EXPECT_TRUE(IsOk(over.ContinueBackgroundWork()));
  over.DisableManualCompaction();
  EXPECT_TRUE(over.CompactRange({}, nullptr, nullptr).IsIncomplete());
  over.EnableManualCompaction();
  EXPECT_TRUE(IsOk(over.SuggestCompactRange(nullptr, nullptr, nullptr)));
  EXPECT_TRUE(IsOk(over.EnableAutoCompaction({over.DefaultColumnFamily()})));
  EXPECT_TRUE(IsOk(over.Resume()));
  EXPECT_TRUE(IsOk(over.ResetStats()));
  std::map<std::string, std::string> map;
  EXPECT_TRUE(over.GetMapProperty("nacre.cfstats", &map));
  uint64_t number = 0;
  EXPECT_TRUE(over.GetAggregatedIntProperty("nacre.num-live-tables", &number));
  EXPECT_EQ(over.NumberLevels(), options_.num_levels);
  uint64_t count = 0;
  over.GetApproximateMemTableStats(Range{"a", "z"}, &count, &number);
  EXPECT_EQ(count, 0u);
}

}  // namespace
}  // namespace nacre
