#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "util/mutex.h"
#include "util/thread_index.h"

namespace nacre {

/// Epoch-based reclamation: readers pin, writers unlink and retire, and what was retired is
/// destroyed once no reader that could still see it is pinned.
///
/// A pin is a store to a cache line of the thread's own and costs no shared write and no fence:
/// the order "pin, then load the shared pointer" is kept by `membarrier` on the reclaiming side
/// (sequentially consistent stores where the kernel has none, and under TSan).
///
/// Invariant: an object retired at epoch e was unreachable for every pin that began at an epoch
/// > e; it is destroyed when every pinned slot shows an epoch > e or is idle.
///
/// Thread safety: all methods may be called from many threads at once. A thread may hold nested
/// guards. The domain must outlive its guards; its destructor destroys all that is retired.
class EpochDomain {
 public:
  EpochDomain();
  ~EpochDomain();
  EpochDomain(const EpochDomain&) = delete;
  EpochDomain& operator=(const EpochDomain&) = delete;

  class Guard {
   public:
    explicit Guard(EpochDomain* domain);
    ~Guard();
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    struct Slot* slot_;
  };

  /// Calls `destroy` (on whichever thread finds it safe) after all current guards are gone. The
  /// object must already be unreachable for new readers.
  void Retire(std::function<void()> destroy);

  /// Destroys what can be destroyed now. Called by Retire; also useful after a long-held guard.
  void Collect();

 private:
  struct Rep;
  std::unique_ptr<Rep> rep_;
};

}  // namespace nacre
