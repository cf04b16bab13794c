#include "sqlite/command_log/command_checkpoints.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "nacre/checkpoint.h"
#include "sqlite/sqlite_api.h"
#include "util/named_point.h"

namespace nacre::sqlite {

Status MakeLogCheckpoint(DB* db, CommandLog* log) {
  uint64_t last = 0;
  if (log->id() != 0) NACRE_RETURN_IF_ERROR(log->Rotate(&last));
  std::unique_ptr<Checkpoint> checkpoint;
  NACRE_RETURN_IF_ERROR(Checkpoint::Create(db, &checkpoint));
  CheckpointOptions options;
  options.progress = [log](const CheckpointProgress&) { return !log->stopped(); };
  CheckpointInfo made;
  const std::string folder = log->checkpoint_folder();
  NACRE_RETURN_IF_ERROR(checkpoint->CreateCheckpoint(folder, options, &made));
  NACRE_POINT("command-log.checkpoint-made");
  if (last > 0) NACRE_RETURN_IF_ERROR(log->RemoveUpTo(last));
  std::vector<CheckpointInfo> all;
  NACRE_RETURN_IF_ERROR(GetCheckpoints(folder, &all));
  for (const CheckpointInfo& other : all) {
    if (other.number < made.number) {
      NACRE_RETURN_IF_ERROR(DeleteCheckpoint(folder, other.number));
    }
  }
  return Status::OK();
}

CommandCheckpoints::CommandCheckpoints(DB* db, CommandLog* log, uint64_t bytes)
    : db_(db), log_(log), bytes_(bytes), thread_("nacre-commands", [this] { Run(); }) {}

CommandCheckpoints::~CommandCheckpoints() {
  log_->Stop();
  thread_.Join();
}

void CommandCheckpoints::Run() {
  uint64_t goal = bytes_;
  while (log_->AwaitBytes(goal)) {
    const Status status = MakeLogCheckpoint(db_, log_);
    goal = bytes_;
    if (status.ok() || log_->stopped()) continue;
    // Nothing is lost by it: the log is kept, and grows on.
    sqlite3_log(SQLITE_WARNING, "nacre: no checkpoint of the command log %s: %s",
                log_->folder().c_str(), status.ToString().c_str());
    goal = log_->bytes() + bytes_;
  }
}

}  // namespace nacre::sqlite
