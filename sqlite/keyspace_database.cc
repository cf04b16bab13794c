#include "sqlite/keyspace_database.h"

#include <utility>

#include "nacre/pool.h"
#include "nacre/utilities/sharded_db.h"
#include "sqlite/row/key_encoding.h"
#include "util/coding.h"
#include "util/exceptions.h"

namespace nacre::sqlite {
namespace {

/// A number of the catalogue; 0 if it has none.
Status DecodeNumber(const Status& found, const Slice& value, uint64_t* number) {
  *number = 0;
  if (found.IsNotFound()) return Status::OK();
  NACRE_RETURN_IF_ERROR(found);
  Slice input = value;
  return GetVarint64(&input, number) ? Status::OK()
                                     : Status::Corruption("catalogue: a number is malformed");
}

std::string Encoded(uint64_t number) {
  std::string value;
  PutVarint64(&value, number);
  return value;
}

}  // namespace

Status KeyspaceDatabase::Open(const DatabaseOptions& options, std::unique_ptr<Database>* database) {
  if (!options.command_log.empty()) {
    return Status::NotSupported("command_log: other processes may write the keyspace, too");
  }
  ShardedOptions sharded;
  NACRE_RETURN_IF_ERROR(Pool::Open(options.pool, &sharded.pool));
  sharded.redundancy = options.redundancy;
  sharded.create_if_missing = true;
  sharded.db_write_buffer_size = WriteBufferOf(options);
  sharded.coordinator = options.coordinator;
  sharded.member_address = options.member_address;
  std::unique_ptr<OptimisticTransactionDB> db;
  NACRE_RETURN_IF_ERROR(OptimisticTransactionDB::Open(sharded, options.name, &db));
  database->reset(new KeyspaceDatabase(options, std::move(db)));
  return Status::OK();
}

KeyspaceDatabase::KeyspaceDatabase(const DatabaseOptions& options,
                                   std::unique_ptr<OptimisticTransactionDB> owned)
    : Database(options, std::move(owned)),
      family_(std::make_shared<const Family>(db(), kCatalogueSpace, nullptr, Family::Spaces::kAll)),
      families_(std::make_shared<const FamilySet>(FamilySet{{kCatalogueSpace, family_}})),
      statistics_(db(), family_) {}

KeyspaceDatabase::~KeyspaceDatabase() {
  // They are estimates: without this write others have slightly worse ones.
  CatchAll([this] { return statistics_.WriteAllShared(write_options()); }).IgnoreError();
  db()->Close().IgnoreError();  // There is no caller left to tell; the DB's log has it.
}

std::unique_ptr<nacre::Transaction> KeyspaceDatabase::Begin(
    std::shared_ptr<const Snapshot> snapshot) const {
  OptimisticTransactionOptions options;
  options.snapshot = std::move(snapshot);
  auto transaction =
      static_cast<OptimisticTransactionDB*>(db())->BeginTransaction(write_options(), options);
  transaction->DisableIndexing();
  return transaction;
}

std::shared_ptr<ReadState> KeyspaceDatabase::Read() {
  const uint64_t id = last_state_.fetch_add(1, std::memory_order_relaxed) + 1;
  auto state = std::make_shared<ReadState>(db(), TakeSnapshot(), id, families_);
  PinnableSlice value;
  uint64_t version = 0;
  const Status found = state->Get(*family_, CatalogueKey('v'), &value);
  if (const Status status = DecodeNumber(found, value, &version); !status.ok()) {
    return std::make_shared<ReadState>(db(), nullptr, id, families_);
  }
  state->SetSchemaVersion(version);
  return state;
}

Status KeyspaceDatabase::Commit(const ReadState& state, const Overlay& overlay,
                                const RowDeltas& deltas, const std::vector<uint32_t>& dropped,
                                const Slice& /*commands*/, std::optional<uint64_t>* after) {
  // Other processes write meanwhile, for all that is known here.
  after->reset();
  if (state.snapshot() == nullptr) return Status::Unavailable("there is no state to commit to");
  return CatchAll([&]() -> Status {
    const std::unique_ptr<nacre::Transaction> transaction = Begin(state.snapshot());
    for (const auto& [key, entry] : overlay.entries()) {
      NACRE_RETURN_IF_ERROR(entry.deleted ? transaction->Delete(key)
                                          : transaction->Put(key, entry.value));
    }
    for (const uint32_t space : dropped) {
      std::string begin;
      AppendSpace(space, &begin);
      WriteBatch* const batch = transaction->GetWriteBatch()->GetWriteBatch();
      NACRE_RETURN_IF_ERROR(batch->DeleteRange(begin, PrefixEnd(begin)));
    }
    const bool changes_tables =
        !overlay.empty() && SpaceOf(overlay.entries().begin()->first) == kCatalogueSpace;
    if (changes_tables) {
      NACRE_RETURN_IF_ERROR(
          transaction->Put(CatalogueKey('v'), Encoded(state.schema_version() + 1)));
    }
    NACRE_RETURN_IF_ERROR(transaction->Commit());
    for (const auto& [statistics, delta] : deltas) {
      statistics->rows.fetch_add(delta, std::memory_order_relaxed);
      statistics_.WriteShared(statistics.get(), /*always=*/false, write_options()).IgnoreError();
    }
    return Status::OK();
  });
}

Status KeyspaceDatabase::CreateSpaces(uint32_t count, std::vector<NewSpace>* spaces) {
  spaces->clear();
  uint32_t first = 0;
  Status status;
  do {
    status = TryToTakeSpaces(count, &first);
  } while (status.IsBusy());
  NACRE_RETURN_IF_ERROR(status);
  for (uint32_t i = 0; i < count; ++i) spaces->push_back({.space = first + i, .family = family_});
  return Status::OK();
}

Status KeyspaceDatabase::TryToTakeSpaces(uint32_t count, uint32_t* first) {
  const std::unique_ptr<nacre::Transaction> transaction = Begin(nullptr);
  const std::string key = CatalogueKey('n');
  PinnableSlice value;
  const Status found = transaction->GetForUpdate({}, nullptr, key, &value);
  uint64_t last = 0;
  NACRE_RETURN_IF_ERROR(DecodeNumber(found, value, &last));
  *first = static_cast<uint32_t>(last) + 1;
  NACRE_RETURN_IF_ERROR(transaction->Put(key, Encoded(last + count)));
  return transaction->Commit();
}

}  // namespace nacre::sqlite
