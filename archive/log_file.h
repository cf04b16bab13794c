#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "nacre/status.h"
#include "util/crypto/sealed_file.h"
#include "util/posix_file.h"

namespace nacre {

// A file of an archive's log: batches in the order of their sequences, without a gap.
//
//     offset size
//          0    8  magic
//          8    4  format version: 1, of a sealed file 2
//         12    4  zero
//         16    8  database id
//         24    8  the sequence behind which it begins
//         32    4  CRC32C of everything before
//         36       records: 4 CRC32C of what follows, 4 length of the batch, 8 when it was archived
//                  (microseconds since 1970), the batch (`WriteBatch::Data`, with its sequence)
//                  at the end of a file that is finished a record of length 0xffffffff, instead of
//                  a batch with: 8 last sequence, 8 time of the first batch, 8 bytes of the file
//
// In a sealed file a seal (util/crypto/sealed_file.h, kind "log") follows the header, and then
// pieces: 4 length of the records in it, the records, sealed, 16 tag. Each has what was synced at
// once, or less. A file that is finished ends with: 4 0xffffffff, 32 salt, the last record as
// above, sealed with a key that this salt gives (ContinueKey), 16 tag. So the end does not depend
// on what a writer that died may have sealed in its place.
//
// The writer of a file that is not finished may have died within a record or a piece, which counts
// as none.

/// What a file has.
struct LogFileInfo {
  std::string path;
  uint64_t database_id = 0;
  uint64_t after = 0;  ///< It begins behind this sequence.
  uint64_t last = 0;   ///< `after` if it has no batch.
  uint64_t first_micros = 0;
  uint64_t last_micros = 0;
  uint64_t bytes = 0;  ///< Header and whole records or pieces, without the end.
  bool finished = false;
  std::string key_id{};  ///< The key that it is sealed with; empty: it is not.
};

struct ArchivedBatch {
  uint64_t sequence = 0;
  uint32_t count = 0;
  uint64_t micros = 0;
  Slice bytes;  ///< `WriteBatch::Data`; the reader's.
  uint64_t last() const { return sequence + count - 1; }
};

/// Records of a file in a row, as they are there, or sealed pieces.
struct LogPiece {
  std::string path;
  uint64_t offset = 0;  ///< In the file.
  std::string buffer;   ///< May be longer than they are; its memory is used again.
  size_t size = 0;
  std::shared_ptr<const FileKey> key{};  ///< Null: they are not sealed.
};

/// The batches of a piece, which view it; it is opened in place if it is sealed. `Corruption`
/// naming the file and what does not match its checksum or tag.
Status CheckPiece(LogPiece* piece, std::vector<ArchivedBatch>* batches);

/// Writes one. Thread safety: none.
class LogFileWriter {
 public:
  /// It is sealed if `sealing` has keys.
  static Status Create(const std::string& path, uint64_t database_id, uint64_t after,
                       const Sealing& sealing, std::unique_ptr<LogFileWriter>* writer);

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

  /// Writes what was added.
  Status Write();
  Status WriteSealed();

  std::unique_ptr<PosixFile> file_;
  LogFileInfo info_;
  std::string buffer_;
  std::vector<size_t> piece_ends_;  ///< Where in the buffer pieces end, in a sealed file.
  bool failed_ = false;
  std::unique_ptr<FileKey> key_;  ///< Null: it is not sealed.
  std::unique_ptr<Aead> aead_;
  std::string sealed_;
};

/// Reads one from its beginning, and checks what it reads. Thread safety: none.
class LogFileReader {
 public:
  /// `NotFound`; `Corruption` naming the file, also if it ends before its header does;
  /// `NotSupported` for another format; failures as FindFileKey if it is sealed.
  static Status Open(const std::string& path, const Sealing& sealing,
                     std::unique_ptr<LogFileReader>* reader);
  /// The same for a file that Look described as `listed`, up to where it ended then. What is there
  /// has to be whole, whether it was finished or not.
  static Status OpenListed(const LogFileInfo& listed, const Sealing& sealing,
                           std::unique_ptr<LogFileReader>* reader);

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
  /// Null if it is not sealed.
  const FileKey* key() const { return key_.get(); }

 private:
  explicit LogFileReader(std::unique_ptr<PosixFile> file) : file_(std::move(file)) {}

  Status ReadHeader(const Sealing& sealing);
  /// Whether the file has an end, which `info_` is filled from.
  Status ReadEnd();
  /// The record at the end, opened if it is sealed; empty if there is none.
  Status ReadEndRecord(std::string* record);
  /// The next record, empty at the end: from the file, or from the piece that is open.
  Status NextRecord(Slice* record);
  Status NextSealedRecord(Slice* record);
  /// What to answer where the file has no further record or piece that is whole.
  Status EndHere(const char* what) const;
  /// Has `bytes` bytes from `offset_` on in `window_`; false if the file has not got them.
  Status Fill(uint64_t bytes, bool* there);
  Status Damaged(const std::string& what) const;

  std::unique_ptr<PosixFile> file_;
  LogFileInfo info_;
  uint64_t end_ = 0;     ///< Where the records end, as far as is known.
  uint64_t offset_ = 0;  ///< The next record is there.
  std::string window_;
  uint64_t window_at_ = 0;  ///< Where it begins in the file.
  std::shared_ptr<const FileKey> key_;
  std::unique_ptr<Aead> aead_;
  Slice opened_;  ///< What is left of the piece that is open, in the window.
};

/// Finishes a file whose writer died, so that later ones follow it: cuts off what is no whole
/// record. `*info`: what it has.
Status FinishLogFile(const std::string& path, const Sealing& sealing, LogFileInfo* info);

/// No file that is longer was cut within its header or its seal.
inline constexpr uint64_t kLogHeaderBytesMost = 36 + kSealBytes;

}  // namespace nacre
