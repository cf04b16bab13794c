#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "memnode/client_session.h"
#include "memnode/control.pb.h"
#include "memnode/lane.h"
#include "memnode/pool_client.h"
#include "util/mutex.h"
#include "util/per_thread.h"
#include "util/uri.h"

namespace nacre::memnode {

/// A session that threads use one after the other.
struct PointReader::Turn {
  // A turn is taken in one function and given back in another.
  bool TryTake() NO_THREAD_SAFETY_ANALYSIS { return mutex.TryLock(); }
  void Take() NO_THREAD_SAFETY_ANALYSIS { mutex.Lock(); }
  void Give() NO_THREAD_SAFETY_ANALYSIS { mutex.Unlock(); }

  ~Turn() { delete session; }

  Mutex mutex;
  ClientSession* session = nullptr;  ///< Owned; of who has the turn.
};

/// The insides of a PoolClient, shared by the files that implement it.
class PoolClient::Rep {
 public:
  struct SessionSlot {
    ClientSession* session;  ///< Owned; of the thread that has the slot, null at first.
  };
  struct OpenDatabase {
    uint64_t id = 0;
    uint64_t manifest_version = 0;  ///< Of the manifest it was opened with.
  };

  ~Rep();

  /// A node joins: makes this client the owner of its databases there too. Nothing of them is left
  /// on the node. By the monitor.
  Status BringDatabases(NodeLink* link, Deadline deadline) EXCLUDES(membership);

  /// Sends a job, whose `header` it fills in, and waits for its end; see PoolClient::Compact.
  Status RunJob(NodeId node, uint64_t database_id, control::JobHeader* header,
                control::Request* request, const std::atomic<bool>* cancelled,
                control::Reply* reply);
  /// Of the first `count` nodes, for an executor: as it reaches them.
  std::string PeersUri(int count) const;
  Status BringAll(NodeLink* link, Deadline deadline) REQUIRES(membership);

  /// Before anybody reads.
  void SetReaders(int max_queue_pairs_per_node);

  /// Sends one request to `node` and waits for the answer. The status is the transport's or the
  /// node's, naming the node.
  Status Call(NodeId node, control::Request* request, control::Reply* reply);
  /// The link to `node`, connected; a failure names it.
  Status UpLink(NodeId node, NodeLink** link);
  /// A connection to the node failed in the middle of something.
  Status Lost(NodeLink* link, Status why);

  Fabric fabric;
  Uri uri;
  PerThread<SessionSlot> sessions;
  std::vector<std::unique_ptr<PointReader::Turn>> turns;  ///< Empty: each thread has its own.

  /// Held while databases are opened and closed, and while nodes join: each node has all of them.
  Mutex membership;
  Mutex mutex;
  std::map<std::string, OpenDatabase> databases GUARDED_BY(mutex);
};

}  // namespace nacre::memnode
