#include "sqlite/database.h"

#include <cstdlib>
#include <utility>

#include "sqlite/command_checkpoints.h"
#include "sqlite/command_log.h"
#include "sqlite/command_log_opening.h"
#include "sqlite/key_encoding.h"
#include "util/coding.h"
#include "util/hash.h"

namespace nacre::sqlite {
namespace {

constexpr uint32_t kCatalogueSpace = 0;
/// Of a dropped table, in one batch.
constexpr uint32_t kFreedAtOnce = 4096;

std::string Persisted(int64_t rows) {
  std::string value;
  PutVarint64(&value, rows > 0 ? static_cast<uint64_t>(rows) : 0);
  return value;
}

WriteOptions WriteOptionsOf(const DatabaseOptions& options) {
  WriteOptions write;
  write.disable_wal = !options.remote_log || !options.command_log.empty();
  return write;
}

/// Plans do not change for less.
bool IsWorthWriting(int64_t rows, int64_t written) {
  return std::llabs(rows - written) > written / 8 + 64;
}

}  // namespace

std::string CatalogueKey(char kind) {
  std::string key;
  AppendSpace(kCatalogueSpace, &key);
  key.push_back(kind);
  return key;
}

std::string CatalogueKey(char kind, uint32_t space) {
  std::string key = CatalogueKey(kind);
  AppendSpace(space, &key);
  return key;
}

std::string CatalogueKey(char kind, const Slice& name) {
  return CatalogueKey(kind).append(name.data(), name.size());
}

Database::Database(const DatabaseOptions& options, std::unique_ptr<DB> db)
    : options_(options), db_(std::move(db)), write_options_(WriteOptionsOf(options)) {}

Database::~Database() {
  checkpoints_.reset();
  WriteStatistics();
  std::shared_ptr<ReadState> last;
  {
    MutexLock lock(&mutex_);
    last = std::move(current_);
  }
  last.reset();
  db_->Close().IgnoreError();  // Nobody is left to tell; the DB's log has it.
}

std::shared_ptr<ReadState> Database::Read() {
  MutexLock lock(&mutex_);
  if (current_ != nullptr && current_->sequence() == db_->GetLatestSequenceNumber()) {
    return current_;
  }
  std::shared_ptr<ReadState> stale = std::move(current_);
  const uint64_t number = order_.BeginNumber();
  order_.AddSnapshot(number);
  current_ = std::shared_ptr<ReadState>(new ReadState(db_.get(), number), [this](ReadState* state) {
    const uint64_t gone = state->number();
    delete state;
    MutexLock inner(&mutex_);
    order_.RemoveSnapshot(gone);
  });
  std::shared_ptr<ReadState> latest = current_;
  MutexUnlock unlock(&mutex_);
  stale.reset();
  return latest;
}

Status Database::WriteLogged(WriteBatch* batch, const Slice& commands) {
  if (log_ == nullptr) return db_->Write(write_options_, batch);
  return log_->Commit(commands, [this, batch](uint64_t number) {
    NACRE_RETURN_IF_ERROR(batch->Put(CatalogueKey('c'), EncodeLogPosition({log_->id(), number})));
    return db_->Write(write_options_, batch);
  });
}

Status Database::Commit(const ReadState& state, const Overlay& overlay, const RowDeltas& deltas,
                        const Slice& commands, uint64_t* updates) {
  WriteBatch batch;
  std::vector<uint64_t> hashes;
  hashes.reserve(overlay.entries().size());
  for (const auto& [key, entry] : overlay.entries()) {
    hashes.push_back(Hash64(key));
    NACRE_RETURN_IF_ERROR(entry.deleted ? batch.Delete(key) : batch.Put(key, entry.value));
  }
  for (const auto& [statistics, delta] : deltas) {
    const int64_t rows = statistics->rows.load(std::memory_order_relaxed) + delta;
    if (!IsWorthWriting(rows, statistics->written_rows.load(std::memory_order_relaxed))) continue;
    NACRE_RETURN_IF_ERROR(batch.Put(CatalogueKey('s', statistics->space), Persisted(rows)));
    statistics->written_rows.store(rows, std::memory_order_relaxed);
  }

  uint64_t number;
  {
    MutexLock lock(&mutex_);
    number = order_.Begin(state.number(), std::move(hashes));
  }
  if (number == 0) return Status::Busy("another transaction has changed the same rows");
  const Status status = WriteLogged(&batch, commands);
  *updates = batch.Count();
  std::shared_ptr<ReadState> stale;
  {
    MutexLock lock(&mutex_);
    order_.End(number);
    stale = std::move(current_);
  }
  if (!status.ok()) return status;
  for (const auto& [statistics, delta] : deltas) {
    statistics->rows.fetch_add(delta, std::memory_order_relaxed);
  }
  return Status::OK();
}

Status Database::AllocateSpaces(uint32_t count, uint32_t* first) {
  uint32_t next;
  {
    MutexLock lock(&mutex_);
    *first = next_space_;
    next_space_ += count;
    next = next_space_;
  }
  // Of two at once the one with the smaller number may be written last: `Recover` looks at the
  // tables, too.
  std::string value;
  PutFixed32(&value, next);
  return db_->Put(write_options_, CatalogueKey('n'), value);
}

std::shared_ptr<TableStatistics> Database::StatisticsOf(uint32_t space) {
  {
    MutexLock lock(&mutex_);
    const auto found = statistics_.find(space);
    if (found != statistics_.end()) return found->second;
  }
  std::string value;
  uint64_t rows = 0;
  if (db_->Get(ReadOptions(), CatalogueKey('s', space), &value).ok()) {
    Slice input = value;
    if (!GetVarint64(&input, &rows)) rows = 0;
  }
  MutexLock lock(&mutex_);
  std::shared_ptr<TableStatistics>& known = statistics_[space];
  if (known == nullptr)
    known = std::make_shared<TableStatistics>(space, static_cast<int64_t>(rows));
  return known;
}

void Database::WriteStatistics() {
  WriteBatch batch;
  {
    MutexLock lock(&mutex_);
    for (const auto& [space, statistics] : statistics_) {
      const int64_t rows = statistics->rows.load(std::memory_order_relaxed);
      if (rows == statistics->written_rows.load(std::memory_order_relaxed)) continue;
      batch.Put(CatalogueKey('s', space), Persisted(rows)).IgnoreError();  // Far below 4 GiB.
    }
  }
  // They are estimates: without this write the next owner has slightly worse ones.
  if (batch.Count() > 0) db_->Write(write_options_, &batch).IgnoreError();
}

Status Database::FreeDroppedSpaces() {
  MutexLock lock(&free_mutex_);
  const std::string marks = CatalogueKey('g');
  std::vector<std::string> dropped;
  {
    const std::unique_ptr<Iterator> iterator = db_->NewIterator(ReadOptions());
    for (iterator->Seek(marks); iterator->Valid() && iterator->key().starts_with(marks);
         iterator->Next()) {
      dropped.push_back(iterator->key().ToString());
    }
    NACRE_RETURN_IF_ERROR(iterator->status());
  }
  for (const std::string& mark : dropped) {
    const std::string begin = mark.substr(marks.size());
    const std::string end = PrefixEnd(begin);
    const std::unique_ptr<Iterator> iterator = db_->NewIterator(ReadOptions());
    iterator->Seek(begin);
    while (iterator->Valid() && iterator->key().starts_with(begin)) {
      WriteBatch batch;
      for (;
           batch.Count() < kFreedAtOnce && iterator->Valid() && iterator->key().starts_with(begin);
           iterator->Next()) {
        NACRE_RETURN_IF_ERROR(batch.Delete(iterator->key()));
      }
      NACRE_RETURN_IF_ERROR(db_->Write(write_options_, &batch));
    }
    NACRE_RETURN_IF_ERROR(iterator->status());
    const Slice first = begin;
    const Slice last = end;
    NACRE_RETURN_IF_ERROR(db_->CompactRange(CompactRangeOptions(), &first, &last));
    WriteBatch batch;
    NACRE_RETURN_IF_ERROR(batch.Delete(mark));
    NACRE_RETURN_IF_ERROR(batch.Delete(CatalogueKey('s', SpaceOf(begin))));
    NACRE_RETURN_IF_ERROR(db_->Write(write_options_, &batch));
  }
  return Status::OK();
}

Status Database::UseLog(std::unique_ptr<CommandLog> log) {
  NACRE_RETURN_IF_ERROR(CatchUp(this, log.get()));
  log_ = std::move(log);
  checkpoints_ =
      std::make_unique<CommandCheckpoints>(db_.get(), log_.get(), options_.command_log_size);
  return Status::OK();
}

Status Database::Recover() {
  std::string value;
  const Status status = db_->Get(ReadOptions(), CatalogueKey('n'), &value);
  if (!status.ok() && !status.IsNotFound()) return status;
  uint32_t next = 1;
  if (status.ok()) {
    Slice input = value;
    if (!GetFixed32(&input, &next)) return Status::Corruption("catalogue: the next space");
  }
  // The highest space in use is that of the last key.
  const std::unique_ptr<Iterator> iterator = db_->NewIterator(ReadOptions());
  iterator->SeekToLast();
  NACRE_RETURN_IF_ERROR(iterator->status());
  if (iterator->Valid() && iterator->key().size() >= kSpaceBytes) {
    next = std::max(next, SpaceOf(iterator->key()) + 1);
  }
  MutexLock lock(&mutex_);
  next_space_ = next;
  return Status::OK();
}

namespace {

/// The opened databases of this process. A process-wide object, since SQLite's connections know
/// nothing of one another and an owner has a database open once.
struct Registry {
  Mutex mutex;
  CondVar closed{&mutex};
  /// An expired pointer: it is being closed.
  std::map<std::string, std::weak_ptr<Database>> databases GUARDED_BY(mutex);
};

Registry& TheRegistry() {
  static Registry* const registry = std::make_unique<Registry>().release();
  return *registry;
}

void CloseAndForget(const std::string& identity, Database* database) {
  std::unique_ptr<Database>(database).reset();
  Registry& registry = TheRegistry();
  MutexLock lock(&registry.mutex);
  registry.databases.erase(identity);
  registry.closed.SignalAll();
}

/// Whether one that is open with `there` may be used by who wants `options`.
Status CheckSame(const DatabaseOptions& there, const DatabaseOptions& options) {
  const auto differ = [&](const char* name, const std::string& wanted, const std::string& is) {
    return Status::InvalidArgument(std::string(name) + ": '" + wanted + "', but database '" +
                                   options.name + "' is open with '" + is + "'");
  };
  if (there.redundancy != options.redundancy) {
    return differ("redundancy", options.redundancy, there.redundancy);
  }
  if (there.command_log != options.command_log) {
    return differ("command_log", options.command_log, there.command_log);
  }
  if (there.remote_log != options.remote_log) {
    return differ("remote_log", options.remote_log ? "on" : "off", there.remote_log ? "on" : "off");
  }
  return Status::OK();
}

Status OpenDB(const DatabaseOptions& options, std::unique_ptr<DB>* db,
              std::unique_ptr<CommandLog>* log) {
  Options nacre;
  nacre.pool_uri = options.pool;
  nacre.redundancy = options.redundancy;
  nacre.create_if_missing = true;
  if (options.write_buffer_size != 0) nacre.write_buffer_size = options.write_buffer_size;
  if (!options.command_log.empty()) NACRE_RETURN_IF_ERROR(OpenCommandLog(options, &nacre, log));
  Status status = DB::Open(nacre, options.name, db);
  if (status.IsIncomplete() && *log != nullptr) {
    NACRE_RETURN_IF_ERROR(GoOnRestoring(nacre, options.name, **log));
    status = DB::Open(nacre, options.name, db);
  }
  if (status.ok() && *log == nullptr) status = CheckHasNoLog(db->get());
  return status;
}

}  // namespace

Status Database::Open(const DatabaseOptions& options, std::shared_ptr<Database>* database) {
  const std::string identity = options.pool + '\n' + options.name;
  Registry& registry = TheRegistry();
  MutexLock lock(&registry.mutex);
  while (true) {
    const auto found = registry.databases.find(identity);
    if (found == registry.databases.end()) break;
    *database = found->second.lock();
    if (*database == nullptr) {
      registry.closed.Wait();
      continue;
    }
    return CheckSame((*database)->options(), options);
  }
  std::unique_ptr<DB> db;
  std::unique_ptr<CommandLog> log;
  NACRE_RETURN_IF_ERROR(OpenDB(options, &db, &log));
  auto opened = std::make_unique<Database>(options, std::move(db));
  NACRE_RETURN_IF_ERROR(opened->Recover());
  if (log != nullptr) NACRE_RETURN_IF_ERROR(opened->UseLog(std::move(log)));
  NACRE_RETURN_IF_ERROR(opened->FreeDroppedSpaces());
  *database = std::shared_ptr<Database>(
      opened.release(), [identity](Database* last) { CloseAndForget(identity, last); });
  registry.databases[identity] = *database;
  return Status::OK();
}

}  // namespace nacre::sqlite
