#include <atomic>
#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include "db_bench/engine/engine.h"
#include "db_bench/engine/engine_status.h"
#include "db_bench/engine/iterator_cursor.h"
#include "db_bench/engine/keyspace.h"
#include "db_bench/engine/nacre_database.h"
#include "db_bench/engine/raw_write.h"
#include "nacre/async.h"
#include "nacre/checkpoint.h"
#include "nacre/db.h"
#include "nacre/pool.h"
#include "nacre/task.h"
#include "nacre/utilities/sharded_db.h"
#include "util/clock.h"

namespace nacre::bench {
namespace {

/// Properties "nacre.space..." that add up to what is leased and lost, these two, and estimates.
constexpr const char* kSpaceParts[] = {"user-bytes",     "header-bytes",  "remote-index-bytes",
                                       "parity-bytes",   "padding-bytes", "log-bytes",
                                       "unlinked-bytes", "free-bytes",    "lost-bytes",
                                       "leased-bytes",   "garbage-bytes", "shadowing-bytes"};

/// Properties "nacre...." of manifest and log, and of a follower.
constexpr const char* kDurabilityCounters[] = {"manifest.edits",
                                               "manifest.image-updates",
                                               "manifest.delta-bytes",
                                               "manifest.image-bytes",
                                               "log.bytes",
                                               "log.writes",
                                               "log.segments",
                                               "flush.near-data",
                                               "flush.fallbacks",
                                               "follower.catch-ups",
                                               "follower.log-bytes-read",
                                               "follower.manifest-bytes-read",
                                               "follower.reads-again"};

class NacreSession final : public Session {
 public:
  /// Reads from `reads`, which may be a follower of `database`.
  NacreSession(const NacreDatabase& database, DB* reads, std::shared_ptr<Pool> pool,
               const BenchConfig& config)
      : database_(database),
        db_(database.db.get()),
        reads_(reads),
        pool_(std::move(pool)),
        config_(config),
        multiread_batched_(config.multiread_batched) {
    write_options_.disable_wal = config.disable_wal;
    read_options_.verify_checksums = config.verify_checksum;
    read_options_.linearizable = config.linearizable;
    read_options_.read_from_follower = config.read_from_follower;
  }

  Status Put(const Slice& key, const Slice& value) override {
    return db_->Put(write_options_, key, value);
  }
  Status Delete(const Slice& key) override { return db_->Delete(write_options_, key); }
  Status BatchPut(const Slice& key, const Slice& value) override { return batch_.Put(key, value); }
  Status BatchDelete(const Slice& key) override { return batch_.Delete(key); }
  Status BatchWrite() override {
    Status status = db_->Write(write_options_, &batch_);
    batch_.Clear();
    return status;
  }

  Status Get(const Slice& key, Slice* value) override {
    Status status = reads_->Get(read_options_, key, &value_);
    *value = value_;
    return status;
  }
  Status MultiGet(std::span<const Slice> keys, MultiGetResult* result) override {
    return multiread_batched_ ? MultiGetBatched(keys, result) : MultiGetCopied(keys, result);
  }

  Status GetConcurrently(size_t readers, ConcurrentLookups* lookups) override {
    RunLoop loop;
    std::unique_ptr<AsyncDB> async;
    NACRE_RETURN_IF_ERROR(reads_->NewAsyncDB(&loop, &async));
    Status failure;
    for (size_t reader = 0; reader < readers; ++reader) {
      loop.Spawn(LookUp(async.get(), read_options_, reader, lookups, &failure));
    }
    loop.Run();
    return failure;
  }

  std::unique_ptr<SessionTransaction> NewTransaction() override {
    return NewNacreTransaction(config_, database_);
  }

  Cursor* NewCursor() override {
    cursor_.Reset(reads_->NewIterator(read_options_));
    return &cursor_;
  }
  void CloseCursor() override { cursor_.Reset(nullptr); }

  Status RawWrite() override {
    if (raw_ == nullptr) [[unlikely]]
      NACRE_RETURN_IF_ERROR(RawWriter::Open(config_, pool_, &raw_));
    return raw_->Write();
  }

