#include "table/table_reader.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "table/range_index.h"
#include "table/table_context.h"
#include "table/table_iterator.h"
#include "util/crc32c.h"

namespace nacre {
namespace {

constexpr size_t kCacheLineBytes = 64;

/// Reads a section of the table and checks its checksum. `*bytes` lives as long as `*read`.
Status ReadSection(const TableContext& table, const TableSection& section, const char* name,
                   std::unique_ptr<PendingRead>* read, Slice* bytes) {
  *read = table.extent->StartRead(section.offset, section.length);
  NACRE_RETURN_IF_ERROR((*read)->Await(bytes));
  if (bytes->size() != section.length || Crc32c(bytes->data(), bytes->size()) != section.crc) {
    return table.CorruptionAt(section.offset, name);
  }
  return Status::OK();
}

}  // namespace

class TableReader::Rep {
 public:
  Rep(const TableMeta* meta, const Comparator* comparator, Extent* extent)
      : context_(meta, comparator, extent) {}

  Status LoadRangeIndex();
  const TableContext& context() const { return context_; }
  size_t MemoryUsage() const {
    return sizeof(*this) + range_index_bytes_.capacity() + context_.range_index.MemoryUsage();
  }

 private:
  TableContext context_;
  std::string range_index_bytes_;  ///< Empty if the table is in place.
};

Status TableReader::Rep::LoadRangeIndex() {
  const TableSection& section = context_.meta->range_index;
  std::unique_ptr<PendingRead> read;
  Slice bytes;
  if (context_.in_place != nullptr) {
    bytes = Slice(context_.in_place + section.offset, section.length);
    if (Crc32c(bytes.data(), bytes.size()) != section.crc) {
      return context_.CorruptionAt(section.offset, "range index does not match its checksum");
    }
  } else {
    NACRE_RETURN_IF_ERROR(
        ReadSection(context_, section, "range index does not match its checksum", &read, &bytes));
    range_index_bytes_.assign(bytes.data(), bytes.size());
    bytes = range_index_bytes_;
  }
  if (!context_.range_index.Parse(bytes, context_.comparator, context_.meta->alignment_shift,
                                  context_.meta->records.length)) {
    return context_.CorruptionAt(section.offset, "malformed range index");
  }
  return Status::OK();
}

TableReader::TableReader() = default;
TableReader::~TableReader() = default;

Status TableReader::Open(std::shared_ptr<const TableMeta> meta, const Comparator* comparator,
                         std::shared_ptr<Extent> extent, std::unique_ptr<TableReader>* reader) {
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
  NACRE_RETURN_IF_ERROR(opened->rep_->LoadRangeIndex());
  *reader = std::move(opened);
  return Status::OK();
}

std::unique_ptr<InternalIterator> TableReader::NewIterator(
    const TableIteratorOptions& options) const {
  return std::make_unique<TableIterator>(&rep_->context(), options);
}

TableReader::Match TableReader::MatchRecord(const Slice& bytes, const Slice& user_key,
                                            SequenceNumber snapshot, bool verify_checksum,
                                            Record* record) const {
  switch (ParseRecord(bytes, rep_->context().seed, verify_checksum, record)) {
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
  std::unique_ptr<PendingRead> read =
      extent_->StartRead(place.offset + place.length - kBytes, kBytes);
  Slice bytes;
  NACRE_RETURN_IF_ERROR(read->Await(&bytes));
  if (bytes.size() != kBytes || !PointIndexShape::Parse(bytes, shape) ||
      shape->SectionBytes() != place.length || shape->records_end > meta_->records.length) {
    return malformed();
  }
  return Status::OK();
}

}  // namespace nacre
