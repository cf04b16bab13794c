#include "table/table_reader.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "table/covered_iterator.h"
#include "table/range_index.h"
#include "table/table_context.h"
#include "table/table_iterator.h"
#include "util/crc32c.h"
#include "util/mutex.h"

namespace nacre {
namespace {

constexpr size_t kCacheLineBytes = 64;

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
  Rep(const TableMeta* meta, const Comparator* comparator, Extent* extent)
      : context_(meta, comparator, extent) {}

  Status LoadRangeIndex() EXCLUDES(loading_) {
    if (loaded()) return Status::OK();
    MutexLock lock(&loading_);
    return loaded_.load(std::memory_order_relaxed) ? Status::OK() : Load();
  }
  /// Acquire: pairs with the release in Load.
  bool loaded() const { return loaded_.load(std::memory_order_acquire); }
  const TableContext& context() const { return context_; }
  const RangeTombstones* range_tombstones() const { return range_tombstones_.get(); }
  size_t MemoryUsage() const {
    if (!loaded()) return sizeof(*this);
    return sizeof(*this) + range_index_bytes_.capacity() + context_.range_index.MemoryUsage() +
           (range_tombstones_ == nullptr ? 0 : range_tombstones_->MemoryUsage());
  }

 private:
  Status Load() REQUIRES(loading_);
  Status LoadRangeTombstones();

  Mutex loading_;
  std::atomic<bool> loaded_{false};
  // These are constant once `loaded_` is set.
  TableContext context_;
  std::string range_index_bytes_;  ///< Empty if the section is in place.
  std::unique_ptr<const RangeTombstones> range_tombstones_;
};

Status TableReader::Rep::Load() {
  const TableSection& section = context_.meta->range_index;
  std::unique_ptr<PendingRead> read;
  Slice bytes;
  NACRE_RETURN_IF_ERROR(
      ReadSection(context_, section, "range index does not match its checksum", &read, &bytes));
  const char* const in_place = context_.in_place;
  if (in_place == nullptr || bytes.data() != in_place + section.offset) {
    range_index_bytes_.assign(bytes.data(), bytes.size());
    bytes = range_index_bytes_;
  }
  if (!context_.range_index.Parse(bytes, context_.comparator, context_.meta->alignment_shift,
                                  context_.meta->records.length)) {
    return context_.CorruptionAt(section.offset, "malformed range index");
  }
  if (context_.meta->has_range_deletions()) NACRE_RETURN_IF_ERROR(LoadRangeTombstones());
  loaded_.store(true, std::memory_order_release);
  return Status::OK();
}

Status TableReader::Rep::LoadRangeTombstones() {
  const TableSection& section = context_.meta->range_deletions;
  std::unique_ptr<PendingRead> read;
  Slice bytes;
  NACRE_RETURN_IF_ERROR(ReadSection(context_, section,
                                    "range tombstones do not match their checksum", &read, &bytes));
  const Comparator* const comparator = context_.comparator.user_comparator();
  if (!RangeTombstones::Decode(bytes, comparator, &range_tombstones_).ok()) {
    return context_.CorruptionAt(section.offset, "malformed range tombstones");
  }
  return Status::OK();
}

TableReader::TableReader() = default;
TableReader::~TableReader() = default;

Status TableReader::Open(std::shared_ptr<const TableMeta> meta, const Comparator* comparator,
                         std::shared_ptr<Extent> extent, std::unique_ptr<TableReader>* reader) {
  std::unique_ptr<TableReader> opened;
  NACRE_RETURN_IF_ERROR(OpenUnread(std::move(meta), comparator, std::move(extent), &opened));
  NACRE_RETURN_IF_ERROR(opened->LoadRangeIndex());
  *reader = std::move(opened);
  return Status::OK();
}

Status TableReader::OpenUnread(std::shared_ptr<const TableMeta> meta, const Comparator* comparator,
                               std::shared_ptr<Extent> extent,
                               std::unique_ptr<TableReader>* reader) {
  const std::string name = "table " + std::to_string(meta->id);
  if (meta->comparator != comparator->Name()) {
    return Status::InvalidArgument(name + " was written with comparator " + meta->comparator +
                                   ", not " + comparator->Name());
  }
  if (extent->size() != meta->size) {
    return Status::Corruption(name + ": has " + std::to_string(extent->size()) +
                              " bytes instead of " + std::to_string(meta->size));
  }
  NACRE_RETURN_IF_ERROR(CheckTableMeta(*meta).WithContext(name));
  std::unique_ptr<TableReader> opened(new TableReader);
  opened->meta_ = std::move(meta);
  opened->extent_ = std::move(extent);
  opened->rep_ = std::make_unique<Rep>(opened->meta_.get(), comparator, opened->extent_.get());
  *reader = std::move(opened);
  return Status::OK();
}

Status TableReader::LoadRangeIndex() const { return rep_->LoadRangeIndex(); }
bool TableReader::has_range_index() const { return rep_->loaded(); }
const RangeTombstones* TableReader::range_tombstones() const { return rep_->range_tombstones(); }

std::unique_ptr<InternalIterator> TableReader::NewIterator(
    const TableIteratorOptions& options) const {
  if (Status status = LoadRangeIndex(); !status.ok()) {
    return NewFailedInternalIterator(std::move(status));
  }
  return std::make_unique<TableIterator>(&rep_->context(), options);
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

RecordInterval TableReader::IntervalOf(const Slice& user_key, SequenceNumber snapshot) const {
  return rep_->context().range_index.Seek(user_key, PackTag(snapshot, kValueTypeForSeek));
}

TableReader::Match TableReader::SearchInterval(const RecordInterval& interval, const Slice& bytes,
                                               const Slice& user_key, SequenceNumber snapshot,
                                               Record* record) const {
  const uint64_t chunk_size = meta_->chunk_size;
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

uint64_t TableReader::ApproximateOffset(const Slice& internal_key) const {
  const TableContext& table = rep_->context();
  const Slice user_key = ExtractUserKey(internal_key);
  if (table.comparator.CompareUserKeys(user_key, meta_->smallest_user_key()) < 0) return 0;
  if (table.comparator.CompareUserKeys(user_key, meta_->largest_user_key()) > 0) {
    return meta_->size;
  }
  return table.range_index.Seek(user_key, ExtractTag(internal_key)).begin;
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
