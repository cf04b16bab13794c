#include "sqlite/table.h"

#include <utility>

#include "sqlite/catalogue.h"
#include "sqlite/query/cursor.h"
#include "sqlite/query/key_distribution.h"

namespace nacre::sqlite {
namespace {

/// More cursors of one table at once are rare.
constexpr size_t kIdleCursorsMax = 8;

Status FindOrCreate(Transaction* transaction, const std::string& name,
                    const Declaration& declaration, bool create, TableRecord* record) {
  transaction->Pin();
  Status status = FindTable(transaction->view(), name, record);
  transaction->Unpin();
  const std::string signature = declaration.Signature();
  const uint32_t count = static_cast<uint32_t>(declaration.indexes.size()) + 1;
  if (status.ok()) {
    if (record->signature != signature) {
      return Status::InvalidArgument("table " + name +
                                     " is in the database with other columns or keys");
    }
    if (record->spaces.size() == count) return Status::OK();
    return Status::Corruption("catalogue: table " + name + " has another number of indexes");
  }
  if (!status.IsNotFound()) return status;
  if (!create) return Status::NotFound("table " + name + " is not in the database any more");
  NACRE_RETURN_IF_ERROR(transaction->CreateSpaces(count, &record->spaces));
  record->signature = signature;
  AddTable(transaction, name, *record);
  AddDeclaration(transaction, name, declaration.arguments);
  if (CommandList* commands = transaction->commands()) {
    commands->Create(name, declaration.arguments);
  }
  return Status::OK();
}

/// Finds the statistics, with the distribution of keys if that is known. The transaction is pinned.
Status FindStatistics(Transaction* transaction, const Schema& schema,
                      std::shared_ptr<TableStatistics>* statistics) {
  *statistics = transaction->database().StatisticsOf(schema.primary.space);
  if ((*statistics)->distribution() != nullptr) return Status::OK();
  std::shared_ptr<const KeyDistribution> distribution;
  NACRE_RETURN_IF_ERROR(FindDistribution(transaction->view(), schema, &distribution));
  (*statistics)->SetDistribution(std::move(distribution));
  return Status::OK();
}

}  // namespace

Table::Table(Session* session, Transaction* transaction, Schema schema,
             std::shared_ptr<TableStatistics> statistics, std::unique_ptr<RowCheck> check)
    : sqlite3_vtab{},
      session_(session),
      transaction_(transaction),
      schema_(std::move(schema)),
      statistics_(std::move(statistics)),
      check_(std::move(check)) {
  session_->AddTable(this);
}

Table::~Table() { session_->RemoveTable(this); }

Status Table::Connect(Session* session, const std::string& name,
                      const std::vector<std::string>& arguments, bool create,
                      std::unique_ptr<Table>* table) {
  Declaration declaration;
  NACRE_RETURN_IF_ERROR(Declaration::Parse(arguments, &declaration));
  sqlite3* const connection = session->connection();
  if (sqlite3_declare_vtab(connection, declaration.CreateTable().c_str()) != SQLITE_OK) {
    return Status::InvalidArgument(sqlite3_errmsg(connection));
  }
  std::unique_ptr<RowCheck> check;
  NACRE_RETURN_IF_ERROR(RowCheck::Open(declaration, &check));
  Transaction* transaction;
  NACRE_RETURN_IF_ERROR(session->TransactionOf(declaration.database, &transaction));
  return Attach(session, transaction, name, std::move(declaration), create, std::move(check),
                table);
}

Status Table::Attach(Session* session, Transaction* transaction, const std::string& name,
                     Declaration declaration, bool create, std::unique_ptr<RowCheck> check,
                     std::unique_ptr<Table>* table) {
  TableRecord record;
  NACRE_RETURN_IF_ERROR(FindOrCreate(transaction, name, declaration, create, &record));
  Schema schema(name, std::move(declaration), record.spaces);
  std::shared_ptr<TableStatistics> statistics;
  transaction->Pin();
  const Status status = FindStatistics(transaction, schema, &statistics);
  transaction->Unpin();
  NACRE_RETURN_IF_ERROR(status);
  *table = std::make_unique<Table>(session, transaction, std::move(schema), std::move(statistics),
                                   std::move(check));
  return Status::OK();
}

std::unique_ptr<Cursor> Table::TakeCursor() {
  if (idle_cursors_.empty()) return std::make_unique<Cursor>(this);
  std::unique_ptr<Cursor> cursor = std::move(idle_cursors_.back());
  idle_cursors_.pop_back();
  return cursor;
}

void Table::GiveBack(std::unique_ptr<Cursor> cursor) {
  cursor->Close();
  if (idle_cursors_.size() < kIdleCursorsMax) idle_cursors_.push_back(std::move(cursor));
}

Status Table::Analyze(uint64_t limit) {
  auto distribution = std::make_shared<KeyDistribution>();
  transaction_->Pin();
  const Status status = CountKeys(transaction_->view(), schema_, limit, distribution.get());
  transaction_->Unpin();
  NACRE_RETURN_IF_ERROR(status);
  NACRE_RETURN_IF_ERROR(WriteDistribution(schema_, *distribution));
  statistics_->SetDistribution(std::move(distribution));
  return Status::OK();
}

int Table::Drop() {
  const int code = session_->Join();
  if (code != SQLITE_OK) return code;
  transaction_->Begin();
  bool is_there = false;
  const Status status = FindAgain(&is_there);
  if (!status.ok()) return Fail(status);
  if (is_there) DropFromDatabase();  // Otherwise another connection has dropped or renamed it.
  return SQLITE_OK;
}

void Table::DropFromDatabase() {
  RemoveTable(transaction_, schema_.name);
  RemoveDeclaration(transaction_, schema_.name);
  transaction_->Delete(CatalogueKey('d', schema_.primary.space));
  transaction_->DropSpaces(schema_.Spaces());
  if (CommandList* commands = transaction_->commands()) commands->Drop(schema_.name);
}

Status Table::FindAgain(bool* is_there) {
  TableRecord record;
  const Status status = FindTable(transaction_->view(), schema_.name, &record);
  *is_there = status.ok() && record.signature == schema_.declaration.Signature();
  if (!status.ok() && !status.IsNotFound()) return status;
  if (!*is_there || record.spaces == schema_.Spaces()) return Status::OK();
  // Another connection has dropped it and made it again.
  schema_ = Schema(schema_.name, std::move(schema_.declaration), record.spaces);
  return FindStatistics(transaction_, schema_, &statistics_);
}

int Table::CheckAgain() {
  bool is_there = false;
  const Status status = FindAgain(&is_there);
  if (!status.ok()) return Fail(status);
  if (is_there) {
    checked_version_ = transaction_->view().state->schema_version();
    return SQLITE_OK;
  }
  sqlite3_free(zErrMsg);
  zErrMsg = sqlite3_mprintf("no such table: %s", schema_.name.c_str());
  return SQLITE_ERROR;
}

int Table::Rename(const char* name) {
  const int code = session_->Join();
  if (code != SQLITE_OK) return code;
  transaction_->Begin();
  const int there = CheckAgain();
  if (there != SQLITE_OK) return there;
  const Status status = RenameInDatabase(name);
  return status.ok() ? SQLITE_OK : Fail(status);
}

Status Table::RenameInDatabase(const std::string& name) {
  TableRecord record;
  const Status taken = FindTable(transaction_->view(), name, &record);
  if (taken.ok()) return Status::InvalidArgument("the database has a table " + name);
  if (!taken.IsNotFound()) return taken;
  NACRE_RETURN_IF_ERROR(FindTable(transaction_->view(), schema_.name, &record));
  RemoveTable(transaction_, schema_.name);
  RemoveDeclaration(transaction_, schema_.name);
  AddTable(transaction_, name, record);
  AddDeclaration(transaction_, name, schema_.declaration.arguments);
  if (CommandList* commands = transaction_->commands()) commands->Rename(schema_.name, name);
  schema_.name = name;
  return Status::OK();
}

}  // namespace nacre::sqlite
