#include "db/version/level_tables.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace nacre {

namespace {

/// A changed chunk with fewer tables than this is joined with a neighbour.
constexpr size_t kChunkTablesMin = SortedLevel::kChunkTablesMax / 4;
/// New chunks are not filled up, or the next table would split them.
constexpr size_t kChunkTablesNew = SortedLevel::kChunkTablesMax * 3 / 4;

}  // namespace

bool TableBounds::Holds(size_t table, const Slice& user_key) const {
  const Bounds& bounds = bounds_[table];
  if (comparator_->bytewise()) [[likely]] {
    const Prefix prefix(user_key);
    if (prefix > bounds.smallest && prefix < bounds.largest) [[likely]]
      return true;
    if (prefix < bounds.smallest || prefix > bounds.largest) return false;
  }
  return comparator_->CompareUserKeys(bounds.meta->smallest_user_key(), user_key) <= 0 &&
         comparator_->CompareUserKeys(bounds.meta->largest_user_key(), user_key) >= 0;
}

bool TableBounds::EndsBefore(size_t table, const TableBounds& other, size_t other_table) const {
  const Bounds& bounds = bounds_[table];
  const Bounds& other_bounds = other.bounds_[other_table];
  if (comparator_->bytewise() && bounds.largest != other_bounds.smallest) {
    return bounds.largest < other_bounds.smallest;
  }
  return comparator_->CompareUserKeys(bounds.meta->largest_user_key(),
                                      other_bounds.meta->smallest_user_key()) < 0;
}

template <typename IsBefore>
size_t TableBounds::FirstNot(Prefix Bounds::*prefix_of, const Slice& user_key,
                             const IsBefore& is_before) const {
  const auto first_not = [this](const auto& passed) {
    return static_cast<size_t>(std::partition_point(bounds_.begin(), bounds_.end(), passed) -
                               bounds_.begin());
  };
  if (!comparator_->bytewise()) {
    return first_not([&](const Bounds& bounds) { return is_before(*bounds.meta); });
  }
  const Prefix prefix(user_key);
  return first_not([&](const Bounds& bounds) {
    const auto order = bounds.*prefix_of <=> prefix;
    return order < 0 || (order == 0 && is_before(*bounds.meta));
  });
}

size_t TableBounds::FirstNotBefore(const Slice& user_key) const {
  return FirstNot(&Bounds::largest, user_key, [&](const TableMeta& meta) {
    const int r = comparator_->CompareUserKeys(meta.largest_user_key(), user_key);
    // If that has the greatest tag, its range tombstones end there, and another table may begin.
    return r < 0 || (r == 0 && ExtractTag(meta.largest) == kGreatestTag);
  });
}

size_t TableBounds::FirstHolding(const Slice& user_key) const {
  const size_t at = FirstNotBefore(user_key);
  if (at == bounds_.size()) return at;
  const Bounds& bounds = bounds_[at];  // It does not end before the key.
  if (comparator_->bytewise()) [[likely]] {
    const Prefix prefix(user_key);
    if (prefix != bounds.smallest) [[likely]]
      return prefix > bounds.smallest ? at : bounds_.size();
  }
  const bool begins_later =
      comparator_->CompareUserKeys(bounds.meta->smallest_user_key(), user_key) > 0;
  return begins_later ? bounds_.size() : at;
}

size_t TableBounds::FirstReaching(const Slice& user_key, bool after) const {
  return FirstNot(&Bounds::largest, user_key, [&](const TableMeta& meta) {
    const int r = comparator_->CompareUserKeys(meta.largest_user_key(), user_key);
    return after ? r <= 0 : r < 0;
  });
}

size_t TableBounds::FirstBeyond(const Slice& user_key) const {
  return FirstNot(&Bounds::smallest, user_key, [&](const TableMeta& meta) {
    return comparator_->CompareUserKeys(meta.smallest_user_key(), user_key) <= 0;
  });
}

