// Goal: each option of a read, a write, a flush or a compaction that RocksDB has is honoured, is a
// hint that changes no answer, or is answered `NotSupported`; what RocksDB refuses is refused with
// its code; databases open with all options that RocksDB opens by changing them.
// Method: a table with a line for each field, set to another value than its default, and what
// RocksDB and Nacre answer then; sanitized options are compared with those of a RocksDB.

#include <gtest/gtest.h>
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/listener.h>
#include <rocksdb/options.h>
#include <rocksdb/rate_limiter.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/table_properties.h>
#include <rocksdb/wal_filter.h>

#include <atomic>
#include <cstdarg>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/rocksdb_api/both_databases.h"

namespace nacre::rocksdb_api {
namespace {

using Code = rocksdb::Status::Code;

constexpr Code kOk = Code::kOk;
constexpr Code kNo = Code::kNotSupported;
constexpr Code kInvalid = Code::kInvalidArgument;

class OptionsTest : public BothDatabases {
 protected:
  void Fill() {
    for (rocksdb::DB* db : {nacre_db_.get(), rocksdb_.get()}) {
      for (const char* key : {"a1", "a2", "b1", "b2", "c1"}) {
        ASSERT_TRUE(db->Put({}, key, "value").ok());
      }
    }
  }
  void OpenBoth() {
    ASSERT_NO_FATAL_FAILURE(OpenRocksdb());
    ASSERT_NO_FATAL_FAILURE(OpenNacre());
  }
};

struct ReadCase {
  const char* field;
  std::function<void(rocksdb::ReadOptions*)> set;
  Code get = kOk;
  Code iterate = kOk;
  Code get_of_rocksdb = kOk;
  Code iterate_of_rocksdb = kOk;
};

/// All fields but `snapshot` and the bounds, which other tests are about.
std::vector<ReadCase> ReadCases() {
  using Options = rocksdb::ReadOptions;
  static const rocksdb::Slice kTimestamp("12345678");
  return {
      {"readahead_size", [](Options* o) { o->readahead_size = 1 << 20; }},
      {"max_skippable_internal_keys", [](Options* o) { o->max_skippable_internal_keys = 1; }, kOk,
       kNo},
      {"read_tier block cache", [](Options* o) { o->read_tier = rocksdb::kBlockCacheTier; }},
      {"read_tier persisted", [](Options* o) { o->read_tier = rocksdb::kPersistedTier; }, kOk, kNo,
       kOk, kNo},
      {"read_tier memtable", [](Options* o) { o->read_tier = rocksdb::kMemtableTier; }, kNo, kNo},
      {"verify_checksums", [](Options* o) { o->verify_checksums = false; }},
      {"fill_cache", [](Options* o) { o->fill_cache = false; }},
      {"tailing", [](Options* o) { o->tailing = true; }},
      {"managed", [](Options* o) { o->managed = true; }, kOk, kNo, kOk, kNo},
      {"total_order_seek", [](Options* o) { o->total_order_seek = true; }},
      {"auto_prefix_mode", [](Options* o) { o->auto_prefix_mode = true; }},
      {"prefix_same_as_start", [](Options* o) { o->prefix_same_as_start = true; }},
      {"pin_data", [](Options* o) { o->pin_data = true; }},
      {"background_purge", [](Options* o) { o->background_purge_on_iterator_cleanup = true; }},
      {"ignore_range_deletions", [](Options* o) { o->ignore_range_deletions = true; }, kNo, kNo},
      {"table_filter",
       [](Options* o) { o->table_filter = [](const rocksdb::TableProperties&) { return true; }; },
       kOk, kNo},
      {"timestamp", [](Options* o) { o->timestamp = &kTimestamp; }, kNo, kNo, kInvalid, kInvalid},
      {"iter_start_ts", [](Options* o) { o->iter_start_ts = &kTimestamp; }, kNo, kNo},
      {"deadline", [](Options* o) { o->deadline = std::chrono::microseconds(1); }, Code::kTimedOut,
       Code::kTimedOut},
      {"deadline to come", [](Options* o) { o->deadline = std::chrono::microseconds::max(); }},
      {"io_timeout", [](Options* o) { o->io_timeout = std::chrono::microseconds(1'000'000); }, kNo,
       kNo},
      {"value_size_soft_limit", [](Options* o) { o->value_size_soft_limit = 1; }},
      {"adaptive_readahead", [](Options* o) { o->adaptive_readahead = true; }},
      {"rate_limiter", [](Options* o) { o->rate_limiter_priority = rocksdb::Env::IO_LOW; }},
      {"async_io", [](Options* o) { o->async_io = true; }},
      {"optimize_multiget_for_io", [](Options* o) { o->optimize_multiget_for_io = false; }},
  };
}

/// The outcome of a scan by this iterator.
Code Scan(rocksdb::DB* db, const rocksdb::ReadOptions& options) {
  const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(options));
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
  }
  return iterator->status().code();
}

