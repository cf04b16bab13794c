#include "archive/log_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {
namespace {

constexpr uint64_t kMagic = 0x31676f4c61724361;
constexpr uint32_t kFormatVersion = 1;
constexpr size_t kHeaderBytes = 36;
constexpr size_t kRecordHead = 16;
constexpr uint32_t kEndLength = std::numeric_limits<uint32_t>::max();
constexpr size_t kEndBytes = kRecordHead + 24;
/// Sequence and count, with which a batch begins.
constexpr size_t kBatchHead = 12;
constexpr uint64_t kWindowBytes = 1 << 20;

std::string EncodeHeader(const LogFileInfo& info) {
  std::string bytes;
  PutFixed64(&bytes, kMagic);
  PutFixed32(&bytes, kFormatVersion);
  PutFixed32(&bytes, 0);
  PutFixed64(&bytes, info.database_id);
  PutFixed64(&bytes, info.after);
  PutFixed32(&bytes, Crc32c(bytes.data(), bytes.size()));
  return bytes;
}

/// Appends a record whose payload `parts` are.
void PutRecord(uint32_t length, uint64_t micros, const Slice& payload, std::string* to) {
  const size_t begin = to->size();
  PutFixed32(to, 0);
  PutFixed32(to, length);
  PutFixed64(to, micros);
  to->append(payload.data(), payload.size());
  const size_t covered = begin + sizeof(uint32_t);
  EncodeFixed32(to->data() + begin, Crc32c(to->data() + covered, to->size() - covered));
}

std::string EncodeEnd(const LogFileInfo& info) {
  std::string payload;
  PutFixed64(&payload, info.last);
  PutFixed64(&payload, info.first_micros);
  PutFixed64(&payload, info.bytes);
  std::string bytes;
  PutRecord(kEndLength, info.last_micros, payload, &bytes);
  return bytes;
}

bool Matches(const Slice& record) {
  const size_t covered = sizeof(uint32_t);
  return DecodeFixed32(record.data()) == Crc32c(record.data() + covered, record.size() - covered);
}

/// Whether a record that has its head is a batch as it was written.
bool IsBatch(const Slice& record) {
  return record.size() >= kRecordHead + kBatchHead && Matches(record);
}

ArchivedBatch BatchOf(const Slice& record) {
  const Slice bytes(record.data() + kRecordHead, record.size() - kRecordHead);
  return {.sequence = DecodeFixed64(bytes.data()),
          .count = DecodeFixed32(bytes.data() + sizeof(uint64_t)),
          .micros = DecodeFixed64(record.data() + 8),
          .bytes = bytes};
}

}  // namespace

// ---- Writing ------------------------------------------------------------------------------------

Status LogFileWriter::Create(const std::string& path, uint64_t database_id, uint64_t after,
                             std::unique_ptr<LogFileWriter>* writer) {
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Create(path, &file));
  LogFileInfo info{.path = path, .database_id = database_id, .after = after, .last = after};
  const std::string header = EncodeHeader(info);
  info.bytes = header.size();
  NACRE_RETURN_IF_ERROR(file->Append(header));
  NACRE_RETURN_IF_ERROR(file->Sync());
  writer->reset(new LogFileWriter(std::move(file), std::move(info)));
  return Status::OK();
}

void LogFileWriter::Add(const std::string& batch, uint64_t micros) {
  const size_t before = buffer_.size();
  PutRecord(static_cast<uint32_t>(batch.size()), micros, batch, &buffer_);
  info_.bytes += buffer_.size() - before;
  if (info_.last == info_.after) info_.first_micros = micros;
  info_.last_micros = micros;
  info_.last = DecodeFixed64(batch.data()) + DecodeFixed32(batch.data() + sizeof(uint64_t)) - 1;
}

Status LogFileWriter::Sync() {
  if (buffer_.empty()) return Status::OK();
  NACRE_RETURN_IF_ERROR(file_->Append(buffer_));
  buffer_.clear();
  return file_->SyncData();
}