TableChunk::TableChunk(const InternalKeyComparator* comparator, TableList tables)
    : tables_(std::move(tables)), bounds_(comparator) {
  bounds_.reserve(tables_.size());
  bytes_through_.reserve(tables_.size());
  uint64_t bytes = 0;
  for (const auto& table : tables_) {
    const TableMeta& meta = table->meta();
    bounds_.Add(meta);
    bytes_through_.push_back(bytes += meta.size);
    range_deletions_ += meta.has_range_deletions() ? 1 : 0;
  }
}

const TableSums& TableChunk::sums() const {
  std::call_once(summed_, [this] {
    for (const auto& table : tables_) sums_.Add(table->meta());
  });
  return sums_;
}

size_t TableRange::size() const {
  size_t tables = end_.index();
  for (const auto* chunk = begin_.chunk(); chunk != end_.chunk(); ++chunk) {
    tables += (*chunk)->size();
  }
  return tables - begin_.index();
}

void SortedLevel::Directory::Add(std::shared_ptr<const TableChunk> chunk) {
  Through sums = Before(chunks.size());
  sums.tables += chunk->size();
  sums.bytes += chunk->bytes();
  sums.range_deletions += chunk->range_deletions();
  through.push_back(sums);
  lasts.AddFrom(chunk->bounds(), chunk->size() - 1);
  chunks.push_back(std::move(chunk));
}

void SortedLevel::Directory::AddFrom(const Directory& other, size_t chunk) {
  Through sums = Before(chunks.size());
  const Through before = other.Before(chunk);
  const Through& after = other.through[chunk];
  sums.tables += after.tables - before.tables;
  sums.bytes += after.bytes - before.bytes;
  sums.range_deletions += after.range_deletions - before.range_deletions;
  through.push_back(sums);
  lasts.AddFrom(other.lasts, chunk);
  chunks.push_back(other.chunks[chunk]);
}

void SortedLevel::Directory::Cut(const InternalKeyComparator* comparator, TableList* tables) {
  const size_t count = tables->size();
  const size_t pieces =
      count <= kChunkTablesMax ? 1 : (count + kChunkTablesNew - 1) / kChunkTablesNew;
  for (size_t i = 0; i < pieces && count > 0; ++i) {
    const auto at = [&](size_t piece) {
      return std::make_move_iterator(tables->begin() +
                                     static_cast<ptrdiff_t>(count * piece / pieces));
    };
    Add(std::make_shared<const TableChunk>(comparator, TableList(at(i), at(i + 1))));
  }
  tables->clear();
}

SortedLevel::SortedLevel(const InternalKeyComparator* comparator)
    : comparator_(comparator), directory_(std::make_shared<const Directory>(comparator)) {}

SortedLevel::SortedLevel(const InternalKeyComparator* comparator, TableList tables)
    : SortedLevel(SortedLevel(comparator).With(std::move(tables), {})) {}

TableRange SortedLevel::FindAll(const Slice& user_key) const {
  const LevelIterator first =
      At(directory_->lasts.FirstNotBefore(user_key),
         [&](const TableBounds& bounds) { return bounds.FirstNotBefore(user_key); });
  LevelIterator end = first;
  while (end != End() && end.bounds().Holds(end.index(), user_key)) ++end;
  return {first, end};
}

TableRange SortedLevel::Overlapping(const Slice* begin, const Slice* end, bool after) const {
  LevelIterator first = Begin();
  if (begin != nullptr) {
    first = At(directory_->lasts.FirstReaching(*begin, after),
               [&](const TableBounds& bounds) { return bounds.FirstReaching(*begin, after); });
  }
  LevelIterator last = End();
  if (end != nullptr) {
    last = At(directory_->lasts.FirstBeyond(*end),
              [&](const TableBounds& bounds) { return bounds.FirstBeyond(*end); });
  }
  // Callers may ask for a range that ends before it begins.
  const bool none = last.chunk() < first.chunk() ||
                    (last.chunk() == first.chunk() && last.index() < first.index());
  return {first, none ? first : last};
}

