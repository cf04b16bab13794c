#include <fmt/format.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/listener.h>
#include <rocksdb/statistics.h>
#include <rocksdb/write_batch.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "db_bench/engine/engine.h"
#include "db_bench/engine/engine_status.h"
#include "db_bench/engine/iterator_cursor.h"
#include "db_bench/engine/rocksdb_options.h"
#include "db_bench/engine/rocksdb_pool.h"
#include "db_bench/engine/rocksdb_slice.h"
#include "db_bench/engine/rocksdb_transactions.h"
#include "db_bench/engine/rocksdb_versions.h"
#include "db_bench/engine/scratch_folder.h"
#include "db_bench/value_sizes.h"

namespace nacre::bench {
namespace {

class RocksdbSession final : public Session {
 public:
  RocksdbSession(rocksdb::DB* db, const BenchConfig& config)
      : config_(config),
        db_(db),
        multiread_batched_(config.multiread_batched),
        read_options_(MakeRocksdbReadOptions(config)) {
    write_options_.disableWAL = config.disable_wal;
  }

  // A batch of one that keeps its memory is faster than DB::Put, which allocates one each time;
  // RocksDB's db_bench writes the same way.
  Status Put(const Slice& key, const Slice& value) override {
    NACRE_RETURN_IF_ERROR(BatchPut(key, value));
    return BatchWrite();
  }
  Status Delete(const Slice& key) override {
    NACRE_RETURN_IF_ERROR(BatchDelete(key));
    return BatchWrite();
  }
  Status BatchPut(const Slice& key, const Slice& value) override {
    return ToStatus(batch_.Put(RocksdbSlice(key), RocksdbSlice(value)));
  }
  Status BatchDelete(const Slice& key) override {
    return ToStatus(batch_.Delete(RocksdbSlice(key)));
  }
  Status BatchWrite() override {
    const rocksdb::Status status = db_->Write(write_options_, &batch_);
    batch_.Clear();
    return ToStatus(status);
  }

  Status Get(const Slice& key, Slice* value) override {
    value_.Reset();
    const rocksdb::Status status =
        db_->Get(read_options_, db_->DefaultColumnFamily(), RocksdbSlice(key), &value_);
    *value = Slice(value_.data(), value_.size());
    return ToStatus(status);
  }

  Status MultiGet(std::span<const Slice> keys, MultiGetResult* result) override {
    keys_.resize(keys.size());
    for (size_t i = 0; i < keys.size(); ++i) keys_[i] = RocksdbSlice(keys[i]);
    return multiread_batched_ ? MultiGetBatched(result) : MultiGetSingly(result);
  }

  std::unique_ptr<SessionTransaction> NewTransaction() override {
    return NewRocksdbTransaction(config_, db_);
  }

  Cursor* NewCursor() override {
    cursor_.Reset(std::unique_ptr<rocksdb::Iterator>(db_->NewIterator(read_options_)));
    return &cursor_;
  }
  void CloseCursor() override { cursor_.Reset(nullptr); }

 private:
  Status MultiGetBatched(MultiGetResult* result) {
    values_.resize(keys_.size());
    statuses_.resize(keys_.size());
    db_->MultiGet(read_options_, db_->DefaultColumnFamily(), keys_.size(), keys_.data(),
                  values_.data(), statuses_.data());
    for (size_t i = 0; i < keys_.size(); ++i) {
      NACRE_RETURN_IF_ERROR(Count(statuses_[i], values_[i].size(), result));
      values_[i].Reset();
    }
    return Status::OK();
  }
  Status MultiGetSingly(MultiGetResult* result) {
    const std::vector<rocksdb::Status> statuses = db_->MultiGet(read_options_, keys_, &strings_);
    for (size_t i = 0; i < keys_.size(); ++i) {
      NACRE_RETURN_IF_ERROR(Count(statuses[i], strings_[i].size(), result));
    }
    return Status::OK();
  }
  static Status Count(const rocksdb::Status& status, size_t value_bytes, MultiGetResult* result) {
    if (status.ok()) {
      ++result->found;
      result->value_bytes += value_bytes;
    } else if (!status.IsNotFound()) {
      return ToStatus(status);
    }
    return Status::OK();
  }

