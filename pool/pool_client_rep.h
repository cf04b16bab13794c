#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pool/connect/lane.h"
#include "pool/pool_client.h"
#include "pool/read/client_session.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/root_register.h"
#include "util/mutex.h"
#include "util/per_thread.h"
#include "util/uri.h"

namespace nacre::pool {

/// A session that threads use one after the other.
struct PointReader::Turn {
  // A turn is taken in one function and given back in another.
  bool TryTake() NO_THREAD_SAFETY_ANALYSIS { return mutex.TryLock(); }
  void Take() NO_THREAD_SAFETY_ANALYSIS { mutex.Lock(); }
  void Give() NO_THREAD_SAFETY_ANALYSIS { mutex.Unlock(); }

  ~Turn() { delete session; }

  Mutex mutex;
  ClientSession* session = nullptr;  ///< Owned; of who has the turn.
};

/// The insides of a PoolClient, shared by the files that implement it.
class PoolClient::Rep {
 public:
  struct SessionSlot {
    ClientSession* session;  ///< Owned; of the thread that has the slot, null at first.
  };
  /// A database that this client has claimed.
  struct OwnedDatabase {
    OwnedDatabase(std::string database_name, uint64_t database_id, uint64_t owner_epoch)
        : name(std::move(database_name)), id(database_id), epoch(owner_epoch) {}

    bool NeedsLostNodes() EXCLUDES(voting);
    /// What was acknowledged last, under a version of its own, for a node that lacks it; epoch 0 if
    /// nothing was. `Busy` while another is written.
    Status NextRoot(control::Root* next) EXCLUDES(publishing);

    const std::string name;
    const uint64_t id;
    const uint64_t epoch;
    std::atomic<bool> fenced{false};              ///< A node said so.
    Mutex publishing;                             ///< One root is written at a time.
    uint64_t version GUARDED_BY(publishing) = 0;  ///< Of the root that was written last.
    control::Root root GUARDED_BY(publishing);    ///< What was acknowledged last.
    /// Of the root that was acknowledged last; empty for a new database.
    std::vector<uint64_t> members GUARDED_BY(publishing);
    uint32_t founding_nodes GUARDED_BY(publishing) = 0;  ///< Until a first root is acknowledged.
    Mutex voting;                                        ///< Never held while anybody waits.
    /// Half of these, and while members change half of the next ones, have to say that there is no
    /// other owner.
    std::vector<uint64_t> voters GUARDED_BY(voting);
    std::vector<uint64_t> next_voters GUARDED_BY(voting);
    /// See PoolClient::SetNeedsLostNodes.
    std::function<bool()> needs_lost_nodes GUARDED_BY(voting);
  };
  /// What one of several nodes that were asked at once answered.
  struct NodeAnswer {
    NodeId node = kNoNode;
    Status status;  ///< The transport's or the node's, naming the node.
    control::Reply reply;
  };
  /// What the nodes know of a name.
  struct RootsSeen {
    std::vector<RootAnswer> answers;
    bool exists = false;       ///< It has a root with a value, `root`, that was acknowledged.
    bool remains = false;      ///< It does not exist: its creation, or its end, was cut short.
    uint64_t database_id = 0;  ///< 0: no node knows the name.
    uint64_t epoch = 0;        ///< The highest that was claimed.
    bool owned = false;        ///< By another client that lives.
    control::Root root;
  };
  struct Claims {
    std::vector<RootAnswer> granted;
    std::vector<NodeId> draining;  ///< Granted, but something still writes for the former owner.
    std::vector<NodeId> refused;
    Status refusal;
  };

  ~Rep();

  /// A node joins: makes this client the owner of its databases there too, with nothing of them
  /// left on the node. `Busy` if that would lose data. Or it `returns` after its lifeline ended,
  /// with all that it had. By the monitor.
  Status BringDatabases(NodeLink* link, bool returns, Deadline deadline) EXCLUDES(membership);

  // ---- Jobs -----------------------------------------------------------------------------

  /// What a request for a job is sent for.
  struct JobCall {
    NodeId executor = kNoNode;
    uint64_t database_id = 0;
    std::vector<ExtentAddr> outputs{};  ///< All that it may write to.
    const std::atomic<bool>* cancelled = nullptr;
  };
  /// Begins a job, whose `header` it fills in, on all nodes that it concerns, has it run, and ends
  /// it; see PoolClient::Compact.
  Status RunJob(const JobCall& call, control::JobHeader* header, control::Request* request,
                control::Reply* reply, JobEnd* end);
  /// Opens the job on the nodes, and takes over the keys that they grant.
  Status BeginJob(const JobCall& call, JobEnd* end, control::JobHeader* header);
  /// The request and its answer.
  Status SendJob(const JobCall& call, uint64_t job_id, control::Request* request,
                 control::Reply* reply);
  /// See PoolClient::EndJobs.
  void EndJobs(uint64_t database_id, std::vector<JobEnd>* jobs);
  /// Who the executor is, and how it reaches the others.
  void FillHeader(const JobCall& call, control::JobHeader* header);
  Status BringAll(NodeLink* link, bool returns, Deadline deadline) REQUIRES(membership);

