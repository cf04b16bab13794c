#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/fragment_checksums.h"
#include "table/format/table_meta.h"
#include "util/crypto/sealed_file.h"
#include "util/posix_file.h"

namespace nacre {

// A table in a file of its own: just what a node holds of a table that is replicated, which is a
// head (zeros behind the meta), the bytes of the table, and a tail with the checksum of each chunk
// (docs/formats.md, "Fragments"). The head has no placement. A sealed one is
//
//     offset size
//          0    8  magic
//          8    4  format version, 1
//         12    4  zero
//         16   88  seal (util/crypto/sealed_file.h); the file is of the kind "table"
//        104       head, each chunk, and tail, each as a piece

/// Writes one. Thread safety: none.
class TableFileWriter {
 public:
  /// Begins the file at `path` anew. It is sealed by `sealing`, if that is not null, for the name
  /// `name`.
  static Status Create(const std::string& path, const TableMeta& meta, const Sealing* sealing,
                       const std::string& name, std::unique_ptr<TableFileWriter>* writer);

  /// The next bytes of the table: whole chunks, and at last what is left.
  Status Append(const Slice& bytes);
  /// All bytes are there. Returns when the file is on the disk.
  Status Finish();

 private:
  TableFileWriter(const TableMeta& meta, std::unique_ptr<PosixFile> file);

  Status WriteSeal(const Sealing& sealing, const std::string& name);
  /// Appends a part as it is, or as a piece.
  Status WritePart(const Slice& part);

  std::unique_ptr<PosixFile> file_;
  std::unique_ptr<Aead> aead_;  ///< Null: it is not sealed.
  std::string sealed_;
  FragmentChecksums checksums_;
};

/// Reads one, and checks what it reads. Thread safety: none.
class TableFileReader {
 public:
  /// Checks all but the bytes of the table. `meta`: of the table that it should be, in whatever
  /// level. With `sealing`, which may be null, it has to be sealed, else it must not be.
  /// `Corruption` naming the file if it is damaged, or another table's; `NotFound`; failures as
  /// FindFileKey.
  static Status Open(const std::string& path, const TableMeta& meta, const Sealing* sealing,
                     std::unique_ptr<TableFileReader>* reader);

  uint64_t chunks() const { return checksums_.chunks.size(); }
  size_t ChunkBytes(uint64_t chunk) const { return checksums_.ChunkBytes(chunk); }
  /// Reads chunk number `chunk` into `to`, which has room for it. `Corruption` naming the file.
  Status ReadChunk(uint64_t chunk, char* to);

 private:
  explicit TableFileReader(std::unique_ptr<PosixFile> file) : file_(std::move(file)) {}

  Status ReadSeal(const Sealing& sealing);
  Status CheckHead(const TableMeta& meta);
  Status ReadTail(const TableMeta& meta);
  /// Where a chunk begins.
  uint64_t OffsetOf(uint64_t chunk) const;
  Status ReadPart(uint64_t offset, size_t n, char* to);

  std::unique_ptr<PosixFile> file_;
  std::unique_ptr<Aead> aead_;  ///< Null: it is not sealed.
  FragmentChecksums checksums_;
};

/// The ID of the key of the sealed table in the file `path`.
Status ReadTableKey(const std::string& path, std::string* key_id);

}  // namespace nacre
