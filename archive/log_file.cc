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
constexpr uint32_t kSealedFormatVersion = 2;
constexpr size_t kHeaderBytes = 36;
static_assert(kHeaderBytes + kSealBytes == kLogHeaderBytesMost);
constexpr size_t kRecordHead = 16;
constexpr uint32_t kEndLength = std::numeric_limits<uint32_t>::max();
constexpr size_t kEndBytes = kRecordHead + 24;
/// Sequence and count, with which a batch begins.
constexpr size_t kBatchHead = 12;
constexpr uint64_t kWindowBytes = 1 << 20;
/// A sealed piece begins with the length of what is in it.
constexpr size_t kPieceHead = sizeof(uint32_t);
constexpr size_t kPieceMore = kPieceHead + Aead::kTagBytes;
/// A piece has no more, unless it is one record.
constexpr size_t kPieceRecordBytes = 1 << 20;
/// Marker, salt, the sealed end and its tag.
constexpr size_t kSealedEndBytes = kPieceHead + kSealSaltBytes + kEndBytes + Aead::kTagBytes;

SealedAs OfLog(const std::string& path) {
  const std::string_view name = path;
  return {.kind = "log", .name = name.substr(name.rfind('/') + 1)};
}

std::string EncodeHeader(const LogFileInfo& info, bool sealed) {
  std::string bytes;
  PutFixed64(&bytes, kMagic);
  PutFixed32(&bytes, sealed ? kSealedFormatVersion : kFormatVersion);
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

/// The end of a sealed file of `key`, of `info.bytes` before it.
Status EncodeSealedEnd(const FileKey& key, const LogFileInfo& info, std::string* bytes) {
  bytes->clear();
  PutFixed32(bytes, kEndLength);
  bytes->resize(kPieceHead + kSealSaltBytes);
  NACRE_RETURN_IF_ERROR(DrawRandomBytes(kSealSaltBytes, bytes->data() + kPieceHead));
  SecretKey own;
  NACRE_RETURN_IF_ERROR(ContinueKey(key.key, {bytes->data() + kPieceHead, kSealSaltBytes}, &own));
  Aead aead(own);
  return SealPiece(&aead, info.bytes, EncodeEnd(info), bytes);
}

/// Opens such an end, which begins at `offset` of the file. `Corruption` if it is none.
Status OpenSealedEnd(const FileKey& key, uint64_t offset, const Slice& bytes, std::string* record) {
  if (DecodeFixed32(bytes.data()) != kEndLength) return Status::Corruption("it is no end");
  SecretKey own;
  NACRE_RETURN_IF_ERROR(ContinueKey(key.key, {bytes.data() + kPieceHead, kSealSaltBytes}, &own));
  Aead aead(own);
  record->resize(kEndBytes);
  const char* const sealed = bytes.data() + kPieceHead + kSealSaltBytes;
  return OpenPiece(&aead, offset, {sealed, kEndBytes}, sealed + kEndBytes, record->data());
}

Status EndBytesOf(const FileKey* key, const LogFileInfo& info, std::string* bytes) {
  if (key != nullptr) return EncodeSealedEnd(*key, info, bytes);
  *bytes = EncodeEnd(info);
  return Status::OK();
}

bool Matches(const Slice& record) {
  const size_t covered = sizeof(uint32_t);
  return DecodeFixed32(record.data()) == Crc32c(record.data() + covered, record.size() - covered);
}

/// Whether a record that has its head is a batch as it was written.
bool IsBatch(const Slice& record) {
  return record.size() >= kRecordHead + kBatchHead && Matches(record);
}

/// Takes a record from the front of `records`; false if the first one is not as it was written.
bool TakeRecord(Slice* records, Slice* record) {
  if (records->size() < kRecordHead) return false;
  const uint64_t bytes = kRecordHead + DecodeFixed32(records->data() + sizeof(uint32_t));
  *record = Slice(records->data(), std::min<uint64_t>(bytes, records->size()));
  if (record->size() < bytes || !IsBatch(*record)) return false;
  records->remove_prefix(bytes);
  return true;
}

ArchivedBatch BatchOf(const Slice& record) {
  const Slice bytes(record.data() + kRecordHead, record.size() - kRecordHead);
  return {.sequence = DecodeFixed64(bytes.data()),
          .count = DecodeFixed32(bytes.data() + sizeof(uint64_t)),
          .micros = DecodeFixed64(record.data() + 8),
          .bytes = bytes};
}

/// Appends the batches of `records`, which begin at `offset` of the file.
Status CheckRecords(const std::string& path, uint64_t offset, Slice records,
                    std::vector<ArchivedBatch>* batches) {
  const size_t size = records.size();
  while (!records.empty()) {
    const uint64_t at = offset + (size - records.size());
    Slice record;
    if (!TakeRecord(&records, &record)) {
      return Status::Corruption(
          fmt::format("{}: the record at {} does not match its checksum", path, at));
    }
    batches->push_back(BatchOf(record));
  }
  return Status::OK();
}

}  // namespace

