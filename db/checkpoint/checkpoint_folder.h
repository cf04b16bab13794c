#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "db/checkpoint/checkpoint_description.h"
#include "db/checkpoint/table_file.h"
#include "nacre/status.h"
#include "util/crypto/sealed_file.h"
#include "util/posix_file.h"

namespace nacre {

/// A directory of checkpoints:
///
///     CHECKPOINT-000007                description of checkpoint 7, which may be sealed
///                                      (db/checkpoint/sealed_description.h)
///     00d3f9a8c1b2e4f7-000123.table    table 123 of the database with that id
///                                      (db/checkpoint/table_file.h)
///     00d3f9a8c1b2e4f7-000123.sealed   the same, sealed: for sealed descriptions
///     *.tmp                            of one that is being written, or was when its writer died
///     LOCK                             held by the process at work
///
/// A description is written when the tables that it names are on the disk, so each description
/// belongs to a whole checkpoint. Files of other names are left alone.
///
/// Thread safety: const methods from many threads at once.
class CheckpointFolder {
 public:
  /// Takes the lock and reads what is there. To change anything, `kind` is kExclusive; then the
  /// folder is made if it is missing, else `NotFound`. `Busy` if another process has it.
  static Status Open(const std::string& path, FileLock::Kind kind, const FileEncryption& encryption,
                     std::unique_ptr<CheckpointFolder>* folder);
  /// Reads what is there at the moment, without a lock, so that another process may be at work in
  /// the folder.
  static Status Look(const std::string& path, const FileEncryption& encryption,
                     std::unique_ptr<CheckpointFolder>* folder);

  const std::string& path() const { return path_; }
  const Sealing& sealing() const { return sealing_; }
  /// Checkpoints by number, only those that could be read.
  const std::map<uint64_t, CheckpointDescription>& checkpoints() const { return checkpoints_; }
  /// Why others could not be read, by number.
  const std::map<uint64_t, Status>& damaged() const { return damaged_; }
  /// The first of these; OK if there are none.
  Status DamageOf() const;
  /// Number of the next one.
  uint64_t next_number() const;
  /// 0: the latest. `NotFound`; `Corruption` if it is damaged, or the latest of all is.
  Status Find(uint64_t number, uint64_t* found, const CheckpointDescription** description) const;

  std::string TablePath(const CheckpointDescription& description, uint64_t table_id) const;
  std::string DescriptionPath(uint64_t number) const;
  /// Whether a checkpoint here has that file, which then was whole once.
  bool Names(const std::string& table_path) const;

  /// Makes the description durable, with all that is in the folder: the checkpoint is there. It is
  /// sealed if it has the ID of a key.
  Status Add(uint64_t number, CheckpointDescription description);
  Status Remove(uint64_t number);
  /// Removes what no checkpoint has, except the tables of `wanted`, which may be null. If a
  /// description is damaged, it removes only what was never finished.
  Status Sweep(const CheckpointDescription* wanted) const;

 private:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}
  /// Reads the keys, and what is there.
  Status ReadAll(const FileEncryption& encryption);
  Status ReadDescription(const std::string& path, CheckpointDescription* description) const;

  const std::string path_;
  Sealing sealing_;
  std::unique_ptr<FileLock> lock_;
  std::map<uint64_t, CheckpointDescription> checkpoints_;
  std::map<uint64_t, Status> damaged_;
  std::set<std::string> named_;  ///< Paths of tables.
};

/// How many files there are of each key, as GetCheckpointKeys (nacre/checkpoint.h).
Status CountCheckpointKeys(const std::string& path, std::map<std::string, uint64_t>* files);

/// Opens the file of one of the description's tables. `Corruption` naming it if it is not there.
Status OpenTableOf(const CheckpointFolder& folder, const CheckpointDescription& description,
                   const TableMeta& meta, std::unique_ptr<TableFileReader>* file);

}  // namespace nacre
