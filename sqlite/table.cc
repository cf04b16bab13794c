#include "sqlite/table.h"

#include <utility>

#include "sqlite/catalogue.h"
#include "sqlite/cursor.h"
#include "sqlite/key_distribution.h"

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
  if (status.ok()) {
    if (record->signature == signature) return Status::OK();
    return Status::InvalidArgument("table " + name +
                                   " is in the database with other columns or keys");
  }
  if (!status.IsNotFound()) return status;
  if (!create) return Status::NotFound("table " + name + " is not in the database any more");
  const uint32_t count = static_cast<uint32_t>(declaration.indexes.size()) + 1;
  uint32_t first;
  NACRE_RETURN_IF_ERROR(transaction->database().AllocateSpaces(count, &first));
  for (uint32_t i = 0; i < count; ++i) record->spaces.push_back(first + i);
  record->signature = signature;
  transaction->Begin();
  AddTable(transaction, name, *record);
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
  session_->AddTable();
  session_->open_tables().push_back(this);
}

Table::~Table() {
  std::erase(session_->open_tables(), this);
  session_->RemoveTable();
}

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
  TableRecord record;
  NACRE_RETURN_IF_ERROR(FindOrCreate(transaction, name, declaration, create, &record));
  Schema schema(name, std::move(declaration), record.spaces);
  std::shared_ptr<TableStatistics> statistics =
      transaction->database().StatisticsOf(schema.primary.space);
  if (statistics->distribution() == nullptr) {
    transaction->Pin();
    std::shared_ptr<const KeyDistribution> distribution;
    const Status status = FindDistribution(transaction->view(), schema, &distribution);
    transaction->Unpin();
    NACRE_RETURN_IF_ERROR(status);
    statistics->SetDistribution(std::move(distribution));
  }
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
  std::vector<uint32_t> spaces = {schema_.primary.space};
  for (const KeySpace& index : schema_.indexes) spaces.push_back(index.space);
  RemoveTable(transaction_, schema_.name);
  transaction_->Delete(CatalogueKey('d', schema_.primary.space));
  DropSpaces(transaction_, spaces);
  session_->FreeSpacesAtCommit();
  return SQLITE_OK;
}

int Table::Rename(const char* name) {
  const int code = session_->Join();
  if (code != SQLITE_OK) return code;
  transaction_->Begin();
  TableRecord record;
  Status status = FindTable(transaction_->view(), name, &record);
  if (status.ok()) {
    return Fail(Status::InvalidArgument(std::string("the database has a table ") + name));
  }
  if (status.IsNotFound()) status = FindTable(transaction_->view(), schema_.name, &record);
  if (!status.ok()) return Fail(status);
  RemoveTable(transaction_, schema_.name);
  AddTable(transaction_, name, record);
  schema_.name = name;
  return SQLITE_OK;
}

}  // namespace nacre::sqlite
