#include "perf/peer.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "util/coding.h"

namespace nacre::perf {

using std::chrono::milliseconds;

std::string Peer::Welcome::Encode() const {
  std::string bytes;
  PutFixed64(&bytes, key.address);
  PutFixed64(&bytes, key.size);
  PutFixed32(&bytes, key.key);
  bytes.resize(kBytes);
  return bytes;
}

bool Peer::Welcome::Decode(const std::string& bytes, Welcome* welcome) {
  if (bytes.size() != kBytes) return false;
  welcome->key.address = DecodeFixed64(bytes.data());
  welcome->key.size = DecodeFixed64(bytes.data() + 8);
  welcome->key.key = DecodeFixed32(bytes.data() + 16);
  return true;
}

/// One queue pair with as many receives as the other side may have messages under way; message i
/// arrives in slot i, and leaves from there again.
struct Peer::Connection {
  std::unique_ptr<rdma::MemoryRegion> slots;
  std::unique_ptr<rdma::CompletionQueue> queue;
  std::unique_ptr<rdma::QueuePair> queue_pair;
  std::thread thread;
  std::atomic<bool> ended{false};

  rdma::LocalBuffer Slot(uint64_t i, size_t size) const {
    return {.data = slots->data() + i * rdma::Device::kMaxSendBytes,
            .size = static_cast<uint32_t>(size),
            .region = slots.get()};
  }
};

Peer::Peer(rdma::Device* device) : device_(device) {}

Status Peer::Start(rdma::Device* device, const std::string& address, size_t region_bytes,
                   std::unique_ptr<Peer>* peer) {
  std::unique_ptr<Peer> result(new Peer(device));
  NACRE_RETURN_IF_ERROR(
      device->AllocateRegion(region_bytes, rdma::Access::kRemoteAll, &result->region_));
  NACRE_RETURN_IF_ERROR(result->region_->Populate());
  NACRE_RETURN_IF_ERROR(device->Listen(address, &result->listener_));
  result->acceptor_ = std::thread([self = result.get()] { self->AcceptLoop(); });
  *peer = std::move(result);
  return Status::OK();
}

Peer::~Peer() {
  stopping_.store(true);
  if (listener_ != nullptr) listener_->Close();
  if (acceptor_.joinable()) acceptor_.join();
  for (auto& connection : connections_) {
    connection->queue->Wake();
    connection->thread.join();
  }
  connections_.clear();
}

void Peer::AcceptLoop() {
  while (!stopping_.load()) {
    std::unique_ptr<rdma::IncomingConnection> incoming;
    const Status accepted = listener_->Accept(milliseconds(500), &incoming);
    if (accepted.IsShutdownInProgress()) return;
    if (accepted.ok()) Serve(std::move(incoming)).IgnoreError();  // The other side sees it fail.
    std::erase_if(connections_, [](const auto& connection) {
      if (!connection->ended.load()) return false;
      connection->thread.join();
      return true;
    });
  }
}

Status Peer::Serve(std::unique_ptr<rdma::IncomingConnection> incoming) {
  auto connection = std::make_unique<Connection>();
  const rdma::QueueDepths depths = incoming->depths();
  const auto slots = static_cast<size_t>(depths.receive);
  NACRE_RETURN_IF_ERROR(
      device_->CreateCompletionQueue(depths.send + depths.receive, &connection->queue));
  NACRE_RETURN_IF_ERROR(
      device_->AllocateRegion(std::max<size_t>(1, slots) * rdma::Device::kMaxSendBytes,
                              rdma::Access::kLocalOnly, &connection->slots));
  const Welcome welcome{.key = region_->remote_key()};
  rdma::CompletionQueue* queue = connection->queue.get();
  NACRE_RETURN_IF_ERROR(incoming->Accept(queue, queue, welcome.Encode(), &connection->queue_pair));
  for (uint64_t i = 0; i < slots; ++i) {
    NACRE_RETURN_IF_ERROR(
        connection->queue_pair->PostRecv(i, connection->Slot(i, rdma::Device::kMaxSendBytes)));
  }
  connection->thread = std::thread([this, c = connection.get()] { Echo(c); });
  connections_.push_back(std::move(connection));
  return Status::OK();
}

void Peer::Echo(Connection* connection) {
  // A round trip is measured: the answering thread must be awake while messages come.
  constexpr int kIdlePolls = 100'000;
  int idle = 0;
  while (!stopping_.load(std::memory_order_relaxed)) {
    rdma::Completion completions[16];
    const int n = connection->queue->Poll(completions, 16);
    if (n == 0 && ++idle < kIdlePolls) continue;
    if (n == 0) {
      // A peer that ends breaks the pair; that a Wait has ended in time tells nothing.
      connection->queue->Wait(milliseconds(200)).IgnoreError();
      if (connection->queue_pair->broken()) break;
      continue;
    }
    idle = 0;
    Status status;
    for (int i = 0; i < n; ++i) {
      const rdma::Completion& completion = completions[i];
      if (completion.code != rdma::CompletionCode::kSuccess) {
        status = Status::Unavailable("peer gone");
      } else if (status.ok() && completion.opcode == rdma::Opcode::kRecv) {
        status = connection->queue_pair->PostSend(
            completion.id, connection->Slot(completion.id, completion.bytes), rdma::kSignaled);
      } else if (status.ok()) {
        // It has left: the slot takes the next one.
        status = connection->queue_pair->PostRecv(
            completion.id, connection->Slot(completion.id, rdma::Device::kMaxSendBytes));
      }
    }
    if (!status.ok()) break;
  }
  connection->ended.store(true);
}

}  // namespace nacre::perf
