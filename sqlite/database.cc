#include "sqlite/database.h"

#include <map>
#include <utility>

#include "sqlite/keyspace_database.h"
#include "sqlite/owned_database.h"
#include "sqlite/row/key_encoding.h"
#include "util/mutex.h"
#include "util/thread_annotations.h"

namespace nacre::sqlite {
namespace {

WriteOptions WriteOptionsOf(const DatabaseOptions& options) {
  WriteOptions write;
  write.disable_wal = !options.remote_log || !options.command_log.empty();
  return write;
}

/// The opened databases of this process. A process-wide object, since SQLite's connections know
/// nothing of one another and an owner has a database open once.
struct Registry {
  Mutex mutex;
  CondVar closed{&mutex};
  /// An expired pointer: it is being closed.
  std::map<std::string, std::weak_ptr<Database>> databases GUARDED_BY(mutex);
};

Registry& TheRegistry() {
  static Registry* const registry = std::make_unique<Registry>().release();
  return *registry;
}

void CloseAndForget(const std::string& identity, Database* database) {
  std::unique_ptr<Database>(database).reset();
  Registry& registry = TheRegistry();
  MutexLock lock(&registry.mutex);
  registry.databases.erase(identity);
  registry.closed.SignalAll();
}

/// Whether a database that is open with `there` may be shared by a caller that wants `options`.
Status CheckSame(const DatabaseOptions& there, const DatabaseOptions& options) {
  const auto on_or_off = [](bool on) { return std::string(on ? "on" : "off"); };
  struct Compared {
    const char* name;
    std::string wanted;
    std::string is;
  };
  const Compared all[] = {
      {"redundancy", options.redundancy, there.redundancy},
      {"command_log", options.command_log, there.command_log},
      {"remote_log", on_or_off(options.remote_log), on_or_off(there.remote_log)},
      {"sharded", on_or_off(options.sharded), on_or_off(there.sharded)},
      {"coordinator", options.coordinator, there.coordinator},
      {"member_address", options.member_address, there.member_address},
  };
  for (const Compared& each : all) {
    if (each.wanted == each.is) continue;
    return Status::InvalidArgument(std::string(each.name) + ": '" + each.wanted +
                                   "', but database '" + options.name + "' is open with '" +
                                   each.is + "'");
  }
  return Status::OK();
}

}  // namespace

std::string CatalogueKey(char kind) {
  std::string key;
  AppendSpace(kCatalogueSpace, &key);
  key.push_back(kind);
  return key;
}

std::string CatalogueKey(char kind, uint32_t space) {
  std::string key = CatalogueKey(kind);
  AppendSpace(space, &key);
  return key;
}

std::string CatalogueKey(char kind, const Slice& name) {
  return CatalogueKey(kind).append(name.data(), name.size());
}

uint64_t WriteBufferOf(const DatabaseOptions& options) {
  return options.write_buffer_size != 0 ? options.write_buffer_size : Options().write_buffer_size;
}

Database::Database(const DatabaseOptions& options, std::unique_ptr<DB> db)
    : options_(options), db_(std::move(db)), write_options_(WriteOptionsOf(options)) {}

std::shared_ptr<const Snapshot> Database::TakeSnapshot() const {
  const Snapshot* const taken = db()->GetSnapshot();
  if (taken == nullptr) return nullptr;
  return {taken, [db = db()](const Snapshot* held) { db->ReleaseSnapshot(held); }};
}

Status Database::Open(const DatabaseOptions& options, std::shared_ptr<Database>* database) {
  const std::string identity = options.pool + '\n' + options.name;
  Registry& registry = TheRegistry();
  MutexLock lock(&registry.mutex);
  while (true) {
    const auto found = registry.databases.find(identity);
    if (found == registry.databases.end()) break;
    *database = found->second.lock();
    if (*database == nullptr) {
      registry.closed.Wait();
      continue;
    }
    return CheckSame((*database)->options(), options);
  }
  std::unique_ptr<Database> opened;
  NACRE_RETURN_IF_ERROR(options.sharded ? KeyspaceDatabase::Open(options, &opened)
                                        : OwnedDatabase::Open(options, &opened));
  *database = std::shared_ptr<Database>(
      opened.release(), [identity](Database* last) { CloseAndForget(identity, last); });
  registry.databases[identity] = *database;
  return Status::OK();
}

}  // namespace nacre::sqlite
