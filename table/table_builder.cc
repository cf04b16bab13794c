#include "table/table_builder.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <string>
#include <utility>

#include "table/format/record.h"
#include "table/format/table_seal.h"
#include "table/index/point_index.h"
#include "table/index/range_index.h"
#include "util/codes/bloom.h"
#include "util/codes/crc32c.h"
#include "util/hash.h"

namespace nacre {
namespace {

constexpr uint64_t kSectionAlignment = 64;
/// A separator may take a byte of the range index for this many bytes of records: intervals grow
/// with long keys, so that the index stays small beside the records.
constexpr uint64_t kRecordBytesPerSeparatorByte = 8;
constexpr size_t kUserKeyBytesMax = size_t{256} << 20;
constexpr uint64_t kRecordBytesMax = UINT32_MAX;
constexpr uint64_t kWorstTag = PackTag(kMaxSequenceNumber, kValueTypeForSeek);

uint64_t AlignUp(uint64_t n, uint64_t alignment) { return (n + alignment - 1) & ~(alignment - 1); }

/// The least shift under which 24 bits reach every record of a table of `capacity` bytes.
uint32_t AlignmentShiftFor(uint64_t capacity) {
  uint32_t shift = 0;
  while (capacity > uint64_t{1} << (24 + shift)) ++shift;
  return shift;
}

}  // namespace

class TableBuilder::Rep {
 public:
  Rep(const TableBuilderOptions& options, TableMeta identity, std::unique_ptr<ExtentWriter> writer)
      : options_(options),
        meta_(std::move(identity)),
        writer_(std::move(writer)),
        seed_(meta_.id),
        chunk_size_(writer_->chunk_size()),
        capacity_(writer_->capacity()),
        alignment_(uint64_t{1} << AlignmentShiftFor(capacity_)),
        point_index_(AlignmentShiftFor(capacity_)),
        range_index_(AlignmentShiftFor(capacity_)) {
    if (meta_.comparator.empty()) meta_.comparator = options_.comparator->Name();
    meta_.chunk_size = meta_.sealed() ? StoredBytes(chunk_size_) : chunk_size_;
    meta_.alignment_shift = AlignmentShiftFor(capacity_);
    meta_.smallest_sequence = kMaxSequenceNumber;
  }

  Status Add(const Slice& user_key, uint64_t tag, const Slice& value);
  bool Fits(size_t key_size, size_t value_size) const;
  uint64_t EstimatedSize() const { return offset() + TailBound(meta_.user_keys, last_key_.size()); }
  uint64_t GrowthBound(size_t key_size, size_t value_size) const;
  uint64_t RoomUntil(uint64_t limit) const;
  uint64_t entries() const { return meta_.entries; }
  void SetRangeTombstones(const std::vector<RangeTombstones::ListedFragment>& fragments);
  Status Finish(TableMeta* meta, bool last_part);

 private:
  uint64_t offset() const { return chunk_begin_ + chunk_used_; }
  /// Where the next record starts if it has `bytes` bytes.
  uint64_t NextRecordAt(uint64_t bytes) const;
  /// Bound on what follows the records.
  uint64_t TailBound(uint64_t user_keys, size_t next_key_size) const;

  Status CheckRecord(const Slice& user_key, const Slice& value) const;
  void AddBoundary(const Slice& user_key, bool new_user_key, uint64_t bytes);
  Status WriteRecord(const Slice& user_key, uint64_t tag, const Slice& value, uint64_t at,
                     uint64_t bytes);
  Status AppendSection(const std::string& bytes, TableSection* section);
  void WidenBounds();

  /// Bytes go to the chunk at hand; a full one is handed over at once.
  Status OpenChunk();
  Status CommitIfFull();
  Status CloseRecordChunk();
  Status Append(const char* data, size_t n);

  const TableBuilderOptions options_;
  TableMeta meta_;
  const std::unique_ptr<ExtentWriter> writer_;
  const RecordSeed seed_;
  const uint64_t chunk_size_;
  const uint64_t capacity_;
  const uint64_t alignment_;

  char* chunk_ = nullptr;  ///< Null between chunks.
  uint64_t chunk_used_ = 0;
  uint64_t chunk_begin_ = 0;  ///< Table offset of the chunk at hand, or of the next one.

