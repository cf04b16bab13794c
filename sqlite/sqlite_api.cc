#include "sqlite/sqlite_api.h"

const sqlite3_api_routines* sqlite3_api = nullptr;
