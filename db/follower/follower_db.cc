#include "db/follower/follower_db.h"

#include <utility>

#include "db/family/family_check.h"
#include "db/family/hidden_family.h"
#include "db/follower/log_updates.h"
#include "db/options/pool_of_options.h"
#include "db/read/view_reads.h"
#include "db/version/table_metadata.h"
#include "pool/space/space_allocator.h"
#include "table/format/write_batch_format.h"
#include "util/log.h"

namespace nacre {
namespace {

Status ReadOnly(const char* what) {
  return Status::NotSupported(std::string(what) + ": the database was opened for reading");
}

}  // namespace

Status DB::OpenForReadOnly(const Options& options, const std::string& name, std::unique_ptr<DB>* db,
                           bool error_if_wal_file_exists) {
  return FollowerDB::Open(
      options, name, {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options)},
      FollowerDB::Mode::kFixed, error_if_wal_file_exists, /*handles=*/nullptr, db);
}

Status DB::OpenForReadOnly(const DBOptions& options, const std::string& name,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db,
                           bool error_if_wal_file_exists) {
  return FollowerDB::Open(options, name, families, FollowerDB::Mode::kFixed,
                          error_if_wal_file_exists, handles, db);
}

Status DB::OpenAsSecondary(const Options& options, const std::string& name,
                           std::unique_ptr<DB>* db) {
  return FollowerDB::Open(options, name,
                          {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options)},
                          FollowerDB::Mode::kFollowing, /*error_if_wal_file_exists=*/false,
                          /*handles=*/nullptr, db);
}

Status DB::OpenAsSecondary(const DBOptions& options, const std::string& name,
                           const std::vector<ColumnFamilyDescriptor>& families,
                           std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db) {
  return FollowerDB::Open(options, name, families, FollowerDB::Mode::kFollowing,
                          /*error_if_wal_file_exists=*/false, handles, db);
}

FollowerDB::Reading::Reading(const DBOptions& options, std::shared_ptr<const TableKeys> given_keys)
    : indexes(options.index_memory_budget == SIZE_MAX
                  ? nullptr
                  : std::make_unique<IndexMemory>(options.index_memory_budget)),
      records(RecordCache::Make(options.record_cache_size, options.statistics.get())),
      keys(std::move(given_keys)) {}

FollowerDB::FollowerDB(const DBOptions& options, const std::string& name, Mode mode,
                       std::shared_ptr<const TableKeys> keys, std::shared_ptr<pool::PoolImpl> pool)
    : options_(options),
      name_(name),
      mode_(mode),
      pool_(std::move(pool)),
      client_(pool_->client()),
      store_(std::make_unique<pool::TableStore>(client_, pool::LocalMemory(),
                                                /*buffers_in_flight=*/4,
                                                pool::TableStore::Memory::kUnheld)),
      reading_(options, std::move(keys)),
      state_(name, client_,
             {.store = store_.get(),
              .epochs = &epochs_,
              .memory = reading_.indexes.get(),
              .keys = reading_.keys.get()}) {}