  const BenchConfig& config_;
  rocksdb::DB* db_;
  const bool multiread_batched_;
  rocksdb::WriteOptions write_options_;
  const rocksdb::ReadOptions read_options_;
  rocksdb::WriteBatch batch_;
  rocksdb::PinnableSlice value_;
  std::vector<rocksdb::Slice> keys_;
  std::vector<rocksdb::PinnableSlice> values_;
  std::vector<std::string> strings_;
  std::vector<rocksdb::Status> statuses_;
  IteratorCursor<rocksdb::Iterator> cursor_;
};

/// Counts what compactions read, wrote and cost. What compactions do without merging, a move to the
/// next level, counts nothing; neither do flushes.
/// Thread safety: all methods may be called from many threads at once.
class CompactionCounter final : public rocksdb::EventListener {
 public:
  void OnCompactionCompleted(rocksdb::DB*, const rocksdb::CompactionJobInfo& info) override {
    read_.fetch_add(info.stats.total_input_bytes, std::memory_order_relaxed);
    written_.fetch_add(info.stats.total_output_bytes, std::memory_order_relaxed);
    cpu_micros_.fetch_add(info.stats.cpu_micros, std::memory_order_relaxed);
  }
  TrafficCounters counters() const {
    TrafficCounters counters;
    counters.compaction_read = read_.load(std::memory_order_relaxed);
    counters.compaction_written = written_.load(std::memory_order_relaxed);
    counters.compaction_cpu_nanos = 1000 * cpu_micros_.load(std::memory_order_relaxed);
    return counters;
  }

 private:
  std::atomic<uint64_t> read_{0};
  std::atomic<uint64_t> written_{0};
  std::atomic<uint64_t> cpu_micros_{0};
};

class RocksdbEngine final : public Engine {
 public:
  explicit RocksdbEngine(const BenchConfig& config) : config_(config) {}
  ~RocksdbEngine() override { Close().IgnoreError(); }

  std::string Describe() const override {
    const std::string version =
        fmt::format("rocksdb {}, {}, profile ", rocksdb::GetRocksVersionAsString(),
                    RocksdbHasAssertions() ? "with assertions" : "release build");
    if (config_.rocksdb_profile == RocksdbProfile::kRemote) {
      return fmt::format(
          "{}remote, files in pool {}, redundancy {}, blocks of {} B, block cache of {} B", version,
          config_.pool, config_.options.redundancy, config_.block_size, config_.cache_size);
    }
    return version +
           (config_.rocksdb_profile == RocksdbProfile::kInMemory ? "inmemory" : "default") +
           ", tables in " + (config_.db.empty() ? "memory (/dev/shm)" : config_.db);
  }

  std::string Warning() const override {
    if (!RocksdbHasAssertions()) return {};
    return "this librocksdb has assertions compiled in and is slower than a release build";
  }

  Status OpenFresh() override {
    NACRE_RETURN_IF_ERROR(Close());
    NACRE_RETURN_IF_ERROR(ChoosePath());
    rocksdb::Options options = MakeOptions();
    NACRE_RETURN_IF_ERROR(ToSetupStatus(rocksdb::DestroyDB(path_, options), path_));
    options.create_if_missing = true;
    options.error_if_exists = true;
    return Open(options);
  }
  Status OpenExisting() override {
    NACRE_RETURN_IF_ERROR(Close());
    NACRE_RETURN_IF_ERROR(ChoosePath());
    return Open(MakeOptions());
  }
  Status Close() override {
    if (db_ == nullptr) return Status::OK();
    const rocksdb::Status closed = db_->Close();
    db_.reset();
    return ToStatus(closed);
  }

  std::unique_ptr<Session> NewSession() override {
    return std::make_unique<RocksdbSession>(db_.get(), config_);
  }
  Status Flush() override { return ToStatus(db_->Flush(rocksdb::FlushOptions())); }
  Status CompactAll() override {
    rocksdb::CompactRangeOptions options;
    options.bottommost_level_compaction = rocksdb::BottommostLevelCompaction::kForceOptimized;
    options.max_subcompactions = config_.options.max_subcompactions;
    return ToStatus(db_->CompactRange(options, nullptr, nullptr));
  }

  Status VerifyChecksum() override { return ToStatus(db_->VerifyChecksum()); }

