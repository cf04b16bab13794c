#include "rdma/verbs/device.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "rdma/queue_depths.h"
#include "rdma/verbs/completion_queue.h"
#include "rdma/verbs/connector.h"
#include "rdma/verbs/listener.h"
#include "rdma/verbs/region.h"
#include "rdma/verbs/wire.h"
#include "util/log.h"

namespace nacre::rdma {

namespace {

void AddTally(const VerbsConnection::Tally& tally, TrafficCounters* sum) {
  sum->bytes_read += tally.bytes_read.load(std::memory_order_relaxed);
  sum->bytes_written += tally.bytes_written.load(std::memory_order_relaxed);
  sum->reads += tally.reads.load(std::memory_order_relaxed);
  sum->writes += tally.writes.load(std::memory_order_relaxed);
}

}  // namespace

ReadLimits MaxReadLimits(const Adapter& adapter) {
  const auto limit = [](int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); };
  return {.incoming = limit(adapter.attributes().max_qp_rd_atom),
          .outgoing = limit(adapter.attributes().max_qp_init_rd_atom)};
}

VerbsDevice::VerbsDevice(const DeviceOptions& options, std::shared_ptr<SecretRing> ring,
                         Clock* clock, std::unique_ptr<Adapter> adapter)
    : ring_(std::move(ring)),
      logger_(options.logger),
      clock_(clock),
      refusals_(options.logger, clock),
      adapter_(std::move(adapter)) {}

Status VerbsDevice::Open(const DeviceOptions& options, Clock* clock,
                         std::unique_ptr<Device>* device) {
  VerbsParameters parameters;
  NACRE_RETURN_IF_ERROR(ParseVerbsParameters(options.parameters, &parameters));
  std::unique_ptr<Adapter> adapter;
  NACRE_RETURN_IF_ERROR(Adapter::Open(parameters, &adapter));
  std::shared_ptr<SecretRing> ring;
  NACRE_RETURN_IF_ERROR(RingOf(options, &ring));
  std::unique_ptr<VerbsDevice> made(
      new VerbsDevice(options, std::move(ring), clock, std::move(adapter)));
  NACRE_RETURN_IF_ERROR(VerbsEventLoop::Start(&made->adapter(), options.logger, &made->loop_));
  Log(options.logger, LogLevel::kInfo, "RDMA device {} port {}", made->adapter().name(),
      made->adapter().port());
  *device = std::move(made);
  return Status::OK();
}

VerbsDevice::~VerbsDevice() {
  MutexLock lock(&mutex_);
  assert(queue_pairs_.empty() && "a device outlives what it made");
}

Status VerbsDevice::AllocateRegion(size_t size, Access access,
                                   std::unique_ptr<MemoryRegion>* region) {
  return VerbsRegion::Allocate(adapter(), size, access, logger_.get(), region);
}

Status VerbsDevice::MapRegion(int fd, size_t size, Access access,
                              std::unique_ptr<MemoryRegion>* region) {
  return VerbsRegion::Map(adapter(), fd, size, access, logger_.get(), region);
}

Status VerbsDevice::RegisterLocal(char* data, size_t size, std::unique_ptr<MemoryRegion>* region) {
  return VerbsRegion::RegisterLocal(adapter(), data, size, logger_.get(), region);
}

Status VerbsDevice::CreateCompletionQueue(int capacity, std::unique_ptr<CompletionQueue>* queue) {
  return VerbsCompletionQueue::Create(adapter(), capacity, queue);
}

Status VerbsDevice::Listen(const std::string& address, std::unique_ptr<Listener>* listener) {
  return VerbsListener::Open(this, address, listener);
}

Status VerbsDevice::Connect(const std::string& address, const std::string& private_data,
                            QueueDepths depths, CompletionQueue* send_queue,
                            CompletionQueue* receive_queue, Deadline deadline, std::string* reply,
                            std::unique_ptr<QueuePair>* queue_pair) {
  if (private_data.size() > kMaxPrivateData) {
    return Status::InvalidArgument("private data of " + std::to_string(private_data.size()) +
                                   " bytes; at most " + std::to_string(kMaxPrivateData) +
                                   " are possible");
  }
  NACRE_RETURN_IF_ERROR(CheckDepths(depths));
  VerbsConnector connector(this, deadline);
  NACRE_RETURN_IF_ERROR(connector.Prepare(address, private_data, depths,
                                          static_cast<VerbsCompletionQueue*>(send_queue),
                                          static_cast<VerbsCompletionQueue*>(receive_queue)));
  return connector.Connect(reply, queue_pair);
}

TrafficCounters VerbsDevice::traffic() const {
  MutexLock lock(&mutex_);
  TrafficCounters sum = past_traffic_;
  for (const VerbsQueuePair* pair : queue_pairs_) AddTally(pair->connection()->tally, &sum);
  refusals_.AddTo(&sum);
  return sum;
}

void VerbsDevice::Insert(const VerbsQueuePair* queue_pair) {
  loop_->Watch(queue_pair->connection().get());
  MutexLock lock(&mutex_);
  queue_pairs_.insert(queue_pair);
}

void VerbsDevice::Remove(const VerbsQueuePair* queue_pair) {
  loop_->Unwatch(queue_pair->connection().get());
  MutexLock lock(&mutex_);
  if (queue_pairs_.erase(queue_pair) == 0) return;
  AddTally(queue_pair->connection()->tally, &past_traffic_);
}

void VerbsDevice::Warn(const std::string& peer, const char* call, int error) const {
  Log(logger_, LogLevel::kWarn, "{}: {} on {}: {}", peer, call, adapter().name(),
      std::strerror(error));
}

void VerbsDevice::TellPath(const std::string& peer, int gid, const char* gid_type,
                           int mtu_bytes) const {
  Log(logger_, LogLevel::kDebug, "{}: {} port {}, GID index {} ({}), MTU {}", peer,
      adapter().name(), adapter().port(), gid, gid_type, mtu_bytes);
}

}  // namespace nacre::rdma
