#pragma once

#include <cstdint>
#include <string>

#include "nacre/db.h"
#include "nacre/status.h"
#include "sqlite/command_log/command_log.h"
#include "util/threads/thread.h"

namespace nacre::sqlite {

/// Makes a checkpoint of `db` beside the log, with all transactions that the log has now, and
/// removes earlier checkpoints and the files of the log that are no longer needed. After a failure
/// all that is needed to restore the database is still there.
Status MakeLogCheckpoint(DB* db, CommandLog* log);

/// The thread that does so whenever the log has grown enough.
class CommandCheckpoints {
 public:
  /// Begins. Both outlive this. `bytes`: of the log, at which it is cut.
  CommandCheckpoints(DB* db, CommandLog* log, uint64_t bytes);
  /// Waits for the checkpoint that is being made, if any, to be given up.
  ~CommandCheckpoints();
  CommandCheckpoints(const CommandCheckpoints&) = delete;
  CommandCheckpoints& operator=(const CommandCheckpoints&) = delete;

 private:
  void Run();

  DB* const db_;
  CommandLog* const log_;
  const uint64_t bytes_;
  Thread thread_;
};

}  // namespace nacre::sqlite
