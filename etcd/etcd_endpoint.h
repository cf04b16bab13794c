#pragma once

#include <memory>
#include <string>
#include <vector>

#include "etcd/grpc_api.h"
#include "nacre/status.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre {

/// "HOST:PORT,HOST:PORT,...", with IPv6 addresses in brackets: its parts. `InvalidArgument` says
/// what is malformed.
Status ParseEtcdAddress(const std::string& address, std::vector<std::string>* endpoints);

/// One of the client endpoints of a cluster, and the connection to it. There is none before the
/// first call needs it, and after a failure the next call makes a new one, without a back-off:
/// callers have deadlines and pauses of their own.
///
/// Thread safety: all methods may be called from many threads at once, which share the connection.
class EtcdEndpoint {
 public:
  /// `address`: "HOST:PORT".
  explicit EtcdEndpoint(std::string address);

  /// Waits until there is a connection. `Unavailable` if it is refused, `TimedOut`. Takes two
  /// milliseconds if there is one, to see whether the peer has ended it. What is called over
  /// `*channel` may find it broken nevertheless.
  Status Connect(Deadline deadline, std::shared_ptr<grpc::Channel>* channel) EXCLUDES(mutex_);

  const std::string& address() const { return address_; }

 private:
  std::shared_ptr<grpc::Channel> FreshChannel() EXCLUDES(mutex_);

  const std::string address_;
  Mutex mutex_;
  std::shared_ptr<grpc::Channel> channel_ GUARDED_BY(mutex_);
};

}  // namespace nacre
