#include "db/checkpoint/table_file.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "util/coding.h"

namespace nacre {
namespace {

constexpr uint64_t kSealedTableMagic = 0x314c54534b434e;  // "NCKSTL1"
constexpr uint32_t kSealedTableVersion = 1;
constexpr size_t kSealedTableHeader = 16;
constexpr size_t kSealedTableParts = kSealedTableHeader + kSealBytes;

SealedAs OfTable(const std::string& name) { return {.kind = "table", .name = name}; }

std::string SealedTableHeader() {
  std::string header(kSealedTableHeader, '\0');
  EncodeFixed64(header.data(), kSealedTableMagic);
  EncodeFixed32(header.data() + sizeof(kSealedTableMagic), kSealedTableVersion);
  return header;
}

/// Reads what is before the parts of a sealed table.
Status ReadSealedTableStart(const PosixFile& file, std::string* start) {
  start->resize(kSealedTableParts);
  if (file.size() < kSealedTableParts) return Status::Corruption("it ends within its seal");
  NACRE_RETURN_IF_ERROR(file.Read(0, start->size(), start->data()));
  if (DecodeFixed64(start->data()) != kSealedTableMagic) {
    return Status::Corruption("it is no sealed table");
  }
  const uint32_t version = DecodeFixed32(start->data() + sizeof(kSealedTableMagic));
  if (version == kSealedTableVersion) return Status::OK();
  return Status::NotSupported("format version " + std::to_string(version));
}

/// Whether two metas describe the same bytes. Levels and placements may differ.
bool SameTable(const TableMeta& a, const TableMeta& b) {
  const auto same = [](const TableSection& x, const TableSection& y) {
    return x.offset == y.offset && x.length == y.length && x.crc == y.crc;
  };
  return a.id == b.id && a.database_id == b.database_id && a.size == b.size &&
         a.chunk_size == b.chunk_size && a.entries == b.entries &&
         a.manifest_version == b.manifest_version && a.largest_sequence == b.largest_sequence &&
         same(a.records, b.records) && same(a.point_index, b.point_index) &&
         same(a.range_index, b.range_index) && same(a.bloom, b.bloom) &&
         same(a.range_deletions, b.range_deletions) && same(a.lineage, b.lineage);
}

}  // namespace

TableFileWriter::TableFileWriter(const TableMeta& meta, std::unique_ptr<PosixFile> file)
    : file_(std::move(file)) {
  checksums_.table_id = meta.id;
  checksums_.chunk_size = meta.chunk_size;
}

Status TableFileWriter::Create(const std::string& path, const TableMeta& meta,
                               const Sealing* sealing, const std::string& name,
                               std::unique_ptr<TableFileWriter>* writer) {
  std::string head;
  NACRE_RETURN_IF_ERROR(EncodeFragmentHead(meta, &head));
  head.resize(kFragmentHeadBytes, '\0');
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Create(path, &file));
  std::unique_ptr<TableFileWriter> created(new TableFileWriter(meta, std::move(file)));
  if (sealing != nullptr) NACRE_RETURN_IF_ERROR(created->WriteSeal(*sealing, name));
  NACRE_RETURN_IF_ERROR(created->WritePart(head));
  *writer = std::move(created);
  return Status::OK();
}

Status TableFileWriter::WriteSeal(const Sealing& sealing, const std::string& name) {
  const std::string header = SealedTableHeader();
  std::string seal;
  FileKey key;
  NACRE_RETURN_IF_ERROR(NewFileKey(sealing, OfTable(name), header, &seal, &key));
  aead_ = std::make_unique<Aead>(key.key);
  return file_->Append(header + seal);
}

Status TableFileWriter::WritePart(const Slice& part) {
  if (aead_ == nullptr) return file_->Append(part);
  sealed_.clear();
  NACRE_RETURN_IF_ERROR(SealPiece(aead_.get(), file_->size(), part, &sealed_));
  return file_->Append(sealed_);
}

Status TableFileWriter::Append(const Slice& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t n = std::min<size_t>(checksums_.chunk_size, bytes.size() - at);
    checksums_.Add(bytes.data() + at, n);
    if (aead_ != nullptr) NACRE_RETURN_IF_ERROR(WritePart({bytes.data() + at, n}));
    at += n;
  }
  return aead_ == nullptr ? file_->Append(bytes) : Status::OK();
}

Status TableFileWriter::Finish() {
  std::string tail;
  EncodeFragmentTail(checksums_, &tail);
  NACRE_RETURN_IF_ERROR(WritePart(tail));
  return file_->Sync();
}