TEST_F(OptionsTest, EachFieldOfReads) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  ASSERT_NO_FATAL_FAILURE(Fill());
  for (const ReadCase& field : ReadCases()) {
    SCOPED_TRACE(field.field);
    rocksdb::ReadOptions options;
    field.set(&options);
    std::string value;
    EXPECT_EQ(nacre_db_->Get(options, "a1", &value).code(), field.get);
    EXPECT_EQ(Scan(nacre_db_.get(), options), field.iterate);
    // These are for reads of files only.
    if (std::string(field.field).starts_with("deadline")) continue;
    EXPECT_EQ(rocksdb_->Get(options, "a1", &value).code(), field.get_of_rocksdb);
    EXPECT_EQ(Scan(rocksdb_.get(), options), field.iterate_of_rocksdb);
    const rocksdb::Slice key("a1");
    rocksdb::PinnableSlice pinned;
    rocksdb::Status status;
    nacre_db_->MultiGet(options, nacre_db_->DefaultColumnFamily(), 1, &key, &pinned, &status);
    EXPECT_EQ(status.code(), field.get);
  }
}

TEST_F(OptionsTest, ReadsFromMemoryOnly) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  ASSERT_NO_FATAL_FAILURE(Fill());
  rocksdb::ReadOptions options;
  options.read_tier = rocksdb::kBlockCacheTier;
  std::string value;
  for (rocksdb::DB* db : {nacre_db_.get(), rocksdb_.get()}) {
    EXPECT_TRUE(db->Get(options, "a1", &value).ok());
    EXPECT_EQ(value, "value");
    EXPECT_TRUE(db->Get(options, "none", &value).IsNotFound());
  }
  ASSERT_TRUE(nacre_db_->Flush({}).ok());
  EXPECT_TRUE(nacre_db_->Get(options, "a1", &value).IsIncomplete());
}

/// The keys of a walk over what is in memory, and the code of its end.
std::string WalkInMemory(rocksdb::DB* db, rocksdb::ReadOptions options, bool forward) {
  options.read_tier = rocksdb::kBlockCacheTier;
  const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(options));
  std::string keys;
  if (forward) {
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
      keys += iterator->key().ToString() + " ";
    }
  } else {
    for (iterator->SeekToLast(); iterator->Valid(); iterator->Prev()) {
      keys += iterator->key().ToString() + " ";
    }
  }
  return keys + std::to_string(iterator->status().code());
}

