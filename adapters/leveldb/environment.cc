#include "adapters/leveldb/environment.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "pool/pool_impl.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/uri.h"

namespace nacre {
namespace {

/// An environment variable; null if it is empty or not set.
const char* Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

/// What the databases of this process share. LevelDB's API has no object that could hold it.
class Registry {
 public:
  Status OpenPool(const std::string& uri, std::shared_ptr<Pool>* pool) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    *pool = pools_[uri].lock();
    if (*pool != nullptr) return Status::OK();
    pool::PoolOpenOptions options;
    if (const char* size = Variable("NACRE_SLAB_SIZE"); size != nullptr) {
      NACRE_RETURN_IF_ERROR(ParseSize(size, &options.slab_bytes).WithContext("NACRE_SLAB_SIZE"));
    }
    std::shared_ptr<pool::PoolImpl> opened;
    NACRE_RETURN_IF_ERROR(pool::OpenPool(uri, options, Clock::System(), &opened));
    *pool = std::move(opened);
    pools_[uri] = *pool;
    if (uri.starts_with("embedded:")) embedded_.push_back(*pool);
    return Status::OK();
  }
  bool MarkOpen(const std::string& name) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    return open_.insert(name).second;
  }
  void UnmarkOpen(const std::string& name) EXCLUDES(mutex_) {
    MutexLock lock(&mutex_);
    open_.erase(name);
  }

 private:
  Mutex mutex_;
  std::map<std::string, std::weak_ptr<Pool>> pools_ GUARDED_BY(mutex_);
  /// Their data ends with them.
  std::vector<std::shared_ptr<Pool>> embedded_ GUARDED_BY(mutex_);
  std::set<std::string> open_ GUARDED_BY(mutex_);
};

/// Never destroyed: a program may end with databases open, whose threads go on meanwhile.
Registry& TheRegistry() {
  static Registry* const registry = std::make_unique<Registry>().release();
  return *registry;
}

}  // namespace

Status PlaceInPool(Options* options) {
  const char* uri = Variable("NACRE_POOL");
  if (uri == nullptr) {
    return Status::InvalidArgument(
        "NACRE_POOL is not set: it names the memory nodes, as in tcp:HOST:PORT,HOST:PORT; "
        "embedded:?nodes=4&size=1GiB keeps all in this process, and ends with it");
  }
  const char* redundancy = Variable("NACRE_REDUNDANCY");
  if (redundancy != nullptr) options->redundancy = redundancy;
  return TheRegistry().OpenPool(uri, &options->pool);
}

std::string DatabaseNameOf(const std::string& path) {
  std::error_code failure;
  const std::filesystem::path absolute = std::filesystem::absolute(path, failure);
  if (failure || path.empty()) return "";
  std::string name = absolute.lexically_normal().string();
  if (name.size() > 1 && name.ends_with('/')) name.pop_back();
  return name;
}

bool MarkOpen(const std::string& name) { return TheRegistry().MarkOpen(name); }

void UnmarkOpen(const std::string& name) { TheRegistry().UnmarkOpen(name); }

}  // namespace nacre