  Status WaitForCompaction() override {
    using Properties = rocksdb::DB::Properties;
    constexpr std::chrono::milliseconds kPollInterval{1};
    // A flush ends before the compaction that it makes due is asked for, so it must be idle twice.
    for (int idle_polls = 0; idle_polls < 2;) {
      bool idle = true;
      for (const std::string& property :
           {Properties::kNumImmutableMemTable, Properties::kMemTableFlushPending,
            Properties::kNumRunningFlushes, Properties::kCompactionPending,
            Properties::kNumRunningCompactions}) {
        uint64_t value = 0;
        NACRE_RETURN_IF_ERROR(IntProperty(property, &value));
        idle = idle && value == 0;
      }
      idle_polls = idle ? idle_polls + 1 : 0;
      std::this_thread::sleep_for(kPollInterval);
    }
    uint64_t errors = 0;
    NACRE_RETURN_IF_ERROR(IntProperty(Properties::kBackgroundErrors, &errors));
    return errors == 0 ? Status::OK() : Status::IOError("rocksdb: a background job failed");
  }

  Status Stats(std::string* text) override {
    NACRE_RETURN_IF_ERROR(Property(rocksdb::DB::Properties::kStats, text));
    if (config_.statistics) {
      *text += "\nSTATISTICS:\n" + db_->GetOptions().statistics->ToString();
    }
    return Status::OK();
  }
  Status LevelStats(std::string* text) override {
    return Property(rocksdb::DB::Properties::kLevelStats, text);
  }

  Status Space(SpaceUsage* usage) override {
    using Properties = rocksdb::DB::Properties;
    uint64_t keys = 0;
    uint64_t memtables = 0;
    uint64_t readers = 0;
    uint64_t cache = 0;
    NACRE_RETURN_IF_ERROR(IntProperty(Properties::kEstimateNumKeys, &keys));
    NACRE_RETURN_IF_ERROR(IntProperty(Properties::kTotalSstFilesSize, &usage->stored_bytes));
    NACRE_RETURN_IF_ERROR(IntProperty(Properties::kSizeAllMemTables, &memtables));
    NACRE_RETURN_IF_ERROR(IntProperty(Properties::kEstimateTableReadersMem, &readers));
    // A table without a block cache has no such property.
    if (!IntProperty(Properties::kBlockCacheUsage, &cache).ok()) cache = 0;
    usage->user_bytes =
        keys * (config_.key_size + static_cast<uint64_t>(ValueSizes(config_).Mean()));
    if (pool_ != nullptr) usage->stored_bytes = pool_->stored_bytes();
    usage->compute_bytes = memtables + readers + cache;
    usage->index_bytes = readers;
    return Status::OK();
  }

  Status Traffic(TrafficCounters* counters) override {
    *counters = compactions_->counters();
    // Nothing crosses a network without a pool.
    if (pool_ != nullptr) *counters = *counters + pool_->traffic();
    return Status::OK();
  }

 private:
  rocksdb::Options MakeOptions() const {
    rocksdb::Options options = MakeRocksdbOptions(config_);
    options.listeners.push_back(compactions_);
    if (pool_ != nullptr) options.env = pool_->env();
    return options;
  }

  Status ChoosePath() {
    if (!path_.empty()) return Status::OK();
    if (config_.rocksdb_profile == RocksdbProfile::kRemote) {
      NACRE_RETURN_IF_ERROR(RocksdbPool::Open(config_, &pool_));
      path_ = config_.db.empty() ? "/db_bench" : config_.db;
    } else if (config_.db.empty()) {
      NACRE_RETURN_IF_ERROR(ScratchFolder::Make(&scratch_));
      path_ = scratch_->path() / "db";
    } else {
      path_ = config_.db;
    }
    return Status::OK();
  }

  Status Open(const rocksdb::Options& options) {
    return ToSetupStatus(OpenRocksdbAs(config_, options, path_, &db_), path_);
  }

  Status Property(const std::string& name, std::string* value) {
    return db_->GetProperty(name, value) ? Status::OK()
                                         : Status::NotSupported("rocksdb: no property " + name);
  }
  Status IntProperty(const std::string& name, uint64_t* value) {
    return db_->GetIntProperty(name, value) ? Status::OK()
                                            : Status::NotSupported("rocksdb: no property " + name);
  }

  const BenchConfig& config_;
  std::unique_ptr<ScratchFolder> scratch_;
  std::unique_ptr<RocksdbPool> pool_;  ///< Null: the files are in a folder.
  std::string path_;
  /// Counts over all databases that are opened.
  const std::shared_ptr<CompactionCounter> compactions_ = std::make_shared<CompactionCounter>();
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace

std::unique_ptr<Engine> NewRocksdbEngine(const BenchConfig& config) {
  return std::make_unique<RocksdbEngine>(config);
}

}  // namespace nacre::bench
