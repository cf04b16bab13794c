#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "sqlite/command_log/command_list.h"
#include "sqlite/database.h"
#include "sqlite/session.h"
#include "sqlite/table.h"
#include "sqlite/transaction.h"

namespace nacre::sqlite {

/// Does once more what transactions of a command log have done, each as one transaction of the
/// database that also says that it is done. No connection of SQLite takes part.
/// Thread safety: none.
class CommandReplay {
 public:
  /// `database` outlives this, and logs no commands meanwhile.
  CommandReplay(Database* database, uint64_t log_id);

  /// Applies transaction `number`. `Corruption` if its commands do not fit what is there.
  Status Apply(uint64_t number, Slice commands);

 private:
  Status Run(const Command& command);
  Status TableOf(const std::string& name, Table** table);
  Status Attach(const std::string& name, const std::vector<std::string>& arguments, bool create,
                std::unique_ptr<Table>* table);

  Database* const database_;
  const uint64_t log_id_;
  Session session_;
  Transaction transaction_;
  std::map<std::string, std::unique_ptr<Table>> tables_;
};

}  // namespace nacre::sqlite