TEST_F(OptionsTest, IteratorsOverMemoryOnly) {
  // RocksDB's answer for what is only in a file depends on the blocks that it happens to have.
  rocksdb::BlockBasedTableOptions table;
  table.no_block_cache = true;
  options_.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  ASSERT_NO_FATAL_FAILURE(Fill());
  const rocksdb::Slice b("b");
  const rocksdb::Slice c("c");
  rocksdb::ReadOptions within_b;
  within_b.iterate_lower_bound = &b;
  within_b.iterate_upper_bound = &c;
  const std::string incomplete = std::to_string(Code::kIncomplete);
  for (rocksdb::DB* db : {nacre_db_.get(), rocksdb_.get()}) {
    SCOPED_TRACE(db == nacre_db_.get() ? "Nacre" : "RocksDB");
    EXPECT_EQ(WalkInMemory(db, {}, /*forward=*/true), "a1 a2 b1 b2 c1 0");
    EXPECT_EQ(WalkInMemory(db, within_b, /*forward=*/false), "b2 b1 0");
    ASSERT_TRUE(db->Flush({}).ok());
    EXPECT_EQ(WalkInMemory(db, {}, /*forward=*/true), incomplete);
    EXPECT_EQ(WalkInMemory(db, {}, /*forward=*/false), incomplete);
    ASSERT_TRUE(db->Put({}, "b3", "value").ok());
    EXPECT_EQ(WalkInMemory(db, within_b, /*forward=*/true), incomplete);
    ASSERT_TRUE(db->Put({}, "d1", "value").ok());
    ASSERT_TRUE(db->Put({}, "d2", "value").ok());
    ASSERT_TRUE(db->Delete({}, "d2").ok());
    rocksdb::ReadOptions behind;
    const rocksdb::Slice d("d");
    behind.iterate_lower_bound = &d;
    EXPECT_EQ(WalkInMemory(db, behind, /*forward=*/true).substr(0, 3), "d1 ");
    behind.snapshot = db->GetSnapshot();
    ASSERT_TRUE(db->Put({}, "d3", "value").ok());
    behind.read_tier = rocksdb::kBlockCacheTier;
    const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(behind));
    iterator->Seek("d");
    ASSERT_TRUE(iterator->Valid());
    iterator->Next();
    EXPECT_FALSE(iterator->Valid());
    EXPECT_TRUE(iterator->status().ok());
    behind.iterate_lower_bound = nullptr;
    db->ReleaseSnapshot(behind.snapshot);
  }
  // What begins with d lies behind the table, as its bounds tell.
  rocksdb::ReadOptions all;
  all.read_tier = rocksdb::kBlockCacheTier;
  const std::unique_ptr<rocksdb::Iterator> iterator(nacre_db_->NewIterator(all));
  iterator->Seek("d");
  ASSERT_TRUE(iterator->Valid()) << iterator->status().ToString();
  EXPECT_EQ(iterator->key().ToString(), "d1");
  iterator->Prev();
  EXPECT_TRUE(iterator->status().IsIncomplete()) << iterator->status().ToString();
}

TEST_F(OptionsTest, ValuesBeyondTheSoftLimitAreLeftOut) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  ASSERT_NO_FATAL_FAILURE(Fill());
  rocksdb::ReadOptions options;
  options.value_size_soft_limit = 9;  // Two values of five bytes are above.
  const std::vector<rocksdb::Slice> keys = {"a1", "a2", "b1", "b2"};
  for (rocksdb::DB* db : {nacre_db_.get(), rocksdb_.get()}) {
    std::vector<std::string> values;
    const std::vector<rocksdb::Status> statuses = db->MultiGet(options, keys, &values);
    EXPECT_TRUE(statuses[0].ok() && statuses[1].ok());
    EXPECT_TRUE(statuses[2].IsAborted() && statuses[3].IsAborted());
    EXPECT_EQ(values[1], "value");
  }
  std::vector<rocksdb::PinnableSlice> pinned(keys.size());
  std::vector<rocksdb::Status> statuses(keys.size());
  nacre_db_->MultiGet(options, nacre_db_->DefaultColumnFamily(), keys.size(), keys.data(),
                      pinned.data(), statuses.data());
  EXPECT_TRUE(statuses[0].ok() && statuses[1].ok());
  EXPECT_TRUE(statuses[2].IsAborted() && statuses[3].IsAborted());
}

struct WriteCase {
  const char* field;
  std::function<void(rocksdb::WriteOptions*)> set;
  Code answer = kOk;
};