 private:
  Status MultiGetBatched(std::span<const Slice> keys, MultiGetResult* result) {
    values_.resize(keys.size());
    statuses_.resize(keys.size());
    reads_->MultiGet(read_options_, keys.size(), keys.data(), values_.data(), statuses_.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      NACRE_RETURN_IF_ERROR(Count(statuses_[i], values_[i].size(), result));
      values_[i].Reset();
    }
    return Status::OK();
  }
  Status MultiGetCopied(std::span<const Slice> keys, MultiGetResult* result) {
    keys_.assign(keys.begin(), keys.end());
    const std::vector<Status> statuses = reads_->MultiGet(read_options_, keys_, &strings_);
    for (size_t i = 0; i < keys.size(); ++i) {
      NACRE_RETURN_IF_ERROR(Count(statuses[i], strings_[i].size(), result));
    }
    return Status::OK();
  }
  static Task<void> LookUp(AsyncDB* async, ReadOptions options, size_t reader,
                           ConcurrentLookups* lookups, Status* failure) {
    PinnableSlice value;
    while (const Slice* key = failure->ok() ? lookups->Next(reader) : nullptr) {
      Status status = co_await async->GetAsync(options, *key, &value);
      if (status.ok()) {
        lookups->Found(value);
      } else if (status.IsNotFound()) {
        lookups->Missed();
      } else if (failure->ok()) {
        *failure = std::move(status);
      }
    }
  }
  static Status Count(const Status& status, size_t value_bytes, MultiGetResult* result) {
    if (status.ok()) {
      ++result->found;
      result->value_bytes += value_bytes;
    } else if (!status.IsNotFound()) {
      return status;
    }
    return Status::OK();
  }

  const NacreDatabase& database_;
  DB* const db_;
  DB* const reads_;
  const std::shared_ptr<Pool> pool_;  ///< Null for a database with a pool of its own.
  const BenchConfig& config_;
  const bool multiread_batched_;
  WriteOptions write_options_;
  ReadOptions read_options_;
  WriteBatch batch_;
  PinnableSlice value_;
  std::vector<Slice> keys_;
  std::vector<PinnableSlice> values_;
  std::vector<std::string> strings_;
  std::vector<Status> statuses_;
  IteratorCursor<Iterator> cursor_;
  std::unique_ptr<RawWriter> raw_;
};

class NacreEngine final : public Engine {
 public:
  explicit NacreEngine(const BenchConfig& config)
      : config_(config), name_(config.db.empty() ? "db_bench" : config.db) {}
  ~NacreEngine() override { Close().IgnoreError(); }

  std::string Describe() const override {
    std::string text = "nacre, pool " + config_.pool;
    if (config_.readonly) return text + ", opened for reading";
    if (config_.use_secondary_db) return text + ", a follower";
    text += ", redundancy " + config_.options.redundancy;
    if (config_.sharded > 0) text += ", " + std::to_string(config_.sharded) + " shards";
    if (!config_.coordinator.empty()) text += ", " + DescribeMembers(config_);
    if (config_.followers > 0)
      text += ", reads by " + std::to_string(config_.followers) + " followers";
    return text;
  }

  Status OpenFresh() override {
    NACRE_RETURN_IF_ERROR(Close());
    // The nodes of an embedded pool go with it, and the data with them.
    pool_.reset();
    NACRE_RETURN_IF_ERROR(OpenPool());
    Options options = MakeOptions();
    options.create_if_missing = true;
    // The database of another run may have been either.
    NACRE_RETURN_IF_ERROR(DestroyKeyspace(config_, name_, options));
    NACRE_RETURN_IF_ERROR(DestroyDB(name_, options));
    return Open(options);
  }
  Status OpenExisting() override {
    NACRE_RETURN_IF_ERROR(Close());
    Options options = MakeOptions();
    // A pool that is not connected yet becomes the database's own, whose timeline then includes
    // connecting.
    if (pool_ == nullptr) options.pool_uri = config_.pool;
    return Open(options);
  }
  Status StartCounting() override { return ReadCounters(&counters_at_open_); }
  Status Close() override {
    if (db() == nullptr) return Status::OK();
    const Status status = Traffic(&closed_traffic_);
    followers_.clear();
    // All at once: the last one would take over the shards of the others.
    if (members_ != nullptr) members_->BeginEnd();
    Status closed = db()->Close();
    database_ = {};
    if (members_ != nullptr && closed.ok()) closed = members_->AwaitEnd();
    members_.reset();
    return status.ok() ? closed : status;
  }

