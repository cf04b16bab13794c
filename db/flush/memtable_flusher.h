#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "db/context/database_context.h"
#include "db/context/database_state.h"
#include "db/family/family_edit.h"
#include "db/flush/flush_range.h"
#include "db/flush/near_flusher.h"
#include "db/manifest/table_lineage.h"
#include "db/space/headroom.h"
#include "db/write/memtable_generations.h"
#include "db/write/write_path.h"
#include "nacre/status.h"

namespace nacre {

/// Makes tables of a generation of MemTables, near the data or here. The tables of all families are
/// one change, which the caller commits.
///
/// Thread safety: none; it works with threads of its own.
class MemTableFlusher {
 public:
  /// All arguments outlive this.
  MemTableFlusher(DatabaseContext* context, DatabaseState* state, MemTableGenerations* generations,
                  const WritePath* writes, Headroom* headroom)
      : context_(*context),
        state_(state),
        generations_(generations),
        writes_(writes),
        headroom_(headroom),
        near_(context, state, writes) {}

  /// Awaits the writers of the generation, and writes its tables.
  Status Flush(const EndedGeneration& ended, std::vector<FamilyEdit>* edits)
      EXCLUDES(state_->mutex);
  const FlushSites& sites() const { return near_.sites(); }

 private:
  /// Those that are not empty, all of which is published.
  std::vector<FlushPart> PartsOf(const EndedGeneration& ended) EXCLUDES(state_->mutex);
  /// All entries are below `boundary`.
  Status TryFlush(std::vector<FlushPart>* parts, SequenceNumber boundary,
                  std::vector<FamilyEdit>* edits) EXCLUDES(state_->mutex);
  /// Given part and merge. `earlier`: bytes that other parts of the flush reserve.
  Status PrepareFlush(uint64_t earlier, PartFlush* flush) EXCLUDES(state_->mutex);
  /// Flushes as many ranges at once as there are background jobs.
  void FlushRanges(std::vector<PartFlush>* flushes, const TableLineage& lineage)
      EXCLUDES(state_->mutex);
  /// Answers with tables that are not given up after a failure.
  Status FinishFlush(PartFlush* flush, VersionEdit* edit) EXCLUDES(state_->mutex);
  void FlushRange(const PartFlush& flush, const MergeOptions& merge, FlushedRange* result);
  /// Reserves space and a writer for the next table of a flush.
  Status NewFlushOutput(const PartFlush& flush, TableMeta* identity,
                        std::unique_ptr<ExtentWriter>* writer);

  DatabaseContext& context_;
  DatabaseState* const state_;
  MemTableGenerations* const generations_;
  const WritePath* const writes_;
  Headroom* const headroom_;
  NearFlusher near_;
};

}  // namespace nacre
