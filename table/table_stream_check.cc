#include "table/table_stream_check.h"

#include <algorithm>
#include <cassert>

#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {

TableStreamCheck::TableStreamCheck(const TableMeta* meta)
    : meta_(meta),
      seed_(meta->id),
      chunk_bytes_(meta->plain_chunk_size()),
      table_bytes_(meta->plain_size()),
      alignment_(uint64_t{1} << meta->alignment_shift),
      sections_{{&meta->point_index, "the point index does not match its checksum"},
                {&meta->range_index, "the range index does not match its checksum"},
                {&meta->bloom, "the Bloom filter does not match its checksum"},
                {&meta->range_deletions, "the range tombstones do not match their checksum"},
                {&meta->lineage, "the lineage does not match its checksum"}} {}

Status TableStreamCheck::Fail(uint64_t offset, uint64_t length, const char* what) {
  suspect_ = {.offset = offset, .length = std::min(length, table_bytes_ - offset)};
  return Status::Corruption("table " + std::to_string(meta_->id) + " at offset " +
                            std::to_string(offset) + ": " + what);
}

Status TableStreamCheck::Add(const Slice& bytes) {
  const uint64_t begin = position_;
  const uint64_t end = begin + bytes.size();
  assert(begin % chunk_bytes_ == 0 && end <= table_bytes_);
  const auto part = [&](uint64_t from, uint64_t to) {
    return Slice(bytes.data() + (from - begin), to - from);
  };
  const uint64_t records_end = std::min(end, meta_->records.length);
  for (uint64_t at = begin; at < records_end;) {
    const uint64_t to = std::min(at + chunk_bytes_, records_end);
    NACRE_RETURN_IF_ERROR(AddRecords(at, part(at, to)));
    at = to;
  }
  for (Section& section : sections_) {
    const uint64_t from = std::max(begin, section.place->offset);
    const uint64_t to = std::min(end, section.place->offset + section.place->length);
    if (from >= to) continue;
    section.crc = Crc32c(bytes.data() + (from - begin), to - from, section.crc);
  }
  const uint64_t footer_at = meta_->lineage.offset + meta_->lineage.length;
  if (end > footer_at) {
    const Slice rest = part(std::max(begin, footer_at), end);
    footer_.append(rest.data(), rest.size());
  }
  position_ = end;
  return Status::OK();
}

Status TableStreamCheck::AddToLarge(uint64_t at, const Slice& bytes, uint64_t* taken) {
  *taken = std::min<uint64_t>(large_left_, bytes.size());
  large_crc_ = Crc32c(bytes.data(), *taken, large_crc_);
  large_left_ -= *taken;
  if (large_left_ > 0 || large_crc_ == large_expected_) return Status::OK();
  return Fail(large_begin_, at + *taken - large_begin_, "a record does not match its checksum");
}

Status TableStreamCheck::AddRecords(uint64_t begin, const Slice& bytes) {
  const uint64_t end = begin + bytes.size();
  const uint64_t chunk_end = begin + chunk_bytes_;
  uint64_t at = begin;
  if (large_left_ > 0) {
    uint64_t taken = 0;
    NACRE_RETURN_IF_ERROR(AddToLarge(at, bytes, &taken));
    at = (at + taken + alignment_ - 1) & ~(alignment_ - 1);
  }
  while (at < end) {
    // Too little for the mark that no record follows.
    if (chunk_end - at < kEndOfChunkMarkBytes) return Status::OK();
    const Slice rest(bytes.data() + (at - begin), end - at);
    Record record;
    switch (ParseRecord(rest, seed_.At(at), /*verify_checksum=*/true, &record)) {
      case RecordParse::kOk:
        ++entries_;
        at = (at + record.encoded_bytes + alignment_ - 1) & ~(alignment_ - 1);
        continue;
      case RecordParse::kEndOfChunk:
        return Status::OK();
      case RecordParse::kCorrupt:
        return Fail(at, end - at, "a record does not match its checksum");
      case RecordParse::kTruncated:
        break;
    }
    const uint64_t length = RecordBytesFromHeader(rest);
    if (at != begin || length <= chunk_bytes_ || length > meta_->records.length - at) {
      return Fail(at, end - at, "a record is longer than its place");
    }
    ++entries_;
    large_begin_ = at;
    large_left_ = length - rest.size();
    large_expected_ = DecodeFixed32(rest.data());
    large_crc_ = Crc32c(rest.data() + kRecordChecksumBytes, rest.size() - kRecordChecksumBytes,
                        seed_.At(at).crc());
    return Status::OK();
  }
  return Status::OK();
}

Status TableStreamCheck::CheckFooter() {
  const uint64_t at = table_bytes_ - footer_.size();
  Slice input = footer_;
  TableMeta footer;
  if (Status status = DecodeTableMeta(&input, &footer); !status.ok()) {
    return Fail(at, footer_.size(), "the footer is damaged");
  }
  if (input.size() != kFooterTrailerBytes || footer.id != meta_->id || footer.size != meta_->size) {
    return Fail(at, footer_.size(), "the footer is another table's");
  }
  std::string trailer;
  EncodeFooter(footer, &trailer);
  if (trailer != footer_) return Fail(at, footer_.size(), "the footer's end is damaged");
  return Status::OK();
}

Status TableStreamCheck::Finish() {
  assert(position_ == table_bytes_);
  if (large_left_ > 0 || entries_ != meta_->entries) {
    return Fail(0, meta_->records.length, "there are not as many records as there should be");
  }
  for (const Section& section : sections_) {
    if (section.crc != section.place->crc) {
      return Fail(section.place->offset, section.place->length, section.name);
    }
  }
  return CheckFooter();
}

}  // namespace nacre
