#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <sstream>
#include <system_error>
#include <thread>
#include <vector>

#include "db_bench/engine/engine.h"
#include "db_bench/engine/engine_status.h"
#include "db_bench/engine/iterator_cursor.h"
#include "db_bench/engine/leveldb_env.h"
#include "db_bench/engine/scratch_folder.h"

namespace nacre::bench {
namespace {

leveldb::Slice LeveldbSlice(const Slice& slice) { return {slice.data(), slice.size()}; }

class LeveldbSession final : public Session {
 public:
  LeveldbSession(leveldb::DB* db, const BenchConfig& config) : db_(db) {
    read_options_.verify_checksums = config.verify_checksum;
  }

  Status Put(const Slice& key, const Slice& value) override {
    batch_.Put(LeveldbSlice(key), LeveldbSlice(value));
    return BatchWrite();
  }
  Status Delete(const Slice& key) override {
    batch_.Delete(LeveldbSlice(key));
    return BatchWrite();
  }
  Status BatchPut(const Slice& key, const Slice& value) override {
    batch_.Put(LeveldbSlice(key), LeveldbSlice(value));
    return Status::OK();
  }
  Status BatchDelete(const Slice& key) override {
    batch_.Delete(LeveldbSlice(key));
    return Status::OK();
  }
  Status BatchWrite() override {
    const leveldb::Status status = db_->Write(leveldb::WriteOptions(), &batch_);
    batch_.Clear();
    return ToStatus(status);
  }

  Status Get(const Slice& key, Slice* value) override {
    const leveldb::Status status = db_->Get(read_options_, LeveldbSlice(key), &value_);
    *value = Slice(value_);
    return ToStatus(status);
  }
  /// LevelDB has no such call: one read after another.
  Status MultiGet(std::span<const Slice> keys, MultiGetResult* result) override {
    for (const Slice& key : keys) {
      Slice value;
      const Status status = Get(key, &value);
      if (status.ok()) {
        ++result->found;
        result->value_bytes += value.size();
      } else if (!status.IsNotFound()) {
        return status;
      }
    }
    return Status::OK();
  }

  Cursor* NewCursor() override {
    cursor_.Reset(std::unique_ptr<leveldb::Iterator>(db_->NewIterator(read_options_)));
    return &cursor_;
  }
  void CloseCursor() override { cursor_.Reset(nullptr); }

 private:
  leveldb::DB* db_;
  leveldb::ReadOptions read_options_;
  leveldb::WriteBatch batch_;
  std::string value_;
  IteratorCursor<leveldb::Iterator> cursor_;
};

/// A line of "leveldb.stats".
struct LevelRow {
  int level = 0;
  uint64_t files = 0;
  double size_mib = 0;
  double read_mib = 0;
  double written_mib = 0;
};

class LeveldbEngine final : public Engine {
 public:
  explicit LeveldbEngine(const BenchConfig& config)
      : config_(config),
        env_(config.disable_wal),
        cache_(leveldb::NewLRUCache(config.cache_size)),
        filter_(config.bloom_bits > 0 ? leveldb::NewBloomFilterPolicy(config.bloom_bits)
                                      : nullptr) {}
  ~LeveldbEngine() override { Close().IgnoreError(); }

  std::string Describe() const override {
    return "leveldb " + std::to_string(leveldb::kMajorVersion) + "." +
           std::to_string(leveldb::kMinorVersion) + ", tables in " +
           (config_.db.empty() ? "memory (/dev/shm)" : config_.db);
  }

  Status OpenFresh() override {
    NACRE_RETURN_IF_ERROR(Close());
    NACRE_RETURN_IF_ERROR(ChoosePath());
    NACRE_RETURN_IF_ERROR(ToSetupStatus(leveldb::DestroyDB(path_, MakeOptions()), path_));
    leveldb::Options options = MakeOptions();
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
    Status status = AddTraffic(&closed_traffic_);
    // What is in the MemTable would be lost without a log; the other engines flush it too.
    if (config_.disable_wal && status.ok()) status = Flush();
    db_.reset();
    // LevelDB's destructor waits for its work, not for the environment to have noted its end.
    NACRE_RETURN_IF_ERROR(WaitForCompaction());
    return status;
  }

