#include "sqlite/command_log/command_replay.h"

#include <utility>
#include <vector>

#include "sqlite/catalogue.h"
#include "sqlite/command_log/log_position.h"

namespace nacre::sqlite {

CommandReplay::CommandReplay(Database* database, uint64_t log_id)
    : database_(database),
      log_id_(log_id),
      session_(nullptr),
      // The opening owns both the database and this object.
      transaction_(std::shared_ptr<Database>(std::shared_ptr<Database>(), database)) {}

Status CommandReplay::Apply(uint64_t number, Slice commands) {
  transaction_.Begin();
  Status status;
  Command command;
  while (status.ok() && !commands.empty()) {
    status = ReadCommand(&commands, &command);
    if (status.ok()) status = Run(command).WithContext("table " + command.table);
  }
  if (status.ok()) {
    transaction_.Put(CatalogueKey('c'), EncodeLogPosition({log_id_, number}));
    status = transaction_.Prepare();
  }
  if (!status.ok()) {
    transaction_.Rollback();
    return status.WithContext("command log, transaction " + std::to_string(number));
  }
  transaction_.Commit();
  return status;
}

Status CommandReplay::Run(const Command& command) {
  if (command.kind == CommandList::Kind::kCreate) {
    std::unique_ptr<Table> table;
    NACRE_RETURN_IF_ERROR(Attach(command.table, command.arguments, /*create=*/true, &table));
    tables_[command.table] = std::move(table);
    return Status::OK();
  }
  Table* table;
  NACRE_RETURN_IF_ERROR(TableOf(command.table, &table));
  switch (command.kind) {
    case CommandList::Kind::kPut:
      return table->RedoPut(command.primary_key, command.row);
    case CommandList::Kind::kDelete:
      return table->RedoDelete(command.primary_key);
    case CommandList::Kind::kDrop:
      table->DropFromDatabase();
      tables_.clear();
      return Status::OK();
    default: {
      const Status status = table->RenameInDatabase(command.name);
      tables_.clear();
      return status;
    }
  }
}

Status CommandReplay::TableOf(const std::string& name, Table** table) {
  std::unique_ptr<Table>& known = tables_[name];
  if (known == nullptr) {
    std::vector<std::string> arguments;
    NACRE_RETURN_IF_ERROR(FindDeclaration(transaction_.view(), name, &arguments));
    NACRE_RETURN_IF_ERROR(Attach(name, arguments, /*create=*/false, &known));
  }
  *table = known.get();
  return Status::OK();
}

Status CommandReplay::Attach(const std::string& name, const std::vector<std::string>& arguments,
                             bool create, std::unique_ptr<Table>* table) {
  Declaration declaration;
  NACRE_RETURN_IF_ERROR(Declaration::ParseTable(arguments, database_->options(), &declaration));
  // What is replayed has passed the conditions.
  return Table::Attach(&session_, &transaction_, name, std::move(declaration), create,
                       /*check=*/nullptr, table);
}

}  // namespace nacre::sqlite
