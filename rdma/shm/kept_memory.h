#pragma once

#include <map>
#include <memory>

#include "rdma/memory.h"
#include "rdma/shm/peer_process.h"
#include "util/mutex.h"

namespace nacre::rdma {

/// Memory of peers that is there after they have ended (regions of files and devices), and is to go
/// from this process when they do, whatever still refers to it.
///
/// Thread safety: all methods may be called from many threads at once.
class KeptMemory {
 public:
  /// `memory` belongs to `owner`. If it is not known which process that is, the memory stays.
  void Add(const PeerProcess& owner, const std::shared_ptr<Mapping>& memory) EXCLUDES(mutex_);
  /// Takes away what belongs to processes that have ended. False: there is nothing to be watched
  /// any more.
  bool LookForDeaths() EXCLUDES(mutex_);

 private:
  struct Kept {
    PeerProcess owner;
    std::weak_ptr<Mapping> memory;
  };

  Mutex mutex_;
  std::map<ObjectName, Kept> kept_ GUARDED_BY(mutex_);  ///< By the memory's name.
};

}  // namespace nacre::rdma
