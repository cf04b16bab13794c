#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "rdma/transport.h"
#include "tests/support/sim_transport/completion_queue.h"
#include "tests/support/sim_transport/network.h"
#include "tests/support/sim_transport/region.h"

namespace nacre::rdma {

/// A request from its posting to its completion.
struct SimRequest {
  uint64_t id = 0;
  Opcode opcode = Opcode::kRead;
  uint8_t flags = 0;
  LocalBuffer local{};
  RemoteBuffer remote{};
  uint64_t first_operand = 0;   ///< Expected, or the addend.
  uint64_t second_operand = 0;  ///< Desired.
  uint32_t immediate = 0;
  /// What requests write or send that go on without their queue pair.
  std::vector<char> payload{};
  /// The part of a long read that was taken early.
  uint32_t early_begin = 0;
  uint32_t early_end = 0;
  CompletionCode code = CompletionCode::kSuccess;
};

/// One end of a connection: its requests on their way, and where messages arrive.
///
/// A request takes effect at the far end at a time of its own, no earlier than those before it; its
/// answer comes back at another. Between the two it has taken place unknown to its poster. Either
/// may be held up by a network that is blocked, and is then given up after a while. A long write or
/// read may be seen in part before it is done.
///
/// Lives as long as something of it is on its way; belongs to events of the simulation.
class SimEnd : public std::enable_shared_from_this<SimEnd> {
 public:
  SimEnd(SimNetwork* network, SimHost host, QueueDepths depths, std::shared_ptr<SimKeys> keys,
         std::string peer_name);

  void Pair(const std::shared_ptr<SimEnd>& peer) {
    peer_ = peer;
    peer_host_ = peer->host();
  }
  /// Sends completions there from now on. The queues outlive the queue pair.
  void Attach(QueuePair* queue_pair, SimCompletionQueue* send_queue,
              SimCompletionQueue* receive_queue);
  /// The queue pair goes; what it had posted still takes place, and then the peer hears of its end.
  void Detach();
  /// The process is no more; what it had posted takes place up to a point.
  void Die(bool told);

  Status Post(SimRequest request);
  Status PostRecv(uint64_t id, LocalBuffer to);
  void Retire(uint64_t number) { retired_ = number; }
  bool broken() const { return broken_; }
  bool peer_hung_up() const { return peer_hung_up_; }
  SimHost host() const { return host_; }
  const std::string& peer_name() const { return peer_name_; }
  bool control() const { return depths_.control; }

  /// What waited for the network goes on.
  void Resume();
  /// The peer's process, which was stopped, takes what waited in front of it.
  void Admitted();
  /// Finds out, in time, that the peer does not answer, as heartbeats would.
  void Doubt();

 private:
  struct Receive {
    uint64_t id;
    LocalBuffer buffer;
  };

  uint64_t Now() const { return network_->simulation()->TrueNanos(); }
  void At(uint64_t nanos, void (SimEnd::*event)(uint64_t), uint64_t number);
  SimRequest& Numbered(uint64_t number) { return requests_[number - first_]; }
  uint64_t end_number() const { return first_ + requests_.size(); }

  // Moves a request on its way there.
  void Depart(uint64_t number);
  void ArrivePartly(uint64_t number);
  void Arrive(uint64_t number);
  /// False if the peer has no receive for it yet; it is tried again then.
  bool PeerIsReady(uint64_t number, const SimEnd& peer);
  void Execute(SimRequest* request, SimEnd* peer);
  void ExecuteRead(SimRequest* request, const SimEnd& peer);
  void ExecuteWrite(SimRequest* request, const SimEnd& peer);
  void ExecuteAtomic(SimRequest* request, const SimEnd& peer);
  void ExecuteMessage(SimRequest* request, SimEnd* peer);

  // Moves a request on its way back.
  void Return(uint64_t number);
  void Answer(uint64_t number);
  void Count(const SimRequest& request);
  /// Gives the request up after the network's patience, unless the network comes back before.
  void GiveUpLater(uint64_t number);

  // The end.
  void Close();
  void TellPeerLater();
  void TellPeer(uint64_t unused);
  void PeerClosed();
  /// All that is outstanding ends: the oldest with `first_code`, the rest flushed.
  void Break(CompletionCode first_code);
  void Complete(const SimRequest& request, CompletionCode code, uint64_t number);
  void CompleteReceive(const Receive& receive, Opcode opcode, CompletionCode code, uint32_t bytes,
                       uint32_t immediate);

  SimNetwork* const network_;
  const SimHost host_;
  const QueueDepths depths_;
  const std::shared_ptr<SimKeys> keys_;
  const std::string peer_name_;
  std::weak_ptr<SimEnd> peer_;
  SimHost peer_host_ = 0;
  QueuePair* queue_pair_ = nullptr;  ///< Null before Attach, and after Detach.
  SimCompletionQueue* send_queue_ = nullptr;
  SimCompletionQueue* receive_queue_ = nullptr;

  std::deque<SimRequest> requests_;  ///< Requests that have not completed.
  uint64_t first_ = 1;               ///< Number of the first of them.
  uint64_t executed_ = 1;            ///< The next to take effect.
  uint64_t retired_ = 0;
  uint64_t last_arrival_ = 0;
  uint64_t last_answer_ = 0;
  uint64_t not_ready_since_ = 0;  ///< When the peer was found without a receive; 0: it has one.
  uint64_t resumed_ = 0;          ///< How often what waited for the network went on.
  std::deque<Receive> receives_;

  bool failed_ = false;  ///< A request has failed; its answer is on its way.
  bool broken_ = false;
  bool gone_unreported_ = false;  ///< No request has met the peer's end yet.
  bool gave_up_ = false;          ///< Broke for want of answers.
  bool closed_ = false;           ///< No queue pair any more, or its process is dead.
  bool silent_ = false;           ///< The peer will not be told.
  bool peer_told_ = false;
  bool peer_hung_up_ = false;
};

/// Keeps both ends together for the network.
class SimConnection {
 public:
  std::array<std::shared_ptr<SimEnd>, 2> ends;
};

}  // namespace nacre::rdma
