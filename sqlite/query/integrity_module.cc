#include "sqlite/query/integrity_module.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sqlite/query/integrity_check.h"
#include "sqlite/table.h"

namespace nacre::sqlite {
namespace {

constexpr size_t kFindingsMax = 100;  // As SQLite has it.
/// Columns: what was found, then the arguments.
constexpr char kDeclaration[] =
    "CREATE TABLE x(integrity_check TEXT, table_name HIDDEN, findings_max HIDDEN)";

struct CheckModule : sqlite3_vtab {
  explicit CheckModule(Session* its_session) : sqlite3_vtab{}, session(its_session) {}

  int Fail(const Status& status) { return SetError(status, &zErrMsg); }

  Session* const session;
};

struct Findings : sqlite3_vtab_cursor {
  std::vector<std::string> sentences{};
  size_t at = 0;
};

Findings* FindingsOf(sqlite3_vtab_cursor* cursor) { return static_cast<Findings*>(cursor); }

int Connect(sqlite3* connection, void* session, int, const char* const*, sqlite3_vtab** table,
            char**) {
  const int code = sqlite3_declare_vtab(connection, kDeclaration);
  if (code != SQLITE_OK) return code;
  *table = std::make_unique<CheckModule>(static_cast<Session*>(session)).release();
  return SQLITE_OK;
}

int Disconnect(sqlite3_vtab* table) {
  std::unique_ptr<CheckModule>(static_cast<CheckModule*>(table)).reset();
  return SQLITE_OK;
}

/// The plan's number has a bit for each argument that is given.
int BestIndex(sqlite3_vtab*, sqlite3_index_info* info) {
  int given[2] = {-1, -1};
  for (int i = 0; i < info->nConstraint; ++i) {
    const auto& constraint = info->aConstraint[i];
    if (constraint.op != SQLITE_INDEX_CONSTRAINT_EQ) continue;
    if (constraint.iColumn != 1 && constraint.iColumn != 2) continue;
    if (constraint.usable == 0) return SQLITE_CONSTRAINT;  // Another order of a join has it.
    given[constraint.iColumn - 1] = i;
  }
  int arguments = 0;
  info->idxNum = 0;
  for (int i = 0; i < 2; ++i) {
    if (given[i] < 0) continue;
    info->aConstraintUsage[given[i]].argvIndex = ++arguments;
    info->aConstraintUsage[given[i]].omit = 1;
    info->idxNum |= 1 << i;
  }
  info->estimatedCost = 1e6;
  return SQLITE_OK;
}

int Open(sqlite3_vtab*, sqlite3_vtab_cursor** cursor) {
  *cursor = std::make_unique<Findings>().release();
  return SQLITE_OK;
}

int Close(sqlite3_vtab_cursor* cursor) {
  std::unique_ptr<Findings>(FindingsOf(cursor)).reset();
  return SQLITE_OK;
}

int Check(Table* table, size_t findings_max, Findings* findings) {
  Session* const session = table->session();
  if (sqlite3_get_autocommit(session->connection()) == 0) {  // It reads what the others read.
    const int joined = session->Join();
    if (joined != SQLITE_OK) return joined;
    table->transaction()->Begin();
  }
  table->transaction()->Pin();
  int code = table->Check();
  if (code == SQLITE_OK) {
    code = table->Fail(CheckIntegrity(table->schema(), table->transaction()->view(), findings_max,
                                      &findings->sentences));
  }
  table->transaction()->Unpin();
  return code;
}

int Filter(sqlite3_vtab_cursor* cursor, int given, const char*, int, sqlite3_value** arguments) {
  Findings* const findings = FindingsOf(cursor);
  CheckModule* const module = static_cast<CheckModule*>(cursor->pVtab);
  findings->sentences.clear();
  findings->at = 0;
  if ((given & 1) == 0) {
    return module->Fail(Status::InvalidArgument("nacre_integrity_check('table'): which table?"));
  }
  const unsigned char* const text = sqlite3_value_text(arguments[0]);
  const std::string name = text == nullptr ? "" : reinterpret_cast<const char*>(text);
  const int64_t most = (given & 2) == 0 ? 0 : sqlite3_value_int64(arguments[1]);
  Table* const table = module->session->FindTable(name);
  if (table == nullptr) {
    return module->Fail(Status::InvalidArgument("no such table of Nacre: " + name));
  }
  const int code = Check(table, most > 0 ? static_cast<size_t>(most) : kFindingsMax, findings);
  if (code != SQLITE_OK) {
    sqlite3_free(module->zErrMsg);
    module->zErrMsg = std::exchange(table->zErrMsg, nullptr);
    return code;
  }
  if (findings->sentences.empty()) findings->sentences.emplace_back("ok");
  return SQLITE_OK;
}

int Next(sqlite3_vtab_cursor* cursor) {
  ++FindingsOf(cursor)->at;
  return SQLITE_OK;
}

int Eof(sqlite3_vtab_cursor* cursor) {
  const Findings* const findings = FindingsOf(cursor);
  return findings->at >= findings->sentences.size() ? 1 : 0;
}

int Column(sqlite3_vtab_cursor* cursor, sqlite3_context* context, int column) {
  const Findings* const findings = FindingsOf(cursor);
  if (column == 0) SetResult(context, Value::Text(findings->sentences[findings->at]));
  return SQLITE_OK;
}

int Rowid(sqlite3_vtab_cursor* cursor, sqlite3_int64* rowid) {
  *rowid = static_cast<sqlite3_int64>(FindingsOf(cursor)->at);
  return SQLITE_OK;
}

/// There is no xCreate: the module is a table by itself, which cannot be made.
const sqlite3_module kModule = {0,       nullptr, Connect, BestIndex, Disconnect, nullptr,
                                Open,    Close,   Filter,  Next,      Eof,        Column,
                                Rowid,   nullptr, nullptr, nullptr,   nullptr,    nullptr,
                                nullptr, nullptr, nullptr, nullptr,   nullptr,    nullptr};

}  // namespace

int RegisterIntegrityModule(Session* session) {
  return sqlite3_create_module_v2(session->connection(), "nacre_integrity_check", &kModule, session,
                                  nullptr);
}

}  // namespace nacre::sqlite
