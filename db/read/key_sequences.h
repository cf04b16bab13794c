#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/context/database_state.h"
#include "db/read/read_path.h"
#include "nacre/column_family.h"
#include "nacre/iterator.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"

namespace nacre {

/// What transactions and adapters ask of an open database: the sequence number of a key's last
/// write, which families there are, and what is in its memory. Thread safety: all methods may be
/// called from many threads at once.
class KeySequences {
 public:
  /// All of it outlives this.
  KeySequences(const DatabaseState* state, const ReadPath* reads) : state_(state), reads_(reads) {}

  /// The sequence number of the newest entry of `key`, or of the newest range deletion that covers
  /// it, published or not, if that is above `known`; otherwise any number up to `known`. A write
  /// meanwhile may be missed. Tables are read if the MemTables do not settle it and any of them has
  /// entries above `known` where the key would be. Fails as reads do, and with `InvalidArgument` if
  /// there is no such family (any more).
  Status Latest(uint32_t family, const Slice& key, SequenceNumber known,
                SequenceNumber* sequence) const;

  /// As `DB::NewIterator`, over what this process has in memory: see db/read/view_reads.h. A
  /// failure is that of the iterator.
  std::unique_ptr<Iterator> NewMemoryIterator(const ReadOptions& options, uint32_t family) const;

  /// Null if there is none.
  std::unique_ptr<ColumnFamilyHandle> FindHandle(uint32_t family) const;
  std::unique_ptr<ColumnFamilyHandle> FindHandle(const std::string& family) const;
  /// Ids of those that are listed, in the order in which they were made.
  std::vector<uint32_t> Families() const;

 private:
  const DatabaseState* const state_;
  const ReadPath* const reads_;
};

}  // namespace nacre
