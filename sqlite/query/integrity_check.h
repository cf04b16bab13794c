#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "sqlite/row/schema.h"
#include "sqlite/transaction.h"

namespace nacre::sqlite {

/// Lists what is wrong with a table, as `view` sees it: one sentence for each finding, in the words
/// of SQLite's PRAGMA integrity_check where it has them, `findings_max` at most. An empty list
/// means: each row can be decoded, lies at its key, has the types of its columns and no NULL where
/// none may be; each of its index entries is there and names it; each entry of an index is one of a
/// row. So no unique key is there twice.
///
/// Reads the whole table, 64 rows at a time. Failures are those of reading.
Status CheckIntegrity(const Schema& schema, const ReadView& view, size_t findings_max,
                      std::vector<std::string>* findings);

}  // namespace nacre::sqlite
