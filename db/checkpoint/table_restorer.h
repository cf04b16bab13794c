#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "db/database_parts.h"
#include "nacre/status.h"
#include "table/format/extent.h"
#include "table/format/table_meta.h"

namespace nacre {

/// Makes tables of another database part of one that is being restored, until it has them all.
///
/// Thread safety: all methods may be called from many threads at once.
class TableRestorer {
 public:
  /// `parts` outlive this.
  explicit TableRestorer(DatabaseParts* parts) : parts_(*parts), context_(parts->context) {}

  /// Writes all bytes of a table, of which the last are `ending`.
  using FillTable = std::function<Status(ExtentWriter* writer, const Slice& ending)>;
  /// Makes a table that another database had, with its id and level, part of this one. The bytes
  /// from its lineage on are written anew: what they say holds there.
  Status Restore(uint32_t level, const TableMeta& original, const FillTable& fill)
      EXCLUDES(parts_.state.mutex, parts_.committer.mutex);
  /// All tables are there: the database is whole, and can be opened once it is closed.
  Status End() EXCLUDES(parts_.state.mutex, parts_.committer.mutex);

 private:
  Status TryRestore(uint32_t level, const TableMeta& original, const FillTable& fill)
      EXCLUDES(parts_.state.mutex, parts_.committer.mutex);
  std::string NewLineage() EXCLUDES(parts_.state.mutex);

  DatabaseParts& parts_;
  DatabaseContext& context_;
};

}  // namespace nacre