Status FollowerDB::Open(const DBOptions& given, const std::string& name,
                        const std::vector<ColumnFamilyDescriptor>& given_families, Mode mode,
                        bool error_if_wal_file_exists, std::vector<ColumnFamilyHandle*>* handles,
                        std::unique_ptr<DB>* db) {
  db->reset();
  if (handles != nullptr) handles->clear();
  CheckedOptions checked;
  NACRE_RETURN_IF_ERROR(CheckOpening(given, name, given_families, &checked));
  const DBOptions& options = checked.options;
  const std::vector<ColumnFamilyDescriptor>& families = checked.families;
  std::unique_ptr<metrics::Endpoint> endpoint;
  if (mode == Mode::kFollowing) NACRE_RETURN_IF_ERROR(OpenEndpoint(options, name, &endpoint));
  std::shared_ptr<pool::PoolImpl> pool;
  NACRE_RETURN_IF_ERROR(OpenPoolToRead(options, &pool));
  std::unique_ptr<FollowerDB> opened(
      new FollowerDB(options, name, mode, checked.keys, std::move(pool)));
  opened->counters_.current_nanos = opened->clock()->NowNanos();
  opened->client_->WatchMaintenance();
  NACRE_RETURN_IF_ERROR(
      opened->state_.Open(families, options.info_log.get()).WithContext("database " + name));
  std::shared_ptr<const FollowerView> view = opened->state_.View();
  if (error_if_wal_file_exists && view->HasMemTables()) {
    return Status::InvalidArgument("database " + name +
                                   ": some of its writes are in the log only "
                                   "(error_if_wal_file_exists is true)");
  }
  const auto& by_id = opened->state_.families();
  opened->default_handle_ =
      std::make_unique<ColumnFamilyHandleImpl>(by_id.at(kDefaultFamily), opened.get());
  for (size_t i = 0; handles != nullptr && i < families.size(); ++i) {
    for (const auto& [id, family] : by_id) {
      if (family->name() != families[i].name) continue;
      handles->push_back(new ColumnFamilyHandleImpl(family, opened.get()));
    }
  }
  Log(options.info_log, LogLevel::kInfo,
      "opened {} in {} for reading: manifest version {}, sequence {}", name, opened->pool_->uri(),
      view->manifest_version, view->sequence);
  opened->InstallView(std::move(view));
  if (mode == Mode::kFollowing && options.follow_interval.count() > 0) {
    opened->follow_thread_ = Thread("nacre-follow", [db = opened.get()] { db->FollowLoop(); });
  }
  if (endpoint != nullptr) {
    opened->metrics_ = std::make_unique<FollowerMetrics>(
        name, options.follow_interval, opened->client_,
        [db = opened.get()] { return db->Progress(); }, std::move(endpoint));
  }
  *db = std::move(opened);
  return Status::OK();
}

FollowerDB::~FollowerDB() {
  Close().IgnoreError();
  // No reader is left.
  epochs_.Collect();
}

Status FollowerDB::Close() {
  {
    MutexLock lock(&mutex_);
    closed_ = true;
    changed_.SignalAll();
    closing_.SignalAll();
    while (running_) changed_.Wait();
    if (std::exchange(close_begun_, true)) {
      while (!close_ended_) changed_.Wait();
      return Status::OK();
    }
  }
  metrics_.reset();
  if (follow_thread_.joinable()) follow_thread_.Join();
  MutexLock lock(&mutex_);
  close_ended_ = true;
  changed_.SignalAll();
  return Status::OK();
}

void FollowerDB::InstallView(std::shared_ptr<const FollowerView> view) {
  if (view == current_view_) return;
  const uint64_t generation = view->generation;
  if (mode_ == Mode::kFollowing || current_view_ == nullptr) {
    view_.store(view.get(), std::memory_order_release);  // Pairs with the readers' loads.
    std::swap(current_view_, view);
    if (view != nullptr) epochs_.Retire([held = std::move(view)] {});
  }
  // Release: pairs with ReadAgain, which finds this view then, or a later one.
  latest_generation_.store(generation, std::memory_order_release);
}

Status FollowerDB::CatchUp(Goal goal) {
  const auto caught = static_cast<size_t>(goal);
  MutexLock lock(&mutex_);
  const uint64_t wanted = runs_ + 1;
  for (;;) {
    if (closed_) return Status::ShutdownInProgress("database is closed");
    if (caught_[caught].run >= wanted) return caught_[caught].status;
    if (!running_) break;
    changed_.Wait();
  }
  running_ = true;
  const uint64_t run = ++runs_;
  Status status;
  {
    MutexUnlock unlock(&mutex_);
    const uint64_t begun = clock()->NowNanos();
    status = state_.CatchUp(goal);
    InstallView(state_.View());
    counters_.catch_ups.fetch_add(1, std::memory_order_relaxed);
    if (status.ok()) counters_.current_nanos.store(begun, std::memory_order_relaxed);
  }
  looks_ = {.log_bytes = state_.log_bytes_read(),
            .manifest_bytes = state_.manifest_bytes_read(),
            .manifest_reloads = state_.manifest_reloads()};
  for (size_t i = 0; i <= caught; ++i) caught_[i] = {.run = run, .status = status};
  running_ = false;
  changed_.SignalAll();
  return status;
}

