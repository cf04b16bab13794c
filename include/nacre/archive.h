#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/checkpoint.h"
#include "nacre/column_family.h"
#include "nacre/options.h"
#include "nacre/status.h"

// Archives: all that is written to a database, continuously, in a directory of an ordinary file
// system, so that it outlives all memory nodes and its owner at once. An archive has bases, which
// are checkpoints (nacre/checkpoint.h), and the log since. It is made by a process of its own that
// follows the database one-sidedly; the owner neither serves it nor knows of it. From it a database
// is made as it was at any sequence, or at any time, that base and log cover. (PostgreSQL's base
// backups and pg_receivewal are the model.)
//
// What is written without the log (`WriteOptions::disable_wal`) is in an archive with the first
// base after it. An embedded pool has no log, and no archive.

namespace nacre {

struct ArchiveOptions {
  /// How often it is looked for what is new: so long, and what writing it takes, the archive lags
  /// behind.
  std::chrono::milliseconds interval{20};
  /// A new base is made so often, if something was written since.
  std::chrono::seconds base_interval{24 * 3600};
  CheckpointOptions base{};
  /// A file of the log is followed by the next one at so many bytes.
  uint64_t log_file_bytes = 64 << 20;
  /// Bases are removed when they are older than this and there are `keep_bases` younger ones at
  /// least; with them goes the log that no base needs any more. 0: they stay.
  std::chrono::seconds keep_for{0};
  uint32_t keep_bases = 1;
  /// Log and bases are encrypted with the first key of this file (`FileEncryption::key_file`),
  /// which is read anew for each of their files: a key that is put first is taken from the next
  /// file on. In an archive that was not encrypted, what is there stays as it is, and a base is
  /// made at once. Empty: not encrypted, which an encrypted archive refuses, and a database that is
  /// encrypted.
  std::string encryption_key_file{};
};

/// What an archiver has done.
struct ArchiverStatus {
  uint64_t archived_sequence = 0;  ///< All up to here is on the disk, if it is in the log at all.
  uint64_t batches = 0;
  uint64_t bytes = 0;  ///< Written to the log's files.
  uint64_t bases = 0;
  uint64_t gaps = 0;
  /// How long ago it was last known that the archive has everything.
  std::chrono::milliseconds lag{0};
  uint64_t base_created_at = 0;  ///< When the latest base was made, in seconds since 1970; 0: none.
  Status status{};               ///< Why it does not go on at the moment; OK if it does.
};

/// Archives one database, by threads of its own. One process at a time does so for a directory.
///
/// Thread safety: all methods may be called from many threads at once.
class Archiver {
 public:
  /// Goes on with the archive in `dir`, which is made if it is missing. `options` are as for
  /// `DB::OpenAsSecondary`; all column families have those of the default one. Fails as that does;
  /// `Busy` if another process archives into `dir`, `InvalidArgument` if the archive is another
  /// database's, or naming the key file, or a file of the archive and the key that it lacks,
  /// `NotSupported` if there is no log, `IOError` and `Corruption` naming a file.
  static Status Open(const Options& options, const std::string& database, const std::string& dir,
                     const ArchiveOptions& archive, std::unique_ptr<Archiver>* archiver);
  /// Ends archiving.
  virtual ~Archiver() = default;

  virtual ArchiverStatus GetStatus() const = 0;
  /// Returns when all up to `sequence` is on the disk, with a base that leads there; `TimedOut`, or
  /// why it does not go on.
  virtual Status WaitForArchive(uint64_t sequence, std::chrono::milliseconds timeout) = 0;
};

/// A part of the log without gaps.
struct ArchivedRange {
  uint64_t after = 0;  ///< It begins behind this sequence.
  uint64_t last = 0;
  uint64_t first_micros = 0;  ///< When its first and last batch were archived, since 1970.
  uint64_t last_micros = 0;
  uint64_t bytes = 0;
};

struct ArchiveInfo {
  std::string database;
  std::vector<CheckpointInfo> bases;  ///< By number.
  std::vector<ArchivedRange> log;     ///< By sequence. What lies between two is a gap.
  /// How many of its files are encrypted with each key, by its ID; with the empty one are those
  /// that are not. A key that is not here, and not the first of the archiver's key file, is not
  /// needed.
  std::map<std::string, uint64_t> files_by_key;
};

/// What there is in `dir`. `NotFound` if there is no archive, `InvalidArgument` naming a file and
/// its key if `encryption_key_file` (see FileEncryption::key_file) lacks that.
Status GetArchive(const std::string& dir, ArchiveInfo* info,
                  const std::string& encryption_key_file = "");

/// Reads all bases and all of the log in `dir`, and compares them with their checksums; what is
/// encrypted cannot have been changed, either, if this is OK. `options` are as for
/// VerifyCheckpoint; the context of the encryption is chosen here. `Corruption` naming a file that
/// is damaged, `Busy` while a base is made, and failures as GetArchive.
Status VerifyArchive(const std::string& dir, const CheckpointOptions& options);

struct ArchiveRestoreOptions {
  /// All batches up to this one, and none that goes beyond it. It must be within what a base and
  /// the log behind it cover.
  uint64_t to_sequence = UINT64_MAX;
  /// Batches that had been archived by then (microseconds since 1970, the archiver's clock).
  uint64_t to_micros = UINT64_MAX;
  /// Its base is chosen here, and so is the context of its encryption. `RestoreOptions::threads`
  /// write the log, too, and half as many read ahead of them.
  RestoreOptions restore{};
};

/// Makes the database `name` of the archive in `dir`, in the pool and with the redundancy of
/// `options`: as RestoreDB, with the log behind the base. Without a bound it is as of the end of
/// the archive. `*sequence` (may be null): the last one that it has.
///
/// `NotFound` if nothing covers what is asked for: the message says what is covered, and which
/// sequences are in a gap. Otherwise as RestoreDB; it goes on after a failure or a kill as well.
Status RestoreArchive(const Options& options, const std::string& name, const std::string& dir,
                      const ArchiveRestoreOptions& archive, uint64_t* sequence = nullptr);

}  // namespace nacre
