#pragma once

#include <memory>
#include <vector>

#include "table/format/internal_key.h"
#include "table/iterator/internal_iterator.h"
#include "table/table_reader.h"

namespace nacre {

/// A cursor over tables that are disjoint and ascending: one level, one run of a compaction.
/// Thread safety: none.
class TableRun {
 public:
  TableRun() = default;
  virtual ~TableRun() = default;
  TableRun(const TableRun&) = delete;
  TableRun& operator=(const TableRun&) = delete;

  /// The current table; null past either end, where only a Seek leads back.
  virtual const TableReader* table() const = 0;
  virtual void SeekToFirst() = 0;
  virtual void SeekToLast() = 0;
  /// Moves to the first table that does not end before `internal_key`.
  virtual void Seek(const Slice& internal_key) = 0;
  virtual void Next() = 0;
  virtual void Prev() = 0;
};

/// The entries of the tables of `run`, one table after the other. Opens the iterator of one table
/// at a time, and costs the same however many tables there are. The tables outlive the result.
std::unique_ptr<InternalIterator> NewConcatenatingIterator(std::unique_ptr<TableRun> run,
                                                           const TableIteratorOptions& options);
/// The same over tables that are listed.
std::unique_ptr<InternalIterator> NewConcatenatingIterator(const InternalKeyComparator& comparator,
                                                           std::vector<const TableReader*> tables,
                                                           const TableIteratorOptions& options);

}  // namespace nacre
