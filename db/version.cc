#include "db/version.h"

#include <algorithm>
#include <bit>
#include <unordered_set>
#include <utility>

namespace nacre {

SortedLevel::SortedLevel(const InternalKeyComparator* comparator, TableList tables)
    : comparator_(comparator), tables_(std::move(tables)) {
  if (!comparator_->bytewise()) return;
  largest_prefixes_.reserve(tables_.size());
  for (const auto& table : tables_) {
    largest_prefixes_.push_back(KeyPrefix(table->meta().largest_user_key()));
  }
}

size_t SortedLevel::FindIndex(const Slice& user_key) const {
  size_t low = 0;
  size_t high = tables_.size();
  if (comparator_ != nullptr && comparator_->bytewise()) {
    // Tables whose prefix is smaller end before the key; those with an equal one are undecided.
    const uint64_t prefix = KeyPrefix(user_key);
    const auto range = std::equal_range(largest_prefixes_.begin(), largest_prefixes_.end(), prefix);
    low = static_cast<size_t>(range.first - largest_prefixes_.begin());
    high = static_cast<size_t>(range.second - largest_prefixes_.begin());
  }
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (comparator_->CompareUserKeys(tables_[middle]->meta().largest_user_key(), user_key) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

TableHandle* SortedLevel::Find(const Slice& user_key) const {
  const size_t index = FindIndex(user_key);
  return index < tables_.size() ? tables_[index].get() : nullptr;
}

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
      // Of the tables of one flush the first ones come first: when the versions of a key are cut
      // apart, the newest lie there.
      std::sort(tables.begin(), tables.end(), [](const auto& a, const auto& b) {
        const uint64_t version_a = a->meta().manifest_version;
        const uint64_t version_b = b->meta().manifest_version;
        return version_a != version_b ? version_a > version_b : a->id() < b->id();
      });
      version->level0_ = std::move(tables);
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

}  // namespace nacre