// ---- Writing ------------------------------------------------------------------------------------

Status LogFileWriter::Create(const std::string& path, uint64_t database_id, uint64_t after,
                             const Sealing& sealing, std::unique_ptr<LogFileWriter>* writer) {
  LogFileInfo info{.path = path, .database_id = database_id, .after = after, .last = after};
  std::string header = EncodeHeader(info, sealing.keys != nullptr);
  auto key = std::make_unique<FileKey>();
  if (sealing.keys != nullptr) {
    std::string seal;
    NACRE_RETURN_IF_ERROR(NewFileKey(sealing, OfLog(path), header, &seal, key.get()));
    header += seal;
  }
  info.key_id = key->id;
  info.bytes = header.size();
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Create(path, &file));
  NACRE_RETURN_IF_ERROR(file->Append(header));
  NACRE_RETURN_IF_ERROR(file->Sync());
  std::unique_ptr<LogFileWriter> created(new LogFileWriter(std::move(file), std::move(info)));
  if (sealing.keys != nullptr) {
    created->aead_ = std::make_unique<Aead>(key->key);
    created->key_ = std::move(key);
  }
  *writer = std::move(created);
  return Status::OK();
}

void LogFileWriter::Add(const std::string& batch, uint64_t micros) {
  const size_t before = buffer_.size();
  PutRecord(static_cast<uint32_t>(batch.size()), micros, batch, &buffer_);
  info_.bytes += buffer_.size() - before;
  if (key_ != nullptr) {
    const size_t begin = piece_ends_.size() < 2 ? 0 : piece_ends_[piece_ends_.size() - 2];
    if (piece_ends_.empty() || buffer_.size() - begin > kPieceRecordBytes) {
      piece_ends_.push_back(0);
      info_.bytes += kPieceMore;
    }
    piece_ends_.back() = buffer_.size();
  }
  if (info_.last == info_.after) info_.first_micros = micros;
  info_.last_micros = micros;
  info_.last = DecodeFixed64(batch.data()) + DecodeFixed32(batch.data() + sizeof(uint64_t)) - 1;
}

Status LogFileWriter::WriteSealed() {
  size_t begin = 0;
  sealed_.clear();
  for (const size_t end : piece_ends_) {
    const uint64_t offset = file_->size() + sealed_.size();
    PutFixed32(&sealed_, static_cast<uint32_t>(end - begin));
    NACRE_RETURN_IF_ERROR(
        SealPiece(aead_.get(), offset, {buffer_.data() + begin, end - begin}, &sealed_));
    begin = end;
  }
  piece_ends_.clear();
  return file_->Append(sealed_);
}

Status LogFileWriter::Write() {
  const Status status = key_ == nullptr ? file_->Append(buffer_) : WriteSealed();
  buffer_.clear();
  return status;
}

Status LogFileWriter::Sync() {
  // Nothing else may be sealed in the place of what was, perhaps, written in part.
  if (failed_) return Status::IOError(info_.path + ": an earlier write has failed");
  if (buffer_.empty()) return Status::OK();
  failed_ = true;
  NACRE_RETURN_IF_ERROR(Write());
  NACRE_RETURN_IF_ERROR(file_->SyncData());
  failed_ = false;
  return Status::OK();
}

Status LogFileWriter::Finish() {
  NACRE_RETURN_IF_ERROR(Sync());
  std::string end;
  NACRE_RETURN_IF_ERROR(EndBytesOf(key_.get(), info_, &end));
  NACRE_RETURN_IF_ERROR(file_->Append(end));
  info_.finished = true;
  return file_->Sync();
}

// ---- Reading ------------------------------------------------------------------------------------

Status LogFileReader::Open(const std::string& path, const Sealing& sealing,
                           std::unique_ptr<LogFileReader>* reader) {
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Open(path, &file));
  std::unique_ptr<LogFileReader> opened(new LogFileReader(std::move(file)));
  opened->info_.path = path;
  NACRE_RETURN_IF_ERROR(opened->ReadHeader(sealing));
  NACRE_RETURN_IF_ERROR(opened->ReadEnd());
  *reader = std::move(opened);
  return Status::OK();
}