  PointIndexBuilder point_index_;
  RangeIndexBuilder range_index_;
  uint64_t interval_begin_ = 0;
  std::string last_key_;
  uint64_t last_tag_ = 0;
  std::string separator_;
  std::string range_deletions_;  ///< Encoded.
  std::string range_begin_;      ///< The begin of the first one.
  std::string range_end_;        ///< The end of the last one.
};

// ---- Records ----------------------------------------------------------------------------------

uint64_t TableBuilder::Rep::NextRecordAt(uint64_t bytes) const {
  const uint64_t at = AlignUp(chunk_used_, alignment_);
  const bool fits = at == 0 || (at < chunk_size_ && bytes <= chunk_size_ - at);
  return chunk_begin_ + (fits ? at : chunk_size_);
}

Status TableBuilder::Rep::CheckRecord(const Slice& user_key, const Slice& value) const {
  if (chunk_size_ % alignment_ != 0) {
    return Status::InvalidArgument("chunk size " + std::to_string(chunk_size_) +
                                   " is no multiple of the record alignment " +
                                   std::to_string(alignment_));
  }
  if (user_key.size() > kUserKeyBytesMax) {
    return Status::InvalidArgument("key of " + std::to_string(user_key.size()) +
                                   " bytes is too long");
  }
  if (user_key.size() + value.size() >
          kRecordBytesMax - kMaxRecordHeaderBytes - kMaxVarint64Bytes &&
      RecordBytes(user_key.size(), kWorstTag, value.size()) > kRecordBytesMax) {
    return Status::InvalidArgument("value of " + std::to_string(value.size()) +
                                   " bytes is too long");
  }
  return Status::OK();
}

Status TableBuilder::Rep::Add(const Slice& user_key, uint64_t tag, const Slice& value) {
  NACRE_RETURN_IF_ERROR(CheckRecord(user_key, value));
  const bool first = meta_.entries == 0;
  const bool new_user_key = first || user_key != Slice(last_key_);
  assert(new_user_key || tag < last_tag_);
  assert(first || !new_user_key || options_.comparator->Compare(last_key_, user_key) < 0);
  const uint64_t bytes = RecordBytes(user_key.size(), tag, value.size());
  const uint64_t at = NextRecordAt(bytes);
  if (at + bytes > capacity_) {
    return Status::NoSpace("table " + std::to_string(meta_.id) + ": record does not fit");
  }
  if (!first) AddBoundary(user_key, new_user_key, bytes);
  NACRE_RETURN_IF_ERROR(WriteRecord(user_key, tag, value, at, bytes));

  if (new_user_key) {
    point_index_.Add(Hash64(user_key), at, static_cast<uint32_t>(bytes));
    last_key_.assign(user_key.data(), user_key.size());
    ++meta_.user_keys;
  }
  if (first) AppendInternalKey(&meta_.smallest, user_key, tag);
  last_tag_ = tag;
  ++meta_.entries;
  if (IsDeletion(TagType(tag))) ++meta_.tombstones;
  if (TagType(tag) == ValueType::kMerge) meta_.has_operands = true;
  meta_.smallest_sequence = std::min(meta_.smallest_sequence, TagSequence(tag));
  meta_.largest_sequence = std::max(meta_.largest_sequence, TagSequence(tag));
  meta_.user_bytes += user_key.size() + value.size();
  meta_.largest_record = std::max(meta_.largest_record, bytes);
  meta_.records.length = at + bytes;
  return Status::OK();
}

/// Ends the interval of the range index before a record of `bytes` bytes, if the interval is long
/// enough or the record is: a seek to a small record must not fetch a large neighbour.
void TableBuilder::Rep::AddBoundary(const Slice& user_key, bool new_user_key, uint64_t bytes) {
  const uint64_t at = AlignUp(offset(), alignment_);
  const uint64_t enough = std::max<uint64_t>(options_.range_index_interval,
                                             last_key_.size() * kRecordBytesPerSeparatorByte);
  if (at - interval_begin_ < enough && bytes <= enough) return;
  if (new_user_key) {
    separator_.assign(last_key_);
    options_.comparator->FindShortestSeparator(&separator_, user_key);
    // Whatever a comparator of the application answers, the index keeps to its bound.
    range_index_.Add(separator_.size() <= last_key_.size() ? separator_ : last_key_, at);
  } else {
    // The greatest tag behind the last one, so that a seek to any version that is not there goes
    // to the right at once.
    range_index_.AddWithinKey(user_key, last_tag_ - 1, at);
  }
  interval_begin_ = at;
}

Status TableBuilder::Rep::WriteRecord(const Slice& user_key, uint64_t tag, const Slice& value,
                                      uint64_t at, uint64_t bytes) {
  if (at >= chunk_begin_ + chunk_size_) NACRE_RETURN_IF_ERROR(CloseRecordChunk());
  NACRE_RETURN_IF_ERROR(OpenChunk());
  const uint64_t start = at - chunk_begin_;
  if (start > chunk_used_) std::memset(chunk_ + chunk_used_, 0, start - chunk_used_);
  chunk_used_ = start;
  if (bytes <= chunk_size_ - start) [[likely]] {
    EncodeRecord(chunk_ + start, seed_.At(at), user_key, tag, value);
    chunk_used_ += bytes;
    return CommitIfFull();
  }
  const RecordPieces pieces = MakeRecordPieces(seed_.At(at), user_key, tag, value);
  NACRE_RETURN_IF_ERROR(Append(pieces.header, pieces.header_bytes));
  NACRE_RETURN_IF_ERROR(Append(user_key.data(), user_key.size()));
  NACRE_RETURN_IF_ERROR(Append(pieces.tag, pieces.tag_bytes));
  return Append(value.data(), value.size());
}

// ---- Chunks -----------------------------------------------------------------------------------

Status TableBuilder::Rep::OpenChunk() {
  if (chunk_ != nullptr) return Status::OK();
  return writer_->NextChunk(&chunk_);
}

Status TableBuilder::Rep::CommitIfFull() {
  if (chunk_used_ < chunk_size_) [[likely]]
    return Status::OK();
  chunk_ = nullptr;
  chunk_used_ = 0;
  chunk_begin_ += chunk_size_;
  return writer_->Commit(chunk_size_);
}

/// Ends the records of the chunk at hand, which has no room for the next one.
Status TableBuilder::Rep::CloseRecordChunk() {
  const uint64_t mark_at = AlignUp(chunk_used_, alignment_);
  std::memset(chunk_ + chunk_used_, 0, chunk_size_ - chunk_used_);
  if (mark_at + kEndOfChunkMarkBytes <= chunk_size_) {
    EncodeEndOfChunkMark(chunk_ + mark_at, seed_.At(chunk_begin_ + mark_at));
  }
  chunk_used_ = chunk_size_;
  return CommitIfFull();
}

Status TableBuilder::Rep::Append(const char* data, size_t n) {
  while (n > 0) {
    NACRE_RETURN_IF_ERROR(OpenChunk());
    const size_t piece = std::min<size_t>(n, chunk_size_ - chunk_used_);
    std::memcpy(chunk_ + chunk_used_, data, piece);
    chunk_used_ += piece;
    data += piece;
    n -= piece;
    NACRE_RETURN_IF_ERROR(CommitIfFull());
  }
  return Status::OK();
}

// ---- The end ----------------------------------------------------------------------------------

uint64_t TableBuilder::Rep::TailBound(uint64_t user_keys, size_t next_key_size) const {
  const size_t longest = std::max(last_key_.size(), next_key_size);
  return kSectionAlignment + PointIndexBuilder::BytesBound(user_keys) + range_index_.Bytes() +
         RangeIndexBuilder::BytesBound(longest) +
         BloomBuilder::Bytes(user_keys, options_.bloom_bits_per_key) + options_.lineage.size() +
         FooterBytes(meta_) + 2 * (longest + kTagBytes + kMaxVarint64Bytes) +
         (options_.range_deletion_bytes == 0 ? 0 : 2 * options_.range_deletion_bytes + 4 * longest);
}

bool TableBuilder::Rep::Fits(size_t key_size, size_t value_size) const {
  const uint64_t bytes = RecordBytes(key_size, kWorstTag, value_size);
  return NextRecordAt(bytes) + bytes + TailBound(meta_.user_keys + 1, key_size) <= capacity_;
}

uint64_t TableBuilder::Rep::GrowthBound(size_t key_size, size_t value_size) const {
  // Lengths, tag and checksum of the record; two buckets of the point index; what a boundary takes
  // beside its key, and how much longer lengths in the footer may get.
  constexpr uint64_t kBesides = 512;
  // The record leaves no more of a chunk empty than it takes. A separator is no longer than the key
  // before it, and the longest key counts up to nine times.
  return 2 * (key_size + value_size + alignment_) + 9 * std::max(key_size, last_key_.size()) +
         kBesides;
}

uint64_t TableBuilder::Rep::RoomUntil(uint64_t limit) const {
  const uint64_t end = std::min(limit, capacity_);
  const uint64_t size = EstimatedSize();
  return size < end ? end - size : 0;
}

Status TableBuilder::Rep::AppendSection(const std::string& bytes, TableSection* section) {
  section->offset = offset();
  section->length = bytes.size();
  section->crc = Crc32c(bytes.data(), bytes.size());
  return Append(bytes.data(), bytes.size());
}

void TableBuilder::Rep::SetRangeTombstones(
    const std::vector<RangeTombstones::ListedFragment>& fragments) {
  RangeTombstones::Encode(fragments, &range_deletions_);
  range_begin_ = fragments.front().begin;
  range_end_ = fragments.back().end;
  for (const RangeTombstones::ListedFragment& fragment : fragments) {
    meta_.smallest_sequence = std::min(meta_.smallest_sequence, fragment.sequences.back());
    meta_.largest_sequence = std::max(meta_.largest_sequence, fragment.sequences.front());
  }
}

void TableBuilder::Rep::WidenBounds() {
  const auto widen = [](std::string* bound, const std::string& user_key) {
    bound->clear();
    AppendInternalKey(bound, user_key, kGreatestTag);
  };
  const Comparator& order = *options_.comparator;
  if (order.Compare(range_begin_, meta_.smallest_user_key()) < 0) {
    widen(&meta_.smallest, range_begin_);
  }
  if (order.Compare(range_end_, meta_.largest_user_key()) > 0) widen(&meta_.largest, range_end_);
}

Status TableBuilder::Rep::Finish(TableMeta* meta, bool last_part) {
  assert(meta_.entries > 0);
  meta_.last_part = last_part;
  AppendInternalKey(&meta_.largest, last_key_, last_tag_);
  if (!range_deletions_.empty()) WidenBounds();
  // One cache line a bucket, on the remote node too.
  static constexpr char kZeros[kSectionAlignment] = {};
  NACRE_RETURN_IF_ERROR(Append(kZeros, AlignUp(offset(), kSectionAlignment) - offset()));

  std::string bytes;
  point_index_.Finish(&bytes);
  NACRE_RETURN_IF_ERROR(AppendSection(bytes, &meta_.point_index));
  bytes.clear();
  range_index_.Finish(&bytes);
  NACRE_RETURN_IF_ERROR(AppendSection(bytes, &meta_.range_index));
  bytes.clear();
  if (options_.bloom_bits_per_key > 0) {
    BloomBuilder bloom(options_.bloom_bits_per_key);
    for (size_t i = 0; i < point_index_.entries(); ++i) bloom.Add(point_index_.hash(i));
    bloom.Finish(&bytes);
  }
  NACRE_RETURN_IF_ERROR(AppendSection(bytes, &meta_.bloom));
  if (!range_deletions_.empty()) {
    NACRE_RETURN_IF_ERROR(AppendSection(range_deletions_, &meta_.range_deletions));
  }
  NACRE_RETURN_IF_ERROR(AppendSection(options_.lineage, &meta_.lineage));

  const uint64_t size = offset() + FooterBytes(meta_);
  meta_.size = meta_.sealed() ? StoredBytes(size) : size;
  if (size > capacity_) {
    return Status::NoSpace("table " + std::to_string(meta_.id) + " is larger than its space");
  }
  if (meta_.sealed()) {
    NACRE_RETURN_IF_ERROR(meta_.seal->WithBounds(meta_.smallest, meta_.largest, &meta_.seal));
  }
  bytes.clear();
  EncodeFooter(meta_, &bytes);
  NACRE_RETURN_IF_ERROR(Append(bytes.data(), bytes.size()));
  if (chunk_used_ > 0) NACRE_RETURN_IF_ERROR(writer_->Commit(chunk_used_));

  bytes.clear();
  NACRE_RETURN_IF_ERROR(EncodeFragmentHead(meta_, &bytes));
  NACRE_RETURN_IF_ERROR(writer_->Finish(bytes));
  *meta = meta_;
  return Status::OK();
}

// ---- Interface --------------------------------------------------------------------------------

TableBuilder::TableBuilder(const TableBuilderOptions& options, TableMeta identity,
                           std::unique_ptr<ExtentWriter> writer)
    : rep_(std::make_unique<Rep>(options, std::move(identity), std::move(writer))) {}

TableBuilder::~TableBuilder() = default;

Status TableBuilder::Add(const Slice& user_key, uint64_t tag, const Slice& value) {
  return rep_->Add(user_key, tag, value);
}

void TableBuilder::SetRangeTombstones(
    const std::vector<RangeTombstones::ListedFragment>& fragments) {
  rep_->SetRangeTombstones(fragments);
}

bool TableBuilder::Fits(size_t key_size, size_t value_size) const {
  return rep_->Fits(key_size, value_size);
}

uint64_t TableBuilder::EstimatedSize() const { return rep_->EstimatedSize(); }

uint64_t TableBuilder::GrowthBound(size_t key_size, size_t value_size) const {
  return rep_->GrowthBound(key_size, value_size);
}

uint64_t TableBuilder::RoomUntil(uint64_t limit) const { return rep_->RoomUntil(limit); }

uint64_t TableBuilder::entries() const { return rep_->entries(); }

Status TableBuilder::Finish(TableMeta* meta, bool last_part) {
  return rep_->Finish(meta, last_part);
}

uint64_t TableBuilder::SizeBound(uint64_t entries, uint64_t user_bytes, uint64_t largest_record,
                                 size_t chunk_size, uint64_t largest_key) {
  const TableBuilderOptions options;
  largest_key = std::min(largest_key, largest_record);
  const uint64_t interval = options.range_index_interval;
  const auto length_bytes = static_cast<uint64_t>(VarintLength(largest_record));
  const uint64_t overhead =
      kRecordChecksumBytes + 2 * length_bytes + static_cast<uint64_t>(VarintLength(kWorstTag >> 4));
  for (uint32_t shift = 0;; ++shift) {
    const uint64_t records = user_bytes + entries * (overhead + (uint64_t{1} << shift) - 1);
    // A gap at the end of a chunk is smaller than the record that did not fit there, and than the
    // chunk.
    const uint64_t gap = std::min<uint64_t>(largest_record + (uint64_t{1} << shift), chunk_size);
    uint64_t with_gaps = records + std::min(records, (entries + 1) * gap);
    if (gap < chunk_size) {
      with_gaps = std::min(with_gaps, records + (records / (chunk_size - gap) + 1) * gap);
    }
    // A boundary stands behind an interval's bytes or before a record larger than an interval,
    // and its separator takes at most an eighth of either.
    const uint64_t charges = largest_record > interval ? 2 : 1;
    const uint64_t boundaries = std::min(charges * (with_gaps / interval) + 1, entries);
    const uint64_t separators =
        std::min(charges * (with_gaps / kRecordBytesPerSeparatorByte), boundaries * largest_key);
    const uint64_t bound = with_gaps + kSectionAlignment + PointIndexBuilder::BytesBound(entries) +
                           boundaries * RangeIndexBuilder::BytesBound(0) + separators +
                           BloomBuilder::Bytes(entries, options.bloom_bits_per_key) +
                           kFragmentHeadBytes + 4 * (largest_key + kTagBytes + kMaxVarint64Bytes);
    // A chunk to spare: the space reserved may be rounded up, and a larger capacity may mean a
    // larger shift.
    if (bound + chunk_size <= uint64_t{1} << (24 + shift)) return bound;
  }
}

}  // namespace nacre
