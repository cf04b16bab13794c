#include "table/table_reader.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "table/index/index_memory.h"
#include "table/index/range_index_slot.h"
#include "table/iterator/covered_iterator.h"
#include "table/table_context.h"
#include "table/table_iterator.h"
#include "util/codes/crc32c.h"
#include "util/memory/loadable_memory.h"
#include "util/mutex.h"

namespace nacre {
namespace {

constexpr size_t kCacheLineBytes = 64;
/// The most that is copied of a record to see whether it is the one that is asked for.
constexpr size_t kLoadedHeadBytesMax = 256;

/// Reads a section of the table and checks its checksum, of several fragments if it has to be.
/// `*bytes` lives as long as `*read`.
Status ReadSection(const TableContext& table, const TableSection& section, const char* name,
                   std::unique_ptr<PendingRead>* read, Slice* bytes) {
  for (DamagedRead damage;;) {
    *read = table.extent->StartRead(section.offset, section.length);
    NACRE_RETURN_IF_ERROR((*read)->Await(bytes));
    if (bytes->size() == section.length && Crc32c(bytes->data(), bytes->size()) == section.crc) {
      return Status::OK();
    }
    if (!damage.ReadAgain(table.extent, section.offset, section.length)) {
      return table.CorruptionAt(section.offset, name, damage.nodes());
    }
  }
}

}  // namespace

class TableReader::Rep {
 public:
  Rep(const TableMeta* meta, const Comparator* comparator, Extent* extent, IndexMemory* memory)
      : context_(meta, comparator, extent),
        memory_(memory),
        range_index_(memory, meta->range_index.length) {}
  ~Rep() {
    if (memory_ != nullptr && range_tombstones() != nullptr) {
      memory_->RemoveRangeTombstones(range_tombstones()->MemoryUsage());
    }
  }
  Rep(const Rep&) = delete;
  Rep& operator=(const Rep&) = delete;

  const TableContext& context() const { return context_; }
  const RangeIndexSlot& range_index() const { return range_index_; }
  /// What there is, or what is read now.
  Status GetRangeIndex(RangeIndexRef* index) EXCLUDES(loading_);
  Status LoadRangeTombstones() EXCLUDES(loading_);
  /// Acquire: pairs with the release in LoadRangeTombstones.
  const RangeTombstones* range_tombstones() const {
    return loaded_tombstones_.load(std::memory_order_acquire);
  }
  size_t MemoryUsage() const {
    return sizeof(*this) + range_index_.MemoryUsage() +
           (range_tombstones() == nullptr ? 0 : range_tombstones()->MemoryUsage());
  }

 private:
  Status ReadRangeIndex(RangeIndexRef* index) const;

