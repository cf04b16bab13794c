#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/sim_transport/region.h"
#include "util/simulation.h"

namespace nacre::rdma {

class SimConnection;
struct SimCall;
struct SimListenerState;

/// A simulated process, and the machine with an adapter of its own that it runs on.
using SimHost = uint32_t;

struct SimNetworkOptions {
  /// The latency of a packet between hosts, before it is delayed for its size or by slowness.
  std::chrono::nanoseconds latency_min{1'000};
  std::chrono::nanoseconds latency_max{6'000};
  double nanos_per_byte = 0.1;
  /// What is awaited for so long of a host that does not answer is given up.
  std::chrono::nanoseconds patience{std::chrono::milliseconds(500)};
};

/// The network of a simulation: its listeners, how long packets take, and what goes wrong. There is
/// one at a time, while a simulation runs; devices of scheme `sim` find it by `Current`.
///
/// Thread safety: as Simulation.
class SimNetwork {
 public:
  SimNetwork(Simulation* simulation, const SimNetworkOptions& options);
  ~SimNetwork();
  SimNetwork(const SimNetwork&) = delete;
  SimNetwork& operator=(const SimNetwork&) = delete;

  /// Null if there is none.
  static SimNetwork* Current() { return current_; }

  // ---- Faults ----------------------------------------------------------------------------------

  /// Blocks everything from one host to the other, but not back: what is under way waits, and is
  /// given up after `patience`.
  void Block(SimHost from, SimHost to);
  void Unblock(SimHost from, SimHost to);
  void UnblockAll();
  bool blocked(SimHost from, SimHost to) const { return blocked_.contains({from, to}); }
  /// What it sends and receives takes `factor` times as long; 1 is usual.
  void SetSlowness(SimHost host, uint64_t factor) { slowness_[host] = factor; }
  /// One in `odds` packets that it sends or receives takes `least` at least, and one in n of these
  /// n times as long, up to 64 times: a tail that is heavy. 0: none does.
  void SetTail(SimHost host, uint64_t odds, std::chrono::nanoseconds least);
  /// Holds what others send to the host until Admit, as its process is stopped. This models
  /// transports where the process, not an adapter, stores what arrives (tcp). Held requests wait
  /// even if the queue pair that sent them is gone.
  void Hold(SimHost host) { held_.insert(host); }
  /// What waited is stored, soon, in an order of chance among connections.
  void Admit(SimHost host);
  bool held(SimHost host) const { return held_.contains(host); }
  /// Its process is dead. What it had posted takes effect up to a point. `told`: its peers hear of
  /// it at once, as when a process ends; else they find out, as when a machine fails.
  void EndHost(SimHost host, bool told);
  /// Calls `then`, as an event, while the `count`-th request that the host posts from now on is on
  /// its way, or just after: between a step and the next is where a crash hurts. The latest call
  /// for a host counts; null: never.
  void AtRequest(SimHost host, uint64_t count, std::function<void()> then);
  /// Calls `then` when the host is about to post its `count`-th write of at least `bytes` from now
  /// on: what it stops there writes as soon as it goes on, whatever happened meanwhile. The latest
  /// call for a host counts; null: never.
  void BeforeWrite(SimHost host, uint64_t bytes, uint64_t count, std::function<void()> then);
  /// Damages one bit of the host's largest region of memory; false if it is not that large.
  bool FlipBit(SimHost host, uint64_t offset, int bit);

  // ---- For the backend -------------------------------------------------------------------------

  Simulation* simulation() const { return simulation_; }
  const SimNetworkOptions& options() const { return options_; }
  void Posted(SimHost host);
  void Writing(SimHost host, uint64_t bytes);
  /// The latency of a packet with so many bytes, drawn anew.
  uint64_t Latency(SimHost from, SimHost to, uint64_t bytes);
  bool ended(SimHost host) const { return ended_.contains(host); }
  /// Keys of a device of that host.
  void AddKeys(SimHost host, const std::shared_ptr<SimKeys>& keys);
  /// Both ends of a connection live as long as it does.
  void AddConnection(const std::shared_ptr<SimConnection>& connection);
  /// False if the address is taken.
  bool AddListener(const std::string& address, const std::shared_ptr<SimListenerState>& listener);
  void RemoveListener(const std::string& address) { listeners_.erase(address); }
  /// Delivers the call to the listener there, if it gets through.
  void Call(const std::string& address, const std::shared_ptr<SimCall>& call);
  /// An address that is not in use.
  std::string NewAddress() { return '@' + std::to_string(++addresses_made_); }

 private:
  struct Armed {
    uint64_t left = 0;
    uint64_t bytes = 0;  ///< Smaller requests do not count.
    std::function<void()> then{};
  };

  /// Those that have a queue pair left, in the order of their making.
  std::vector<std::shared_ptr<SimConnection>> Connections();
  void TakeCall(const std::string& address, const std::shared_ptr<SimCall>& call);

  static inline SimNetwork* current_ = nullptr;

  Simulation* const simulation_;
  const SimNetworkOptions options_;
  std::set<std::pair<SimHost, SimHost>> blocked_;
  std::set<SimHost> held_;
  std::map<SimHost, uint64_t> slowness_;
  struct Tail {
    uint64_t odds = 0;
    uint64_t least_nanos = 0;
  };
  std::map<SimHost, Tail> tails_;
  std::set<SimHost> ended_;
  std::map<SimHost, Armed> armed_;
  std::map<SimHost, Armed> before_writes_;
  std::multimap<SimHost, std::weak_ptr<SimKeys>> keys_;
  std::map<uint64_t, std::weak_ptr<SimConnection>> connections_;
  uint64_t connections_made_ = 0;
  std::map<std::string, std::shared_ptr<SimListenerState>> listeners_;
  uint64_t addresses_made_ = 0;
};

}  // namespace nacre::rdma