Status TableFileReader::Open(const std::string& path, const TableMeta& meta, const Sealing* sealing,
                             std::unique_ptr<TableFileReader>* reader) {
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Open(path, &file));
  uint64_t size = kFragmentHeadBytes + meta.size + FragmentTailBytes(meta.size, meta.chunk_size);
  if (sealing != nullptr) {
    const uint64_t pieces = 2 + (meta.size + meta.chunk_size - 1) / meta.chunk_size;
    size += kSealedTableParts + pieces * Aead::kTagBytes;
  }
  if (file->size() != size) {
    return Status::Corruption(path + ": has " + std::to_string(file->size()) + " bytes, not " +
                              std::to_string(size));
  }
  std::unique_ptr<TableFileReader> opened(new TableFileReader(std::move(file)));
  if (sealing != nullptr) {
    NACRE_RETURN_IF_ERROR(opened->ReadSeal(*sealing).WithContext(path));
  }
  NACRE_RETURN_IF_ERROR(opened->CheckHead(meta).WithContext(path));
  NACRE_RETURN_IF_ERROR(opened->ReadTail(meta).WithContext(path));
  *reader = std::move(opened);
  return Status::OK();
}

Status TableFileReader::ReadSeal(const Sealing& sealing) {
  std::string start;
  NACRE_RETURN_IF_ERROR(ReadSealedTableStart(*file_, &start));
  const std::string name = file_->path().substr(file_->path().rfind('/') + 1);
  FileKey key;
  NACRE_RETURN_IF_ERROR(FindFileKey(sealing, OfTable(name), {start.data(), kSealedTableHeader},
                                    {start.data() + kSealedTableHeader, kSealBytes}, &key));
  aead_ = std::make_unique<Aead>(key.key);
  return Status::OK();
}

uint64_t TableFileReader::OffsetOf(uint64_t chunk) const {
  const uint64_t plain = kFragmentHeadBytes + chunk * checksums_.chunk_size;
  return aead_ == nullptr ? plain : kSealedTableParts + plain + (1 + chunk) * Aead::kTagBytes;
}

Status TableFileReader::ReadPart(uint64_t offset, size_t n, char* to) {
  NACRE_RETURN_IF_ERROR(file_->Read(offset, n, to));
  if (aead_ == nullptr) return Status::OK();
  char tag[Aead::kTagBytes];
  NACRE_RETURN_IF_ERROR(file_->Read(offset + n, sizeof(tag), tag));
  return OpenPiece(aead_.get(), offset, {to, n}, tag, to);
}

Status TableFileReader::CheckHead(const TableMeta& meta) {
  std::string head(kFragmentHeadBytes, '\0');
  NACRE_RETURN_IF_ERROR(
      ReadPart(aead_ == nullptr ? 0 : kSealedTableParts, head.size(), head.data()));
  Slice input = head;
  TableMeta found;
  NACRE_RETURN_IF_ERROR(DecodeTableMeta(&input, &found).WithContext("head"));
  if (!SameTable(found, meta)) return Status::Corruption("head: it is another table's");
  const std::string_view rest(input.data(), input.size());
  if (rest.find_first_not_of('\0') != std::string_view::npos) {
    return Status::Corruption("head: bytes behind the meta");
  }
  return Status::OK();
}

Status TableFileReader::ReadTail(const TableMeta& meta) {
  std::string tail(FragmentTailBytes(meta.size, meta.chunk_size), '\0');
  NACRE_RETURN_IF_ERROR(
      ReadPart(file_->size() - tail.size() - (aead_ == nullptr ? 0 : Aead::kTagBytes), tail.size(),
               tail.data()));
  NACRE_RETURN_IF_ERROR(DecodeFragmentTail(
      tail, {.table_id = meta.id, .fragment = 0, .bytes = meta.size}, &checksums_));
  if (checksums_.chunk_size == meta.chunk_size) return Status::OK();
  return Status::Corruption("tail of a fragment: chunks of another size");
}

Status TableFileReader::ReadChunk(uint64_t chunk, char* to) {
  const uint64_t offset = OffsetOf(chunk);
  const size_t bytes = ChunkBytes(chunk);
  NACRE_RETURN_IF_ERROR(ReadPart(offset, bytes, to).WithContext(file_->path()));
  if (checksums_.Matches(chunk, to)) return Status::OK();
  return Status::Corruption(file_->path() + ": bytes " + std::to_string(offset) + " to " +
                            std::to_string(offset + bytes) + " do not match their checksum");
}

Status ReadTableKey(const std::string& path, std::string* key_id) {
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Open(path, &file));
  std::string start;
  Status status = ReadSealedTableStart(*file, &start);
  if (status.ok()) {
    status = FindKeyId({start.data(), kSealedTableHeader},
                       {start.data() + kSealedTableHeader, kSealBytes}, key_id);
  }
  return status.WithContext(path);
}

}  // namespace nacre
