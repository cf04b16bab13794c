#pragma once

#include <memory>
#include <vector>

#include "pool/connect/fabric.h"
#include "pool/read/client_session.h"
#include "pool/read/point_reader.h"
#include "util/mutex.h"
#include "util/per_thread.h"

namespace nacre::pool {

/// A session that threads use one after the other.
struct PointReader::Turn {
  // A turn is taken in one function and given back in another.
  bool TryTake() NO_THREAD_SAFETY_ANALYSIS { return mutex.TryLock(); }
  void Take() NO_THREAD_SAFETY_ANALYSIS { mutex.Lock(); }
  void Give() NO_THREAD_SAFETY_ANALYSIS { mutex.Unlock(); }

  Mutex mutex;
  std::unique_ptr<ClientSession> session;  ///< Used by the thread that has the turn.
};

/// The sessions of one client that its PointReaders use. Each thread has one of its own, unless the
/// pool's queue pairs are bounded: then threads take turns with a few.
///
/// Thread safety: PointReaders of many threads use it at once.
class PointSessions {
 public:
  /// `fabric` outlives this. `max_queue_pairs_per_node` as PoolOptions has it.
  PointSessions(Fabric* fabric, int max_queue_pairs_per_node);
  ~PointSessions();
  PointSessions(const PointSessions&) = delete;
  PointSessions& operator=(const PointSessions&) = delete;

 private:
  friend class PointReader;
  struct Slot {
    ClientSession* session;  ///< Owned; of the thread that has the slot, null at first.
  };

  Fabric* const fabric_;
  PerThread<Slot> own_;
  std::vector<std::unique_ptr<PointReader::Turn>> turns_;  ///< Empty: each thread has its own.
};

}  // namespace nacre::pool