TEST_F(OptionsTest, EachFieldOfWrites) {
  using Options = rocksdb::WriteOptions;
  const std::vector<WriteCase> cases = {
      {"sync", [](Options* o) { o->sync = true; }},
      {"disableWAL", [](Options* o) { o->disableWAL = true; }},
      {"sync without a log", [](Options* o) { o->sync = o->disableWAL = true; }, kInvalid},
      {"ignore_missing", [](Options* o) { o->ignore_missing_column_families = true; }},
      {"no_slowdown", [](Options* o) { o->no_slowdown = true; }},
      {"low_pri", [](Options* o) { o->low_pri = true; }},
      {"insert_hint", [](Options* o) { o->memtable_insert_hint_per_batch = true; }},
      {"rate limit", [](Options* o) { o->rate_limiter_priority = rocksdb::Env::IO_USER; }},
      {"wrong rate limit", [](Options* o) { o->rate_limiter_priority = rocksdb::Env::IO_LOW; },
       kInvalid},
      {"protection", [](Options* o) { o->protection_bytes_per_key = 8; }},
      {"wrong protection", [](Options* o) { o->protection_bytes_per_key = 7; }, kInvalid},
  };
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  for (const WriteCase& field : cases) {
    SCOPED_TRACE(field.field);
    rocksdb::WriteOptions options;
    field.set(&options);
    for (rocksdb::DB* db : {nacre_db_.get(), rocksdb_.get()}) {
      if (options.protection_bytes_per_key == 7 && db == rocksdb_.get()) continue;  // Asserts.
      EXPECT_EQ(db->Put(options, "a", "1").code(), field.answer);
      rocksdb::WriteBatch batch(0, 0, options.protection_bytes_per_key == 8 ? 8 : 0, 0);
      ASSERT_TRUE(batch.Put("b", "2").ok());
      EXPECT_EQ(db->Write(options, &batch).code(), field.answer);
    }
  }
}

TEST_F(OptionsTest, UpdatesOfMissingFamiliesAreIgnoredIfAskedFor) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  for (rocksdb::DB* db : {nacre_db_.get(), rocksdb_.get()}) {
    rocksdb::ColumnFamilyHandle* made = nullptr;
    ASSERT_TRUE(db->CreateColumnFamily(options_, "dropped", &made).ok());
    const std::unique_ptr<rocksdb::ColumnFamilyHandle> family(made);
    rocksdb::WriteBatch batch;
    ASSERT_TRUE(batch.Put(made, "lost", "1").ok());
    ASSERT_TRUE(batch.Put("kept", "1").ok());
    ASSERT_TRUE(batch.Put("deleted", "1").ok());
    ASSERT_TRUE(batch.Delete("deleted").ok());
    ASSERT_TRUE(db->DropColumnFamily(made).ok());
    SCOPED_TRACE(db == nacre_db_.get() ? "Nacre" : "RocksDB");
    rocksdb::WriteOptions options;
    std::string value;
    options.ignore_missing_column_families = true;
    const rocksdb::Status written = db->Write(options, &batch);
    EXPECT_TRUE(written.ok()) << written.ToString();
    EXPECT_TRUE(db->Get({}, "kept", &value).ok());
    EXPECT_TRUE(db->Get({}, "deleted", &value).IsNotFound());
    EXPECT_TRUE(db->Put(options, made, "lost", "1").ok());
    // After this a RocksDB takes no writes any more.
    EXPECT_TRUE(db->Write({}, &batch).IsInvalidArgument());
    EXPECT_TRUE(db->Put({}, made, "lost", "1").IsInvalidArgument());
  }
}

TEST_F(OptionsTest, EachFieldOfFlushesAndCompactions) {
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  std::atomic<bool> canceled{true};
  const rocksdb::Slice timestamp("12345678");
  struct Case {
    const char* field;
    std::function<void(rocksdb::CompactRangeOptions*)> set;
    Code answer = kOk;
    Code of_rocksdb = kOk;
  };
  using Options = rocksdb::CompactRangeOptions;
  const std::vector<Case> cases = {
      {"exclusive", [](Options* o) { o->exclusive_manual_compaction = true; }},
      {"change_level", [](Options* o) { o->change_level = true; }},
      {"change_level to 4",
       [](Options* o) {
         o->change_level = true;
         o->target_level = 4;
       }},
      {"change_level to what is none",
       [](Options* o) {
         o->change_level = true;
         o->target_level = 7;
       },
       kInvalid, kInvalid},
      {"target_level", [](Options* o) { o->target_level = 3; }},
      {"target_path_id", [](Options* o) { o->target_path_id = 1; }, kInvalid, kInvalid},
      {"bottommost",
       [](Options* o) {
         o->bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForce;
       }},
      {"allow_write_stall", [](Options* o) { o->allow_write_stall = true; }},
      {"max_subcompactions", [](Options* o) { o->max_subcompactions = 4; }},
      {"full_history_ts_low", [&](Options* o) { o->full_history_ts_low = &timestamp; }, kNo, kNo},
      {"canceled", [&](Options* o) { o->canceled = &canceled; }, Code::kIncomplete,
       Code::kIncomplete},
      {"blob_policy",
       [](Options* o) {
         o->blob_garbage_collection_policy = rocksdb::BlobGarbageCollectionPolicy::kForce;
       }},
      {"blob_cutoff", [](Options* o) { o->blob_garbage_collection_age_cutoff = 0.5; }},
  };
  for (const Case& field : cases) {
    SCOPED_TRACE(field.field);
    for (rocksdb::DB* db : {nacre_db_.get(), rocksdb_.get()}) {
      ASSERT_TRUE(db->Put({}, "a", "1").ok());
      Options options;
      field.set(&options);
      // Without timestamps a RocksDB that has its assertions ends there.
      if (options.full_history_ts_low != nullptr && db == rocksdb_.get()) continue;
      EXPECT_EQ(db->CompactRange(options, nullptr, nullptr).code(),
                db == nacre_db_.get() ? field.answer : field.of_rocksdb);
    }
  }
  rocksdb::FlushOptions flush;
  flush.wait = false;
  flush.allow_write_stall = true;
  for (rocksdb::DB* db : {nacre_db_.get(), rocksdb_.get()}) EXPECT_TRUE(db->Flush(flush).ok());
}

