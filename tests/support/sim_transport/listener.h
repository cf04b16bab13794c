#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "rdma/transport.h"
#include "tests/support/sim_transport/connection.h"
#include "tests/support/sim_transport/network.h"

namespace nacre::rdma {

/// A request to connect, seen from both sides.
struct SimCall {
  enum class State : uint8_t { kWaiting, kAccepted, kRefused };

  SimHost host = 0;  ///< The host of the connecting side.
  std::string caller;
  std::string private_data;
  std::string secret;
  std::shared_ptr<SimKeys> keys;
  QueueDepths depths;
  State state = State::kWaiting;
  bool abandoned = false;
  Status refusal;
  std::string reply;
  std::shared_ptr<SimConnection> connection;  ///< Its first end is the caller's.
};

/// Requests to connect that wait for Accept.
struct SimListenerState {
  static constexpr size_t kMaxWaiting = 128;

  SimHost host = 0;
  std::string secret;
  std::deque<std::shared_ptr<SimCall>> waiting;
  bool closed = false;
};

class SimListener final : public Listener {
 public:
  SimListener(SimNetwork* network, std::string address, std::shared_ptr<SimListenerState> state,
              std::shared_ptr<SimKeys> keys)
      : network_(network),
        address_("sim:" + address),
        name_(std::move(address)),
        state_(std::move(state)),
        keys_(std::move(keys)) {}
  ~SimListener() override { Close(); }

  Status Accept(std::chrono::nanoseconds timeout,
                std::unique_ptr<IncomingConnection>* incoming) override;
  void Close() override;
  const std::string& address() const override { return address_; }

 private:
  SimNetwork* const network_;
  const std::string address_;
  const std::string name_;
  const std::shared_ptr<SimListenerState> state_;
  const std::shared_ptr<SimKeys> keys_;
};

/// The caller hears of it after a while, if the network lets it.
void SimRefuse(SimNetwork* network, SimHost from, const std::shared_ptr<SimCall>& call,
               const Status& why);

}  // namespace nacre::rdma
