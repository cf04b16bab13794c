#pragma once

#include "sqlite/session.h"

namespace nacre::sqlite {

/// Registers the SQL function nacre_analyze(table [, limit]), which counts how many entries of the
/// indexes are equal (sqlite/query/key_distribution.h), for later plans of all connections, as
/// ANALYZE does for SQLite's own tables. With a limit it reads so many entries of each index only.
/// Answers the number of key spaces that it has read. An SQLite error code.
int RegisterAnalyze(Session* session);

}  // namespace nacre::sqlite