TEST_F(OptionsTest, PrefixesKeepIteratorsTogether) {
  options_.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(1));
  ASSERT_NO_FATAL_FAILURE(OpenBoth());
  ASSERT_NO_FATAL_FAILURE(Fill());
  rocksdb::ReadOptions options;
  options.prefix_same_as_start = true;
  for (rocksdb::DB* db : {nacre_db_.get(), rocksdb_.get()}) {
    const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator(options));
    std::string keys;
    for (iterator->Seek("b"); iterator->Valid(); iterator->Next()) {
      keys += iterator->key().ToString() + " ";
    }
    EXPECT_EQ(keys, "b1 b2 ");
  }
}

/// What a RocksDB opens with, and what it makes of it.
struct SanitizedCase {
  const char* what;
  std::function<void(rocksdb::Options*)> set;
  /// Whether Nacre's bound is narrower.
  bool differs = false;
};

std::vector<SanitizedCase> SanitizedCases() {
  using Options = rocksdb::Options;
  return {
      {"write_buffer_size", [](Options* o) { o->write_buffer_size = 1024; }},
      {"max_write_buffer_number", [](Options* o) { o->max_write_buffer_number = 1; }},
      {"num_levels 0", [](Options* o) { o->num_levels = 0; }},
      {"num_levels 1", [](Options* o) { o->num_levels = 1; }},
      {"num_levels 20", [](Options* o) { o->num_levels = 20; }, true},
      {"trigger 0", [](Options* o) { o->level0_file_num_compaction_trigger = 0; }},
      {"triggers out of order",
       [](Options* o) {
         o->level0_file_num_compaction_trigger = 30;
         o->level0_slowdown_writes_trigger = 20;
         o->level0_stop_writes_trigger = 10;
       }},
      {"max_background_jobs", [](Options* o) { o->max_background_jobs = -1; }, true},
      {"max_subcompactions", [](Options* o) { o->max_subcompactions = 0; }, true},
      {"old jobs",
       [](Options* o) {
         o->max_background_flushes = 2;
         o->max_background_compactions = 3;
       },
       true},
      {"multiplier", [](Options* o) { o->max_bytes_for_level_multiplier = 0; }},
      {"no soft limit", [](Options* o) { o->soft_pending_compaction_bytes_limit = 0; }},
      {"limits out of order",
       [](Options* o) {
         o->soft_pending_compaction_bytes_limit = 2 << 20;
         o->hard_pending_compaction_bytes_limit = 1 << 20;
       }},
      {"no limits",
       [](Options* o) {
         o->soft_pending_compaction_bytes_limit = o->hard_pending_compaction_bytes_limit = 0;
       }},
      {"bulk load", [](Options* o) { o->PrepareForBulkLoad(); }, true},
      {"small tables", [](Options* o) { o->target_file_size_base = 4096; }, true},
      {"small levels", [](Options* o) { o->max_bytes_for_level_base = 4096; }, true},
  };
}

