#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "nacre/logger.h"
#include "nacre/status.h"
#include "rdma/shm/connection.h"
#include "util/mutex.h"

namespace nacre::rdma {

/// The peers that may be writing into this device's memory. Answers the owner's question when a key
/// has ended: has the last write under it ended as well? See WriteMark.
///
/// A connection that has ended stays known until the write that its peer was in is over: the
/// mapping that it writes to survives the connection.
///
/// Thread safety: all methods may be called from many threads.
class PeerWriters {
 public:
  /// `logger` may be null.
  explicit PeerWriters(std::shared_ptr<Logger> logger) : logger_(std::move(logger)) {}

  /// Must precede telling the peer of any region.
  void Add(const std::shared_ptr<Connection>& connection) EXCLUDES(mutex_);
  /// Must follow RefuseRequests. Has no effect on an unknown connection.
  void Remove(const Connection& connection) EXCLUDES(mutex_);

  enum class Patience : uint8_t {
    kUsual,  ///< As AwaitEndOf says.
    kNone,   ///< A look is enough: it was waited for before.
  };
  /// Returns when no write under the key, which must be out of the control block, can land any
  /// more. This costs a look at each connection; a write that is under way is waited for. A process
  /// that stays inside a write because it was stopped, or for more than three seconds, is killed.
  /// Threads of this process are waited for without end: they do end. `Unavailable` naming the
  /// process if one is still inside and cannot be killed.
  Status AwaitEndOf(uint32_t key, Patience patience) EXCLUDES(mutex_);

 private:
  struct Entry {
    std::shared_ptr<Connection> connection;
    bool removed = false;
  };
  /// A write that was seen under way.
  struct Write {
    std::shared_ptr<Connection> connection;
    uint64_t mark;

    bool Over() const { return connection->PeerWrites() != mark; }
  };

  std::vector<Write> WritesUnder(uint32_t key) EXCLUDES(mutex_);
  Status AwaitEndOf(const Write& write, Patience patience) const;
  /// Waits for the write; false once it is plain that its process must be killed.
  static bool EndsByItself(const Write& write);
  Status EndByForce(const Write& write) const;

  const std::shared_ptr<Logger> logger_;
  Mutex mutex_;
  std::map<uint64_t, Entry> entries_ GUARDED_BY(mutex_);  ///< Keyed by the connection's number.
};

}  // namespace nacre::rdma
