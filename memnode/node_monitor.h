#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "memnode/node_link.h"
#include "memnode/request_channel.h"
#include "nacre/status.h"
#include "rdma/transport.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/thread.h"

namespace nacre::memnode {

struct Fabric;

/// Holds the lifelines of one client to all nodes of its pool. A thread of its own sleeps until
/// one of them ends, takes that node for down at once, and tries to reach it again with back-off,
/// so that no caller ever waits for a dead node. When the address of a node that is lost answers
/// again, the thread takes the node that is there now into the pool, in a slot of its own.
///
/// Thread safety: ConnectAll before Start, both from one thread; the rest from any.
class NodeMonitor {
 public:
  /// What has to be done on a node before it joins, or, if it `returns`, before it is used again;
  /// on the thread. `NotFound`: what this client had there is gone.
  using Welcome = std::function<Status(NodeLink*, bool returns, Deadline)>;

  /// `fabric` outlives this.
  static Status Create(Fabric* fabric, Welcome welcome, std::unique_ptr<NodeMonitor>* monitor);
  /// Ends the lifelines: for the nodes this client is gone.
  ~NodeMonitor();

  /// Connects to every node. Those that cannot be reached are lost; fails if none can, or for
  /// another reason.
  Status ConnectAll();
  void Start();

  /// For a node that nobody needed so far: has it connected. OK when it is up.
  Status AwaitConnected(NodeLink* link) EXCLUDES(mutex_);
  /// See PoolClient.
  void AddNode(const std::string& address) EXCLUDES(mutex_);
  /// The same, and waits until the node has joined, or could not be reached once.
  void AwaitNode(const std::string& address, Deadline deadline) EXCLUDES(mutex_);
  /// A connection to `link` failed with `why`: see NodeLink::Suspect.
  void Suspect(NodeLink* link, const Status& why);

  /// Gives the node up, though it may live: it may join as another one.
  void Lose(NodeLink* link, const Status& why);

  /// While there are databases, a node whose lifeline ended is welcomed when it is reached again.
  void AddDatabase() { databases_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveDatabase() { databases_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  struct Lifeline {
    NodeLink* link = nullptr;
    std::unique_ptr<rdma::QueuePair> queue_pair;
    std::chrono::nanoseconds back_off{0};
    uint64_t act_at_nanos = 0;  ///< When kDown: next attempt, or end of the suspicion.
    uint64_t attempt = 0;       ///< In the ids of requests, above the node's number.
    bool failed = false;        ///< A completion said so.
    bool suspected = false;
    bool followed = false;  ///< kLost, and its address is looked after.
  };
  /// An address that is to be a node of the pool.
  struct Candidate {
    std::string address;
    std::chrono::nanoseconds back_off{0};
    std::chrono::nanoseconds patience{0};  ///< Of the next attempt.
    uint64_t act_at_nanos = 0;
  };

  NodeMonitor(Fabric* fabric, Welcome welcome);

  void Loop();
  void TakeCompletions();
  /// Does what is due for one node; returns when to look again.
  uint64_t Step(Lifeline* lifeline);
  /// Ends the lifeline: what the node has vouched for (PoolClient::ConfirmOwner) does not count any
  /// more. The link is not up.
  void HangUp(Lifeline* lifeline);
  /// Of an attempt by the thread, which has other nodes to look after.
  Deadline AttemptDeadline() const;
  Status TryConnect(Lifeline* lifeline, Deadline deadline);
  /// Lost nodes and those of AddNode become candidates.
  void FindCandidates() EXCLUDES(mutex_);
  void Follow(const std::string& address);
  /// Whether a node of the pool has this address, or had it.
  bool Knows(const std::string& address) const;
  /// Lets those join who can be reached; returns when to look again.
  uint64_t TryCandidates();
  /// Makes one attempt. If its time runs out though the node has answered, the next one has more.
  Status Join(Candidate* candidate);
  /// `*channel` is for the first who has a request for the node.
  Status Introduce(Lifeline* lifeline, Deadline deadline, std::unique_ptr<RequestChannel>* channel);

  Fabric* const fabric_;
  const ClientContext* const context_;
  const Welcome welcome_;
  std::unique_ptr<rdma::CompletionQueue> queue_;
  std::unique_ptr<rdma::MemoryRegion> region_;
  /// Of the thread, once it runs. By slot, those that were taken and perhaps one more.
  std::deque<Lifeline> lifelines_;
  std::vector<Candidate> candidates_;
  std::atomic<int> databases_{0};
  std::atomic<bool> stopping_{false};

  Mutex mutex_;
  CondVar connected_{&mutex_};
  std::vector<bool> wanted_
      GUARDED_BY(mutex_);  ///< By node: somebody waits for a first connection.
  std::vector<std::string> added_ GUARDED_BY(mutex_);
  std::set<std::string> not_reached_ GUARDED_BY(mutex_);  ///< Candidates, tried at least once.
  Thread thread_;
};

}  // namespace nacre::memnode
