#pragma once

#include <map>
#include <memory>
#include <string>

#include "memnode/client_session.h"
#include "memnode/control.pb.h"
#include "memnode/lane.h"
#include "memnode/pool_client.h"
#include "util/mutex.h"
#include "util/per_thread.h"
#include "util/uri.h"

namespace nacre::memnode {

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

  /// Of the calling thread; made at its first use.
  Status MySession(ClientSession** session) {
    SessionSlot& slot = sessions.Mine();
    if (slot.session == nullptr) [[unlikely]] {
      std::unique_ptr<ClientSession> made;
      NACRE_RETURN_IF_ERROR(ClientSession::Create(&fabric, &made));
      slot.session = made.release();
    }
    *session = slot.session;
    return Status::OK();
  }
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

  Mutex mutex;
  std::map<std::string, OpenDatabase> databases GUARDED_BY(mutex);
};

}  // namespace nacre::memnode
