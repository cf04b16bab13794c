#pragma once

#include <memory>
#include <string>
#include <vector>

#include "nacre/checkpoint.h"
#include "tests/support/redundant_db.h"
#include "tests/support/temp_folder.h"

namespace nacre {

/// A database on an embedded pool beside a model, and a folder for its checkpoints.
class CheckpointFixture : public RedundantDBTest {
 protected:
  /// Makes a checkpoint of `db_` in the folder.
  Status MakeCheckpoint(CheckpointInfo* info = nullptr, const CheckpointOptions& options = {});
  /// Into the pool that the database is in.
  Status Restore(const std::string& name, const RestoreOptions& restore = {});
  /// Goes on with the database `name` in place of the one that is open.
  void TurnTo(const std::string& name);

  std::string dir() const { return folder_.File("checkpoints"); }
  /// Paths of all files in the folder whose names end so, in order.
  std::vector<std::string> Files(const std::string& ending) const;

  TempFolder folder_;
  FileEncryption encryption_;  ///< For checkpoints and restores, if it has a key file.
};

/// All of a file. Failures of these fail the test.
std::string ReadAll(const std::string& path);
void WriteAll(const std::string& path, const std::string& bytes);

}  // namespace nacre
