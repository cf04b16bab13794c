#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/peer_connection.h"
#include "pool/connect/peer_device.h"
#include "rdma/secret_ring.h"
#include "rdma/transport.h"
#include "sharding/remote/member_messages.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

/// This process's connections to the other members of a keyspace, by their ids. A connection is
/// made at first use, and made anew once it has ended.
///
/// Thread safety: all methods may be called from many threads at once.
class MemberLinks {
 public:
  using Member = int64_t;  ///< Coordinator::Lease.

  /// `clock` outlives it.
  MemberLinks(pool::PeerSecurity security, Clock* clock)
      : security_(std::move(security)), clock_(clock) {}
  MemberLinks(const MemberLinks&) = delete;
  MemberLinks& operator=(const MemberLinks&) = delete;

  /// The members there are, and where they serve; ids are never used twice. Connections to others
  /// end once no call uses them.
  void SetMembers(const std::map<Member, std::string>& addresses) EXCLUDES(mutex_);

  /// Sends `request`, whose `member` is set here, and waits for the reply. A failure is the
  /// transport's, or `Unavailable` if there is no such member or it cannot be reached; `*sent` is
  /// false if it certainly never saw the request.
  Status Call(Member member, sharding::MemberRequest* request, Deadline deadline,
              sharding::MemberReply* reply, bool* sent) EXCLUDES(mutex_);
  /// The same for what takes long, without polling: until the member is gone or, if there is one,
  /// the deadline.
  Status CallAndSleep(Member member, sharding::MemberRequest* request, sharding::MemberReply* reply,
                      bool* sent, const std::optional<Deadline>& deadline = std::nullopt)
      EXCLUDES(mutex_);

  /// Asks the member itself. What Call fails by, or what the member answers.
  Status Control(Member member, const sharding::ControlRequest& request, Deadline deadline,
                 sharding::ControlReply* reply) EXCLUDES(mutex_);

  /// Connects to a member to learn of its end, if there is no connection that stands.
  Status Watch(Member member, Deadline deadline) EXCLUDES(mutex_);
  /// Whether there is a connection that stands.
  bool Stands(Member member) EXCLUDES(mutex_);
  /// Whether its process has certainly ended: it has ended the connection, and does not answer.
  bool HasHungUp(Member member) EXCLUDES(mutex_);

 private:
  struct Link {
    std::string address;
    std::shared_ptr<pool::PeerConnection> connection;  ///< May be null.
    /// What it was made with. Once that is not the own one any more, another is made: the member
    /// may end this one at any time.
    std::shared_ptr<const rdma::Credential> credential;
    bool connecting = false;   ///< A thread connects; others wait for it.
    bool hung_up = false;      ///< The latest connection was ended by the member.
    Status failure;            ///< That of the latest attempt to connect.
    uint64_t retry_nanos = 0;  ///< Until then it is answered again.
  };

  Status Connect(Member member, Deadline deadline,
                 std::shared_ptr<pool::PeerConnection>* connection) EXCLUDES(mutex_);
  /// Connects, without the mutex; the device and the address are those of the member.
  Status Reach(Member member, rdma::Device* device, const std::string& address,
               std::shared_ptr<const rdma::Credential> credential, Deadline deadline,
               std::shared_ptr<pool::PeerConnection>* connection) EXCLUDES(mutex_);
  std::shared_ptr<const rdma::Credential> OwnCredential() const {
    return security_.ring == nullptr ? nullptr : security_.ring->own();
  }
  Status DeviceFor(const std::string& address, rdma::Device** device) REQUIRES(mutex_);

  const pool::PeerSecurity security_;
  Clock* const clock_;
  Mutex mutex_;
  CondVar connected_{&mutex_};
  /// By their schemes. They outlive the connections.
  std::map<std::string, std::unique_ptr<rdma::Device>> devices_ GUARDED_BY(mutex_);
  std::map<Member, Link> links_ GUARDED_BY(mutex_);
};

}  // namespace nacre
