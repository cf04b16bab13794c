// Goal: RocksDB's own db_stress, unchanged, over a Nacre database.
// Method: a program's functions come before those of its libraries, so the calls with which
// db_stress opens and destroys databases are taken here. NACRE_POOL names the nodes (nodes of this
// process if it is not set), NACRE_REDUNDANCY how tables are kept on them.

#include <rocksdb/db.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "adapters/rocksdb/nacre_rocksdb.h"
#include "nacre/pool.h"

namespace {

/// The same for all databases that the process opens, so that an embedded pool has them still when
/// they are opened again.
nacre::Options NacreOptions() {
  static nacre::Options* const options = [] {
    auto made = std::make_unique<nacre::Options>();
    const char* const uri = std::getenv("NACRE_POOL");
    const char* const redundancy = std::getenv("NACRE_REDUNDANCY");
    if (redundancy != nullptr) made->redundancy = redundancy;
    const nacre::Status status =
        nacre::Pool::Open(uri == nullptr ? "embedded:?nodes=3&size=1GiB" : uri, &made->pool);
    if (!status.ok()) {
      std::fprintf(stderr, "pool: %s\n", status.ToString().c_str());
      std::exit(1);
    }
    return made.release();
  }();
  return *options;
}

}  // namespace

namespace rocksdb {

Status DB::Open(const DBOptions& db_options, const std::string& name,
                const std::vector<ColumnFamilyDescriptor>& families,
                std::vector<ColumnFamilyHandle*>* handles, DB** db) {
  // It looks at files with one, of which there are none.
  DBOptions options = db_options;
  options.listeners.clear();
  std::unique_ptr<DB> opened;
  Status status =
      nacre::rocksdb_api::Open(options, NacreOptions(), name, families, handles, &opened);
  *db = opened.release();
  return status;
}

Status DB::ListColumnFamilies(const DBOptions& /*options*/, const std::string& name,
                              std::vector<std::string>* families) {
  const Status status = nacre::rocksdb_api::ListColumnFamilies(NacreOptions(), name, families);
  // As of a folder in which there is no database.
  return status.IsNotFound() ? Status::PathNotFound(name) : status;
}

Status DestroyDB(const std::string& name, const Options& /*options*/,
                 const std::vector<ColumnFamilyDescriptor>& /*families*/) {
  return nacre::rocksdb_api::Destroy(NacreOptions(), name);
}

/// db_stress calls this method of DBImpl, which is not virtual, of any database.
const Snapshot* SnapshotForConflicts(DB* db) __asm__(
    "_ZN7rocksdb6DBImpl35GetSnapshotForWriteConflictBoundaryEv");
const Snapshot* SnapshotForConflicts(DB* db) { return db->GetSnapshot(); }

}  // namespace rocksdb