LevelIterator SortedLevel::FirstNotBefore(const Slice& internal_key) const {
  const Slice user_key = ExtractUserKey(internal_key);
  LevelIterator found = Overlapping(&user_key, nullptr).begin();
  while (found != End() && comparator_->Compare((*found)->meta().largest, internal_key) < 0) {
    ++found;
  }
  return found;
}

LevelIterator SortedLevel::Locate(const TableMeta& meta) const {
  const Slice first = meta.smallest_user_key();
  const TableRange range = Overlapping(&first, &first);
  const LevelIterator found = std::find_if(
      range.begin(), range.end(), [&](const auto& table) { return table->id() == meta.id; });
  return found == range.end() ? End() : found;
}

size_t SortedLevel::CountOf(const TableRange& range) const {
  const auto before = [this](const LevelIterator& it) {
    const auto chunk = static_cast<size_t>(it.chunk() - directory_->chunks.data());
    return directory_->Before(chunk).tables + it.index();
  };
  return before(range.end()) - before(range.begin());
}

uint64_t SortedLevel::BytesOf(const TableRange& range) const {
  const auto before = [this](const LevelIterator& it) {
    const auto chunk = static_cast<size_t>(it.chunk() - directory_->chunks.data());
    const uint64_t in_chunk = it.index() == 0 ? 0 : (*it.chunk())->BytesBefore(it.index());
    return directory_->Before(chunk).bytes + in_chunk;
  };
  return before(range.end()) - before(range.begin());
}

size_t SortedLevel::ChunkFor(const std::shared_ptr<TableHandle>& table) const {
  size_t chunk = directory_->lasts.FirstBeyond(table->meta().smallest_user_key());
  // Tables that begin with versions of one user key go by these.
  while (chunk > 0 && Less(table, directory_->chunks[chunk - 1]->tables().back())) --chunk;
  return std::min(chunk, directory_->chunks.size() - 1);
}

SortedLevel SortedLevel::With(TableList added, const std::vector<LevelIterator>& removed) const {
  const auto less = [this](const auto& a, const auto& b) { return Less(a, b); };
  std::sort(added.begin(), added.end(), less);
  const ChunkList& chunks = directory_->chunks;
  std::vector<bool> changed(chunks.size());
  std::unordered_set<const TableHandle*> gone;
  for (const LevelIterator& it : removed) {
    changed[static_cast<size_t>(it.chunk() - chunks.data())] = true;
    gone.insert(it->get());
  }
  std::vector<size_t> chunk_for;  // The chunk of each added table; ascending, as the tables are.
  if (!chunks.empty()) {
    for (const auto& table : added) changed[chunk_for.emplace_back(ChunkFor(table))] = true;
  }

  SortedLevel result(comparator_);
  auto directory = std::make_shared<Directory>(comparator_);
  TableList pending;  // Tables of changed chunks that lie side by side.
  size_t next = 0;
  if (chunks.empty()) pending = std::move(added);
  for (size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    const TableList& tables = chunks[chunk]->tables();
    if (!changed[chunk]) {
      if (!pending.empty() && pending.size() < kChunkTablesMin) {
        pending.insert(pending.end(), tables.begin(), tables.end());
      } else {
        directory->Cut(comparator_, &pending);
        directory->AddFrom(*directory_, chunk);
      }
      continue;
    }
    const auto begin = static_cast<ptrdiff_t>(pending.size());
    std::copy_if(tables.begin(), tables.end(), std::back_inserter(pending),
                 [&](const auto& table) { return !gone.contains(table.get()); });
    const auto middle = static_cast<ptrdiff_t>(pending.size());
    for (; next < added.size() && chunk_for[next] == chunk; ++next) pending.push_back(added[next]);
    std::inplace_merge(pending.begin() + begin, pending.begin() + middle, pending.end(), less);
  }
  directory->Cut(comparator_, &pending);
  result.directory_ = std::move(directory);
  return result;
}

}  // namespace nacre