  std::unique_ptr<Session> NewSession() override {
    DB* const reads = followers_.empty() ? db() : followers_[sessions_++ % followers_.size()].get();
    return std::make_unique<NacreSession>(database_, reads, pool_, config_);
  }
  Status Flush() override { return db()->Flush(FlushOptions()); }
  Status CompactAll() override {
    CompactRangeOptions options;
    options.max_subcompactions = config_.options.max_subcompactions;
    return db()->CompactRange(options, nullptr, nullptr);
  }
  Status WaitForCompaction() override { return db()->WaitForCompact(); }
  Status WaitForRepair(RepairWork* work) override;
  uint64_t RepairedBytes() const override {
    uint64_t bytes = 0;
    return db()->GetIntProperty("nacre.repair.bytes-done", &bytes) ? bytes : 0;
  }
  Status VerifyChecksum() override { return db()->VerifyChecksum(); }

  Status Checkpoint(uint64_t* bytes) override;
  Status Restore(uint64_t* bytes) override;
  Status DropRestored() override { return DestroyDB(RestoredName(), MakeOptions()); }

  Status Stats(std::string* text) override { return Property("nacre.stats", text); }
  Status LevelStats(std::string* text) override { return Property("nacre.levelstats", text); }
  Status Space(SpaceUsage* usage) override {
    if (OwnsNothing(config_)) return Status::OK();
    NACRE_RETURN_IF_ERROR(IntProperty("nacre.space.user-bytes", &usage->user_bytes));
    NACRE_RETURN_IF_ERROR(IntProperty("nacre.space.stored-bytes", &usage->stored_bytes));
    NACRE_RETURN_IF_ERROR(IntProperty("nacre.space.compute-bytes", &usage->compute_bytes));
    for (const char* name : kSpaceParts) {
      usage->parts.emplace_back(name, 0);
      NACRE_RETURN_IF_ERROR(
          IntProperty((std::string("nacre.space.") + name).c_str(), &usage->parts.back().second));
    }
    return IntProperty("nacre.space.index-bytes", &usage->index_bytes);
  }
  Status SpaceText(std::string* text) override { return Property("nacre.space", text); }
  Status OpenTimeline(std::string* text) override { return Property("nacre.open.timeline", text); }
  std::vector<std::pair<std::string, uint64_t>> DurabilityCounters() override {
    std::vector<std::pair<std::string, uint64_t>> counters;
    for (const char* name : kDurabilityCounters) {
      uint64_t value = 0;
      if (db()->GetIntProperty(std::string("nacre.") + name, &value)) {
        counters.emplace_back(name, value);
      }
    }
    return counters;
  }
  KeyspaceMembers* members() override { return members_.get(); }
  Status Traffic(TrafficCounters* counters) override {
    TrafficCounters now;
    NACRE_RETURN_IF_ERROR(ReadCounters(&now));
    *counters = closed_traffic_ + (now - counters_at_open_);
    return Status::OK();
  }

 private:
  DB* db() const { return database_.db.get(); }
  std::string RestoredName() const { return name_ + "-restored"; }
  Status OpenPool() {
    return Pool::Open(config_.pool, &pool_).WithContext("--pool=" + config_.pool);
  }

  Options MakeOptions() const {
    Options options = config_.options;
    options.pool = pool_;
    return options;
  }
  Status Open(Options options) {
    options.follow_interval =
        std::chrono::milliseconds(std::llround(config_.secondary_update_interval * 1000));
    if (config_.sharded > 0) return OpenSharded(options).WithContext("keyspace " + name_);
    Status status = config_.readonly           ? DB::OpenForReadOnly(options, name_, &database_.db)
                    : config_.use_secondary_db ? DB::OpenAsSecondary(options, name_, &database_.db)
                                               : OpenNacre(config_, options, name_, &database_);
    for (int i = 0; i < config_.followers && status.ok(); ++i) {
      // As a process of its own would.
      options.pool.reset();
      options.pool_uri = config_.pool;
      status = DB::OpenAsSecondary(options, name_, &followers_.emplace_back());
    }
    return status.WithContext("database " + name_);
  }

  Status OpenSharded(const Options& options) {
    if (config_.coordinator.empty()) {
      return OpenNacreKeyspace(config_, KeyspaceOptions(config_, options), name_, &database_);
    }
    return KeyspaceMembers::Open(config_, name_, options, &database_, &members_);
  }

