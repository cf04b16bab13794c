#pragma once

#include <memory>
#include <set>
#include <string>

#include "nacre/logger.h"
#include "rdma/refusals.h"
#include "rdma/secret_ring.h"
#include "rdma/transport.h"
#include "rdma/verbs/adapter.h"
#include "rdma/verbs/address.h"
#include "rdma/verbs/connection.h"
#include "rdma/verbs/event_loop.h"
#include "rdma/verbs/queue_pair.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::rdma {

// The `verbs` transport: RDMA cards, and soft-RoCE or siw on any Ethernet card, by libibverbs and
// librdmacm. Reliable connections, set up through the kernel's connection manager, which finds
// device, port, GID and path by IP address and route.

/// Opened by OpenDevice. Regions, queues, queue pairs and listeners must be gone before it.
class VerbsDevice final : public Device {
 public:
  /// `clock` outlives the device. Errors as Adapter::Open.
  static Status Open(const DeviceOptions& options, Clock* clock, std::unique_ptr<Device>* device);
  ~VerbsDevice() override;

  Status AllocateRegion(size_t size, Access access, std::unique_ptr<MemoryRegion>* region) override;
  Status MapRegion(int fd, size_t size, Access access,
                   std::unique_ptr<MemoryRegion>* region) override;
  Status RegisterLocal(char* data, size_t size, std::unique_ptr<MemoryRegion>* region) override;
  Status CreateCompletionQueue(int capacity, std::unique_ptr<CompletionQueue>* queue) override;
  Status Listen(const std::string& address, std::unique_ptr<Listener>* listener) override;
  Status Connect(const std::string& address, const std::string& private_data, QueueDepths depths,
                 CompletionQueue* send_queue, CompletionQueue* receive_queue, Deadline deadline,
                 std::string* reply, std::unique_ptr<QueuePair>* queue_pair) override;
  bool callers_move_bytes() const override { return adapter_->is_software(); }
  TrafficCounters traffic() const override EXCLUDES(mutex_);
  const char* scheme() const override { return "verbs"; }

  Clock* clock() const { return clock_; }
  const Adapter& adapter() const { return *adapter_; }
  VerbsEventLoop* loop() const { return loop_.get(); }
  const SecretRing& ring() const { return *ring_; }
  const std::shared_ptr<Logger>& logger() const { return logger_; }
  Refusals* refusals() { return &refusals_; }
  bool adapter_failed() const { return loop_->adapter_failed(); }

  /// Called by the queue pair at its creation and end.
  void Insert(const VerbsQueuePair* queue_pair) EXCLUDES(mutex_);
  void Remove(const VerbsQueuePair* queue_pair) EXCLUDES(mutex_);

  void Warn(const std::string& peer, const char* call, int error) const;
  /// What the connection manager chose for a connection.
  void TellPath(const std::string& peer, int gid, const char* gid_type, int mtu_bytes) const;

 private:
  VerbsDevice(const DeviceOptions& options, std::shared_ptr<SecretRing> ring, Clock* clock,
              std::unique_ptr<Adapter> adapter);

  const std::shared_ptr<SecretRing> ring_;
  const std::shared_ptr<Logger> logger_;
  Clock* const clock_;
  Refusals refusals_;
  const std::unique_ptr<Adapter> adapter_;
  std::unique_ptr<VerbsEventLoop> loop_;

  mutable Mutex mutex_;
  std::set<const VerbsQueuePair*> queue_pairs_ GUARDED_BY(mutex_);
  TrafficCounters past_traffic_ GUARDED_BY(mutex_);  ///< Traffic of queue pairs that are gone.
};

/// Numbers that both ends of a connection agree on.
ReadLimits MaxReadLimits(const Adapter& adapter);

}  // namespace nacre::rdma
