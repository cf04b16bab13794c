#pragma once

// SQLite's functions as a loaded extension reaches them: through a table of pointers that SQLite
// hands to the entry point (sqlite/extension.cc), which is set once, before any other use.

#include <sqlite3ext.h>

extern const sqlite3_api_routines* sqlite3_api;
