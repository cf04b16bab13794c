#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "db/version/level_tables.h"
#include "db/version/table_handle.h"
#include "table/format/internal_key.h"
#include "table/merge/merge_kernel.h"

namespace nacre {

/// One atomic change of the set of live tables: what a flush, a compaction or a move commits.
struct VersionEdit {
  struct Added {
    int level;
    std::shared_ptr<TableHandle> table;
  };
  std::vector<Added> added;
  TableList removed;
};

/// An immutable set of live tables. Level 0 is newest flush first; tables of different flushes may
/// overlap. A version shares with the one that it was made from what is the same in both: an edit
/// costs what it changes in the levels below 0, and all of level 0 if it changes that, which every
/// reader looks through anyway.
class Version {
 public:
  Version(const InternalKeyComparator* comparator, int num_levels);

  /// `base` with `edit` applied.
  static std::shared_ptr<const Version> Apply(const Version& base, const VersionEdit& edit);

  int num_levels() const { return static_cast<int>(levels_.size()) + 1; }
  const InternalKeyComparator& comparator() const { return *comparator_; }
  TableRange tables(int level) const {
    return level == 0 ? Level0() : sorted_level(level).tables();
  }
  /// Level 0 by flush: the tables of one are side by side, disjoint and in key order.
  const TableList& level0() const { return level0_->tables(); }
  int level0_runs() const { return level0_runs_; }
  bool Level0Holds(size_t table, const Slice& user_key) const {
    return level0_->bounds().Holds(table, user_key);
  }
  const SortedLevel& sorted_level(int level) const {
    return levels_[static_cast<size_t>(level) - 1];
  }
  std::span<const std::shared_ptr<const TableChunk>> chunks(int level) const {
    if (level == 0) return {&level0_, 1};
    return sorted_level(level).chunks();
  }
  uint64_t LevelBytes(int level) const {
    return level == 0 ? level0_->bytes() : sorted_level(level).bytes();
  }
  size_t CountTables(int level) const {
    return level == 0 ? level0_->size() : sorted_level(level).size();
  }
  size_t CountTables() const;
  /// One past the deepest level that holds a table; 0 if there is none.
  int depth() const { return depth_; }
  /// Whether any table has range tombstones.
  bool has_range_deletions() const { return has_range_deletions_; }

  /// Tables of `level` that overlap the user keys [begin, end]; null: open.
  TableList Overlapping(int level, const Slice* begin, const Slice* end) const;
  /// Whether there is such a table in any level below `level`, which is 0 or deeper.
  bool AnyBelow(int level, const Slice& begin, const Slice& end) const;
  /// Key ranges of the tables below `level` that overlap [begin, end], disjoint and ascending: what
  /// the merge kernel takes as `deeper`. If there are more than kDeeperRangesMax tables, neighbours
  /// count as one range, with what is between them: a tombstone there goes on to the next level.
  std::vector<KeyRange> DeeperRanges(int level, const Slice* begin, const Slice* end) const;
  static constexpr size_t kDeeperRangesMax = 1024;

  /// Where the table that `meta` is of lies, whatever its handle and level are now.
  std::optional<LevelIterator> Locate(const TableMeta& meta) const;
  /// The table itself; null if it is not here.
  std::shared_ptr<TableHandle> Find(const TableMeta& meta) const;
  /// The same in one level.
  std::shared_ptr<TableHandle> Find(int level, const TableMeta& meta) const;
  bool Has(int level, const std::shared_ptr<TableHandle>& table) const;

 private:
  TableRange Level0() const {
    const LevelIterator end(&level0_ + 1, 0);
    return {level0_->size() == 0 ? end : LevelIterator(&level0_, 0), end};
  }
  void SetLevel0(TableList tables);
  std::optional<LevelIterator> Locate(int level, const TableMeta& meta) const;

  const InternalKeyComparator* comparator_;
  std::shared_ptr<const TableChunk> level0_;
  int level0_runs_ = 0;
  std::vector<SortedLevel> levels_;  ///< Level 1 and on.
  int depth_ = 0;
  bool has_range_deletions_ = false;
};

/// Versions of several column families: together all tables of a database.
using VersionList = std::vector<std::shared_ptr<const Version>>;
int Depth(const VersionList& versions);
/// Visits the tables of all levels, upper ones first.
void ForEachTable(
    const VersionList& versions,
    const std::function<void(const std::shared_ptr<TableHandle>& table, int level)>& function);
/// `function(chunk, level)` of all chunks, likewise.
template <typename Function>
void ForEachChunk(const VersionList& versions, const Function& function) {
  const int depth = Depth(versions);
  for (int level = 0; level < depth; ++level) {
    for (const auto& version : versions) {
      if (level >= version->depth()) continue;
      for (const auto& chunk : version->chunks(level)) function(*chunk, level);
    }
  }
}
/// Where the table that `meta` is of lies now. The versions outlive the answer.
std::optional<LevelIterator> LocateTable(const VersionList& versions, const TableMeta& meta);
/// The table itself, as it is now; null if it is not there any more.
std::shared_ptr<TableHandle> FindTable(const VersionList& versions, const TableMeta& meta);

/// Smallest and largest user key of `tables` (not empty). The slices view the tables' metas.
std::pair<Slice, Slice> UserKeyRange(const InternalKeyComparator& comparator,
                                     const TableList& tables);

}  // namespace nacre