  Status Property(const char* name, std::string* value) {
    return db()->GetProperty(name, value)
               ? Status::OK()
               : Status::NotSupported(std::string("no property ") + name);
  }
  Status IntProperty(const char* name, uint64_t* value) {
    return db()->GetIntProperty(name, value)
               ? Status::OK()
               : Status::NotSupported(std::string("no property ") + name);
  }
  /// Those of compactions start with the database, those of the network with the pool or the node.
  Status ReadCounters(TrafficCounters* now) {
    // Those are the owner's, or each member's.
    if (OwnsNothing(config_) || !config_.coordinator.empty()) return Status::OK();
    NACRE_RETURN_IF_ERROR(IntProperty("nacre.network.compute-read", &now->compute_read));
    NACRE_RETURN_IF_ERROR(IntProperty("nacre.network.compute-written", &now->compute_written));
    NACRE_RETURN_IF_ERROR(IntProperty("nacre.network.memnode-read", &now->memnode_read));
    NACRE_RETURN_IF_ERROR(IntProperty("nacre.network.memnode-written", &now->memnode_written));
    NACRE_RETURN_IF_ERROR(IntProperty("nacre.compaction.bytes-read", &now->compaction_read));
    NACRE_RETURN_IF_ERROR(IntProperty("nacre.compaction.bytes-written", &now->compaction_written));
    NACRE_RETURN_IF_ERROR(IntProperty("nacre.encoding.data-bytes", &now->encoded_bytes));
    NACRE_RETURN_IF_ERROR(IntProperty("nacre.encoding.cpu-nanos", &now->encoding_cpu_nanos));
    return IntProperty("nacre.compaction.cpu-nanos", &now->compaction_cpu_nanos);
  }

  const BenchConfig& config_;
  const std::string name_;
  std::shared_ptr<Pool> pool_;
  NacreDatabase database_;
  std::unique_ptr<KeyspaceMembers> members_;  ///< Null: there is no coordinator.
  std::vector<std::unique_ptr<DB>> followers_;
  std::atomic<size_t> sessions_{0};  ///< Counts sessions; threads make their own.
  TrafficCounters counters_at_open_;
  TrafficCounters closed_traffic_;
};

Status NacreEngine::Checkpoint(uint64_t* bytes) {
  std::unique_ptr<nacre::Checkpoint> checkpoint;
  NACRE_RETURN_IF_ERROR(nacre::Checkpoint::Create(db(), &checkpoint));
  CheckpointOptions options;
  options.threads = config_.checkpoint_threads;
  CheckpointInfo info;
  NACRE_RETURN_IF_ERROR(checkpoint->CreateCheckpoint(config_.checkpoint_dir, options, &info));
  *bytes = info.bytes_new;
  return Status::OK();
}

Status NacreEngine::Restore(uint64_t* bytes) {
  std::vector<CheckpointInfo> checkpoints;
  NACRE_RETURN_IF_ERROR(GetCheckpoints(config_.checkpoint_dir, &checkpoints));
  if (checkpoints.empty()) return Status::NotFound("no checkpoint in " + config_.checkpoint_dir);
  RestoreOptions options;
  options.checkpoint = checkpoints.back().number;
  options.threads = config_.checkpoint_threads;
  *bytes = checkpoints.back().bytes;
  return RestoreDB(MakeOptions(), RestoredName(), config_.checkpoint_dir, options);
}

Status NacreEngine::WaitForRepair(RepairWork* work) {
  // A loss shows when it has been noticed, and what is repaired then may have been looked for once
  // more.
  constexpr uint64_t kQuietNanos = 1'000'000'000;
  Clock* const clock = Clock::System();
  RepairWork before;
  NACRE_RETURN_IF_ERROR(IntProperty("nacre.repair.bytes-done", &before.bytes));
  NACRE_RETURN_IF_ERROR(IntProperty("nacre.repair.cpu-nanos", &before.cpu_nanos));
  const uint64_t start = clock->NowNanos();
  uint64_t last = start;
  for (uint64_t now = start; now - last < kQuietNanos; now = clock->NowNanos()) {
    uint64_t tables_left = 0;
    NACRE_RETURN_IF_ERROR(IntProperty("nacre.repair.tables-left", &tables_left));
    if (tables_left > 0) last = clock->NowNanos();
    clock->SleepFor(std::chrono::milliseconds(2));
  }
  NACRE_RETURN_IF_ERROR(IntProperty("nacre.repair.bytes-done", &work->bytes));
  NACRE_RETURN_IF_ERROR(IntProperty("nacre.repair.cpu-nanos", &work->cpu_nanos));
  work->bytes -= before.bytes;
  work->cpu_nanos -= before.cpu_nanos;
  work->nanos = last - start;
  return Status::OK();
}

}  // namespace

std::unique_ptr<Engine> NewNacreEngine(const BenchConfig& config) {
  return std::make_unique<NacreEngine>(config);
}

}  // namespace nacre::bench
