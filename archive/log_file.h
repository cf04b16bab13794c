#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "util/posix_file.h"

namespace nacre {

// A file of an archive's log: batches in the order of their sequences, without a gap.
//
//     offset size
//          0    8  magic
//          8    4  format version
//         12    4  zero
//         16    8  database id
//         24    8  the sequence behind which it begins
//         32    4  CRC32C of everything before
//         36       records: 4 CRC32C of what follows, 4 length of the batch, 8 when it was archived
//                  (microseconds since 1970), the batch (`WriteBatch::Data`, with its sequence)
//                  at the end of a file that is finished a record of length 0xffffffff, instead of
//                  a batch with: 8 last sequence, 8 time of the first batch, 8 bytes of the file
//
// The writer of a file that is not finished may have died within a record, which counts as none.

/// What a file has.
struct LogFileInfo {
  std::string path;
  uint64_t database_id = 0;
  uint64_t after = 0;  ///< It begins behind this sequence.
  uint64_t last = 0;   ///< `after` if it has no batch.
  uint64_t first_micros = 0;
  uint64_t last_micros = 0;
  uint64_t bytes = 0;  ///< Header and whole records, without the end.
  bool finished = false;
};

struct ArchivedBatch {
  uint64_t sequence = 0;
  uint32_t count = 0;
  uint64_t micros = 0;
  Slice bytes;  ///< `WriteBatch::Data`; the reader's.
  uint64_t last() const { return sequence + count - 1; }
};

/// Records of a file in a row, as they are there.
struct LogPiece {
  std::string path;
  uint64_t offset = 0;  ///< In the file.
  std::string buffer;   ///< May be longer than they are; its memory is used again.
  size_t size = 0;
};

/// The batches of a piece, which view it. `Corruption` naming the file and the record that does not
/// match its checksum.
Status CheckPiece(const LogPiece& piece, std::vector<ArchivedBatch>* batches);

/// Writes one. Thread safety: none.
class LogFileWriter {
 public:
  static Status Create(const std::string& path, uint64_t database_id, uint64_t after,
                       std::unique_ptr<LogFileWriter>* writer);

  /// A batch (`WriteBatch::Data`), which Sync writes.
  void Add(const std::string& batch, uint64_t micros);
  /// Returns when all that was added is on the disk. After a failure the file is of no use.
  Status Sync();
  /// Nothing more is added. Also syncs.
  Status Finish();

  uint64_t bytes() const { return info_.bytes; }
  uint64_t unsynced_bytes() const { return buffer_.size(); }
  const LogFileInfo& info() const { return info_; }

 private:
  LogFileWriter(std::unique_ptr<PosixFile> file, LogFileInfo info)
      : file_(std::move(file)), info_(std::move(info)) {}

  std::unique_ptr<PosixFile> file_;
  LogFileInfo info_;
  std::string buffer_;
};

/// Reads one from its beginning, and checks what it reads. Thread safety: none.
class LogFileReader {
 public:
  /// `NotFound`; `Corruption` naming the file, also if it ends before its header does;
  /// `NotSupported` for another format.
  static Status Open(const std::string& path, std::unique_ptr<LogFileReader>* reader);
  /// The same for a file that Look described as `listed`, up to where it ended then. What is there
  /// has to be whole, whether it was finished or not.
  static Status OpenListed(const LogFileInfo& listed, std::unique_ptr<LogFileReader>* reader);

  /// The next batch; `*end`: there is none. `Corruption` naming the file. An unfinished file may
  /// end within a record.
  Status Next(ArchivedBatch* batch, bool* end);
  /// The next records, of at most `bytes` bytes or one only, without a look at what is in them;
  /// none (`size` 0) at the end. For a file of OpenListed. `Corruption` naming the file if the
  /// lengths of records do not lead there.
  Status NextPiece(uint64_t bytes, LogPiece* piece);
  /// Finds what there is, without visiting each batch if the file is finished.
  Status Look(LogFileInfo* info);
  const LogFileInfo& info() const { return info_; }

 private:
  explicit LogFileReader(std::unique_ptr<PosixFile> file) : file_(std::move(file)) {}

  Status ReadHeader();
  /// Whether the file has an end, which `info_` is filled from.
  Status ReadEnd();
  /// Has `bytes` bytes from `offset_` on in `window_`; false if the file has not got them.
  Status Fill(uint64_t bytes, bool* there);
  Status Damaged(const std::string& what) const;

  std::unique_ptr<PosixFile> file_;
  LogFileInfo info_;
  uint64_t end_ = 0;     ///< Where the records end, as far as is known.
  uint64_t offset_ = 0;  ///< The next record is there.
  std::string window_;
  uint64_t window_at_ = 0;  ///< Where it begins in the file.
};

/// Finishes a file whose writer died, so that later ones follow it: cuts off what is no whole
/// record. `*info`: what it has.
Status FinishLogFile(const std::string& path, LogFileInfo* info);

}  // namespace nacre