Status LogFileReader::OpenListed(const LogFileInfo& listed, const Sealing& sealing,
                                 std::unique_ptr<LogFileReader>* reader) {
  NACRE_RETURN_IF_ERROR(Open(listed.path, sealing, reader));
  LogFileReader& opened = **reader;
  if (opened.end_ < listed.bytes) return opened.Damaged("it is shorter than it was");
  opened.end_ = listed.bytes;
  return Status::OK();
}

Status LogFileReader::Damaged(const std::string& what) const {
  return Status::Corruption(info_.path + ": " + what);
}

Status LogFileReader::ReadHeader(const Sealing& sealing) {
  char header[kHeaderBytes];
  if (file_->size() < kHeaderBytes) return Damaged("it ends within its header");
  NACRE_RETURN_IF_ERROR(file_->Read(0, kHeaderBytes, header));
  const size_t covered = kHeaderBytes - sizeof(uint32_t);
  if (DecodeFixed64(header) != kMagic) return Damaged("it is no file of an archive's log");
  if (DecodeFixed32(header + covered) != Crc32c(header, covered)) {
    return Damaged("its header does not match its checksum");
  }
  const uint32_t version = DecodeFixed32(header + 8);
  if (version != kFormatVersion && version != kSealedFormatVersion) {
    return Status::NotSupported(fmt::format("{}: format version {}", info_.path, version));
  }
  info_.database_id = DecodeFixed64(header + 16);
  info_.after = info_.last = DecodeFixed64(header + 24);
  offset_ = kHeaderBytes;
  if (version == kSealedFormatVersion) {
    char seal[kSealBytes];
    if (file_->size() < kLogHeaderBytesMost) return Damaged("it ends within its seal");
    NACRE_RETURN_IF_ERROR(file_->Read(kHeaderBytes, kSealBytes, seal));
    auto key = std::make_shared<FileKey>();
    NACRE_RETURN_IF_ERROR(FindFileKey(sealing, OfLog(info_.path), {header, kHeaderBytes},
                                      {seal, kSealBytes}, key.get())
                              .WithContext(info_.path));
    aead_ = std::make_unique<Aead>(key->key);
    info_.key_id = key->id;
    key_ = std::move(key);
    offset_ = kLogHeaderBytesMost;
  }
  info_.bytes = offset_;
  end_ = file_->size();
  return Status::OK();
}

Status LogFileReader::ReadEndRecord(std::string* record) {
  record->clear();
  const size_t bytes = key_ == nullptr ? kEndBytes : kSealedEndBytes;
  if (file_->size() < offset_ + bytes) return Status::OK();
  record->resize(bytes);
  const uint64_t at = file_->size() - bytes;
  NACRE_RETURN_IF_ERROR(file_->Read(at, bytes, record->data()));
  if (key_ == nullptr) return Status::OK();
  const std::string sealed = std::exchange(*record, "");
  const Status status = OpenSealedEnd(*key_, at, sealed, record);
  if (!status.IsCorruption()) return status;
  record->clear();  // The file has none yet.
  return Status::OK();
}