  // ---- Databases (pool_databases.cc, pool_roots.cc) ---------------------------------------

  /// `Unavailable`, naming nodes, if too few of them answer.
  Status ReadRoots(const std::string& name, RootsSeen* seen);
  /// Claims the name on all nodes that answered; `Busy` if another was there first, `Unavailable`
  /// if too few grant it. A claim that fails is given up.
  Status Claim(const control::ClaimDatabase& claim, const RootsSeen& seen, Claims* claims);
  void ClaimOnce(const control::ClaimDatabase& claim, const RootsSeen& seen,
                 const std::vector<NodeId>& nodes, Claims* claims);
  /// Gives a claim up; if `abandoned`, as if it had never been.
  Status Release(const control::ClaimDatabase& claim, bool abandoned);
  /// Claims the database, and settles it as open here.
  Status Open(const control::ClaimDatabase& claim, const RootsSeen& seen, DatabaseLease* lease)
      REQUIRES(membership);
  /// The claim holds: what it found is written again if it may not have been acknowledged, or if a
  /// node lacks it, which would take the database for one that is being made.
  Status Settle(const Claims& claims, OwnedDatabase* database) EXCLUDES(database->publishing);
  /// Removes what `seen` is of; see PoolClient::DestroyDatabase.
  Status Destroy(const std::string& name, const RootsSeen& seen, bool take_over)
      REQUIRES(membership);
  /// Writes a root with these members to all live nodes, and awaits a quorum.
  /// Tries until at least half of the members have it, or the operation's time is over.
  Status WriteRoot(OwnedDatabase* database, control::Root root) REQUIRES(database->publishing);
  Status TryWriteRoot(OwnedDatabase* database, const control::Root& root)
      REQUIRES(database->publishing);
  /// Instances of the nodes that the next root names, sorted.
  std::vector<uint64_t> NextMembers(const OwnedDatabase& database) const
      REQUIRES(database.publishing);
  Status Publish(OwnedDatabase* database, const std::string& value) EXCLUDES(database->publishing);
  /// See PoolClient::ConfirmOwner.
  Status Confirm(OwnedDatabase* database, Deadline deadline) EXCLUDES(database->voting);
  Status CheckNotOpenHere(const std::string& name) EXCLUDES(mutex);
  /// Null if it is not open here.
  std::shared_ptr<OwnedDatabase> Owned(uint64_t database_id) EXCLUDES(mutex);
  /// Of an answer about the database: remembers if it was `Fenced`.
  Status Heed(uint64_t database_id, Status answer) EXCLUDES(mutex);
  std::vector<NodeId> LiveNodes() const;
  /// Each address counts once: a node that came back has several numbers.
  int PoolSize() const;
  /// "shm:a: connection lost; ..." of those without an answer.
  std::string WhyMissing(const std::vector<RootAnswer>& answers) const;

  /// Before anybody reads.
  void SetReaders(int max_queue_pairs_per_node);

  /// Sends one request to `node` and waits for the answer. The status is the transport's or the
  /// node's, naming the node.
  Status Call(NodeId node, control::Request* request, control::Reply* reply);
  /// Sends a request of its own to each of the nodes, all at once, and waits for all answers.
  /// `make` is called for each node, from several threads.
  std::vector<NodeAnswer> CallAll(const std::vector<NodeId>& nodes,
                                  const std::function<void(NodeId, control::Request*)>& make) {
    return CallAll(nodes, make, fabric.context.OperationDeadline());
  }
  std::vector<NodeAnswer> CallAll(const std::vector<NodeId>& nodes,
                                  const std::function<void(NodeId, control::Request*)>& make,
                                  Deadline deadline);
  /// CallAll, again for those that answer TryAgain, until the deadline.
  std::vector<NodeAnswer> CallUntilDone(std::vector<NodeId> nodes,
                                        const std::function<void(NodeId, control::Request*)>& make);
  /// The link to `node`, connected; a failure names it.
  Status UpLink(NodeId node, NodeLink** link);
  /// A connection to the node failed in the middle of something.
  Status Lost(NodeLink* link, Status why);

  Fabric fabric;
  Uri uri;
  PerThread<SessionSlot> sessions;
  std::vector<std::unique_ptr<PointReader::Turn>> turns;  ///< Empty: each thread has its own.

  /// Held while databases are opened and closed, and while nodes join: each node has all of them.
  Mutex membership;
  Mutex mutex;
  std::map<uint64_t, std::shared_ptr<OwnedDatabase>> databases GUARDED_BY(mutex);  ///< By id.
  std::atomic<bool> any_fenced{false};  ///< One of the databases may be.
};

}  // namespace nacre::pool
