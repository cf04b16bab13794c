#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sharding/members/coordinator.h"

namespace grpc {
class Channel;
}

namespace nacre {

class EtcdEndpoint;

/// A coordinator that is an etcd cluster, by its v3 API. Each call goes to the endpoint that
/// answered last. One that cannot be reached, that has no leader, or that does not answer within
/// its share of the time is left for the next one, each is tried once, and then the call fails. A
/// Commit is never sent twice: it goes on to the next endpoint only while it is not sent.
///
/// Entries have etcd's keys, values, modification revisions and leases, and nothing else. Reads are
/// linearizable. One Commit makes as many changes as etcd allows in a transaction (by default 128;
/// `IOError` for more).
///
/// Thread safety: as Coordinator. No call needs another thread of this object.
class EtcdCoordinator : public Coordinator {
 public:
  /// `address`: "HOST:PORT,HOST:PORT,...". `InvalidArgument` if malformed. Connects to nothing yet.
  static Status Open(const std::string& address, std::shared_ptr<Coordinator>* coordinator);

  ~EtcdCoordinator() override;
  EtcdCoordinator(const EtcdCoordinator&) = delete;
  EtcdCoordinator& operator=(const EtcdCoordinator&) = delete;

  Status Read(const std::string& prefix, Deadline deadline, std::vector<Entry>* entries,
              int64_t* revision) override;
  Status Commit(const std::vector<Change>& changes, Deadline deadline, bool* done) override;
  Status AwaitChange(const std::string& prefix, int64_t revision, Deadline deadline) override;
  Status GrantLease(std::chrono::milliseconds ttl, Deadline deadline, Lease* lease) override;
  Status KeepLease(Lease lease, Deadline deadline) override;
  Status EndLease(Lease lease, Deadline deadline) override;
  const std::string& name() const override { return name_; }

 private:
  /// One call over a connection; `share` is when it is to give up if it may be made again.
  using Attempt =
      std::function<Status(const std::shared_ptr<grpc::Channel>& channel, Deadline share)>;
  enum class Repeat : uint8_t { kNever, kAllowed };

  EtcdCoordinator(const std::string& address, const std::vector<std::string>& endpoints);

  /// Makes `attempt` at one endpoint after the other until one answers.
  Status Try(Deadline deadline, Repeat repeat, const Attempt& attempt);
  void Prefer(size_t endpoint) { preferred_.store(endpoint, std::memory_order_relaxed); }

  const std::string name_;
  std::vector<std::unique_ptr<EtcdEndpoint>> endpoints_;
  /// Where the next call begins. Relaxed: any value will do.
  std::atomic<size_t> preferred_{0};
};

}  // namespace nacre
