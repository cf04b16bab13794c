#include <utility>

#include "adapters/common/c_memory.h"
#include "adapters/leveldb/environment.h"
#include "adapters/leveldb/leveldb_error.h"
#include "adapters/leveldb/leveldb_types.h"
#include "db/options/pool_of_options.h"
#include "db/salvage/salvage.h"

using nacre::Status;
using nacre::Succeeded;

namespace {

Status OpenAndClose(const nacre::Options& options, const std::string& name) {
  std::unique_ptr<nacre::DB> db;
  NACRE_RETURN_IF_ERROR(nacre::DB::Open(options, name, &db));
  return db->Close();
}

/// As LevelDB's, it ends with a database that can be opened, with all that could be saved: an empty
/// one, where there was none.
Status Repair(nacre::Options options, const std::string& name) {
  options.create_if_missing = true;
  options.error_if_exists = false;
  options.wal_recovery_mode = nacre::WALRecoveryMode::kSkipAnyCorruptedRecords;
  Status status = OpenAndClose(options, name);
  if (!status.IsCorruption()) return status;
  std::shared_ptr<nacre::pool::PoolImpl> pool;
  NACRE_RETURN_IF_ERROR(nacre::OpenPoolOf(options, &pool));
  nacre::SalvageReport report;
  const nacre::SalvageOptions repair = {
      .defaults = {.comparator = options.comparator->Name(),
                   .num_levels = static_cast<uint32_t>(options.num_levels)}};
  status = nacre::SalvageDatabase(pool->client(), name, repair, &report);
  return status.ok() ? OpenAndClose(options, name) : status;
}

/// Calls `work` with the options and the name of the database at `path`, which stays closed in this
/// process meanwhile.
template <typename Work>
void Manage(const leveldb_options_t* options, const std::string& path, char** errptr,
            const Work& work) {
  nacre::Options placed = options->rep;
  if (!Succeeded(nacre::PlaceInPool(&placed), errptr)) return;
  const std::string name = nacre::DatabaseNameOf(path);
  if (!nacre::MarkOpen(name)) {
    nacre::SetError(nacre::HeldHereText(path), errptr);
    return;
  }
  const Status status = work(placed, name);
  nacre::UnmarkOpen(name);
  if (!status.ok()) nacre::SetError(nacre::OpenFailureText(status, path), errptr);
}

}  // namespace

void leveldb_destroy_db(const leveldb_options_t* options, const char* name, char** errptr) {
  Manage(options, name, errptr, [](const nacre::Options& placed, const std::string& database) {
    return nacre::DestroyDB(database, placed);
  });
}

void leveldb_repair_db(const leveldb_options_t* options, const char* name, char** errptr) {
  Manage(options, name, errptr, Repair);
}
