#pragma once

#include "sqlite/sqlite_api.h"

/// The entry point of nacre_sqlite.so, which `.load` of the SQLite shell and sqlite3_load_extension
/// call by its name. An application that links the library hands it to sqlite3_auto_extension.
extern "C" int sqlite3_nacresqlite_init(sqlite3* connection, char** message,
                                        const sqlite3_api_routines* api);