Status LogFileReader::ReadEnd() {
  std::string end;
  NACRE_RETURN_IF_ERROR(ReadEndRecord(&end));
  if (end.empty()) return Status::OK();
  const uint64_t at = file_->size() - (key_ == nullptr ? kEndBytes : kSealedEndBytes);
  const char* const payload = end.data() + kRecordHead;
  const bool is_end = DecodeFixed32(end.data() + sizeof(uint32_t)) == kEndLength && Matches(end) &&
                      DecodeFixed64(payload + 16) == at;
  if (!is_end) return Status::OK();
  info_.finished = true;
  info_.last = DecodeFixed64(payload);
  info_.first_micros = DecodeFixed64(payload + 8);
  info_.last_micros = DecodeFixed64(end.data() + 8);
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

Status LogFileReader::EndHere(const char* what) const {
  if (!info_.finished || offset_ == end_) return Status::OK();
  return Damaged(fmt::format("the {} at {} does not match its checksum", what, offset_));
}

Status LogFileReader::NextRecord(Slice* record) {
  *record = Slice();
  bool there = false;
  NACRE_RETURN_IF_ERROR(Fill(kRecordHead, &there));
  if (!there) return EndHere("record");
  const uint32_t length = DecodeFixed32(window_.data() + (offset_ - window_at_) + 4);
  if (length == kEndLength) return EndHere("record");  // The end, which is not here.
  NACRE_RETURN_IF_ERROR(Fill(kRecordHead + length, &there));
  const Slice found(window_.data() + (offset_ - window_at_), there ? kRecordHead + length : 0);
  if (!IsBatch(found)) return EndHere("record");
  *record = found;
  offset_ += found.size();
  return Status::OK();
}

Status LogFileReader::NextSealedRecord(Slice* record) {
  *record = Slice();
  if (opened_.empty()) {
    bool there = false;
    NACRE_RETURN_IF_ERROR(Fill(kPieceHead, &there));
    if (!there) return EndHere("piece");
    const uint32_t length = DecodeFixed32(window_.data() + (offset_ - window_at_));
    if (length == kEndLength) return EndHere("piece");  // The end, which is not here.
    NACRE_RETURN_IF_ERROR(Fill(kPieceMore + length, &there));
    if (!there) return EndHere("piece");
    char* const piece = window_.data() + (offset_ - window_at_) + kPieceHead;
    const Status status = OpenPiece(aead_.get(), offset_, {piece, length}, piece + length, piece);
    if (status.IsCorruption()) return EndHere("piece");
    NACRE_RETURN_IF_ERROR(status);
    opened_ = Slice(piece, length);
    offset_ += kPieceMore + length;
  }
  if (!TakeRecord(&opened_, record)) {
    return Damaged(fmt::format("a record in the piece before {} makes no sense", offset_));
  }
  return Status::OK();
}

Status LogFileReader::Next(ArchivedBatch* batch, bool* end) {
  Slice record;
  NACRE_RETURN_IF_ERROR(key_ == nullptr ? NextRecord(&record) : NextSealedRecord(&record));
  *end = record.empty();
  if (!*end) *batch = BatchOf(record);
  return Status::OK();
}

Status LogFileReader::NextPiece(uint64_t bytes, LogPiece* piece) {
  piece->path = info_.path;
  piece->offset = offset_;
  piece->size = 0;
  piece->key = key_;
  // What is read is a row of records or of sealed pieces; either tells its length in its head.
  const size_t head = key_ == nullptr ? kRecordHead : kPieceHead;
  const auto size_at = [&](const char* at) -> uint64_t {
    if (key_ == nullptr) return kRecordHead + DecodeFixed32(at + sizeof(uint32_t));
    return kPieceMore + DecodeFixed32(at);
  };
  uint64_t there = std::min(std::max(bytes, uint64_t{head}), end_ - offset_);
  const auto read = [&](uint64_t from) {
    if (piece->buffer.size() < there) piece->buffer.resize(there);
    return file_->Read(offset_ + from, there - from, piece->buffer.data() + from);
  };
  if (there > 0) NACRE_RETURN_IF_ERROR(read(0));
  while (piece->size + head <= there) {
    const uint64_t record = size_at(piece->buffer.data() + piece->size);
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

Status CheckPiece(LogPiece* piece, std::vector<ArchivedBatch>* batches) {
  batches->clear();
  if (piece->key == nullptr) {
    return CheckRecords(piece->path, piece->offset, {piece->buffer.data(), piece->size}, batches);
  }
  Aead aead(piece->key->key);
  for (size_t at = 0; at < piece->size;) {
    const uint64_t offset = piece->offset + at;
    char* const sealed = piece->buffer.data() + at + kPieceHead;
    const size_t left = piece->size - at;
    const uint64_t length = left < kPieceHead ? left : DecodeFixed32(sealed - kPieceHead);
    if (kPieceMore + length > left) {
      return Status::Corruption(
          fmt::format("{}: the piece at {} goes beyond the end", piece->path, offset));
    }
    NACRE_RETURN_IF_ERROR(OpenPiece(&aead, offset, {sealed, length}, sealed + length, sealed)
                              .WithContext(piece->path));
    NACRE_RETURN_IF_ERROR(
        CheckRecords(piece->path, offset + kPieceHead, {sealed, length}, batches));
    at += kPieceMore + length;
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

Status FinishLogFile(const std::string& path, const Sealing& sealing, LogFileInfo* info) {
  std::unique_ptr<LogFileReader> reader;
  NACRE_RETURN_IF_ERROR(LogFileReader::Open(path, sealing, &reader));
  NACRE_RETURN_IF_ERROR(reader->Look(info));
  if (info->finished) return Status::OK();
  std::string end;
  NACRE_RETURN_IF_ERROR(EndBytesOf(reader->key(), *info, &end));
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::OpenToAppend(path, &file));
  NACRE_RETURN_IF_ERROR(file->Truncate(info->bytes));
  NACRE_RETURN_IF_ERROR(file->Append(end));
  info->finished = true;
  return file->Sync();
}

}  // namespace nacre
