#include "sqlite/extension.h"

#include <memory>
#include <utility>

#include "sqlite/query/analyze.h"
#include "sqlite/query/integrity_module.h"
#include "sqlite/session.h"
#include "sqlite/sqlite_api.h"
#include "sqlite/table_module.h"

extern "C" __attribute__((visibility("default"))) int sqlite3_nacresqlite_init(
    sqlite3* connection, char** /*message*/, const sqlite3_api_routines* api) {
  sqlite3_api = api;
  auto session = std::make_unique<nacre::sqlite::Session>(connection);
  int code = nacre::sqlite::RegisterTransactionModule(session.get());
  if (code == SQLITE_OK) code = nacre::sqlite::RegisterIntegrityModule(session.get());
  if (code == SQLITE_OK) code = nacre::sqlite::RegisterAnalyze(session.get());
  if (code != SQLITE_OK) return code;
  const int table_code = nacre::sqlite::RegisterTableModule(std::move(session));
  // Threads of an opened database may run after the last connection is closed.
  return table_code == SQLITE_OK ? SQLITE_OK_LOAD_PERMANENTLY : table_code;
}
