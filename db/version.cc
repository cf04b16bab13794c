#include "db/version.h"

#include <algorithm>
#include <bit>
#include <unordered_set>
#include <utility>

namespace nacre {

TableBounds::TableBounds(const InternalKeyComparator* comparator, const TableList& tables)
    : comparator_(comparator) {
  bounds_.reserve(tables.size());
  for (const auto& table : tables) {
    const TableMeta& meta = table->meta();
    bounds_.push_back(
        {KeyPrefix(meta.smallest_user_key()), KeyPrefix(meta.largest_user_key()), &meta});
  }
}

bool TableBounds::Holds(size_t table, const Slice& user_key) const {
  const Bounds& bounds = bounds_[table];
  if (comparator_->bytewise()) [[likely]] {
    const uint64_t prefix = KeyPrefix(user_key);
    if (prefix > bounds.smallest && prefix < bounds.largest) [[likely]]
      return true;
    if (prefix < bounds.smallest || prefix > bounds.largest) return false;
  }
  return comparator_->CompareUserKeys(bounds.meta->smallest_user_key(), user_key) <= 0 &&
         comparator_->CompareUserKeys(bounds.meta->largest_user_key(), user_key) >= 0;
}

size_t TableBounds::FirstNotBefore(const Slice& user_key) const {
  const auto first_not = [this](const auto& is_before) {
    return static_cast<size_t>(std::partition_point(bounds_.begin(), bounds_.end(), is_before) -
                               bounds_.begin());
  };
  const auto ends_before = [&](const Bounds& bounds) {
    const int r = comparator_->CompareUserKeys(bounds.meta->largest_user_key(), user_key);
    // With the greatest tag its range tombstones end there, and another table may begin.
    return r < 0 || (r == 0 && ExtractTag(bounds.meta->largest) == kGreatestTag);
  };
  if (comparator_ == nullptr || !comparator_->bytewise()) return first_not(ends_before);
  const uint64_t prefix = KeyPrefix(user_key);
  return first_not([&](const Bounds& bounds) {
    return bounds.largest < prefix || (bounds.largest == prefix && ends_before(bounds));
  });
}

SortedLevel::SortedLevel(const InternalKeyComparator* comparator, TableList tables)
    : tables_(std::move(tables)), bounds_(comparator, tables_) {}

Version::Version(const InternalKeyComparator* comparator, int num_levels)
    : comparator_(comparator),
      levels_(static_cast<size_t>(num_levels) - 1, SortedLevel(comparator, {})) {}

std::shared_ptr<const Version> Version::Apply(const Version& base, const VersionEdit& edit) {
  auto version = std::make_shared<Version>(base.comparator_, base.num_levels());
  std::unordered_set<uint64_t> removed;
  for (const auto& table : edit.removed) removed.insert(table->id());

  for (int level = 0; level < base.num_levels(); ++level) {
    TableList tables;
    for (const auto& table : base.tables(level)) {
      if (!removed.contains(table->id())) tables.push_back(table);
    }
    bool changed = tables.size() != base.tables(level).size();
    for (const auto& added : edit.added) {
      if (added.level != level) continue;
      tables.push_back(added.table);
      changed = true;
    }
    if (level == 0) {
      // The tables of one flush in key order: when the versions of a key are cut apart, the newest
      // come first.
      std::sort(tables.begin(), tables.end(), [&](const auto& a, const auto& b) {
        const uint64_t version_a = a->meta().manifest_version;
        const uint64_t version_b = b->meta().manifest_version;
        if (version_a != version_b) return version_a > version_b;
        return base.comparator_->Compare(a->meta().smallest, b->meta().smallest) < 0;
      });
      version->level0_runs_ = 0;
      for (size_t i = 0; i < tables.size(); ++i) {
        const bool follows =
            i > 0 && tables[i]->meta().manifest_version == tables[i - 1]->meta().manifest_version;
        if (!follows) ++version->level0_runs_;
      }
      version->level0_ = std::move(tables);
      version->level0_bounds_ = TableBounds(base.comparator_, version->level0_);
    } else if (!changed) {
      version->levels_[static_cast<size_t>(level) - 1] = base.sorted_level(level);
    } else {
      const InternalKeyComparator& comparator = *base.comparator_;
      std::sort(tables.begin(), tables.end(), [&](const auto& a, const auto& b) {
        return comparator.Compare(a->meta().smallest, b->meta().smallest) < 0;
      });
      version->levels_[static_cast<size_t>(level) - 1] =
          SortedLevel(base.comparator_, std::move(tables));
    }
    if (!version->tables(level).empty()) version->depth_ = level + 1;
    for (const auto& table : version->tables(level)) {
      version->has_range_deletions_ |= table->meta().has_range_deletions();
    }
  }
  return version;
}

uint64_t Version::LevelBytes(int level) const {
  uint64_t bytes = 0;
  for (const auto& table : tables(level)) bytes += table->size();
  return bytes;
}

TableList Version::Overlapping(int level, const Slice* begin, const Slice* end) const {
  TableList result;
  for (const auto& table : tables(level)) {
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

std::vector<KeyRange> Version::DeeperRanges(int level, const Slice* begin, const Slice* end) const {
  std::vector<KeyRange> ranges;
  for (int deeper = level + 1; deeper < num_levels(); ++deeper) {
    for (const auto& table : Overlapping(deeper, begin, end)) {
      ranges.push_back({table->meta().smallest_user_key().ToString(),
                        table->meta().largest_user_key().ToString()});
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

TableList TablesOf(const VersionList& versions, int level) {
  TableList all;
  for (const auto& version : versions) {
    if (level >= version->depth()) continue;
    const TableList& tables = version->tables(level);
    all.insert(all.end(), tables.begin(), tables.end());
  }
  return all;
}

TableList TablesOf(const Version& version) {
  TableList all;
  for (int level = 0; level < version.depth(); ++level) {
    all.insert(all.end(), version.tables(level).begin(), version.tables(level).end());
  }
  return all;
}

std::pair<std::shared_ptr<TableHandle>, int> FindTable(const VersionList& versions, uint64_t id) {
  for (const auto& version : versions) {
    for (int level = 0; level < version->depth(); ++level) {
      for (const auto& table : version->tables(level)) {
        if (table->id() == id) return {table, level};
      }
    }
  }
  return {nullptr, 0};
}

}  // namespace nacre