template <typename Work>
Status FollowerDB::WithState(const Work& work) {
  MutexLock lock(&mutex_);
  while (running_ && !closed_) changed_.Wait();
  if (closed_) return Status::ShutdownInProgress("database is closed");
  running_ = true;
  Status status;
  {
    MutexUnlock unlock(&mutex_);
    status = work();
  }
  running_ = false;
  changed_.SignalAll();
  return status;
}

const Comparator* FollowerDB::comparator() const {
  return state_.families().at(kDefaultFamily)->user_comparator();
}

Status FollowerDB::PinTables(PinnedTables* pinned) {
  NACRE_RETURN_IF_ERROR(CatchUp(Goal::kTables));
  return WithState([&] { return state_.PinTables(pinned); });
}

Status FollowerDB::TryCatchUpWithPrimary() {
  if (mode_ == Mode::kFixed) return DB::TryCatchUpWithPrimary();
  return CatchUp(Goal::kAcknowledged);
}

Status FollowerDB::GetUpdatesSince(uint64_t sequence,
                                   std::unique_ptr<TransactionLogIterator>* updates) {
  return NewLogUpdates(pool_, reading_.keys, name_, sequence, updates);
}

void FollowerDB::FollowLoop() {
  Status last;
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (!closed_) closing_.WaitFor(options_.follow_interval);
      if (closed_) return;
    }
    Status status = CatchUp(Goal::kRecent);
    if (!(status == last) && !status.IsShutdownInProgress()) {
      Log(options_.info_log, status.ok() ? LogLevel::kInfo : LogLevel::kWarn,
          "{}: following its owner: {}", name_, status.ToString());
    }
    last = std::move(status);
  }
}

// ---- What only an owner does ------------------------------------------------------------------

Status FollowerDB::Put(const WriteOptions&, ColumnFamilyHandle*, const Slice&, const Slice&) {
  return ReadOnly("Put");
}
Status FollowerDB::Delete(const WriteOptions&, ColumnFamilyHandle*, const Slice&) {
  return ReadOnly("Delete");
}
Status FollowerDB::SingleDelete(const WriteOptions&, ColumnFamilyHandle*, const Slice&) {
  return ReadOnly("SingleDelete");
}
Status FollowerDB::DeleteRange(const WriteOptions&, ColumnFamilyHandle*, const Slice&,
                               const Slice&) {
  return ReadOnly("DeleteRange");
}
Status FollowerDB::Merge(const WriteOptions&, ColumnFamilyHandle*, const Slice&, const Slice&) {
  return ReadOnly("Merge");
}
Status FollowerDB::Write(const WriteOptions&, WriteBatch*) { return ReadOnly("Write"); }
Status FollowerDB::FlushWAL(bool) { return ReadOnly("FlushWAL"); }
Status FollowerDB::Flush(const FlushOptions&, ColumnFamilyHandle*) { return ReadOnly("Flush"); }
Status FollowerDB::CompactRange(const CompactRangeOptions&, ColumnFamilyHandle*, const Slice*,
                                const Slice*) {
  return ReadOnly("CompactRange");
}
Status FollowerDB::WaitForCompact() { return ReadOnly("WaitForCompact"); }
Status FollowerDB::VerifyChecksum() { return ReadOnly("VerifyChecksum"); }

// ---- Properties -------------------------------------------------------------------------------

bool FollowerDB::GetProperty(ColumnFamilyHandle* family, const Slice& property,
                             std::string* value) {
  uint64_t number = 0;
  if (!GetIntProperty(family, property, &number)) return false;
  *value = std::to_string(number);
  return true;
}

