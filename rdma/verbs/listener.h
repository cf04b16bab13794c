#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "rdma/handshake.h"
#include "rdma/secret_ring.h"
#include "rdma/transport.h"
#include "rdma/verbs/connection.h"
#include "rdma/verbs/queue_pair.h"
#include "rdma/verbs/wire.h"
#include "util/mutex.h"

namespace nacre::rdma {

class VerbsDevice;

/// Challenges peers that ask to connect and keeps those that answered for Accept, all of it in the
/// device's event thread: a peer that does not answer, or answers wrongly, delays no other
/// (rdma/verbs/wire.h).
///
/// Threads: Accept by one thread at a time; Close by any.
class VerbsListener final : public Listener, public CmHandler {
 public:
  static Status Open(VerbsDevice* device, const std::string& address,
                     std::unique_ptr<Listener>* listener);
  ~VerbsListener() override;

  Status Accept(std::chrono::nanoseconds timeout,
                std::unique_ptr<IncomingConnection>* incoming) override EXCLUDES(mutex_);
  void Close() override EXCLUDES(mutex_);
  const std::string& address() const override { return text_; }

  void OnEvent(const rdma_cm_event& event) override EXCLUDES(mutex_);

  /// A peer that has proven to know the secret.
  struct Guest {
    VerbsHello hello;
    std::shared_ptr<const Credential> credential;
    Handshake handshake;
    std::shared_ptr<VerbsConnection> connection;
    ReadLimits reads;  ///< As the connecting side asked for them.
  };

 private:
  /// A peer that was challenged.
  struct Challenged {
    VerbsHello hello;
    std::shared_ptr<const Credential> credential;  ///< What it is to prove.
    Handshake handshake;
    uint64_t until_nanos;
  };

  explicit VerbsListener(VerbsDevice* device) : device_(device) {}

  void TakeHello(UniqueCmId id, const VerbsHello& hello) EXCLUDES(mutex_);
  void TakeAnswer(UniqueCmId id, const rdma_conn_param& parameters, const VerbsAnswer& answer)
      EXCLUDES(mutex_);
  void Refuse(UniqueCmId id, VerbsMessage message, const std::string& reason, bool count);

  VerbsDevice* const device_;
  UniqueCmId id_;
  std::string text_;

  Mutex mutex_;
  CondVar changed_{&mutex_};
  bool closed_ GUARDED_BY(mutex_) = false;
  std::map<Nonce, Challenged> challenged_ GUARDED_BY(mutex_);  ///< Keyed by the listener's nonce.
  std::deque<Nonce> challenged_order_ GUARDED_BY(mutex_);      ///< and the oldest first.
  std::deque<Guest> guests_ GUARDED_BY(mutex_);
};

}  // namespace nacre::rdma
