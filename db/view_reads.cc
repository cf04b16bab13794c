#include "db/view_reads.h"

#include <string>
#include <utility>
#include <vector>

#include "table/concatenating_iterator.h"
#include "table/merging_iterator.h"

namespace nacre {

bool GetFromMemTables(const ReadView& view, const Slice& key, uint64_t hash,
                      SequenceNumber snapshot, PinnableSlice* value, Status* status) {
  for (const auto& memtable : view.memtables) {
    Slice found;
    SequenceNumber sequence = 0;
    switch (memtable->Get(key, hash, snapshot, &found, &sequence)) {
      case MemTable::LookupResult::kAbsent:
        continue;
      case MemTable::LookupResult::kFound:
        value->PinSelf(found);
        *status = Status::OK();
        return true;
      case MemTable::LookupResult::kDeleted:
        *status = Status::NotFound();
        return true;
    }
  }
  return false;
}

std::unique_ptr<InternalIterator> NewViewIterator(const ReadView& view,
                                                  const ReadOptions& options) {
  TableIteratorOptions table_options;
  table_options.verify_checksums = options.verify_checksums;
  if (options.readahead_size > 0) table_options.readahead_max = options.readahead_size;
  std::vector<std::unique_ptr<InternalIterator>> children;
  for (const auto& memtable : view.memtables) {
    if (memtable->entries() > 0) children.push_back(memtable->NewIterator());
  }
  const Version& version = *view.version;
  const InternalKeyComparator& comparator = version.comparator();
  // The tables of one flush follow one another.
  const TableList& level0 = version.tables(0);
  for (size_t i = 0; i < level0.size();) {
    const uint64_t flush = level0[i]->meta().manifest_version;
    std::vector<const TableReader*> readers;
    for (; i < level0.size() && level0[i]->meta().manifest_version == flush; ++i) {
      readers.push_back(&level0[i]->reader());
    }
    children.push_back(readers.size() == 1 ? readers[0]->NewIterator(table_options)
                                           : NewConcatenatingIterator(
                                                 comparator, std::move(readers), table_options));
  }
  for (int level = 1; level < version.depth(); ++level) {
    const TableList& tables = version.tables(level);
    if (tables.empty()) continue;
    std::vector<const TableReader*> readers;
    readers.reserve(tables.size());
    for (const auto& table : tables) readers.push_back(&table->reader());
    children.push_back(NewConcatenatingIterator(comparator, std::move(readers), table_options));
  }
  return NewMergingIterator(comparator, std::move(children));
}

Status SearchView(const ReadView& view, const ReadOptions& options, const Slice& key,
                  SequenceNumber snapshot, PinnableSlice* value) {
  const std::unique_ptr<InternalIterator> iterator = NewViewIterator(view, options);
  std::string target;
  AppendInternalKey(&target, key, PackTag(snapshot, kValueTypeForSeek));
  iterator->Seek(target);
  if (!iterator->Valid()) {
    return iterator->status().ok() ? Status::NotFound() : iterator->status();
  }
  if (!(iterator->user_key() == key)) return Status::NotFound();
  if (TagType(iterator->tag()) == ValueType::kDeletion) return Status::NotFound();
  value->PinSelf(iterator->value());
  return Status::OK();
}

Status ApproximateSizes(const Version& version, const Range* ranges, int n, uint64_t* sizes) {
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
        NACRE_RETURN_IF_ERROR(table->reader().LoadRangeIndex());
        const uint64_t from = table->reader().ApproximateOffset(start);
        const uint64_t to = table->reader().ApproximateOffset(limit);
        if (to > from) sizes[i] += to - from;
      }
    }
  }
  return Status::OK();
}

}  // namespace nacre
