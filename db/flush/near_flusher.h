#pragma once

#include <cstdint>
#include <string>

#include "db/context/database_context.h"
#include "db/context/database_state.h"
#include "db/flush/flush_range.h"
#include "db/flush/flush_site.h"
#include "db/write/write_path.h"
#include "table/merge/merge_kernel.h"

namespace nacre {

/// Has nodes flush MemTables: out of the log, which they have, so that no entry crosses the network
/// a second time. It chooses where flushes run, and counts where they did.
///
/// Thread safety: Flush and FallBack from many threads at once; the other methods from one thread.
class NearFlusher {
 public:
  NearFlusher(DatabaseContext* context, DatabaseState* state, const WritePath* writes)
      : context_(*context), state_(state), writes_(writes) {}

  /// Whether nodes shall flush this MemTable, all of which is published, and from where.
  bool Plan(const MemTable& memtable, SequenceNumber boundary, NearFlush* near)
      EXCLUDES(state_->mutex);
  /// Flushes a range on the best node that can. False, with nothing left behind: it is to be done
  /// here.
  bool Flush(const PartFlush& flush, const MergeOptions& merge, FlushedRange* result)
      EXCLUDES(state_->mutex);
  void FallBack(FlushFallback why, const std::string& detail);
  /// A MemTable has been flushed.
  void NoteFlush(bool near_data, uint64_t bytes, uint64_t nanos) EXCLUDES(state_->mutex);
  const FlushSites& sites() const { return sites_; }

 private:
  DatabaseContext& context_;
  DatabaseState* const state_;
  const WritePath* const writes_;
  FlushSites sites_;
  FlushSiteChooser chooser_;  ///< Only the thread that flushes uses it.
};

}  // namespace nacre
