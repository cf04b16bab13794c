#include "sqlite/command_log/command_log_opening.h"

#include <algorithm>
#include <vector>

#include "nacre/checkpoint.h"
#include "sqlite/command_log/command_checkpoints.h"
#include "sqlite/command_log/command_log_file.h"
#include "sqlite/command_log/command_replay.h"
#include "sqlite/command_log/log_position.h"
#include "sqlite/row/key_encoding.h"
#include "util/draw_id.h"

namespace nacre::sqlite {
namespace {

Status RestoreIfGone(const Options& database, const std::string& name, const CommandLog& log) {
  std::vector<std::string> names;
  NACRE_RETURN_IF_ERROR(ListDBs(database, &names));
  if (std::find(names.begin(), names.end(), name) != names.end()) return Status::OK();
  std::vector<CheckpointInfo> checkpoints;
  const Status status = GetCheckpoints(log.checkpoint_folder(), &checkpoints);
  if (status.IsNotFound() || (status.ok() && checkpoints.empty())) return Status::OK();
  NACRE_RETURN_IF_ERROR(status);
  return RestoreDB(database, name, log.checkpoint_folder());
}

/// Reads the database's position in a log; the id is 0 if it has none.
Status ReadPosition(DB* db, LogPosition* position) {
  std::string value;
  const std::string key = CatalogueKey('c');
  const Status status = db->Get(ReadOptions(), WithoutSpace(key), &value);
  if (status.IsNotFound()) return Status::OK();
  NACRE_RETURN_IF_ERROR(status);
  return DecodeLogPosition(value, position);
}

Status IsEmpty(DB* db, bool* empty) {
  const std::unique_ptr<Iterator> iterator = db->NewIterator(ReadOptions());
  iterator->SeekToFirst();
  *empty = !iterator->Valid();
  return iterator->status();
}

Status SetPosition(Database* database, uint64_t log_id) {
  const std::string key = CatalogueKey('c');
  return database->db()->Put(database->write_options(), WithoutSpace(key),
                             EncodeLogPosition({log_id, 0}));
}

/// The first opening with this log.
Status BeginLog(Database* database, bool empty, CommandLog* log) {
  uint64_t id;
  NACRE_RETURN_IF_ERROR(DrawId(&id));
  NACRE_RETURN_IF_ERROR(SetPosition(database, id));
  // The log has nothing of what is there.
  if (!empty) NACRE_RETURN_IF_ERROR(MakeLogCheckpoint(database->db(), log));
  return log->Start(id);
}

}  // namespace

Status OpenCommandLog(const DatabaseOptions& options, const Options& database,
                      std::unique_ptr<CommandLog>* log) {
  NACRE_RETURN_IF_ERROR(CommandLog::Open(options.command_log, options.name, OpenCommandFile, log));
  return RestoreIfGone(database, options.name, **log);
}

Status GoOnRestoring(const Options& database, const std::string& name, const CommandLog& log) {
  return RestoreDB(database, name, log.checkpoint_folder());
}

Status CatchUp(Database* database, CommandLog* log) {
  LogPosition position;
  NACRE_RETURN_IF_ERROR(ReadPosition(database->db(), &position));
  bool empty;
  NACRE_RETURN_IF_ERROR(IsEmpty(database->db(), &empty));
  if (log->id() == 0) {
    if (position.number == 0) return BeginLog(database, empty, log);
    return Status::InvalidArgument("database '" + database->options().name +
                                   "' has a command log, and it is not in " + log->folder());
  }
  // What died before its first flush has written nothing.
  if (empty) NACRE_RETURN_IF_ERROR(SetPosition(database, log->id()));
  if (!empty && position.log_id != log->id()) {
    return Status::InvalidArgument(log->folder() + ": is not the command log of the database '" +
                                   database->options().name + "' in this pool");
  }
  CommandReplay replay(database, log->id());
  NACRE_RETURN_IF_ERROR(
      log->Replay(position.number, [&replay](uint64_t number, const Slice& commands) {
        return replay.Apply(number, commands);
      }));
  return log->Start(0);
}

Status CheckHasNoLog(DB* db) {
  LogPosition position;
  NACRE_RETURN_IF_ERROR(ReadPosition(db, &position));
  if (position.log_id == 0) return Status::OK();
  return Status::InvalidArgument(
      "the database has a command log, which has its latest transactions: name its folder with "
      "command_log='...'");
}

}  // namespace nacre::sqlite
