#include "rdma/interposed_device.h"

#include <utility>

#include "rdma/interposed_queues.h"

namespace nacre::rdma {

namespace {

InterposedCompletionQueue* Own(CompletionQueue* queue) {
  return static_cast<InterposedCompletionQueue*>(queue);
}

class InterposedIncomingConnection final : public IncomingConnection {
 public:
  InterposedIncomingConnection(std::unique_ptr<IncomingConnection> inner,
                               std::shared_ptr<Interposer> interposer)
      : inner_(std::move(inner)), interposer_(std::move(interposer)) {}

  const std::string& private_data() const override { return inner_->private_data(); }
  QueueDepths depths() const override { return inner_->depths(); }
  std::shared_ptr<const Credential> credential() const override { return inner_->credential(); }
  Status Accept(CompletionQueue* send_queue, CompletionQueue* receive_queue,
                const std::string& reply, std::unique_ptr<QueuePair>* queue_pair) override {
    std::unique_ptr<QueuePair> inner_pair;
    NACRE_RETURN_IF_ERROR(
        inner_->Accept(Own(send_queue)->inner(), Own(receive_queue)->inner(), reply, &inner_pair));
    *queue_pair = std::make_unique<InterposedQueuePair>(
        std::move(inner_pair), interposer_, inner_->depths(), Own(send_queue), Own(receive_queue));
    return Status::OK();
  }
  void Reject(const std::string& reason) override { inner_->Reject(reason); }

 private:
  const std::unique_ptr<IncomingConnection> inner_;
  const std::shared_ptr<Interposer> interposer_;
};

class InterposedListener final : public Listener {
 public:
  InterposedListener(std::unique_ptr<Listener> inner, std::shared_ptr<Interposer> interposer)
      : inner_(std::move(inner)), interposer_(std::move(interposer)) {}

  Status Accept(std::chrono::nanoseconds timeout,
                std::unique_ptr<IncomingConnection>* incoming) override {
    std::unique_ptr<IncomingConnection> inner_incoming;
    NACRE_RETURN_IF_ERROR(inner_->Accept(timeout, &inner_incoming));
    *incoming =
        std::make_unique<InterposedIncomingConnection>(std::move(inner_incoming), interposer_);
    return Status::OK();
  }
  void Close() override { inner_->Close(); }
  const std::string& address() const override { return inner_->address(); }

 private:
  const std::unique_ptr<Listener> inner_;
  const std::shared_ptr<Interposer> interposer_;
};

}  // namespace

InterposedDevice::InterposedDevice(std::unique_ptr<Device> inner,
                                   std::shared_ptr<Interposer> interposer, Clock* clock)
    : inner_(std::move(inner)), interposer_(std::move(interposer)), clock_(clock) {}

Status InterposedDevice::AllocateRegion(size_t size, Access access,
                                        std::unique_ptr<MemoryRegion>* region) {
  return inner_->AllocateRegion(size, access, region);
}

Status InterposedDevice::MapRegion(int fd, size_t size, Access access,
                                   std::unique_ptr<MemoryRegion>* region) {
  return inner_->MapRegion(fd, size, access, region);
}

Status InterposedDevice::RegisterLocal(char* data, size_t size,
                                       std::unique_ptr<MemoryRegion>* region) {
  return inner_->RegisterLocal(data, size, region);
}

Status InterposedDevice::CreateCompletionQueue(int capacity,
                                               std::unique_ptr<CompletionQueue>* queue) {
  std::unique_ptr<CompletionQueue> inner_queue;
  NACRE_RETURN_IF_ERROR(inner_->CreateCompletionQueue(capacity, &inner_queue));
  *queue = std::make_unique<InterposedCompletionQueue>(std::move(inner_queue), capacity, clock_);
  return Status::OK();
}

Status InterposedDevice::Listen(const std::string& address, std::unique_ptr<Listener>* listener) {
  std::unique_ptr<Listener> inner_listener;
  NACRE_RETURN_IF_ERROR(inner_->Listen(address, &inner_listener));
  *listener = std::make_unique<InterposedListener>(std::move(inner_listener), interposer_);
  return Status::OK();
}

Status InterposedDevice::Connect(const std::string& address, const std::string& private_data,
                                 QueueDepths depths, CompletionQueue* send_queue,
                                 CompletionQueue* receive_queue, Deadline deadline,
                                 std::string* reply, std::unique_ptr<QueuePair>* queue_pair) {
  const std::string prefix = std::string(scheme()) + ":";
  const std::string peer = address.starts_with(prefix) ? address : prefix + address;
  if (interposer_->Blocks(peer)) {
    clock_->SleepFor(deadline.Remaining());
    return Status::Unavailable(peer + ": no answer");
  }
  std::unique_ptr<QueuePair> inner_pair;
  NACRE_RETURN_IF_ERROR(inner_->Connect(address, private_data, depths, Own(send_queue)->inner(),
                                        Own(receive_queue)->inner(), deadline, reply, &inner_pair));
  *queue_pair = std::make_unique<InterposedQueuePair>(std::move(inner_pair), interposer_, depths,
                                                      Own(send_queue), Own(receive_queue));
  return Status::OK();
}

}  // namespace nacre::rdma
