// The extension for tables in keyspaces that several processes use: it knows etcd.

#include "nacre/utilities/etcd.h"
#include "sqlite/sqlite_api.h"

extern "C" int sqlite3_nacresqlite_init(sqlite3* connection, char** message,
                                        const sqlite3_api_routines* api);

extern "C" __attribute__((visibility("default"))) int sqlite3_nacresqliteetcd_init(
    sqlite3* connection, char** message, const sqlite3_api_routines* api) {
  nacre::UseEtcd();
  return sqlite3_nacresqlite_init(connection, message, api);
}
