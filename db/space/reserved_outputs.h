#pragma once

#include <cstddef>
#include <vector>

#include "db/version/version.h"
#include "jobs/compaction_job.h"
#include "pool/space/pending_writes.h"
#include "pool/space/space_allocator.h"

namespace nacre {

/// What a table may need beyond its share of the input: padding of a larger alignment, sections
/// that were smaller when split differently, the footer.
inline constexpr uint64_t kOutputSlackBytes = 256 << 10;

/// The space of a compaction's outputs until tables have it: what is left is free when this goes,
/// also if something throws.
///
/// Thread safety: none.
class ReservedOutputs {
 public:
  /// All of this outlives it; the outputs may still come. `end`: where they may be written to.
  ReservedOutputs(pool::SpaceAllocator* space, const pool::JobEnd* end,
                  std::vector<pool::ReservedTable>* outputs)
      : space_(space), end_(end), outputs_(outputs) {}
  ~ReservedOutputs() {
    for (size_t i = taken_; i < outputs_->size(); ++i)
      space_->Free(*end_, (*outputs_)[i].placement);
  }
  ReservedOutputs(const ReservedOutputs&) = delete;
  ReservedOutputs& operator=(const ReservedOutputs&) = delete;

  /// Where the next table lies, which has been written and takes no more than its bytes.
  Placement* Next() { return &(*outputs_)[taken_].placement; }
  /// A table has the space of Next.
  void Taken() { ++taken_; }
  /// What Next says is freed.
  void FreeNext() { space_->Free(*end_, (*outputs_)[taken_++].placement); }

 private:
  pool::SpaceAllocator* const space_;
  const pool::JobEnd* const end_;
  std::vector<pool::ReservedTable>* const outputs_;
  size_t taken_ = 0;
};

/// Tables that no version has yet: they are dropped when this goes, also if something throws.
class UnseenTables {
 public:
  UnseenTables() = default;
  ~UnseenTables() { Drop(); }
  UnseenTables(const UnseenTables&) = delete;
  UnseenTables& operator=(const UnseenTables&) = delete;

  /// One list for each range of keys.
  std::vector<TableList>* lists() { return &lists_; }
  void Drop() {
    for (const TableList& list : lists_) {
      for (const auto& table : list) table->MarkDropped();
    }
    lists_.clear();
  }
  /// They are about to be recorded: from here on only the committer knows whether they are.
  void Keep() { lists_.clear(); }

 private:
  std::vector<TableList> lists_;
};

}  // namespace nacre
