#pragma once

#include <memory>
#include <vector>

#include "pool/connect/lane.h"
#include "table/format/placement.h"
#include "util/memory/loadable_memory.h"
#include "util/mutex.h"

namespace nacre::pool {

/// The nodes whose regions this process can load by itself (rdma::QueuePair::Map), through one
/// connection to each.
///
/// Thread safety: all methods may be called from many threads at once.
class LoadableNodes {
 public:
  /// `fabric` outlives this.
  explicit LoadableNodes(Fabric* fabric) : fabric_(fabric), regions_(fabric->slots()) {}

  /// The region with the extent, all of it; null if it cannot be loaded, or not at the moment.
  /// Connects to a node when it is asked for it first; other threads do not wait for that, but get
  /// null. The memory of a node that is gone stays until its last user lets it go.
  std::shared_ptr<const LoadableMemory> RegionOf(const ExtentAddr& extent) EXCLUDES(mutex_);
  /// No region is valid any more, and there will be none.
  void Close() EXCLUDES(mutex_);

 private:
  std::shared_ptr<const LoadableMemory> Region(NodeId node) EXCLUDES(mutex_);
  std::shared_ptr<const LoadableMemory> Map(NodeLink* link) REQUIRES(mutex_);

  Fabric* const fabric_;
  Mutex mutex_;
  bool closed_ GUARDED_BY(mutex_) = false;
  std::unique_ptr<Lane> lane_ GUARDED_BY(mutex_);  ///< Null until it is needed.
  std::vector<std::shared_ptr<const LoadableMemory>> regions_ GUARDED_BY(mutex_);  ///< By node.
};

/// The bytes of a table's fragment, behind its head, in a region that has it.
inline const char* FragmentBytesIn(const LoadableMemory& region, const ExtentAddr& fragment) {
  return region.data() + fragment.start.offset + kFragmentHeadBytes;
}

}  // namespace nacre::pool
