#include "db/version/version.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace nacre {

Version::Version(const InternalKeyComparator* comparator, int num_levels)
    : comparator_(comparator),
      level0_(std::make_shared<const TableChunk>(comparator, TableList())),
      levels_(static_cast<size_t>(num_levels) - 1, SortedLevel(comparator)) {}

std::shared_ptr<const Version> Version::Apply(const Version& base, const VersionEdit& edit) {
  auto version = std::make_shared<Version>(base);
  const auto levels = static_cast<size_t>(base.num_levels());
  std::vector<TableList> added(levels);
  for (const auto& [level, table] : edit.added) added[static_cast<size_t>(level)].push_back(table);
  std::vector<std::vector<LevelIterator>> removed(levels);
  std::unordered_set<uint64_t> removed_from_level0;
  for (const auto& table : edit.removed) {
    bool found = false;
    for (size_t level = 1; level < levels && !found; ++level) {
      const SortedLevel& sorted = base.levels_[level - 1];
      const LevelIterator it = sorted.Locate(table->meta());
      found = it != sorted.End();
      if (found) removed[level].push_back(it);
    }
    if (!found) removed_from_level0.insert(table->id());
  }

  for (size_t level = 1; level < levels; ++level) {
    if (added[level].empty() && removed[level].empty()) continue;
    version->levels_[level - 1] =
        base.levels_[level - 1].With(std::move(added[level]), removed[level]);
  }
  if (!added[0].empty() || !removed_from_level0.empty()) {
    std::copy_if(base.level0().begin(), base.level0().end(), std::back_inserter(added[0]),
                 [&](const auto& table) { return !removed_from_level0.contains(table->id()); });
    version->SetLevel0(std::move(added[0]));
  }
  version->depth_ = version->level0_->size() == 0 ? 0 : 1;
  version->has_range_deletions_ = version->level0_->range_deletions() > 0;
  for (int level = 1; level < base.num_levels(); ++level) {
    const SortedLevel& sorted = version->sorted_level(level);
    if (!sorted.empty()) version->depth_ = level + 1;
    version->has_range_deletions_ |= sorted.range_deletions() > 0;
  }
  return version;
}

void Version::SetLevel0(TableList tables) {
  // The tables of one flush in key order: when the versions of a key are cut apart, the newest come
  // first.
  std::sort(tables.begin(), tables.end(), [this](const auto& a, const auto& b) {
    const uint64_t version_a = a->meta().manifest_version;
    const uint64_t version_b = b->meta().manifest_version;
    if (version_a != version_b) return version_a > version_b;
    return comparator_->Compare(a->meta().smallest, b->meta().smallest) < 0;
  });
  level0_runs_ = 0;
  for (size_t i = 0; i < tables.size(); ++i) {
    const bool follows =
        i > 0 && tables[i]->meta().manifest_version == tables[i - 1]->meta().manifest_version;
    if (!follows) ++level0_runs_;
  }
  level0_ = std::make_shared<const TableChunk>(comparator_, std::move(tables));
}

size_t Version::CountTables() const {
  size_t tables = 0;
  for (int level = 0; level < depth_; ++level) tables += CountTables(level);
  return tables;
}

TableList Version::Overlapping(int level, const Slice* begin, const Slice* end) const {
  if (level > 0) return sorted_level(level).Overlapping(begin, end).ToList();
  TableList result;
  for (const auto& table : level0()) {
    if (begin != nullptr &&
        comparator_->CompareUserKeys(table->meta().largest_user_key(), *begin) < 0) {
      continue;
    }
    if (end != nullptr &&
        comparator_->CompareUserKeys(table->meta().smallest_user_key(), *end) > 0) {
      continue;
    }
    result.push_back(table);
  }
  return result;
}

bool Version::AnyBelow(int level, const Slice& begin, const Slice& end) const {
  for (int deeper = level + 1; deeper < depth_; ++deeper) {
    if (!sorted_level(deeper).Overlapping(&begin, &end).empty()) return true;
  }
  return false;
}

