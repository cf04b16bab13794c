#include <fmt/format.h>
#include <lmdb.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "db_bench/engine/engine.h"
#include "db_bench/engine/scratch_folder.h"
#include "db_bench/value_sizes.h"

namespace nacre::bench {
namespace {

Status LmdbStatus(int error) {
  switch (error) {
    case MDB_SUCCESS:
      return Status::OK();
    case MDB_NOTFOUND:
      return Status::NotFound();
    case MDB_MAP_FULL:
      return Status::NoSpace(mdb_strerror(error));
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
      return Status::Corruption(mdb_strerror(error));
    default:
      return Status::IOError(mdb_strerror(error));
  }
}

MDB_val LmdbValue(const Slice& slice) { return {slice.size(), const_cast<char*>(slice.data())}; }
Slice Own(const MDB_val& value) { return {static_cast<const char*>(value.mv_data), value.mv_size}; }

/// A transaction that reads, which is used again and again.
/// Thread safety: none.
class ReadTransaction {
 public:
  explicit ReadTransaction(MDB_env* env) : env_(env) {}
  ~ReadTransaction() {
    if (transaction_ != nullptr) mdb_txn_abort(transaction_);
  }
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;

  /// Reads the present state from now on.
  Status Renew() {
    Release();
    const int error = transaction_ == nullptr
                          ? mdb_txn_begin(env_, nullptr, MDB_RDONLY, &transaction_)
                          : mdb_txn_renew(transaction_);
    active_ = error == MDB_SUCCESS;
    return LmdbStatus(error);
  }
  /// Lets writers use the pages again that only this state has. Idempotent.
  void Release() {
    if (active_) mdb_txn_reset(transaction_);
    active_ = false;
  }
  MDB_txn* get() const { return transaction_; }

 private:
  MDB_env* const env_;
  MDB_txn* transaction_ = nullptr;
  bool active_ = false;
};

class LmdbCursor final : public Cursor {
 public:
  LmdbCursor(MDB_env* env, MDB_dbi database) : transaction_(env), database_(database) {}
  ~LmdbCursor() override {
    if (cursor_ != nullptr) mdb_cursor_close(cursor_);
  }

  /// Stands nowhere, over the present state. A failure shows in `status()`.
  void Renew() {
    status_ = transaction_.Renew();
    if (!status_.ok()) return;
    status_ =
        LmdbStatus(cursor_ == nullptr ? mdb_cursor_open(transaction_.get(), database_, &cursor_)
                                      : mdb_cursor_renew(transaction_.get(), cursor_));
  }
  void Release() { transaction_.Release(); }

  bool SeekToFirst() override { return Move(MDB_FIRST); }
  bool SeekToLast() override { return Move(MDB_LAST); }
  bool Seek(const Slice& target) override {
    found_key_ = LmdbValue(target);
    return Move(MDB_SET_RANGE);
  }
  bool Next() override { return Move(MDB_NEXT); }
  bool Prev() override { return Move(MDB_PREV); }
  Slice value() override { return Own(found_value_); }
  Status status() override { return status_; }

 private:
  bool Move(MDB_cursor_op operation) {
    if (!status_.ok()) return false;
    const int error = mdb_cursor_get(cursor_, &found_key_, &found_value_, operation);
    if (error != MDB_SUCCESS) [[unlikely]] {
      if (error != MDB_NOTFOUND) status_ = LmdbStatus(error);
      return false;
    }
    key_ = Own(found_key_);
    return true;
  }

  ReadTransaction transaction_;
  const MDB_dbi database_;
  MDB_cursor* cursor_ = nullptr;
  MDB_val found_key_{};
  MDB_val found_value_{};
  Status status_;
};

class LmdbSession final : public Session {
 public:
  LmdbSession(MDB_env* env, MDB_dbi database)
      : env_(env), database_(database), reads_(env), cursor_(env, database) {}
  ~LmdbSession() override {
    if (batch_ != nullptr) mdb_txn_abort(batch_);
  }

