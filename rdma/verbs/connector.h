#pragma once

#include <memory>
#include <string>

#include "rdma/secret_ring.h"
#include "rdma/transport.h"
#include "rdma/verbs/address.h"
#include "rdma/verbs/completion_queue.h"
#include "rdma/verbs/connection.h"
#include "rdma/verbs/queue_pair.h"
#include "rdma/verbs/wire.h"
#include "util/clock.h"

namespace nacre::rdma {

class VerbsDevice;

/// The connecting side of a handshake (rdma/verbs/wire.h); used once, by one thread.
class VerbsConnector {
 public:
  VerbsConnector(VerbsDevice* device, const Deadline& deadline)
      : device_(device), deadline_(deadline) {}

  /// Parses the address, and creates the queue pair.
  Status Prepare(const std::string& address, const std::string& private_data, QueueDepths depths,
                 VerbsCompletionQueue* send_queue, VerbsCompletionQueue* receive_queue);
  /// As Device::Connect.
  Status Connect(std::string* reply, std::unique_ptr<QueuePair>* queue_pair);

 private:
  /// An id whose route to the listener is known.
  Status Resolve();
  Status ResolveFrom(sockaddr* source);
  Status CheckAdapter() const;
  Status CheckLink() const;
  /// A local address that the adapter asked for by parameter has. False: let routing choose.
  bool FindSource(sockaddr_storage* source) const;
  /// Sends a REQ; `*notice` is the answer to it.
  Status Ask(std::string_view request, CmNotice* notice);
  Status Answer(std::string* reply);
  /// Tells a listener that does not know the secret that it was found out, for it to count.
  void TurnAway();
  Status Await(rdma_cm_event_type wanted, CmNotice* notice);
  /// What a notice that is not the wanted one means.
  Status Refusal(const CmNotice& notice) const;
  Status NobodyThere(const std::string& why) const;

  VerbsDevice* const device_;
  const Deadline deadline_;
  VerbsAddress address_;
  std::shared_ptr<const Credential> own_;
  VerbsHello hello_;
  Handshake handshake_;
  std::shared_ptr<VerbsConnection> connection_;
  std::unique_ptr<VerbsQueuePair> queue_pair_;
};

}  // namespace nacre::rdma
