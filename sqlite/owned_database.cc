#include "sqlite/owned_database.h"

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

constexpr char kFamilyPrefix[] = "sqlite.";

std::string FamilyName(uint32_t space) { return kFamilyPrefix + std::to_string(space); }

/// False if it is not one of FamilyName.
bool ParseFamilyName(const std::string& name, uint32_t* space) {
  if (!name.starts_with(kFamilyPrefix)) return false;
  *space =
      static_cast<uint32_t>(std::strtoul(name.c_str() + sizeof(kFamilyPrefix) - 1, nullptr, 10));
  return *space != kCatalogueSpace && FamilyName(*space) == name;
}

}  // namespace

OwnedDatabase::OwnedDatabase(const DatabaseOptions& options, std::unique_ptr<DB> owned,
                             const std::vector<ColumnFamilyHandle*>& handles)
    : Database(options, std::move(owned)),
      memory_(WriteBufferOf(options)),
      statistics_(db(), std::make_shared<const Family>(db(), kCatalogueSpace, nullptr)) {
  auto families = std::make_shared<FamilySet>();
  (*families)[kCatalogueSpace] = std::make_shared<const Family>(db(), kCatalogueSpace, nullptr);
  for (ColumnFamilyHandle* handle : handles) {
    uint32_t space = kCatalogueSpace;
    const bool ours = ParseFamilyName(handle->GetName(), &space);
    auto family = std::make_unique<const Family>(db(), space, handle);
    if (!ours) {
      others_.push_back(std::move(family));
      continue;
    }
    (*families)[space] = std::move(family);
    next_space_ = std::max(next_space_, space + 1);
  }
  families_ = std::move(families);
}

OwnedDatabase::~OwnedDatabase() {
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
  db()->Close().IgnoreError();  // There is no caller left to tell; the DB's log has it.
}

std::shared_ptr<ReadState> OwnedDatabase::Read() {
  MutexLock lock(&mutex_);
  if (current_ != nullptr && current_->id() == db()->GetLatestSequenceNumber()) return current_;
  std::shared_ptr<ReadState> stale = std::move(current_);
  const uint64_t number = order_.BeginNumber();
  order_.AddSnapshot(number);
  std::shared_ptr<const Snapshot> snapshot = TakeSnapshot();
  const uint64_t id = snapshot->GetSequenceNumber();
  current_ = std::shared_ptr<ReadState>(
      new ReadState(db(), std::move(snapshot), id, families_, number), [this](ReadState* state) {
        const uint64_t gone = state->number();
        delete state;
        MutexLock inner(&mutex_);
        order_.RemoveSnapshot(gone);
      });
  current_->SetSchemaVersion(schema_version_);
  std::shared_ptr<ReadState> latest = current_;
  MutexUnlock unlock(&mutex_);
  stale.reset();
  return latest;
}

Status OwnedDatabase::WriteLogged(WriteBatch* batch, const Slice& commands) {
  if (log_ == nullptr) return db()->Write(write_options(), batch);
  return log_->Commit(commands, [this, batch](uint64_t number) {
    const std::string key = CatalogueKey('c');
    NACRE_RETURN_IF_ERROR(batch->Put(WithoutSpace(key), EncodeLogPosition({log_->id(), number})));
    return db()->Write(write_options(), batch);
  });
}

Status OwnedDatabase::Commit(const ReadState& state, const Overlay& overlay,
                             const RowDeltas& deltas, const std::vector<uint32_t>& dropped,
                             const Slice& commands, std::optional<uint64_t>* after) {
  after->reset();
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
    const Slice stored = family->KeyIn(key);
    NACRE_RETURN_IF_ERROR(entry.deleted ? batch.Delete(family->handle(), stored)
                                        : batch.Put(family->handle(), stored, entry.value));
  }
  const bool changes_tables =
      !overlay.empty() && SpaceOf(overlay.entries().begin()->first) == kCatalogueSpace;
  // A table stands for all its rows: dropping it conflicts with writing them.
  for (uint32_t space : dropped) hashes.push_back(Hash64(CatalogueKey('s', space)));
  std::vector<uint64_t> watched;
  for (const auto& [statistics, delta] : deltas) {
    watched.push_back(Hash64(CatalogueKey('s', statistics->space)));
    NACRE_RETURN_IF_ERROR(statistics_.AddIfWorth(statistics.get(), delta, &batch));
  }

  uint64_t number;
  {
    MutexLock lock(&mutex_);
    number = order_.Begin(state.number(), std::move(hashes), watched);
  }
  if (number == 0) return Status::Busy("another transaction has changed the same rows");
  const Status status = WriteLogged(&batch, commands);
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
  memory_.Wrote(db(), state.families(), batch.Count(), batch.GetDataSize()).IgnoreError();
  const uint64_t sequence = db()->GetLatestSequenceNumber();
  if (sequence == state.id() + batch.Count()) *after = sequence;
  return Status::OK();
}