Status LogFileWriter::Finish() {
  NACRE_RETURN_IF_ERROR(Sync());
  NACRE_RETURN_IF_ERROR(file_->Append(EncodeEnd(info_)));
  info_.finished = true;
  return file_->Sync();
}

// ---- Reading ------------------------------------------------------------------------------------

Status LogFileReader::Open(const std::string& path, std::unique_ptr<LogFileReader>* reader) {
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Open(path, &file));
  std::unique_ptr<LogFileReader> opened(new LogFileReader(std::move(file)));
  opened->info_.path = path;
  NACRE_RETURN_IF_ERROR(opened->ReadHeader());
  NACRE_RETURN_IF_ERROR(opened->ReadEnd());
  *reader = std::move(opened);
  return Status::OK();
}

Status LogFileReader::OpenListed(const LogFileInfo& listed,
                                 std::unique_ptr<LogFileReader>* reader) {
  NACRE_RETURN_IF_ERROR(Open(listed.path, reader));
  LogFileReader& opened = **reader;
  if (opened.end_ < listed.bytes) return opened.Damaged("it is shorter than it was");
  opened.end_ = listed.bytes;
  return Status::OK();
}

Status LogFileReader::Damaged(const std::string& what) const {
  return Status::Corruption(info_.path + ": " + what);
}

Status LogFileReader::ReadHeader() {
  char header[kHeaderBytes];
  if (file_->size() < kHeaderBytes) return Damaged("it ends within its header");
  NACRE_RETURN_IF_ERROR(file_->Read(0, kHeaderBytes, header));
  const size_t covered = kHeaderBytes - sizeof(uint32_t);
  if (DecodeFixed64(header) != kMagic) return Damaged("it is no file of an archive's log");
  if (DecodeFixed32(header + covered) != Crc32c(header, covered)) {
    return Damaged("its header does not match its checksum");
  }
  if (const uint32_t version = DecodeFixed32(header + 8); version != kFormatVersion) {
    return Status::NotSupported(fmt::format("{}: format version {}", info_.path, version));
  }
  info_.database_id = DecodeFixed64(header + 16);
  info_.after = info_.last = DecodeFixed64(header + 24);
  info_.bytes = offset_ = kHeaderBytes;
  end_ = file_->size();
  return Status::OK();
}

Status LogFileReader::ReadEnd() {
  if (file_->size() < kHeaderBytes + kEndBytes) return Status::OK();
  const uint64_t at = file_->size() - kEndBytes;
  char end[kEndBytes];
  NACRE_RETURN_IF_ERROR(file_->Read(at, kEndBytes, end));
  const char* const payload = end + kRecordHead;
  const bool is_end = DecodeFixed32(end + sizeof(uint32_t)) == kEndLength &&
                      Matches(Slice(end, kEndBytes)) && DecodeFixed64(payload + 16) == at;
  if (!is_end) return Status::OK();
  info_.finished = true;
  info_.last = DecodeFixed64(payload);
  info_.first_micros = DecodeFixed64(payload + 8);
  info_.last_micros = DecodeFixed64(end + 8);
  info_.bytes = end_ = at;
  return Status::OK();
}

Status LogFileReader::Fill(uint64_t bytes, bool* there) {
  *there = offset_ + bytes <= end_;
  if (!*there) return Status::OK();
  if (offset_ >= window_at_ && offset_ + bytes <= window_at_ + window_.size()) return Status::OK();
  window_.resize(std::min(std::max(bytes, kWindowBytes), end_ - offset_));
  window_at_ = offset_;
  return file_->Read(offset_, window_.size(), window_.data());
}

