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

#include "nacre/status.h"
#include "pool/connect/node_knock.h"
#include "pool/connect/node_link.h"
#include "pool/connect/node_probe.h"
#include "pool/connect/request_channel.h"
#include "rdma/transport.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre::pool {

struct Fabric;

/// Holds the lifelines of one client to all nodes of its pool. A thread of its own sleeps until one
/// of them ends, takes that node for down at once, and tries to reach it again with back-off, so
/// that no caller ever waits for a dead node. When the address of a node that is lost answers
/// again, the thread takes the node that is there now into the pool, in a slot of its own.
///
/// A node that is suspected though its lifeline stands may be stopped, or its network gone: it is
/// down until it has answered a request. A node that is to be reached is first asked by a thread of
/// its own (node_knock.h), so silent nodes hold up neither one another nor the thread.
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
  /// another reason. Silent nodes are waited for together, sixteen at a time.
  Status ConnectAll();
  void Start();
  /// Ends the thread: no node is welcomed any more. Idempotent; the rest may still be called.
  void Stop();

  /// Connects a node that was not needed so far. OK when it is up.
  Status AwaitConnected(NodeLink* link) EXCLUDES(mutex_);
  /// See PoolClient.
  void AddNode(const std::string& address) EXCLUDES(mutex_);
  /// The same, and waits until the node has joined, or could not be reached once.
  void AwaitNode(const std::string& address, Deadline deadline) EXCLUDES(mutex_);
  /// A connection to `link` failed with `why`: see NodeLink::Suspect.
  void Suspect(NodeLink* link, const Status& why);

  /// Has the thread look at what is due: a node has become slow.
  void Wake() { queue_->Wake(); }

  /// See PoolClient.
  Status JoinRefusal() const EXCLUDES(mutex_);

  /// Gives the node up, though it may live: it may join as another one.
  void Lose(NodeLink* link, const Status& why);

  /// While there are databases, a node whose lifeline ended is welcomed when it is reached again.
  void AddDatabase() { databases_.fetch_add(1, std::memory_order_relaxed); }
  void RemoveDatabase() { databases_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  /// What is done, over and over, to reach one node.
  struct Attempts {
    std::chrono::nanoseconds back_off{0};
    std::chrono::nanoseconds patience{0};  ///< Patience with the next one.
    uint64_t act_at_nanos = 0;             ///< When that is due.
    std::unique_ptr<NodeKnock> knock;      ///< Under way; null: none is.
  };
  enum class Answer : uint8_t { kNone, kYes, kNo };
  struct Lifeline {
    NodeLink* link = nullptr;
    std::unique_ptr<rdma::QueuePair> queue_pair;
    Attempts attempts;
    std::unique_ptr<NodeProbe> probe;  ///< For a slow node; null: none is under way.
    /// Number of its queue pair: in the ids of requests, above the node's number.
    uint64_t number = 0;
    bool failed = false;  ///< A completion said so.
    bool suspected = false;
    uint64_t silent_at_nanos = 0;  ///< When a suspected node counts as silent; 0: it does.
    bool followed = false;         ///< kLost, and its address is looked after.
  };
  /// An address that is to be a node of the pool.
  struct Candidate {
    std::string address;
    Attempts attempts;
  };

  /// What came of ConnectAll so far.
  struct Connecting {
    bool connected = false;  ///< To any node.
    Status failure;          ///< Failure of the first node that was lost.

    /// Takes what came of one node, which is lost if it could not be reached. Any other failure
    /// ends all.
    Status Take(NodeMonitor* monitor, Lifeline* lifeline, const Status& s);
  };

  NodeMonitor(Fabric* fabric, Welcome welcome);

  /// Connects to nodes of which one has been silent: to each as soon as it answers.
  Status ConnectSlow(std::vector<Lifeline*>* slow, Connecting* result);
  /// To a node that answers.
  Status ConnectAgain(Lifeline* lifeline);
  void Loop();
  void TakeCompletions();
  /// Does what is due for one node; returns when to look again.
  uint64_t Step(Lifeline* lifeline);
  /// The same for one that is up and slow.
  uint64_t StepSlow(Lifeline* lifeline);
  /// The same for one that is down while its lifeline stands.
  uint64_t StepSuspected(Lifeline* lifeline);
  /// The same for one that has no lifeline and should.
  uint64_t StepUnreached(Lifeline* lifeline);
  void CutOff(Lifeline* lifeline, const Status& why);
  /// Those nodes that do not know all features that are on by now.
  void CutOffThoseWithout();
  /// Whether the node at `address` has answered since this was called first; has it asked if that
  /// is due. `*why`: of kNo.
  Answer Knock(Attempts* attempts, const std::string& address, uint64_t instance_id, Status* why);
  /// When to look after kNone.
  uint64_t NextLook(const Attempts& attempts) const;
  /// After a failure with `why`.
  void BackOff(Attempts* attempts, const Status& why);
  /// Ends the lifeline: what the node has vouched for (Databases::ConfirmOwner) does not count any
  /// more. The link is not up.
  void HangUp(Lifeline* lifeline);
  Status TryConnect(Lifeline* lifeline, Deadline deadline);
  /// Lost nodes and those of AddNode become candidates.
  void FindCandidates() EXCLUDES(mutex_);
  void Follow(const std::string& address);
  /// Whether a node of the pool has this address, or had it.
  bool Knows(const std::string& address) const;
  /// Lets those join that can be reached; returns when to look again.
  uint64_t TryCandidates();
  /// Takes a candidate that has answered into the pool.
  Status Join(const Candidate& candidate);
  /// `*channel` is for the first request to the node.
  Status Introduce(Lifeline* lifeline, Deadline deadline, std::unique_ptr<RequestChannel>* channel);

  Fabric* const fabric_;
  const ClientContext* const context_;
  const Welcome welcome_;
  std::unique_ptr<rdma::CompletionQueue> queue_;
  std::unique_ptr<rdma::MemoryRegion> region_;
  /// Used by the thread once it runs. Indexed by slot: those that were taken and perhaps one more.
  std::deque<Lifeline> lifelines_;
  std::vector<Candidate> candidates_;
  size_t knocks_ = 0;                ///< Under way.
  FeatureSet checked_features_ = 0;  ///< All nodes that are up know them.
  std::atomic<int> databases_{0};
  std::atomic<bool> stopping_{false};

  mutable Mutex mutex_;
  CondVar connected_{&mutex_};
  /// By node, whether a caller waits for a first connection.
  std::vector<bool> wanted_ GUARDED_BY(mutex_);
  std::vector<std::string> added_ GUARDED_BY(mutex_);
  Status join_refusal_ GUARDED_BY(mutex_);
  std::set<std::string> not_reached_ GUARDED_BY(mutex_);  ///< Candidates, tried at least once.
  Thread thread_;
};

}  // namespace nacre::pool
