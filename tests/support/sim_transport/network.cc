#include "tests/support/sim_transport/network.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "rdma/extra_transport.h"
#include "tests/support/sim_transport/connection.h"
#include "tests/support/sim_transport/device.h"
#include "tests/support/sim_transport/listener.h"

namespace nacre::rdma {

namespace {

/// One packet in so many takes up to so many times as long as usual.
constexpr uint64_t kLateOneIn = 64;
constexpr uint64_t kLateFactor = 40;

bool Joins(const SimConnection& connection, SimHost a, SimHost b) {
  const SimHost first = connection.ends[0]->host();
  const SimHost second = connection.ends[1]->host();
  return (first == a && second == b) || (first == b && second == a);
}

}  // namespace

SimNetwork::SimNetwork(Simulation* simulation, const SimNetworkOptions& options)
    : simulation_(simulation), options_(options) {
  assert(current_ == nullptr);
  current_ = this;
  static constexpr ExtraTransport kTransport{.scheme = "sim", .open = &SimDevice::Open};
  SetExtraTransport(&kTransport);
}

SimNetwork::~SimNetwork() {
  SetExtraTransport(nullptr);
  current_ = nullptr;
}

uint64_t SimNetwork::Latency(SimHost from, SimHost to, uint64_t bytes) {
  const auto least = static_cast<uint64_t>(options_.latency_min.count());
  const auto most = static_cast<uint64_t>(options_.latency_max.count());
  uint64_t nanos = least + simulation_->Uniform(most - least + 1);
  if (simulation_->OneIn(kLateOneIn)) nanos *= 1 + simulation_->Uniform(kLateFactor);
  nanos += static_cast<uint64_t>(static_cast<double>(bytes) * options_.nanos_per_byte);
  for (const SimHost host : {from, to}) {
    const auto tail = tails_.find(host);
    if (tail == tails_.end() || !simulation_->OneIn(tail->second.odds)) continue;
    constexpr uint64_t kMostTimes = 64;
    nanos += tail->second.least_nanos * (kMostTimes / (1 + simulation_->Uniform(kMostTimes)));
  }
  uint64_t slowness = 1;
  for (const SimHost host : {from, to}) {
    const auto found = slowness_.find(host);
    if (found != slowness_.end()) slowness = std::max(slowness, found->second);
  }
  return nanos * slowness;
}

void SimNetwork::SetTail(SimHost host, uint64_t odds, std::chrono::nanoseconds least) {
  if (odds == 0) {
    tails_.erase(host);
  } else {
    tails_[host] = {.odds = odds, .least_nanos = static_cast<uint64_t>(least.count())};
  }
}

// ---- Faults -------------------------------------------------------------------------------------

std::vector<std::shared_ptr<SimConnection>> SimNetwork::Connections() {
  std::vector<std::shared_ptr<SimConnection>> alive;
  for (auto it = connections_.begin(); it != connections_.end();) {
    if (auto connection = it->second.lock(); connection != nullptr) {
      alive.push_back(std::move(connection));
      ++it;
    } else {
      it = connections_.erase(it);
    }
  }
  return alive;
}

void SimNetwork::Block(SimHost from, SimHost to) {
  if (!blocked_.insert({from, to}).second) return;
  for (const auto& connection : Connections()) {
    const auto& [a, b] = connection->ends;
    if (!Joins(*connection, from, to)) continue;
    a->Doubt();
    b->Doubt();
  }
}

void SimNetwork::Unblock(SimHost from, SimHost to) {
  if (blocked_.erase({from, to}) == 0) return;
  for (const auto& connection : Connections()) {
    const auto& [a, b] = connection->ends;
    if (!Joins(*connection, from, to)) continue;
    if (blocked(a->host(), b->host()) || blocked(b->host(), a->host())) continue;
    // Nothing goes on with a machine that has failed.
    if (ended(a->host()) || ended(b->host())) continue;
    a->Resume();
    b->Resume();
  }
}

void SimNetwork::UnblockAll() {
  const std::set<std::pair<SimHost, SimHost>> all = blocked_;
  for (const auto& [from, to] : all) Unblock(from, to);
}

void SimNetwork::Admit(SimHost host) {
  if (held_.erase(host) == 0) return;
  for (const auto& connection : Connections()) {
    for (const size_t i : {0, 1}) {
      if (connection->ends[1 - i]->host() == host) connection->ends[i]->Admitted();
    }
  }
}

void SimNetwork::EndHost(SimHost host, bool told) {
  ended_.insert(host);
  held_.erase(host);
  for (auto it = listeners_.begin(); it != listeners_.end();) {
    it = it->second->host == host ? listeners_.erase(it) : std::next(it);
  }
  for (const auto& connection : Connections()) {
    for (const size_t i : {0, 1}) {
      if (connection->ends[i]->host() != host) continue;
      connection->ends[i]->Die(told);
      if (!told) connection->ends[1 - i]->Doubt();
    }
  }
  const auto [begin, end] = keys_.equal_range(host);
  for (auto it = begin; it != end; ++it) {
    if (const auto keys = it->second.lock(); keys != nullptr) keys->Clear();
  }
}

void SimNetwork::AtRequest(SimHost host, uint64_t count, std::function<void()> then) {
  armed_[host] = {.left = count, .then = std::move(then)};
}

void SimNetwork::BeforeWrite(SimHost host, uint64_t bytes, uint64_t count,
                             std::function<void()> then) {
  before_writes_[host] = {.left = count, .bytes = bytes, .then = std::move(then)};
}

bool SimNetwork::FlipBit(SimHost host, uint64_t offset, int bit) {
  SimKey largest;
  const auto [begin, end] = keys_.equal_range(host);
  for (auto it = begin; it != end; ++it) {
    const auto keys = it->second.lock();
    if (keys != nullptr && keys->Largest().size > largest.size) largest = keys->Largest();
  }
  if (offset >= largest.size) return false;
  largest.data[offset] = static_cast<char>(largest.data[offset] ^ 1 << bit);
  return true;
}

// ---- For the backend ----------------------------------------------------------------------------

void SimNetwork::Posted(SimHost host) {
  const auto armed = armed_.find(host);
  if (armed == armed_.end() || armed->second.then == nullptr || --armed->second.left > 0) return;
  const auto most = static_cast<uint64_t>(options_.latency_max.count());
  simulation_->At(simulation_->TrueNanos() + simulation_->Uniform(most),
                  std::exchange(armed->second.then, nullptr));
}

void SimNetwork::Writing(SimHost host, uint64_t bytes) {
  const auto armed = before_writes_.find(host);
  if (armed == before_writes_.end() || armed->second.then == nullptr ||
      bytes < armed->second.bytes || --armed->second.left > 0) {
    return;
  }
  std::exchange(armed->second.then, nullptr)();
}

void SimNetwork::AddKeys(SimHost host, const std::shared_ptr<SimKeys>& keys) {
  keys_.emplace(host, keys);
}

void SimNetwork::AddConnection(const std::shared_ptr<SimConnection>& connection) {
  connections_.emplace(++connections_made_, connection);
}

bool SimNetwork::AddListener(const std::string& address,
                             const std::shared_ptr<SimListenerState>& listener) {
  return listeners_.try_emplace(address, listener).second;
}

void SimNetwork::Call(const std::string& address, const std::shared_ptr<SimCall>& call) {
  const auto found = listeners_.find(address);
  // If there is no listener, the machine itself answers so.
  const SimHost host = found == listeners_.end() ? call->host : found->second->host;
  simulation_->At(simulation_->TrueNanos() + Latency(call->host, host, 0),
                  [this, address, call] { TakeCall(address, call); });
}

void SimNetwork::TakeCall(const std::string& address, const std::shared_ptr<SimCall>& call) {
  const auto found = listeners_.find(address);
  if (found == listeners_.end()) {
    SimRefuse(this, call->host, call,
              Status::Unavailable("sim:" + address + ": nobody listens there"));
    return;
  }
  SimListenerState* const listener = found->second.get();
  if (blocked(call->host, listener->host)) return;
  if (listener->secret != call->secret) {
    SimRefuse(this, listener->host, call,
              Status::Unavailable("sim:" + address + ": does not know the pool's secret"));
    return;
  }
  if (listener->waiting.size() >= SimListenerState::kMaxWaiting) return;
  listener->waiting.push_back(call);
  simulation_->Unpark(listener, /*all=*/false);
}

}  // namespace nacre::rdma