  Status Put(const Slice& key, const Slice& value) override {
    NACRE_RETURN_IF_ERROR(BatchPut(key, value));
    return BatchWrite();
  }
  Status Delete(const Slice& key) override {
    NACRE_RETURN_IF_ERROR(BatchDelete(key));
    return BatchWrite();
  }
  /// A batch is a transaction. There is one writer at a time, so others wait until it is written.
  Status BatchPut(const Slice& key, const Slice& value) override {
    NACRE_RETURN_IF_ERROR(BeginBatch());
    MDB_val foreign_key = LmdbValue(key);
    MDB_val foreign_value = LmdbValue(value);
    return LmdbStatus(mdb_put(batch_, database_, &foreign_key, &foreign_value, 0));
  }
  Status BatchDelete(const Slice& key) override {
    NACRE_RETURN_IF_ERROR(BeginBatch());
    MDB_val foreign_key = LmdbValue(key);
    const Status status = LmdbStatus(mdb_del(batch_, database_, &foreign_key, nullptr));
    return status.IsNotFound() ? Status::OK() : status;
  }
  Status BatchWrite() override {
    NACRE_RETURN_IF_ERROR(BeginBatch());
    return LmdbStatus(mdb_txn_commit(std::exchange(batch_, nullptr)));
  }

  Status Get(const Slice& key, Slice* value) override {
    NACRE_RETURN_IF_ERROR(reads_.Renew());
    return GetFrom(key, value);
  }
  /// LMDB has no such call: one read after another, in one transaction.
  Status MultiGet(std::span<const Slice> keys, MultiGetResult* result) override {
    NACRE_RETURN_IF_ERROR(reads_.Renew());
    for (const Slice& key : keys) {
      Slice value;
      const Status status = GetFrom(key, &value);
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
    cursor_.Renew();
    return &cursor_;
  }
  void CloseCursor() override { cursor_.Release(); }

 private:
  Status BeginBatch() {
    if (batch_ != nullptr) return Status::OK();
    reads_.Release();
    return LmdbStatus(mdb_txn_begin(env_, nullptr, 0, &batch_));
  }
  Status GetFrom(const Slice& key, Slice* value) {
    MDB_val foreign_key = LmdbValue(key);
    MDB_val found{};
    const int error = mdb_get(reads_.get(), database_, &foreign_key, &found);
    *value = Own(found);
    return LmdbStatus(error);
  }

  MDB_env* const env_;
  const MDB_dbi database_;
  ReadTransaction reads_;
  MDB_txn* batch_ = nullptr;
  LmdbCursor cursor_;
};

class LmdbEngine final : public Engine {
 public:
  explicit LmdbEngine(const BenchConfig& config) : config_(config) {}
  ~LmdbEngine() override { Close().IgnoreError(); }

  std::string Describe() const override {
    return fmt::format("lmdb {}.{}.{}, mapped writes without sync, tables in {}", MDB_VERSION_MAJOR,
                       MDB_VERSION_MINOR, MDB_VERSION_PATCH,
                       config_.db.empty() ? "memory (/dev/shm)" : config_.db);
  }

  Status OpenFresh() override {
    NACRE_RETURN_IF_ERROR(Close());
    NACRE_RETURN_IF_ERROR(ChoosePath());
    std::error_code error;
    std::filesystem::create_directories(path_, error);
    for (const char* name : {"data.mdb", "lock.mdb"}) {
      if (!error) std::filesystem::remove(path_ / name, error);
    }
    if (error) return Status::IOError(path_.string() + ": " + error.message());
    return Open();
  }
  Status OpenExisting() override {
    NACRE_RETURN_IF_ERROR(Close());
    NACRE_RETURN_IF_ERROR(ChoosePath());
    std::error_code error;
    if (!std::filesystem::exists(path_ / "data.mdb", error)) {
      return Status::IOError(path_.string() + ": no database");
    }
    return Open();
  }
  Status Close() override {
    if (env_ == nullptr) return Status::OK();
    mdb_env_close(env_);
    env_ = nullptr;
    return Status::OK();
  }

  std::unique_ptr<Session> NewSession() override {
    return std::make_unique<LmdbSession>(env_, database_);
  }
  Status Flush() override { return LmdbStatus(mdb_env_sync(env_, /*force=*/1)); }
  /// A B+tree is in order as it is.
  Status CompactAll() override { return Status::OK(); }
  Status WaitForCompaction() override { return Status::OK(); }

