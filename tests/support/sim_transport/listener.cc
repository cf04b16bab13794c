#include "tests/support/sim_transport/listener.h"

#include <algorithm>
#include <utility>

#include "rdma/secret_ring.h"
#include "tests/support/sim_transport/queue_pair.h"

namespace nacre::rdma {

namespace {

void Answer(SimNetwork* network, SimHost from, const std::shared_ptr<SimCall>& call,
            SimCall::State state) {
  Simulation* const simulation = network->simulation();
  simulation->At(simulation->TrueNanos() + network->Latency(from, call->host, 0),
                 [network, from, call, state] {
                   if (network->blocked(from, call->host)) return;
                   call->state = state;
                   network->simulation()->Unpark(call.get(), /*all=*/true);
                 });
}

class SimIncomingConnection final : public IncomingConnection {
 public:
  SimIncomingConnection(SimNetwork* network, SimHost host, std::shared_ptr<SimKeys> keys,
                        std::shared_ptr<SimCall> call)
      : network_(network), host_(host), keys_(std::move(keys)), call_(std::move(call)) {}
  ~SimIncomingConnection() override {
    if (!answered_) Reject("not accepted");
  }

  const std::string& private_data() const override { return call_->private_data; }
  QueueDepths depths() const override { return call_->depths; }
  std::shared_ptr<const Credential> credential() const override { return Credential::OfEveryone(); }
  Status Accept(CompletionQueue* send_queue, CompletionQueue* receive_queue,
                const std::string& reply, std::unique_ptr<QueuePair>* queue_pair) override;
  void Reject(const std::string& reason) override {
    if (std::exchange(answered_, true)) return;
    SimRefuse(network_, host_, call_,
              Status::InvalidArgument(reason.substr(0, Device::kMaxReasonBytes)));
  }

 private:
  SimNetwork* const network_;
  const SimHost host_;
  const std::shared_ptr<SimKeys> keys_;
  const std::shared_ptr<SimCall> call_;
  bool answered_ = false;
};

Status SimIncomingConnection::Accept(CompletionQueue* send_queue, CompletionQueue* receive_queue,
                                     const std::string& reply,
                                     std::unique_ptr<QueuePair>* queue_pair) {
  if (answered_) return Status::InvalidArgument("the connection was answered before");
  if (reply.size() > Device::kMaxPrivateData) {
    return Status::InvalidArgument("private data of " + std::to_string(reply.size()) + " bytes");
  }
  network_->simulation()->Yield();
  answered_ = true;
  if (call_->abandoned || network_->ended(call_->host)) {
    return Status::Unavailable(call_->caller + ": does not wait any more");
  }
  auto connection = std::make_shared<SimConnection>();
  auto near = std::make_shared<SimEnd>(network_, host_, call_->depths, keys_, call_->caller);
  auto far = std::make_shared<SimEnd>(network_, call_->host, call_->depths, call_->keys,
                                      "sim:" + std::to_string(host_));
  near->Pair(far);
  far->Pair(near);
  connection->ends = {far, near};
  network_->AddConnection(connection);
  call_->connection = connection;
  call_->reply = reply;
  *queue_pair =
      std::make_unique<SimQueuePair>(connection, near, static_cast<SimCompletionQueue*>(send_queue),
                                     static_cast<SimCompletionQueue*>(receive_queue));
  Answer(network_, host_, call_, SimCall::State::kAccepted);
  return Status::OK();
}

}  // namespace

void SimRefuse(SimNetwork* network, SimHost from, const std::shared_ptr<SimCall>& call,
               const Status& why) {
  call->refusal = why;
  Answer(network, from, call, SimCall::State::kRefused);
}

Status SimListener::Accept(std::chrono::nanoseconds timeout,
                           std::unique_ptr<IncomingConnection>* incoming) {
  Simulation* const simulation = network_->simulation();
  simulation->Yield();
  if (state_->waiting.empty() && !state_->closed) {
    simulation->Park(state_.get(), timeout, "callers");
  }
  if (state_->closed) return Status::ShutdownInProgress(address_ + ": closed");
  if (state_->waiting.empty()) return Status::TimedOut(address_ + ": nobody called");
  *incoming = std::make_unique<SimIncomingConnection>(network_, state_->host, keys_,
                                                      std::move(state_->waiting.front()));
  state_->waiting.pop_front();
  return Status::OK();
}

void SimListener::Close() {
  if (std::exchange(state_->closed, true)) return;
  network_->RemoveListener(name_);
  for (const auto& call : std::exchange(state_->waiting, {})) {
    SimRefuse(network_, state_->host, call, Status::Unavailable(address_ + ": closed"));
  }
  network_->simulation()->Unpark(state_.get(), /*all=*/true);
}

}  // namespace nacre::rdma
