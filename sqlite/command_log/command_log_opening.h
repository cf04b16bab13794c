#pragma once

#include <memory>
#include <string>

#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/status.h"
#include "sqlite/command_log/command_log.h"
#include "sqlite/database.h"

namespace nacre::sqlite {

// Opens a database that has a command log in these steps: the log is opened, which keeps others
// out; if the pool has no such database, the log's checkpoint is restored; the database is opened;
// and what the log has behind it is done once more.

/// Opens the log of `options`. `database` has an opened pool, in which the database is afterwards
/// unless there is neither one nor a checkpoint.
Status OpenCommandLog(const DatabaseOptions& options, const Options& database,
                      std::unique_ptr<CommandLog>* log);

/// The database answered `Incomplete`: a restore was interrupted, and goes on.
Status GoOnRestoring(const Options& database, const std::string& name, const CommandLog& log);

/// Brings `database` to where the log ends, and has the log take commits. A database that had no
/// log is given this one, if the log is empty, and a checkpoint of what it has.
/// `InvalidArgument`: the two do not belong together.
Status CatchUp(Database* database, CommandLog* log);

/// `InvalidArgument` if the database has a command log, and so must be opened with it.
Status CheckHasNoLog(DB* db);

}  // namespace nacre::sqlite
