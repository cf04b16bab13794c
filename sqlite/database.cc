#include "sqlite/database.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "nacre/pool.h"
#include "sqlite/catalogue.h"
#include "sqlite/command_log/command_checkpoints.h"
#include "sqlite/command_log/command_log.h"
#include "sqlite/command_log/command_log_opening.h"
#include "sqlite/row/key_encoding.h"
#include "util/coding.h"
#include "util/hash.h"

namespace nacre::sqlite {
namespace {

constexpr uint32_t kCatalogueSpace = 0;
constexpr char kFamilyPrefix[] = "sqlite.";

std::string FamilyName(uint32_t space) { return kFamilyPrefix + std::to_string(space); }

/// False if it is not one of FamilyName.
bool ParseFamilyName(const std::string& name, uint32_t* space) {
  if (!name.starts_with(kFamilyPrefix)) return false;
  *space =
      static_cast<uint32_t>(std::strtoul(name.c_str() + sizeof(kFamilyPrefix) - 1, nullptr, 10));
  return *space != kCatalogueSpace && FamilyName(*space) == name;
}

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

namespace {

uint64_t WriteBufferOf(const DatabaseOptions& options) {
  return options.write_buffer_size != 0 ? options.write_buffer_size : Options().write_buffer_size;
}

}  // namespace

Database::Database(const DatabaseOptions& options, std::unique_ptr<DB> db,
                   const std::vector<ColumnFamilyHandle*>& handles)
    : options_(options),
      db_(std::move(db)),
      write_options_(WriteOptionsOf(options)),
      memory_(WriteBufferOf(options)) {
  auto families = std::make_shared<FamilySet>();
  (*families)[kCatalogueSpace] =
      std::make_shared<const Family>(db_.get(), kCatalogueSpace, nullptr);
  for (ColumnFamilyHandle* handle : handles) {
    uint32_t space = kCatalogueSpace;
    const bool ours = ParseFamilyName(handle->GetName(), &space);
    auto family = std::make_unique<const Family>(db_.get(), space, handle);
    if (!ours) {
      others_.push_back(std::move(family));
      continue;
    }
    (*families)[space] = std::move(family);
    next_space_ = std::max(next_space_, space + 1);
  }
  families_ = std::move(families);
}

Database::~Database() {
  checkpoints_.reset();
  WriteStatistics();
  std::shared_ptr<ReadState> last;
  std::shared_ptr<const FamilySet> families;
  {
    MutexLock lock(&mutex_);
    last = std::move(current_);
    families = std::move(families_);
  }
  last.reset();
  families.reset();
  others_.clear();
  db_->Close().IgnoreError();  // There is no caller left to tell; the DB's log has it.
}

std::shared_ptr<ReadState> Database::Read() {
  MutexLock lock(&mutex_);
  if (current_ != nullptr && current_->sequence() == db_->GetLatestSequenceNumber()) {
    return current_;
  }
  std::shared_ptr<ReadState> stale = std::move(current_);
  const uint64_t number = order_.BeginNumber();
  order_.AddSnapshot(number);
  current_ = std::shared_ptr<ReadState>(
      new ReadState(db_.get(), number, families_, schema_version_), [this](ReadState* state) {
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
    const std::string key = CatalogueKey('c');
    NACRE_RETURN_IF_ERROR(batch->Put(WithoutSpace(key), EncodeLogPosition({log_->id(), number})));
    return db_->Write(write_options_, batch);
  });
}

Status Database::Commit(const ReadState& state, const Overlay& overlay, const RowDeltas& deltas,
                        const std::vector<uint32_t>& dropped, const Slice& commands,
                        uint64_t* updates) {
  WriteBatch batch;
  std::vector<uint64_t> hashes;
  hashes.reserve(overlay.entries().size() + dropped.size());
  const Family* family = nullptr;
  for (const auto& [key, entry] : overlay.entries()) {
    hashes.push_back(Hash64(key));
    const uint32_t space = SpaceOf(key);
    if (family == nullptr || family->space() != space) {
      family = FindFamily(state.families(), space);
      if (family == nullptr) family = FindFamily(overlay.families(), space);
      if (family == nullptr) return Status::Aborted("a table was dropped");
    }
    const Slice rest = WithoutSpace(key);
    NACRE_RETURN_IF_ERROR(entry.deleted ? batch.Delete(family->handle(), rest)
                                        : batch.Put(family->handle(), rest, entry.value));
  }
  const bool changes_tables =
      !overlay.empty() && SpaceOf(overlay.entries().begin()->first) == kCatalogueSpace;
  // A table stands for all its rows: dropping it conflicts with writing them.
  for (uint32_t space : dropped) hashes.push_back(Hash64(CatalogueKey('s', space)));
  std::vector<uint64_t> watched;
  for (const auto& [statistics, delta] : deltas) {
    watched.push_back(Hash64(CatalogueKey('s', statistics->space)));
    const int64_t rows = statistics->rows.load(std::memory_order_relaxed) + delta;
    if (!IsWorthWriting(rows, statistics->written_rows.load(std::memory_order_relaxed))) continue;
    const std::string key = CatalogueKey('s', statistics->space);
    NACRE_RETURN_IF_ERROR(batch.Put(WithoutSpace(key), Persisted(rows)));
    statistics->written_rows.store(rows, std::memory_order_relaxed);
  }

  uint64_t number;
  {
    MutexLock lock(&mutex_);
    number = order_.Begin(state.number(), std::move(hashes), watched);
  }
  if (number == 0) return Status::Busy("another transaction has changed the same rows");
  const Status status = WriteLogged(&batch, commands);
  *updates = batch.Count();
  std::shared_ptr<ReadState> stale;
  {
    MutexLock lock(&mutex_);
    order_.End(number);
    if (changes_tables) ++schema_version_;
    stale = std::move(current_);
  }
  if (!status.ok()) return status;
  for (const auto& [statistics, delta] : deltas) {
    statistics->rows.fetch_add(delta, std::memory_order_relaxed);
  }
  // The batch is written; the next call reports flushes that fail.
  memory_.Wrote(db_.get(), state.families(), batch.Count(), batch.GetDataSize()).IgnoreError();
  return Status::OK();
}

Status Database::CreateFamilies(uint32_t count,
                                std::vector<std::shared_ptr<const Family>>* families) {
  families->clear();
  ColumnFamilyOptions options;
  options.write_buffer_size = WriteBufferOf(options_);
  std::vector<uint32_t> spaces;
  std::vector<std::string> names;
  {
    MutexLock lock(&mutex_);
    while (spaces.size() < count) {
      pending_.insert(next_space_);
      names.push_back(FamilyName(next_space_));
      spaces.push_back(next_space_++);
    }
  }
  std::vector<ColumnFamilyHandle*> handles;
  const Status status = db_->CreateColumnFamilies(options, names, &handles);
  MutexLock lock(&mutex_);
  if (!status.ok()) {
    for (const uint32_t space : spaces) pending_.erase(space);
    return status;
  }
  auto more = std::make_shared<FamilySet>(*families_);
  for (uint32_t i = 0; i < count; ++i) {
    families->push_back(std::make_shared<const Family>(db_.get(), spaces[i], handles[i]));
    (*more)[spaces[i]] = families->back();
  }
  families_ = std::move(more);
  return Status::OK();
}

std::shared_ptr<TableStatistics> Database::StatisticsOf(uint32_t space) {
  {
    MutexLock lock(&mutex_);
    const auto found = statistics_.find(space);
    if (found != statistics_.end()) return found->second;
  }
  std::string value;
  uint64_t rows = 0;
  if (db_->Get(ReadOptions(), WithoutSpace(CatalogueKey('s', space)), &value).ok()) {
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
      // Far below 4 GiB.
      batch.Put(WithoutSpace(CatalogueKey('s', space)), Persisted(rows)).IgnoreError();
    }
  }
  // They are estimates: without this write the next owner has slightly worse ones.
  if (batch.Count() > 0) db_->Write(write_options_, &batch).IgnoreError();
}

Status Database::FindUsedSpaces(std::set<uint32_t>* spaces) {
  const std::string table_keys = CatalogueKey('t');
  const Slice first = WithoutSpace(table_keys);
  const std::unique_ptr<Iterator> iterator = db_->NewIterator(ReadOptions());
  for (iterator->Seek(first); iterator->Valid() && iterator->key().starts_with(first);
       iterator->Next()) {
    TableRecord record;
    NACRE_RETURN_IF_ERROR(
        DecodeTable(iterator->value(), &record).WithContext(iterator->key().ToString()));
    spaces->insert(record.spaces.begin(), record.spaces.end());
  }
  return iterator->status();
}

Status Database::DropUnusedFamilies(const std::vector<uint32_t>& ended) {
  MutexLock drop(&drop_mutex_);
  std::shared_ptr<const FamilySet> families;
  std::set<uint32_t> used;
  {
    MutexLock lock(&mutex_);
    for (uint32_t space : ended) pending_.erase(space);
    used = pending_;
    families = families_;
  }
  // One that gets its table from now on is among the pending ones.
  used.insert(kCatalogueSpace);
  NACRE_RETURN_IF_ERROR(FindUsedSpaces(&used));
  std::vector<std::shared_ptr<const Family>> unused;
  for (const auto& [space, family] : *families) {
    if (!used.contains(space)) unused.push_back(family);
  }
  if (unused.empty()) return Status::OK();
  // What is not in a log on the nodes must not have them find a table without its families.
  if (write_options_.disable_wal) NACRE_RETURN_IF_ERROR(db_->Flush(FlushOptions()));
  return DropFamilies(unused);
}

Status Database::UseLog(std::unique_ptr<CommandLog> log) {
  NACRE_RETURN_IF_ERROR(CatchUp(this, log.get()));
  log_ = std::move(log);
  checkpoints_ =
      std::make_unique<CommandCheckpoints>(db_.get(), log_.get(), options_.command_log_size);
  return Status::OK();
}

Status Database::DropFamilies(const std::vector<std::shared_ptr<const Family>>& dropped) {
  std::vector<ColumnFamilyHandle*> handles;
  WriteBatch statistics;
  for (const auto& family : dropped) {
    handles.push_back(family->handle());
    const std::string key = CatalogueKey('s', family->space());
    NACRE_RETURN_IF_ERROR(statistics.Delete(WithoutSpace(key)));
  }
  NACRE_RETURN_IF_ERROR(db_->DropColumnFamilies(handles));
  std::shared_ptr<ReadState> stale;
  std::shared_ptr<const FamilySet> before;
  {
    MutexLock lock(&mutex_);
    auto fewer = std::make_shared<FamilySet>(*families_);
    for (const auto& family : dropped) {
      statistics_.erase(family->space());
      fewer->erase(family->space());
    }
    before = std::exchange(families_, std::move(fewer));
    stale = std::move(current_);  // It has the families.
  }
  return db_->Write(write_options_, &statistics);
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

/// Whether a database that is open with `there` may be shared by a caller that wants `options`.
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

Status OpenWithFamilies(const Options& nacre, const std::string& name,
                        std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<DB>* db) {
  std::vector<std::string> names;
  const Status listed = DB::ListColumnFamilies(nacre, name, &names);
  if (listed.IsNotFound()) names = {kDefaultColumnFamilyName};
  if (!listed.ok() && !listed.IsNotFound()) return listed;
  std::vector<ColumnFamilyDescriptor> families;
  families.reserve(names.size());
  for (const std::string& family : names) families.emplace_back(family, nacre);
  return DB::Open(nacre, name, families, handles, db);
}

Status OpenDB(const DatabaseOptions& options, std::unique_ptr<DB>* db,
              std::vector<ColumnFamilyHandle*>* handles, std::unique_ptr<CommandLog>* log) {
  Options nacre;
  NACRE_RETURN_IF_ERROR(Pool::Open(options.pool, &nacre.pool));
  nacre.redundancy = options.redundancy;
  nacre.create_if_missing = true;
  nacre.write_buffer_size = WriteBufferOf(options);
  if (!options.command_log.empty()) NACRE_RETURN_IF_ERROR(OpenCommandLog(options, nacre, log));
  Status status = OpenWithFamilies(nacre, options.name, handles, db);
  if (status.IsIncomplete() && *log != nullptr) {
    NACRE_RETURN_IF_ERROR(GoOnRestoring(nacre, options.name, **log));
    status = OpenWithFamilies(nacre, options.name, handles, db);
  }
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
  std::vector<ColumnFamilyHandle*> handles;
  std::unique_ptr<CommandLog> log;
  NACRE_RETURN_IF_ERROR(OpenDB(options, &db, &handles, &log));
  auto opened = std::make_unique<Database>(options, std::move(db), handles);
  if (log == nullptr) NACRE_RETURN_IF_ERROR(CheckHasNoLog(opened->db()));
  NACRE_RETURN_IF_ERROR(opened->DropUnusedFamilies({}));
  if (log != nullptr) NACRE_RETURN_IF_ERROR(opened->UseLog(std::move(log)));
  *database = std::shared_ptr<Database>(
      opened.release(), [identity](Database* last) { CloseAndForget(identity, last); });
  registry.databases[identity] = *database;
  return Status::OK();
}

}  // namespace nacre::sqlite