  std::unique_ptr<Session> NewSession() override {
    return std::make_unique<LeveldbSession>(db_.get(), config_);
  }
  /// LevelDB flushes at the begin of a manual compaction; this one covers no key of ours.
  Status Flush() override {
    const std::string beyond(config_.key_size + 2, '\xff');
    const leveldb::Slice key(beyond);
    db_->CompactRange(&key, &key);
    return Status::OK();
  }
  Status CompactAll() override {
    db_->CompactRange(nullptr, nullptr);
    return Status::OK();
  }
  Status WaitForCompaction() override {
    while (env_.scheduled() != 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return Status::OK();
  }

  Status Stats(std::string* text) override { return Property("leveldb.stats", text); }
  /// As RocksDB prints it.
  Status LevelStats(std::string* text) override {
    std::vector<LevelRow> rows;
    NACRE_RETURN_IF_ERROR(ReadLevels(&rows));
    *text = "Level Files Size(MB)\n--------------------\n";
    for (const LevelRow& row : rows) {
      char line[96];
      std::snprintf(line, sizeof(line), "%3d %8" PRIu64 " %8.0f\n", row.level, row.files,
                    row.size_mib);
      *text += line;
    }
    return Status::OK();
  }

  Status Space(SpaceUsage* usage) override {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(path_, error)) {
      if (entry.path().extension() == ".ldb") usage->stored_bytes += entry.file_size(error);
    }
    if (error) return Status::IOError(path_ + ": " + error.message());
    // Everything from the first key on; what was overwritten but not yet merged is counted too.
    const std::string end(config_.key_size + 2, '\xff');
    const leveldb::Range all(leveldb::Slice(), end);
    db_->GetApproximateSizes(&all, 1, &usage->user_bytes);
    std::string memory;
    NACRE_RETURN_IF_ERROR(Property("leveldb.approximate-memory-usage", &memory));
    usage->compute_bytes = std::stoull(memory);
    return Status::OK();
  }
  Status Traffic(TrafficCounters* counters) override {
    *counters = closed_traffic_;
    return AddTraffic(counters);
  }

 private:
  Status ChoosePath() {
    if (!path_.empty()) return Status::OK();
    if (config_.db.empty()) {
      NACRE_RETURN_IF_ERROR(ScratchFolder::Make(&scratch_));
      path_ = scratch_->path() / "db";
    } else {
      path_ = config_.db;
    }
    return Status::OK();
  }

  /// LevelDB has one background thread, one immutable MemTable, and fixed triggers and level sizes
  /// (4, 8 and 12 tables in level 0; 10 MiB in level 1).
  leveldb::Options MakeOptions() {
    leveldb::Options options;
    options.env = &env_;
    options.compression = leveldb::kNoCompression;
    options.write_buffer_size = config_.options.write_buffer_size;
    options.max_file_size = config_.options.target_file_size_base;
    options.block_cache = cache_.get();
    options.filter_policy = filter_.get();
    return options;
  }

  Status Open(const leveldb::Options& options) {
    leveldb::DB* db = nullptr;
    NACRE_RETURN_IF_ERROR(ToSetupStatus(leveldb::DB::Open(options, path_, &db), path_));
    db_.reset(db);
    return Status::OK();
  }

  Status Property(const std::string& name, std::string* value) {
    return db_->GetProperty(name, value) ? Status::OK()
                                         : Status::NotSupported("leveldb: no property " + name);
  }

  /// Levels that hold nothing and never did are left out by LevelDB.
  Status ReadLevels(std::vector<LevelRow>* rows) {
    std::string text;
    NACRE_RETURN_IF_ERROR(Property("leveldb.stats", &text));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      LevelRow row;
      double seconds = 0;
      std::istringstream fields(line);
      if (fields >> row.level >> row.files >> row.size_mib >> seconds >> row.read_mib >>
          row.written_mib) {
        rows->push_back(row);
      }
    }
    return Status::OK();
  }

  /// Nothing crosses a network here; LevelDB counts in whole MiB, flushes as writes of the level
  /// that they go to.
  Status AddTraffic(TrafficCounters* counters) {
    std::vector<LevelRow> rows;
    NACRE_RETURN_IF_ERROR(ReadLevels(&rows));
    for (const LevelRow& row : rows) {
      constexpr double kMib = 1 << 20;
      counters->compaction_read += static_cast<uint64_t>(row.read_mib * kMib);
      if (row.level > 0)
        counters->compaction_written += static_cast<uint64_t>(row.written_mib * kMib);
    }
    return Status::OK();
  }

  const BenchConfig& config_;
  LeveldbEnv env_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<const leveldb::FilterPolicy> filter_;
  std::unique_ptr<ScratchFolder> scratch_;
  std::string path_;
  std::unique_ptr<leveldb::DB> db_;
  TrafficCounters closed_traffic_;
};

}  // namespace

std::unique_ptr<Engine> NewLeveldbEngine(const BenchConfig& config) {
  return std::make_unique<LeveldbEngine>(config);
}

}  // namespace nacre::bench
