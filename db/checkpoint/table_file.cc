#include "db/checkpoint/table_file.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace nacre {
namespace {

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
                               std::unique_ptr<TableFileWriter>* writer) {
  std::string head;
  NACRE_RETURN_IF_ERROR(EncodeFragmentHead(meta, &head));
  head.resize(kFragmentHeadBytes, '\0');
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Create(path, &file));
  NACRE_RETURN_IF_ERROR(file->Append(head));
  writer->reset(new TableFileWriter(meta, std::move(file)));
  return Status::OK();
}

Status TableFileWriter::Append(const Slice& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const size_t n = std::min<size_t>(checksums_.chunk_size, bytes.size() - at);
    checksums_.Add(bytes.data() + at, n);
    at += n;
  }
  return file_->Append(bytes);
}

Status TableFileWriter::Finish() {
  std::string tail;
  EncodeFragmentTail(checksums_, &tail);
  NACRE_RETURN_IF_ERROR(file_->Append(tail));
  return file_->Sync();
}

Status TableFileReader::Open(const std::string& path, const TableMeta& meta,
                             std::unique_ptr<TableFileReader>* reader) {
  std::unique_ptr<PosixFile> file;
  NACRE_RETURN_IF_ERROR(PosixFile::Open(path, &file));
  const uint64_t size =
      kFragmentHeadBytes + meta.size + FragmentTailBytes(meta.size, meta.chunk_size);
  if (file->size() != size) {
    return Status::Corruption(path + ": has " + std::to_string(file->size()) + " bytes, not " +
                              std::to_string(size));
  }
  std::unique_ptr<TableFileReader> opened(new TableFileReader(std::move(file)));
  NACRE_RETURN_IF_ERROR(opened->CheckHead(meta).WithContext(path));
  NACRE_RETURN_IF_ERROR(opened->ReadTail(meta).WithContext(path));
  *reader = std::move(opened);
  return Status::OK();
}

Status TableFileReader::CheckHead(const TableMeta& meta) const {
  std::string head(kFragmentHeadBytes, '\0');
  NACRE_RETURN_IF_ERROR(file_->Read(0, head.size(), head.data()));
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
  NACRE_RETURN_IF_ERROR(file_->Read(kFragmentHeadBytes + meta.size, tail.size(), tail.data()));
  NACRE_RETURN_IF_ERROR(DecodeFragmentTail(
      tail, {.table_id = meta.id, .fragment = 0, .bytes = meta.size}, &checksums_));
  if (checksums_.chunk_size == meta.chunk_size) return Status::OK();
  return Status::Corruption("tail of a fragment: chunks of another size");
}

Status TableFileReader::ReadChunk(uint64_t chunk, char* to) const {
  const uint64_t offset = kFragmentHeadBytes + chunk * checksums_.chunk_size;
  NACRE_RETURN_IF_ERROR(file_->Read(offset, ChunkBytes(chunk), to));
  if (checksums_.Matches(chunk, to)) return Status::OK();
  return Status::Corruption(file_->path() + ": bytes " + std::to_string(offset) + " to " +
                            std::to_string(offset + ChunkBytes(chunk)) +
                            " do not match their checksum");
}

}  // namespace nacre
