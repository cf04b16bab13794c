#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "db/table_handle.h"
#include "table/internal_key.h"
#include "table/merge_kernel.h"

namespace nacre {

using TableList = std::vector<std::shared_ptr<TableHandle>>;

/// One atomic change of the set of live tables: what a flush, a compaction or a move commits.
struct VersionEdit {
  struct Added {
    int level;
    std::shared_ptr<TableHandle> table;
  };
  std::vector<Added> added;
  TableList removed;
};

/// The ranges of user keys of some tables. Under the bytewise order 8-byte prefixes of their ends,
/// side by side, decide nearly all questions, so that no key and no table is touched.
class TableBounds {
 public:
  TableBounds() = default;
  /// The tables outlive this.
  TableBounds(const InternalKeyComparator* comparator, const TableList& tables);

  bool Holds(size_t table, const Slice& user_key) const;
  /// Of tables in key order the first that does not end before `user_key`; their number if there is
  /// none.
  size_t FirstNotBefore(const Slice& user_key) const;

 private:
  struct Bounds {
    uint64_t smallest;  ///< Prefixes.
    uint64_t largest;
    const TableMeta* meta;
  };
  const InternalKeyComparator* comparator_ = nullptr;
  std::vector<Bounds> bounds_;
};

/// Tables of one level below 0: disjoint but for versions of one user key at their ends, in key
/// order.
class SortedLevel {
 public:
  SortedLevel() = default;
  SortedLevel(const InternalKeyComparator* comparator, TableList tables);

  const TableList& tables() const { return tables_; }
  /// The first table whose range holds `user_key`, or null.
  TableHandle* Find(const Slice& user_key) const {
    const size_t index = bounds_.FirstNotBefore(user_key);
    const bool found = index < tables_.size() && bounds_.Holds(index, user_key);
    return found ? tables_[index].get() : nullptr;
  }
  /// All of them, of which several have versions of `user_key` only if the first one ends with it.
  std::span<const std::shared_ptr<TableHandle>> FindAll(const Slice& user_key) const {
    const size_t first = bounds_.FirstNotBefore(user_key);
    size_t end = first;
    while (end < tables_.size() && bounds_.Holds(end, user_key)) ++end;
    return std::span(tables_).subspan(first, end - first);
  }

 private:
  TableList tables_;
  TableBounds bounds_;
};

/// An immutable set of live tables. Level 0 is newest flush first; tables of different flushes may
/// overlap.
class Version {
 public:
  Version(const InternalKeyComparator* comparator, int num_levels);

  /// `base` with `edit` applied.
  static std::shared_ptr<const Version> Apply(const Version& base, const VersionEdit& edit);

  int num_levels() const { return static_cast<int>(levels_.size()) + 1; }
  const InternalKeyComparator& comparator() const { return *comparator_; }
  const TableList& tables(int level) const {
    return level == 0 ? level0_ : levels_[static_cast<size_t>(level) - 1].tables();
  }
  /// Level 0 by flush: the tables of one are side by side, disjoint and in key order.
  int level0_runs() const { return level0_runs_; }
  bool Level0Holds(size_t table, const Slice& user_key) const {
    return level0_bounds_.Holds(table, user_key);
  }
  const SortedLevel& sorted_level(int level) const {
    return levels_[static_cast<size_t>(level) - 1];
  }
  uint64_t LevelBytes(int level) const;
  /// One past the deepest level that holds a table; 0 if there is none.
  int depth() const { return depth_; }
  /// Whether any table has range tombstones.
  bool has_range_deletions() const { return has_range_deletions_; }

  /// Tables of `level` that overlap the user keys [begin, end]; null: open.
  TableList Overlapping(int level, const Slice* begin, const Slice* end) const;
  /// Key ranges of the tables below `level` that overlap [begin, end], disjoint and ascending: what
  /// the merge kernel takes as `deeper`.
  std::vector<KeyRange> DeeperRanges(int level, const Slice* begin, const Slice* end) const;

 private:
  const InternalKeyComparator* comparator_;
  TableList level0_;
  TableBounds level0_bounds_;
  int level0_runs_ = 0;
  std::vector<SortedLevel> levels_;  ///< Level 1 and on.
  int depth_ = 0;
  bool has_range_deletions_ = false;
};

/// Of several column families: together all tables of a database.
using VersionList = std::vector<std::shared_ptr<const Version>>;
int Depth(const VersionList& versions);
TableList TablesOf(const VersionList& versions, int level);
TableList TablesOf(const Version& version);
/// The table `id` and its level; null if there is none.
std::pair<std::shared_ptr<TableHandle>, int> FindTable(const VersionList& versions, uint64_t id);

/// Smallest and largest user key of `tables` (not empty). The slices view the tables' metas.
std::pair<Slice, Slice> UserKeyRange(const InternalKeyComparator& comparator,
                                     const TableList& tables);

}  // namespace nacre