  const TableContext context_;
  IndexMemory* const memory_;
  RangeIndexSlot range_index_;
  Mutex loading_;  ///< Held while one of both is read: others wait for what is read then.
  std::atomic<const RangeTombstones*> loaded_tombstones_{nullptr};
  std::unique_ptr<const RangeTombstones> range_tombstones_;  ///< Set once, with the pointer to it.
};

Status TableReader::Rep::GetRangeIndex(RangeIndexRef* index) {
  if (*index = range_index_.Get(); *index != nullptr) [[likely]]
    return Status::OK();
  MutexLock lock(&loading_);
  if (*index = range_index_.Get(); *index != nullptr) return Status::OK();
  if (*index = range_index_.Recall(); *index != nullptr) return Status::OK();
  NACRE_RETURN_IF_ERROR(ReadRangeIndex(index));
  range_index_.Keep(*index);
  return Status::OK();
}

Status TableReader::Rep::ReadRangeIndex(RangeIndexRef* index) const {
  const TableSection& section = context_.meta->range_index;
  std::unique_ptr<PendingRead> read;
  Slice bytes;
  NACRE_RETURN_IF_ERROR(
      ReadSection(context_, section, "range index does not match its checksum", &read, &bytes));
  auto loaded = std::make_shared<LoadedRangeIndex>();
  const char* const in_place = context_.in_place;
  if (in_place == nullptr || bytes.data() != in_place + section.offset) {
    loaded->section.assign(bytes.data(), bytes.size());
    bytes = loaded->section;
  }
  if (!loaded->index.Parse(bytes, context_.comparator, context_.meta->alignment_shift,
                           context_.meta->records.length)) {
    return context_.CorruptionAt(section.offset, "malformed range index");
  }
  *index = std::move(loaded);
  return Status::OK();
}

Status TableReader::Rep::LoadRangeTombstones() {
  if (!context_.meta->has_range_deletions() || range_tombstones() != nullptr) return Status::OK();
  MutexLock lock(&loading_);
  if (range_tombstones() != nullptr) return Status::OK();
  const TableSection& section = context_.meta->range_deletions;
  std::unique_ptr<PendingRead> read;
  Slice bytes;
  NACRE_RETURN_IF_ERROR(ReadSection(context_, section,
                                    "range tombstones do not match their checksum", &read, &bytes));
  const Comparator* const comparator = context_.comparator.user_comparator();
  if (!RangeTombstones::Decode(bytes, comparator, &range_tombstones_).ok()) {
    return context_.CorruptionAt(section.offset, "malformed range tombstones");
  }
  if (memory_ != nullptr) memory_->AddRangeTombstones(range_tombstones_->MemoryUsage());
  loaded_tombstones_.store(range_tombstones_.get(), std::memory_order_release);
  return Status::OK();
}

TableReader::TableReader() = default;
TableReader::~TableReader() = default;

Status TableReader::Open(std::shared_ptr<const TableMeta> meta, const Comparator* comparator,
                         std::shared_ptr<Extent> extent, std::unique_ptr<TableReader>* reader,
                         IndexMemory* memory) {
  std::unique_ptr<TableReader> opened;
  NACRE_RETURN_IF_ERROR(
      OpenUnread(std::move(meta), comparator, std::move(extent), &opened, memory));
  NACRE_RETURN_IF_ERROR(opened->LoadRangeIndex());
  NACRE_RETURN_IF_ERROR(opened->LoadRangeTombstones());
  *reader = std::move(opened);
  return Status::OK();
}

Status TableReader::OpenUnread(std::shared_ptr<const TableMeta> meta, const Comparator* comparator,
                               std::shared_ptr<Extent> extent, std::unique_ptr<TableReader>* reader,
                               IndexMemory* memory) {
  const std::string name = "table " + std::to_string(meta->id);
  if (meta->comparator != comparator->Name()) {
    return Status::InvalidArgument(name + " was written with comparator " + meta->comparator +
                                   ", not " + comparator->Name());
  }
  if (extent->size() != meta->plain_size()) {
    return Status::Corruption(name + ": has " + std::to_string(extent->size()) +
                              " bytes instead of " + std::to_string(meta->plain_size()));
  }
  NACRE_RETURN_IF_ERROR(CheckTableMeta(*meta).WithContext(name));
  std::unique_ptr<TableReader> opened(new TableReader);
  opened->meta_ = std::move(meta);
  opened->extent_ = std::move(extent);
  opened->rep_ =
      std::make_unique<Rep>(opened->meta_.get(), comparator, opened->extent_.get(), memory);
  *reader = std::move(opened);
  return Status::OK();
}

Status TableReader::LoadRangeIndex() const {
  RangeIndexRef index;
  return rep_->GetRangeIndex(&index);
}

Status TableReader::PreloadRangeIndex() const {
  return rep_->range_index().HasRoom() ? LoadRangeIndex() : Status::OK();
}

Status TableReader::LoadRangeTombstones() const { return rep_->LoadRangeTombstones(); }
const RangeTombstones* TableReader::range_tombstones() const { return rep_->range_tombstones(); }

std::unique_ptr<InternalIterator> TableReader::NewIterator(
    const TableIteratorOptions& options) const {
  RangeIndexRef index;
  if (Status status = rep_->GetRangeIndex(&index); !status.ok()) {
    return NewFailedInternalIterator(std::move(status));
  }
  return std::make_unique<TableIterator>(&rep_->context(), std::move(index), options);
}

TableReader::Match TableReader::MatchRecord(uint64_t offset, const Slice& bytes,
                                            const Slice& user_key, SequenceNumber snapshot,
                                            bool verify_checksum, Record* record) const {
  switch (ParseRecord(bytes, rep_->context().seed.At(offset), verify_checksum, record)) {
    case RecordParse::kOk:
      break;
    case RecordParse::kTruncated:
      return Match::kTruncated;
    case RecordParse::kEndOfChunk:
    case RecordParse::kCorrupt:
      return Match::kCorrupt;
  }
  if (record->user_key != user_key) return Match::kNo;
  return TagSequence(record->tag) <= snapshot ? Match::kYes : Match::kOlder;
}

TableReader::Match TableReader::LoadRecord(uint64_t offset, const Slice& bytes,
                                           const Slice& user_key, SequenceNumber snapshot,
                                           bool verify_checksum, PinnableSlice* value,
                                           std::unique_ptr<char[]>* copy, Record* record) const {
  char head_bytes[kLoadedHeadBytesMax];
  const size_t head_most = kMaxRecordHeaderBytes + user_key.size() + kMaxVarint64Bytes;
  const size_t n = std::min({bytes.size(), head_most, sizeof(head_bytes)});
  LoadableMemory::Copy(head_bytes, bytes.data(), n);
  RecordHead head;
  const bool is_value = ParseRecordHead(Slice(head_bytes, n), &head) && head.user_key == user_key &&
                        TagType(head.tag) == ValueType::kValue &&
                        TagSequence(head.tag) <= snapshot &&
                        head.value_bytes <= bytes.size() - head.bytes;
  if (!is_value) [[unlikely]] {
    *copy = std::make_unique_for_overwrite<char[]>(bytes.size());
    LoadableMemory::Copy(copy->get(), bytes.data(), bytes.size());
    return MatchRecord(offset, Slice(copy->get(), bytes.size()), user_key, snapshot,
                       verify_checksum, record);
  }
  LoadableMemory::Pin(value, Slice(bytes.data() + head.bytes, head.value_bytes));
  if (verify_checksum && !RecordChecksumMatches(Slice(head_bytes, head.bytes), *value,
                                                rep_->context().seed.At(offset))) [[unlikely]] {
    return Match::kCorrupt;
  }
  record->user_key = user_key;
  record->tag = head.tag;
  record->value = *value;
  record->encoded_bytes = head.bytes + head.value_bytes;
  return Match::kYes;
}

std::optional<RecordInterval> TableReader::IntervalOf(const Slice& user_key,
                                                      SequenceNumber snapshot) const {
  const RangeIndexRef range = rep_->range_index().Get();
  if (range == nullptr) return std::nullopt;
  return range->index.Seek(user_key, PackTag(snapshot, kValueTypeForSeek));
}

TableReader::Match TableReader::SearchInterval(const RecordInterval& interval, const Slice& bytes,
                                               const Slice& user_key, SequenceNumber snapshot,
                                               Record* record) const {
  const uint64_t chunk_size = meta_->plain_chunk_size();
  const uint64_t mask = (uint64_t{1} << meta_->alignment_shift) - 1;
  for (uint64_t offset = interval.begin; offset < interval.end;) {
    const uint64_t chunk_end = (offset / chunk_size + 1) * chunk_size;
    if (chunk_end - offset < kEndOfChunkMarkBytes) {
      offset = chunk_end;
      continue;
    }
    const Slice rest(bytes.data() + (offset - interval.begin), interval.end - offset);
    const RecordParse parse = ParseRecord(rest, rep_->context().seed.At(offset), true, record);
    if (parse == RecordParse::kEndOfChunk) {
      offset = chunk_end;
      continue;
    }
    if (parse != RecordParse::kOk) return Match::kCorrupt;
    if (record->user_key == user_key && TagSequence(record->tag) <= snapshot) return Match::kYes;
    offset = (offset + record->encoded_bytes + mask) & ~mask;
  }
  return Match::kNo;
}

Status TableReader::ApproximateOffset(const Slice& internal_key, uint64_t* offset) const {
  const TableContext& table = rep_->context();
  const Slice user_key = ExtractUserKey(internal_key);
  *offset = 0;
  if (table.comparator.CompareUserKeys(user_key, meta_->smallest_user_key()) < 0) {
    return Status::OK();
  }
  if (table.comparator.CompareUserKeys(user_key, meta_->largest_user_key()) > 0) {
    *offset = meta_->plain_size();
    return Status::OK();
  }
  RangeIndexRef range;
  NACRE_RETURN_IF_ERROR(rep_->GetRangeIndex(&range));
  *offset = range->index.Seek(user_key, ExtractTag(internal_key)).begin;
  return Status::OK();
}

Status TableReader::CutKeys(uint64_t part_bytes, std::vector<std::string>* user_keys) const {
  user_keys->clear();
  if (part_bytes >= meta_->records.length) return Status::OK();
  RangeIndexRef range;
  NACRE_RETURN_IF_ERROR(rep_->GetRangeIndex(&range));
  const TableContext& table = rep_->context();
  std::string key;
  for (uint64_t at = part_bytes; at < meta_->records.length; at += part_bytes) {
    if (!range->index.KeyNear(at, &key)) continue;
    if (user_keys->empty() || table.comparator.CompareUserKeys(user_keys->back(), key) < 0) {
      user_keys->push_back(key);
    }
  }
  return Status::OK();
}

size_t TableReader::MemoryUsage() const { return sizeof(*this) + rep_->MemoryUsage(); }

Status TableReader::LoadPointIndex(std::unique_ptr<char[]>* section, PointIndex* index) const {
  const TableContext& table = rep_->context();
  const TableSection& place = meta_->point_index;
  std::unique_ptr<PendingRead> read;
  Slice bytes;
  NACRE_RETURN_IF_ERROR(
      ReadSection(table, place, "point index does not match its checksum", &read, &bytes));
  PointIndexShape shape;
  if (!PointIndexShape::Parse(bytes, &shape) || bytes.size() != shape.SectionBytes() ||
      shape.records_end > meta_->records.length) {
    return table.CorruptionAt(place.offset, "malformed point index");
  }
  // new[] aligns to less than the cache line that a bucket is to be.
  auto memory = std::make_unique_for_overwrite<char[]>(bytes.size() + kCacheLineBytes - 1);
  const auto address = reinterpret_cast<uintptr_t>(memory.get());
  char* const aligned = memory.get() + (-address & (kCacheLineBytes - 1));
  std::memcpy(aligned, bytes.data(), bytes.size());
  *index = PointIndex(shape, aligned);
  *section = std::move(memory);
  return Status::OK();
}

Status TableReader::LoadBloom(std::unique_ptr<char[]>* section) const {
  section->reset();
  if (meta_->bloom.length == 0) return Status::OK();
  std::unique_ptr<PendingRead> read;
  Slice bytes;
  NACRE_RETURN_IF_ERROR(ReadSection(rep_->context(), meta_->bloom,
                                    "Bloom filter does not match its checksum", &read, &bytes));
  auto memory = std::make_unique_for_overwrite<char[]>(bytes.size());
  std::memcpy(memory.get(), bytes.data(), bytes.size());
  *section = std::move(memory);
  return Status::OK();
}

Status TableReader::LoadPointIndexShape(PointIndexShape* shape) const {
  const TableSection& place = meta_->point_index;
  const auto malformed = [&] {
    return rep_->context().CorruptionAt(place.offset, "malformed point index trailer");
  };
  constexpr size_t kBytes = PointIndexShape::kTrailerBytes;
  if (place.length < kBytes) return malformed();
  const uint64_t offset = place.offset + place.length - kBytes;
  for (DamagedRead damage;;) {
    std::unique_ptr<PendingRead> read = extent_->StartRead(offset, kBytes);
    Slice bytes;
    NACRE_RETURN_IF_ERROR(read->Await(&bytes));
    if (bytes.size() == kBytes && PointIndexShape::Parse(bytes, shape)) break;
    if (!damage.ReadAgain(extent_.get(), offset, kBytes)) return malformed();
  }
  if (shape->SectionBytes() != place.length || shape->records_end > meta_->records.length) {
    return malformed();
  }
  return Status::OK();
}

}  // namespace nacre
