#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "archive/log_file.h"
#include "nacre/archive.h"
#include "nacre/checkpoint.h"
#include "nacre/status.h"
#include "util/crypto/key_ring.h"
#include "util/crypto/sealed_file.h"
#include "util/posix_file.h"

namespace nacre {

/// The directory of an archive:
///
///     DATABASE          the id of the database, that of the archive, and the database's name
///     FAMILIES          ids of the column families that the last base has
///     base/             its bases, a directory of checkpoints
///     log/NUMBER.log    its log (archive/log_file.h); the number is that of the first sequence
///     LOCK              held by the archiver
///
/// Thread safety: const methods from many threads at once.
class ArchiveFolder {
 public:
  /// Makes what is missing, and takes the lock. A file whose writer died is finished. `keys` (may
  /// be null) are those of its sealed files. `Busy`, `InvalidArgument` if the archive is another
  /// database's, or a key is missing, `IOError`, `Corruption` naming a file.
  static Status Open(const std::string& path, const std::string& database, uint64_t database_id,
                     std::shared_ptr<const KeyRing> keys, std::unique_ptr<ArchiveFolder>* folder);
  /// Reads what is there, while an archiver may be at work. `NotFound` if there is no archive.
  static Status Look(const std::string& path, std::shared_ptr<const KeyRing> keys,
                     std::unique_ptr<ArchiveFolder>* folder);

  const std::string& database() const { return database_; }
  /// The archive's own, chosen at random when it was made.
  uint64_t id() const { return id_; }
  std::string base() const { return path_ + "/base"; }
  /// What a reader of its bases asks for, with the keys of `key_file`.
  FileEncryption BaseEncryption(const std::string& key_file) const {
    return {.key_file = key_file, .context = sealing_.context};
  }
  /// Its bases by number. As GetCheckpoints; `Corruption` if one that is not encrypted is later
  /// than one that is.
  Status GetBases(const std::string& key_file, std::vector<CheckpointInfo>* bases) const;
  /// How files of its log are sealed: with the keys that it was opened with, for this archive.
  const Sealing& sealing() const { return sealing_; }
  /// In the order of sequences.
  const std::vector<LogFileInfo>& files() const { return files_; }
  /// Those that follow one another without a gap, as one.
  std::vector<ArchivedRange> Ranges() const;
  /// Adds a file that begins behind `after`, sealed with the first of `keys` unless these are null.
  Status NewFile(uint64_t after, const std::shared_ptr<const KeyRing>& keys,
                 std::unique_ptr<LogFileWriter>* writer) const;
  /// Takes a finished file, or what one is by now that was listed before.
  void Put(const LogFileInfo& file);
  /// The column families of the last base; none, if that is not known.
  Status ReadFamilies(std::set<uint32_t>* ids) const;
  Status WriteFamilies(const std::set<uint32_t>& ids) const;
  /// Removes the files with nothing behind `sequence`, but the last one.
  Status RemoveThrough(uint64_t sequence);

 private:
  explicit ArchiveFolder(std::string path) : path_(std::move(path)) {}

  std::string log() const { return path_ + "/log"; }
  Status ReadFile(const std::string& path, bool finish, LogFileInfo* info) const;
  Status ReadFiles(bool finish);
  Status ReadIdentity();

  const std::string path_;
  std::string database_;
  uint64_t database_id_ = 0;
  uint64_t id_ = 0;
  Sealing sealing_;
  std::unique_ptr<FileLock> lock_;
  std::vector<LogFileInfo> files_;
};

}  // namespace nacre