std::vector<KeyRange> Version::DeeperRanges(int level, const Slice* begin, const Slice* end) const {
  std::vector<KeyRange> ranges;
  const auto add = [&ranges](const TableMeta& first, const TableMeta& last) {
    ranges.push_back({first.smallest_user_key().ToString(), last.largest_user_key().ToString()});
  };
  if (level < 0) {
    for (const auto& table : Overlapping(0, begin, end)) add(table->meta(), table->meta());
  }
  std::vector<TableRange> below;
  size_t tables = 0;
  for (int deeper = std::max(level + 1, 1); deeper < depth_; ++deeper) {
    const SortedLevel& sorted = sorted_level(deeper);
    tables += sorted.CountOf(below.emplace_back(sorted.Overlapping(begin, end)));
  }
  const size_t together = tables / kDeeperRangesMax + 1;
  for (const TableRange& range : below) {
    for (LevelIterator it = range.begin(); it != range.end();) {
      const LevelIterator first = it;
      LevelIterator last = it;
      for (size_t i = 0; i < together && it != range.end(); ++i) last = it++;
      add((*first)->meta(), (*last)->meta());
    }
  }
  const auto less = [this](const std::string& a, const std::string& b) {
    return comparator_->CompareUserKeys(a, b) < 0;
  };
  std::sort(ranges.begin(), ranges.end(),
            [&](const KeyRange& a, const KeyRange& b) { return less(a.smallest, b.smallest); });
  std::vector<KeyRange> merged;
  for (auto& range : ranges) {
    if (!merged.empty() && !less(merged.back().largest, range.smallest)) {
      if (less(merged.back().largest, range.largest)) merged.back().largest = range.largest;
    } else {
      merged.push_back(std::move(range));
    }
  }
  return merged;
}

std::optional<LevelIterator> Version::Locate(int level, const TableMeta& meta) const {
  if (level > 0) {
    const SortedLevel& sorted = sorted_level(level);
    const LevelIterator found = sorted.Locate(meta);
    return found == sorted.End() ? std::nullopt : std::optional(found);
  }
  const auto found = std::find_if(level0().begin(), level0().end(),
                                  [&](const auto& table) { return table->id() == meta.id; });
  if (found == level0().end()) return std::nullopt;
  return LevelIterator(&level0_, static_cast<size_t>(found - level0().begin()));
}

std::optional<LevelIterator> Version::Locate(const TableMeta& meta) const {
  for (int level = depth_ - 1; level >= 0; --level) {
    if (const auto found = Locate(level, meta)) return found;
  }
  return std::nullopt;
}

std::shared_ptr<TableHandle> Version::Find(const TableMeta& meta) const {
  const auto found = Locate(meta);
  return found.has_value() ? **found : nullptr;
}

std::shared_ptr<TableHandle> Version::Find(int level, const TableMeta& meta) const {
  const auto found = Locate(level, meta);
  return found.has_value() ? **found : nullptr;
}

bool Version::Has(int level, const std::shared_ptr<TableHandle>& table) const {
  return Find(level, table->meta()) == table;
}

std::pair<Slice, Slice> UserKeyRange(const InternalKeyComparator& comparator,
                                     const TableList& tables) {
  Slice smallest = tables.front()->meta().smallest_user_key();
  Slice largest = tables.front()->meta().largest_user_key();
  for (const auto& table : tables) {
    const TableMeta& meta = table->meta();
    if (comparator.CompareUserKeys(meta.smallest_user_key(), smallest) < 0) {
      smallest = meta.smallest_user_key();
    }
    if (comparator.CompareUserKeys(meta.largest_user_key(), largest) > 0) {
      largest = meta.largest_user_key();
    }
  }
  return {smallest, largest};
}

int Depth(const VersionList& versions) {
  int depth = 0;
  for (const auto& version : versions) depth = std::max(depth, version->depth());
  return depth;
}

void ForEachTable(
    const VersionList& versions,
    const std::function<void(const std::shared_ptr<TableHandle>& table, int level)>& function) {
  for (int level = 0; level < Depth(versions); ++level) {
    for (const auto& version : versions) {
      if (level >= version->depth()) continue;
      for (const auto& table : version->tables(level)) function(table, level);
    }
  }
}

std::optional<LevelIterator> LocateTable(const VersionList& versions, const TableMeta& meta) {
  for (const auto& version : versions) {
    // Those of another order are of another family.
    if (meta.comparator != version->comparator().user_comparator()->Name()) continue;
    if (const auto found = version->Locate(meta)) return found;
  }
  return std::nullopt;
}

std::shared_ptr<TableHandle> FindTable(const VersionList& versions, const TableMeta& meta) {
  const auto found = LocateTable(versions, meta);
  return found.has_value() ? **found : nullptr;
}

}  // namespace nacre