TEST_F(OptionsTest, OpensWithWhatRocksdbOpensWith) {
  for (const SanitizedCase& field : SanitizedCases()) {
    SCOPED_TRACE(field.what);
    rocksdb::Options options = options_;
    field.set(&options);
    std::unique_ptr<rocksdb::DB> ours;
    const rocksdb::Status status = Open(options, nacre_options_, "program", &ours);
    ASSERT_TRUE(status.ok()) << status.ToString();
    ASSERT_TRUE(ours->Put({}, "a", "1").ok());
    ASSERT_TRUE(ours->Flush({}).ok());
    rocksdb::ColumnFamilyHandle* made = nullptr;
    EXPECT_TRUE(ours->CreateColumnFamily(options, "made", &made).ok());
    EXPECT_TRUE(ours->DropColumnFamily(made).ok());
    EXPECT_TRUE(ours->DestroyColumnFamilyHandle(made).ok());
    if (!field.differs) {
      const std::unique_ptr<rocksdb::Env> memory(rocksdb::NewMemEnv(rocksdb::Env::Default()));
      options.env = memory.get();
      rocksdb::DB* opened = nullptr;
      ASSERT_TRUE(rocksdb::DB::Open(options, "/sanitized", &opened).ok());
      const std::unique_ptr<rocksdb::DB> theirs(opened);
      const rocksdb::Options a = ours->GetOptions();
      const rocksdb::Options b = theirs->GetOptions();
      EXPECT_EQ(a.write_buffer_size, b.write_buffer_size);
      EXPECT_EQ(a.max_write_buffer_number, b.max_write_buffer_number);
      EXPECT_EQ(a.num_levels, b.num_levels);
      EXPECT_EQ(a.level0_file_num_compaction_trigger, b.level0_file_num_compaction_trigger);
      EXPECT_EQ(a.level0_slowdown_writes_trigger, b.level0_slowdown_writes_trigger);
      EXPECT_EQ(a.level0_stop_writes_trigger, b.level0_stop_writes_trigger);
      EXPECT_EQ(a.max_bytes_for_level_multiplier, b.max_bytes_for_level_multiplier);
      EXPECT_EQ(a.soft_pending_compaction_bytes_limit, b.soft_pending_compaction_bytes_limit);
      EXPECT_EQ(a.hard_pending_compaction_bytes_limit, b.hard_pending_compaction_bytes_limit);
    }
    ours.reset();
    ASSERT_TRUE(Destroy(nacre_options_, "program").ok());
  }
}

class NoService final : public rocksdb::CompactionService {
 public:
  const char* Name() const override { return "NoService"; }
};

class NoFilter final : public rocksdb::WalFilter {
 public:
  const char* Name() const override { return "NoFilter"; }
};

TEST_F(OptionsTest, WhatWouldChangeWhatIsReadIsRefused) {
  NoFilter filter_of_log;
  using Options = rocksdb::Options;
  const std::vector<std::pair<const char*, std::function<void(Options*)>>> cases = {
      {"listeners",
       [](Options* o) { o->listeners.push_back(std::make_shared<rocksdb::EventListener>()); }},
      {"compaction_style",
       [](Options* o) { o->compaction_style = rocksdb::kCompactionStyleUniversal; }},
      {"wal_filter", [&](Options* o) { o->wal_filter = &filter_of_log; }},
      {"compaction_service",
       [](Options* o) { o->compaction_service = std::make_shared<NoService>(); }},
      {"best_efforts_recovery", [](Options* o) { o->best_efforts_recovery = true; }},
      {"allow_ingest_behind", [](Options* o) { o->allow_ingest_behind = true; }},
      {"inplace_callback",
       [](Options* o) {
         o->inplace_callback = [](char*, uint32_t*, rocksdb::Slice, std::string*) {
           return rocksdb::UpdateStatus::UPDATE_FAILED;
         };
       }},
  };
  for (const auto& [name, set] : cases) {
    Options options = options_;
    set(&options);
    std::unique_ptr<rocksdb::DB> db;
    const rocksdb::Status status = Open(options, nacre_options_, "program", &db);
    EXPECT_TRUE(status.IsNotSupported()) << name << ": " << status.ToString();
    EXPECT_NE(status.ToString().find(name), std::string::npos) << status.ToString();
  }
}

/// Keeps what is logged.
class TextLogger final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    char line[500];
    std::vsnprintf(line, sizeof(line), format, arguments);
    text += line;
  }
  std::string text;
};

