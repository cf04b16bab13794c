#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "sqlite/row/schema.h"
#include "sqlite/transaction.h"

namespace nacre::sqlite {

/// How many entries of an index are equal in its first part, its first two parts and so on, on the
/// average, as SQLite's own `sqlite_stat1` has it: counted on request (Analyze), and kept in the
/// catalogue. Plans that stem from old numbers are slower, never wrong.
///
///     u8       1, the version of this format
///     varint   number of key spaces, that of the rows first; then for each of them
///     varint   number of parts, then for each of them
///     varint   16 times the entries that are equal up to it
struct KeyDistribution {
  std::vector<std::vector<double>> equal_entries;

  std::string Encode() const;
  /// `Corruption` if malformed, or if it is not of the key spaces of `schema`.
  Status Decode(const Schema& schema, Slice input);
};

/// Counts in all keys of the table, or in the first `limit` of each key space if that is not 0.
/// Blocks for as long as these are read.
Status CountKeys(const ReadView& view, const Schema& schema, uint64_t limit,
                 KeyDistribution* distribution);

/// What the catalogue has; `*distribution` stays null if that is nothing.
Status FindDistribution(const ReadView& view, const Schema& schema,
                        std::shared_ptr<const KeyDistribution>* distribution);
/// Writes it at once, in a transaction of its own.
Status WriteDistribution(const Schema& schema, const KeyDistribution& distribution);

}  // namespace nacre::sqlite