Status LogFileReader::Next(ArchivedBatch* batch, bool* end) {
  *end = true;
  bool there = false;
  NACRE_RETURN_IF_ERROR(Fill(kRecordHead, &there));
  uint64_t bytes = 0;
  if (there) {
    const uint32_t length = DecodeFixed32(window_.data() + (offset_ - window_at_) + 4);
    bytes = kRecordHead + length;
    if (length == kEndLength) bytes = end_;  // No record has it but the end, which is not here.
    NACRE_RETURN_IF_ERROR(Fill(bytes, &there));
  }
  const Slice record(there ? window_.data() + (offset_ - window_at_) : nullptr, there ? bytes : 0);
  if (!there || !IsBatch(record)) {
    if (!info_.finished || offset_ == end_) return Status::OK();
    return Damaged(fmt::format("the record at {} does not match its checksum", offset_));
  }
  *batch = BatchOf(record);
  offset_ += bytes;
  *end = false;
  return Status::OK();
}

Status LogFileReader::NextPiece(uint64_t bytes, LogPiece* piece) {
  piece->path = info_.path;
  piece->offset = offset_;
  piece->size = 0;
  uint64_t there = std::min(std::max(bytes, uint64_t{kRecordHead}), end_ - offset_);
  const auto read = [&](uint64_t from) {
    if (piece->buffer.size() < there) piece->buffer.resize(there);
    return file_->Read(offset_ + from, there - from, piece->buffer.data() + from);
  };
  if (there > 0) NACRE_RETURN_IF_ERROR(read(0));
  while (piece->size + kRecordHead <= there) {
    const uint64_t record =
        kRecordHead + DecodeFixed32(piece->buffer.data() + piece->size + sizeof(uint32_t));
    if (record > end_ - offset_ - piece->size) {
      return Damaged(fmt::format("the record at {} goes beyond the end", offset_ + piece->size));
    }
    if (piece->size + record > there) {
      if (piece->size > 0) break;
      const uint64_t before = std::exchange(there, record);
      NACRE_RETURN_IF_ERROR(read(before));
    }
    piece->size += record;
  }
  if (piece->size == 0 && there > 0) {
    return Damaged(fmt::format("the record at {} goes beyond the end", offset_));
  }
  offset_ += piece->size;
  return Status::OK();
}

Status CheckPiece(const LogPiece& piece, std::vector<ArchivedBatch>* batches) {
  batches->clear();
  for (Slice left(piece.buffer.data(), piece.size); !left.empty();) {
    const uint64_t bytes = kRecordHead + DecodeFixed32(left.data() + sizeof(uint32_t));
    const Slice record(left.data(), std::min<uint64_t>(bytes, left.size()));
    if (bytes > left.size() || !IsBatch(record)) {
      return Status::Corruption(fmt::format("{}: the record at {} does not match its checksum",
                                            piece.path, piece.offset + (piece.size - left.size())));
    }
    batches->push_back(BatchOf(record));
    left.remove_prefix(bytes);
  }
  return Status::OK();
}

Status LogFileReader::Look(LogFileInfo* info) {
  ArchivedBatch batch;
  for (bool end = info_.finished; !end;) {
    NACRE_RETURN_IF_ERROR(Next(&batch, &end));
    if (end) break;
    if (info_.last == info_.after) info_.first_micros = batch.micros;
    info_.last = batch.last();
    info_.last_micros = batch.micros;
    info_.bytes = offset_;
  }
  *info = info_;
  return Status::OK();
}

Status FinishLogFile(const std::string& path, LogFileInfo* info) {
  std::unique_ptr<LogFileReader> reader;
  NACRE_RETURN_IF_ERROR(LogFileReader::Open(path, &reader));
  NACRE_RETURN_IF_ERROR(reader->Look(info));
  if (info->finished) return Status::OK();
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::OpenToAppend(path, &file));
  NACRE_RETURN_IF_ERROR(file->Truncate(info->bytes));
  NACRE_RETURN_IF_ERROR(file->Append(EncodeEnd(*info)));
  info->finished = true;
  return file->Sync();
}

}  // namespace nacre
