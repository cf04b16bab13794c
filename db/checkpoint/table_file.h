#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/fragment_checksums.h"
#include "table/format/table_meta.h"
#include "util/posix_file.h"

namespace nacre {

// A table in a file of its own: just what a node holds of a table that is replicated, which is a
// head (zeros behind the meta), the bytes of the table, and a tail with the checksum of each chunk
// (docs/formats.md, "Fragments"). The head has no placement.

/// Writes one. Thread safety: none.
class TableFileWriter {
 public:
  /// Begins the file at `path` anew.
  static Status Create(const std::string& path, const TableMeta& meta,
                       std::unique_ptr<TableFileWriter>* writer);

  /// The next bytes of the table: whole chunks, and at last what is left.
  Status Append(const Slice& bytes);
  /// All bytes are there. Returns when the file is on the disk.
  Status Finish();

 private:
  TableFileWriter(const TableMeta& meta, std::unique_ptr<PosixFile> file);

  std::unique_ptr<PosixFile> file_;
  FragmentChecksums checksums_;
};

/// Reads one, and checks what it reads. Thread safety: reads from many threads at once.
class TableFileReader {
 public:
  /// Checks all but the bytes of the table. `meta`: of the table that it should be, in whatever
  /// level. `Corruption` naming the file if it is damaged, or another table's; `NotFound`.
  static Status Open(const std::string& path, const TableMeta& meta,
                     std::unique_ptr<TableFileReader>* reader);

  uint64_t chunks() const { return checksums_.chunks.size(); }
  size_t ChunkBytes(uint64_t chunk) const { return checksums_.ChunkBytes(chunk); }
  /// Reads chunk number `chunk` into `to`, which has room for it. `Corruption` naming the file.
  Status ReadChunk(uint64_t chunk, char* to) const;

 private:
  explicit TableFileReader(std::unique_ptr<PosixFile> file) : file_(std::move(file)) {}

  Status CheckHead(const TableMeta& meta) const;
  Status ReadTail(const TableMeta& meta);

  std::unique_ptr<PosixFile> file_;
  FragmentChecksums checksums_;
};

}  // namespace nacre