  Status Stats(std::string* text) override {
    Usage usage;
    NACRE_RETURN_IF_ERROR(ReadUsage(&usage));
    *text = fmt::format(
        "entries {}\ndepth {}\nbranch pages {}\nleaf pages {}\noverflow pages {}\npages {} of {} "
        "B\nlast transaction {}\n",
        usage.tree.ms_entries, usage.tree.ms_depth, usage.tree.ms_branch_pages,
        usage.tree.ms_leaf_pages, usage.tree.ms_overflow_pages, usage.pages(), usage.tree.ms_psize,
        usage.info.me_last_txnid);
    return Status::OK();
  }
  /// The one file, as RocksDB prints levels.
  Status LevelStats(std::string* text) override {
    Usage usage;
    NACRE_RETURN_IF_ERROR(ReadUsage(&usage));
    *text = fmt::format("Level Files Size(MB)\n--------------------\n{:3} {:8} {:8.0f}\n", 0, 1,
                        static_cast<double>(usage.bytes()) / (1 << 20));
    return Status::OK();
  }
  Status Space(SpaceUsage* space) override {
    Usage usage;
    NACRE_RETURN_IF_ERROR(ReadUsage(&usage));
    space->user_bytes = usage.tree.ms_entries *
                        (config_.key_size + static_cast<uint64_t>(ValueSizes(config_).Mean()));
    space->stored_bytes = usage.bytes();
    // What leads to the leaves is in the same file, which is mapped into this process.
    space->index_bytes = usage.tree.ms_branch_pages * usage.tree.ms_psize;
    space->compute_bytes = space->index_bytes;
    return Status::OK();
  }
  Status Traffic(TrafficCounters* counters) override {
    *counters = TrafficCounters();
    return Status::OK();
  }

 private:
  struct Usage {
    MDB_stat tree{};
    MDB_envinfo info{};
    size_t pages() const { return info.me_last_pgno + 1; }
    size_t bytes() const { return pages() * tree.ms_psize; }
  };
  Status ReadUsage(Usage* usage) {
    NACRE_RETURN_IF_ERROR(LmdbStatus(mdb_env_info(env_, &usage->info)));
    ReadTransaction transaction(env_);
    NACRE_RETURN_IF_ERROR(transaction.Renew());
    return LmdbStatus(mdb_stat(transaction.get(), database_, &usage->tree));
  }

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

  Status Open() {
    const Status status = OpenEnvironment();
    if (!status.ok()) Close().IgnoreError();
    return status.WithContext(path_.string());
  }
  Status OpenEnvironment() {
    NACRE_RETURN_IF_ERROR(LmdbStatus(mdb_env_create(&env_)));
    // readmissing appends a byte.
    const auto longest = static_cast<size_t>(mdb_env_get_maxkeysize(env_)) - 1;
    if (config_.key_size > longest) {
      return Status::InvalidArgument(
          fmt::format("--key_size={}: lmdb takes at most {}", config_.key_size, longest));
    }
    NACRE_RETURN_IF_ERROR(LmdbStatus(mdb_env_set_mapsize(env_, MapBytes())));
    // Each session has a reader and a cursor.
    const auto readers = static_cast<unsigned>(2 * config_.threads + 16);
    NACRE_RETURN_IF_ERROR(LmdbStatus(mdb_env_set_maxreaders(env_, readers)));
    NACRE_RETURN_IF_ERROR(LmdbStatus(mdb_env_open(
        env_, path_.c_str(), MDB_WRITEMAP | MDB_NOSYNC | MDB_NORDAHEAD | MDB_NOTLS, 0644)));
    MDB_txn* transaction = nullptr;
    NACRE_RETURN_IF_ERROR(LmdbStatus(mdb_txn_begin(env_, nullptr, 0, &transaction)));
    const int error = mdb_dbi_open(transaction, nullptr, 0, &database_);
    if (error != MDB_SUCCESS) {
      mdb_txn_abort(transaction);
      return LmdbStatus(error);
    }
    return LmdbStatus(mdb_txn_commit(transaction));
  }
  /// The file has holes where nothing was written, so too much costs nothing.
  size_t MapBytes() const {
    constexpr size_t kSpare = size_t{64} << 30;
    constexpr size_t kTimesMax = 8;
    return kSpare + kTimesMax * config_.num * (config_.key_size + config_.value_size_max);
  }

  const BenchConfig& config_;
  std::unique_ptr<ScratchFolder> scratch_;
  std::filesystem::path path_;
  MDB_env* env_ = nullptr;
  MDB_dbi database_ = 0;
};

}  // namespace

std::unique_ptr<Engine> NewLmdbEngine(const BenchConfig& config) {
  return std::make_unique<LmdbEngine>(config);
}

}  // namespace nacre::bench
