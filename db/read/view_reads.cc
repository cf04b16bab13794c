#include "db/read/view_reads.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "db/read/db_iterator.h"
#include "db/version/unread_tables.h"
#include "table/concatenating_iterator.h"
#include "table/iterator/covered_iterator.h"
#include "table/iterator/merging_iterator.h"
#include "util/exceptions.h"
#include "util/perf_step.h"

namespace nacre {

namespace {

/// The tables of a level; opens none of them.
class LevelRun final : public TableRun {
 public:
  explicit LevelRun(const SortedLevel& level) : level_(level), at_(level.End()) {}

  const TableReader* table() const override {
    return at_ == level_.End() ? nullptr : &(*at_)->reader();
  }
  void SeekToFirst() override { at_ = level_.Begin(); }
  void SeekToLast() override { at_ = std::prev(level_.End()); }
  void Seek(const Slice& internal_key) override { at_ = level_.FirstNotBefore(internal_key); }
  void Next() override { ++at_; }
  void Prev() override { at_ = at_ == level_.Begin() ? level_.End() : std::prev(at_); }

 private:
  const SortedLevel level_;  ///< Not empty.
  LevelIterator at_;
};

/// The children of a view's iterator: sources of entries, from the newest to the oldest. Range
/// tombstones of a source cover all that older ones have within them.
class ViewChildren {
 public:
  ViewChildren(const InternalKeyComparator& comparator, SequenceNumber snapshot, RangeCover* cover)
      : comparator_(comparator), cover_(cover), newer_(comparator, snapshot) {}

  void Add(const MemTable& memtable) {
    if (memtable.entries() == 0) return;
    Add(memtable.NewIterator());
    if (const RangeTombstoneList::Runs* runs = memtable.range_tombstones(); runs != nullptr) {
      for (const RangeTombstones* run : runs->All()) Note(run);
    }
  }
  /// The tables of one flush.
  void Add(std::vector<const TableReader*> readers, const TableIteratorOptions& options) {
    std::vector<const TableReader*> with_tombstones;
    std::copy_if(readers.begin(), readers.end(), std::back_inserter(with_tombstones),
                 [](const TableReader* reader) { return reader->meta().has_range_deletions(); });
    Add(NewConcatenatingIterator(comparator_, std::move(readers), options), with_tombstones);
  }
  void Add(const SortedLevel& level, const TableIteratorOptions& options) {
    if (level.empty()) return;
    std::vector<const TableReader*> with_tombstones;
    for (size_t i = 0; level.range_deletions() > 0 && i < level.chunks().size(); ++i) {
      const TableChunk& chunk = *level.chunks()[i];
      if (chunk.range_deletions() == 0) continue;
      for (const auto& table : chunk.tables()) {
        if (table->meta().has_range_deletions()) with_tombstones.push_back(&table->reader());
      }
    }
    Add(NewConcatenatingIterator(std::make_unique<LevelRun>(level), options), with_tombstones);
  }
  /// In the place of all tables.
  void AddUnreadTables(const std::shared_ptr<const Version>& version, const ReadOptions& options) {
    if (version->depth() > 0) Add(NewUnreadTables(version, options));
  }
  std::unique_ptr<InternalIterator> Merge() {
    return NewMergingIterator(comparator_, std::move(children_));
  }

 private:
  void Add(std::unique_ptr<InternalIterator> child,
           const std::vector<const TableReader*>& with_tombstones) {
    for (const TableReader* reader : with_tombstones) {
      if (Status status = reader->LoadRangeTombstones(); !status.ok()) {
        children_.push_back(NewFailedInternalIterator(std::move(status)));
        return;
      }
    }
    Add(std::move(child));
    for (const TableReader* reader : with_tombstones) Note(reader->range_tombstones());
  }
  void Add(std::unique_ptr<InternalIterator> child) {
    if (!newer_.empty()) child = NewUncoveredIterator(comparator_, std::move(child), newer_);
    children_.push_back(std::move(child));
  }
  void Note(const RangeTombstones* tombstones) {
    newer_.Add(tombstones);
    cover_->Add(tombstones);
  }

