#include "sharding/members/coordinator.h"

#include <map>
#include <utility>

#include "util/mutex.h"
#include "util/never_destroyed.h"

namespace nacre {
namespace {

struct Registry {
  Mutex mutex;
  std::map<std::string, CoordinatorFactory> factories GUARDED_BY(mutex);
};

Registry& Coordinators() {
  static NeverDestroyed<Registry> registry;
  return *registry;
}

}  // namespace

void RegisterCoordinator(const std::string& scheme, CoordinatorFactory factory) {
  Registry& registry = Coordinators();
  MutexLock lock(&registry.mutex);
  registry.factories[scheme] = std::move(factory);
}

Status OpenCoordinator(const std::string& uri, std::shared_ptr<Coordinator>* coordinator) {
  const size_t colon = uri.find(':');
  if (colon == std::string::npos) {
    return Status::InvalidArgument("coordinator '" + uri + "': is not SCHEME:ADDRESS");
  }
  const std::string scheme = uri.substr(0, colon);
  CoordinatorFactory factory;
  {
    Registry& registry = Coordinators();
    MutexLock lock(&registry.mutex);
    const auto found = registry.factories.find(scheme);
    if (found == registry.factories.end()) {
      return Status::NotSupported("coordinator '" + uri + "': this program does not know '" +
                                  scheme + ":'; for etcd it links nacre::etcd and calls UseEtcd()");
    }
    factory = found->second;
  }
  return factory(uri.substr(colon + 1), coordinator);
}

}  // namespace nacre