TEST_F(OptionsTest, WhatWasChangedIsInTheLog) {
  const auto log = std::make_shared<TextLogger>();
  options_.info_log = log;
  options_.num_levels = 20;
  options_.max_background_jobs = -1;
  ASSERT_NO_FATAL_FAILURE(OpenNacre());
  EXPECT_NE(log->text.find("Options::num_levels is 20, taken for 16"), std::string::npos)
      << log->text;
  EXPECT_NE(log->text.find("Options::max_background_jobs is -1, taken for 2"), std::string::npos);
  options_.num_levels = 1;
  rocksdb::ColumnFamilyHandle* made = nullptr;
  ASSERT_TRUE(nacre_db_->CreateColumnFamily(options_, "made", &made).ok());
  EXPECT_NE(log->text.find("num_levels of column family made is 1"), std::string::npos)
      << log->text;
  EXPECT_TRUE(nacre_db_->DestroyColumnFamilyHandle(made).ok());
  nacre_db_.reset();
}

class NoCollectors final : public rocksdb::TablePropertiesCollectorFactory {
 public:
  const char* Name() const override { return "NoCollectors"; }
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context) override {
    return nullptr;
  }
};

TEST_F(OptionsTest, WhatHasNoEffectIsInTheLog) {
  using Options = rocksdb::Options;
  const std::vector<std::pair<const char*, std::function<void(Options*)>>> cases = {
      {"max_file_opening_threads is 3", [](Options* o) { o->max_file_opening_threads = 3; }},
      {"max_open_files is 100", [](Options* o) { o->max_open_files = 100; }},
      {"max_total_wal_size is 1024", [](Options* o) { o->max_total_wal_size = 1024; }},
      {"wal_dir is /tmp", [](Options* o) { o->wal_dir = "/tmp"; }},
      {"wal_recovery_mode is kAbsoluteConsistency",
       [](Options* o) { o->wal_recovery_mode = rocksdb::WALRecoveryMode::kAbsoluteConsistency; }},
      {"statistics is set", [](Options* o) { o->statistics = rocksdb::CreateDBStatistics(); }},
      {"rate_limiter is set",
       [](Options* o) { o->rate_limiter.reset(rocksdb::NewGenericRateLimiter(1 << 20)); }},
      {"row_cache is set", [](Options* o) { o->row_cache = rocksdb::NewLRUCache(1 << 20); }},
      {"db_paths is set", [](Options* o) { o->db_paths.emplace_back("/tmp", 1 << 20); }},
      {"table_properties_collector_factories is set",
       [](Options* o) {
         o->table_properties_collector_factories.push_back(std::make_shared<NoCollectors>());
       }},
      {"table_factory is set",
       [](Options* o) {
         rocksdb::BlockBasedTableOptions table;
         table.block_size = 1 << 20;
         o->table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
       }},
      {"max_successive_merges is 7", [](Options* o) { o->max_successive_merges = 7; }},
      {"ttl is 60", [](Options* o) { o->ttl = 60; }},
      {"enable_blob_files is true", [](Options* o) { o->enable_blob_files = true; }},
      {"compression is kZSTD", [](Options* o) { o->compression = rocksdb::kZSTD; }},
  };
  constexpr const char* kNoEffect = ", which has no effect";
  for (const auto& [line, set] : cases) {
    SCOPED_TRACE(line);
    const auto log = std::make_shared<TextLogger>();
    options_ = Options();
    options_.create_if_missing = true;
    options_.info_log = log;
    ASSERT_NO_FATAL_FAILURE(OpenNacre());
    EXPECT_EQ(log->text.find(kNoEffect), std::string::npos) << log->text;
    set(&options_);
    ASSERT_NO_FATAL_FAILURE(OpenNacre());
    EXPECT_NE(log->text.find(std::string("Options::") + line + kNoEffect), std::string::npos)
        << log->text;
    rocksdb::ColumnFamilyHandle* made = nullptr;
    ASSERT_TRUE(nacre_db_->CreateColumnFamily(options_, "made", &made).ok());
    ASSERT_TRUE(nacre_db_->DropColumnFamily(made).ok());
    EXPECT_TRUE(nacre_db_->DestroyColumnFamilyHandle(made).ok());
    nacre_db_.reset();
  }
}

}  // namespace
}  // namespace nacre::rocksdb_api