  const InternalKeyComparator& comparator_;
  RangeCover* const cover_;
  RangeCover newer_;  ///< The cover of the sources so far.
  std::vector<std::unique_ptr<InternalIterator>> children_;
};

}  // namespace

MemTableAnswer GetFromMemTables(const ReadView& view, const Slice& key, uint64_t hash,
                                SequenceNumber snapshot, PinnableSlice* value, Status* status) {
  CountPerf(&PerfContext::get_from_memtable_count);
  const PerfTimer timer(&PerfContext::get_from_memtable_time);
  const auto not_found = [status] {
    *status = Status::NotFound();
    return MemTableAnswer::kSettled;
  };
  for (const auto& memtable : view.memtables) {
    Slice found;
    SequenceNumber sequence = 0;
    const MemTable::LookupResult result = memtable->Get(key, hash, snapshot, &found, &sequence);
    if (const RangeTombstoneList::Runs* runs = memtable->range_tombstones(); runs != nullptr)
        [[unlikely]] {
      // All that is older than a tombstone that covers it, in this MemTable and elsewhere, is gone.
      if (runs->Covering(key, snapshot, sequence) > 0) return not_found();
    }
    switch (result) {
      case MemTable::LookupResult::kAbsent:
        continue;
      case MemTable::LookupResult::kFound:
        value->PinSelf(found);
        *status = Status::OK();
        return MemTableAnswer::kSettled;
      case MemTable::LookupResult::kDeleted:
        return not_found();
      case MemTable::LookupResult::kOperand:
        return MemTableAnswer::kSearch;
    }
  }
  return MemTableAnswer::kAbsent;
}

std::unique_ptr<InternalIterator> NewViewIterator(const ReadView& view, const ReadOptions& options,
                                                  SequenceNumber snapshot, RangeCover* cover) {
  TableIteratorOptions table_options;
  table_options.verify_checksums = options.verify_checksums;
  table_options.hand_over_reads = true;
  if (options.readahead_size > 0) table_options.readahead_max = options.readahead_size;
  const Version& version = *view.version;
  ViewChildren children(version.comparator(), snapshot, cover);
  for (const auto& memtable : view.memtables) children.Add(*memtable);
  // The tables of one flush follow one another.
  const TableList& level0 = version.level0();
  for (size_t i = 0; i < level0.size();) {
    const uint64_t flush = level0[i]->meta().manifest_version;
    std::vector<const TableReader*> readers;
    for (; i < level0.size() && level0[i]->meta().manifest_version == flush; ++i) {
      readers.push_back(&level0[i]->reader());
    }
    children.Add(std::move(readers), table_options);
  }
  for (int level = 1; level < version.depth(); ++level) {
    children.Add(version.sorted_level(level), table_options);
  }
  return children.Merge();
}

std::unique_ptr<Iterator> NewUserIterator(std::shared_ptr<const ReadView> view,
                                          SequenceNumber snapshot, const ReadOptions& options) {
  const InternalKeyComparator& comparator = *view->comparator;
  const ReadRules& rules = view->rules;
  RangeCover cover(comparator, snapshot);
  auto internal = NewViewIterator(*view, options, snapshot, &cover);
  return NewDBIterator(comparator, rules, std::move(internal), std::move(cover), snapshot, options,
                       std::move(view));
}

std::unique_ptr<Iterator> NewMemoryIterator(std::shared_ptr<const ReadView> view,
                                            SequenceNumber snapshot, const ReadOptions& options) {
  const InternalKeyComparator& comparator = *view->comparator;
  const ReadRules& rules = view->rules;
  RangeCover cover(comparator, snapshot);
  ViewChildren children(comparator, snapshot, &cover);
  for (const auto& memtable : view->memtables) children.Add(*memtable);
  children.AddUnreadTables(view->version, options);
  return NewDBIterator(comparator, rules, children.Merge(), std::move(cover), snapshot, options,
                       std::move(view));
}

Status ApproximateSizes(const Version& version, const Range* ranges, int n, uint64_t* sizes) try {
  if (n < 0 || (n > 0 && (ranges == nullptr || sizes == nullptr))) {
    return Status::InvalidArgument("GetApproximateSizes: null ranges or sizes");
  }
  const InternalKeyComparator& comparator = version.comparator();
  for (int i = 0; i < n; ++i) {
    sizes[i] = 0;
    if (comparator.CompareUserKeys(ranges[i].start, ranges[i].limit) >= 0) continue;
    std::string start;
    std::string limit;
    AppendInternalKey(&start, ranges[i].start, PackTag(kMaxSequenceNumber, kValueTypeForSeek));
    AppendInternalKey(&limit, ranges[i].limit, PackTag(kMaxSequenceNumber, kValueTypeForSeek));
    for (int level = 0; level < version.depth(); ++level) {
      for (const auto& table : version.Overlapping(level, &ranges[i].start, &ranges[i].limit)) {
        uint64_t from = 0;
        uint64_t to = 0;
        NACRE_RETURN_IF_ERROR(table->reader().ApproximateOffset(start, &from));
        NACRE_RETURN_IF_ERROR(table->reader().ApproximateOffset(limit, &to));
        if (to > from) sizes[i] += to - from;
      }
    }
  }
  return Status::OK();
} catch (...) {
  return StatusOfException();
}

}  // namespace nacre