Status OwnedDatabase::CreateSpaces(uint32_t count, std::vector<NewSpace>* made) {
  made->clear();
  ColumnFamilyOptions options;
  options.write_buffer_size = WriteBufferOf(this->options());
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
  const Status status = db()->CreateColumnFamilies(options, names, &handles);
  MutexLock lock(&mutex_);
  if (!status.ok()) {
    for (const uint32_t space : spaces) pending_.erase(space);
    return status;
  }
  auto more = std::make_shared<FamilySet>(*families_);
  for (uint32_t i = 0; i < count; ++i) {
    made->push_back({.space = spaces[i],
                     .family = std::make_shared<const Family>(db(), spaces[i], handles[i])});
    (*more)[spaces[i]] = made->back().family;
  }
  families_ = std::move(more);
  return Status::OK();
}

void OwnedDatabase::WriteStatistics() {
  WriteBatch batch;
  statistics_.AddAll(&batch).IgnoreError();  // It is far below 4 GiB.
  // They are estimates: without this write the next owner has slightly worse ones.
  if (batch.Count() > 0) db()->Write(write_options(), &batch).IgnoreError();
}

Status OwnedDatabase::FindUsedSpaces(std::set<uint32_t>* spaces) {
  const std::string table_keys = CatalogueKey('t');
  const Slice first = WithoutSpace(table_keys);
  const std::unique_ptr<Iterator> iterator = db()->NewIterator(ReadOptions());
  for (iterator->Seek(first); iterator->Valid() && iterator->key().starts_with(first);
       iterator->Next()) {
    TableRecord record;
    NACRE_RETURN_IF_ERROR(
        DecodeTable(iterator->value(), &record).WithContext(iterator->key().ToString()));
    spaces->insert(record.spaces.begin(), record.spaces.end());
  }
  return iterator->status();
}

Status OwnedDatabase::DropUnusedFamilies(const std::vector<uint32_t>& ended) {
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
  if (write_options().disable_wal) NACRE_RETURN_IF_ERROR(db()->Flush(FlushOptions()));
  return DropFamilies(unused);
}

Status OwnedDatabase::UseLog(std::unique_ptr<CommandLog> log) {
  NACRE_RETURN_IF_ERROR(CatchUp(this, log.get()));
  log_ = std::move(log);
  checkpoints_ = std::make_unique<CommandCheckpoints>(db(), log_.get(), options().command_log_size);
  return Status::OK();
}

Status OwnedDatabase::DropFamilies(const std::vector<std::shared_ptr<const Family>>& dropped) {
  std::vector<ColumnFamilyHandle*> handles;
  WriteBatch statistics;
  for (const auto& family : dropped) {
    handles.push_back(family->handle());
    NACRE_RETURN_IF_ERROR(statistics_.AddErasure(family->space(), &statistics));
  }
  NACRE_RETURN_IF_ERROR(db()->DropColumnFamilies(handles));
  std::shared_ptr<ReadState> stale;
  std::shared_ptr<const FamilySet> before;
  {
    MutexLock lock(&mutex_);
    auto fewer = std::make_shared<FamilySet>(*families_);
    for (const auto& family : dropped) {
      fewer->erase(family->space());
    }
    before = std::exchange(families_, std::move(fewer));
    stale = std::move(current_);  // It has the families.
  }
  for (const auto& family : dropped) statistics_.Erase(family->space());
  return db()->Write(write_options(), &statistics);
}

namespace {

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

Status OwnedDatabase::Open(const DatabaseOptions& options, std::unique_ptr<Database>* database) {
  std::unique_ptr<DB> db;
  std::vector<ColumnFamilyHandle*> handles;
  std::unique_ptr<CommandLog> log;
  NACRE_RETURN_IF_ERROR(OpenDB(options, &db, &handles, &log));
  std::unique_ptr<OwnedDatabase> opened(new OwnedDatabase(options, std::move(db), handles));
  if (log == nullptr) NACRE_RETURN_IF_ERROR(CheckHasNoLog(opened->db()));
  NACRE_RETURN_IF_ERROR(opened->DropUnusedFamilies({}));
  if (log != nullptr) NACRE_RETURN_IF_ERROR(opened->UseLog(std::move(log)));
  *database = std::move(opened);
  return Status::OK();
}

}  // namespace nacre::sqlite