bool FollowerDB::GetIntProperty(ColumnFamilyHandle* family, const Slice& property,
                                uint64_t* value) {
  uint32_t id = kDefaultFamily;
  if (!FindFamily(family, &id).ok()) return false;
  const std::shared_ptr<const FollowerView> view = CurrentView();
  const RecordCache::Counts cached =
      reading_.records == nullptr ? RecordCache::Counts() : reading_.records->counts();
  MutexLock lock(&mutex_);
  const std::pair<std::string_view, uint64_t> all[] = {
      {"database-id", database_id()},
      {"follower.manifest-version", view->manifest_version},
      {"follower.catch-ups", counters_.catch_ups.load(std::memory_order_relaxed)},
      {"follower.reads-again", counters_.reads_again.load(std::memory_order_relaxed)},
      {"follower.log-bytes-read", looks_.log_bytes},
      {"follower.manifest-bytes-read", looks_.manifest_bytes},
      {"follower.manifest-reloads", looks_.manifest_reloads},
      {"record-cache.capacity", reading_.records == nullptr ? 0 : reading_.records->capacity()},
      {"record-cache.bytes", reading_.records == nullptr ? 0 : reading_.records->used()},
      {"record-cache.hits", cached.hits},
      {"record-cache.misses", cached.misses},
  };
  for (const auto& [name, number] : all) {
    if (property != "nacre." + std::string(name) && property != "rocksdb." + std::string(name)) {
      continue;
    }
    *value = number;
    return true;
  }
  return false;
}

FollowerProgress FollowerDB::Progress() {
  FollowerProgress progress;
  progress.sequence = CurrentView()->sequence;
  progress.catch_ups = counters_.catch_ups.load(std::memory_order_relaxed);
  progress.reads_again = counters_.reads_again.load(std::memory_order_relaxed);
  const uint64_t current = counters_.current_nanos.load(std::memory_order_relaxed);
  progress.lag = std::chrono::nanoseconds(clock()->NowNanos() - current);
  MutexLock lock(&mutex_);
  // Each run counts for the lowest goal.
  progress.healthy = caught_[0].status.ok();
  progress.log_bytes_read = looks_.log_bytes;
  progress.manifest_bytes_read = looks_.manifest_bytes;
  progress.manifest_reloads = looks_.manifest_reloads;
  return progress;
}

void FollowerDB::GetLiveTablesMetaData(std::vector<LiveTableMetaData>* tables) {
  tables->clear();
  const std::shared_ptr<const FollowerView> view = CurrentView();
  // Which there are does not change while it is open.
  for (const auto& [id, family] : state_.families()) {
    if (family->name() == kPreparedFamilyName) continue;
    AppendTables(MetaDataOf(family->name(), *view->Of(id)->version, *client_), tables);
  }
}

void FollowerDB::GetColumnFamilyMetaData(ColumnFamilyHandle* family,
                                         ColumnFamilyMetaData* metadata) {
  *metadata = ColumnFamilyMetaData();
  uint32_t id = kDefaultFamily;
  if (!FindFamily(family, &id).ok()) return;
  *metadata =
      MetaDataOf(state_.families().at(id)->name(), *CurrentView()->Of(id)->version, *client_);
}

int FollowerDB::NumberLevels(ColumnFamilyHandle* family) {
  uint32_t id = kDefaultFamily;
  return FindFamily(family, &id).ok() ? CurrentView()->Of(id)->version->num_levels() : 0;
}

Options FollowerDB::GetOptions(ColumnFamilyHandle* family) const {
  uint32_t id = kDefaultFamily;
  if (!FindFamily(family, &id).ok()) return Options(options_, ColumnFamilyOptions());
  return Options(options_, *CurrentView()->Of(id)->options);
}

Status FollowerDB::GetApproximateSizes(ColumnFamilyHandle* family, const Range* ranges, int n,
                                       uint64_t* sizes) {
  uint32_t id = kDefaultFamily;
  NACRE_RETURN_IF_ERROR(FindFamily(family, &id));
  return ApproximateSizes(*CurrentView()->Of(id)->version, ranges, n, sizes);
}

}  // namespace nacre
