#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jobs/compaction_job.h"
#include "jobs/flush_job.h"
#include "jobs/rebuild_job.h"
#include "jobs/scrub_job.h"
#include "nacre/status.h"
#include "pool/space/job_end.h"
#include "rdma/transport.h"
#include "table/format/placement.h"
#include "util/clock.h"
#include "util/uri.h"

namespace nacre::pool {

struct CheckpointDelta;
struct DatabaseReport;
struct Directions;
struct Fabric;
struct KnownDatabase;

/// Of `max_queue_pairs_per_node`, those for streams; the rest is for point reads.
constexpr int StreamLimit(int max_queue_pairs_per_node) {
  constexpr int kMost = 8;
  if (max_queue_pairs_per_node == 0) return kMost;
  return std::clamp(max_queue_pairs_per_node / 4, 1, kMost);
}

/// One read of a few bytes by the calling thread.
struct PointRead {
  RemoteAddr from;
  uint32_t length = 0;
  const char* data = nullptr;  ///< Out: where the bytes landed, if `status` is OK.
  Status status;               ///< Out. `Unavailable` or `TimedOut`, naming the node.
};

/// What a node tells of itself.
/// Whether a node's memory outlives its process (MemoryNodeOptions::region_file).
enum class Keeping : uint8_t {
  kNone = 0,
  kEmpty = 1,  ///< It does, and began empty with this start.
  kWarm = 2,   ///< It does, and was there when this process started.
};

struct NodeStats {
  std::string address;
  uint64_t instance_id = 0;
  uint64_t region_bytes = 0;
  uint64_t slab_bytes = 0;
  uint64_t slabs_total = 0;
  uint64_t slabs_leased = 0;
  uint64_t bytes_read = 0;  ///< By this node from its peers and from compute nodes.
  uint64_t bytes_written = 0;
  uint64_t requests = 0;
  uint64_t compactions = 0;
  uint64_t compactions_failed = 0;
  uint64_t compaction_bytes_read = 0;
  uint64_t compaction_bytes_written = 0;
  uint64_t compaction_cpu_nanos = 0;
  uint64_t flushes = 0;  ///< Key ranges of MemTables that this node made tables of.
  uint64_t flush_bytes_written = 0;
  uint64_t flush_cpu_nanos = 0;
  uint64_t rebuilt_bytes = 0;  ///< Of fragments that this node made anew.
  uint64_t rebuild_cpu_nanos = 0;
  uint64_t scrubbed_bytes = 0;  ///< Of fragments, checked against their checksums.
  uint64_t connections = 0;
  uint64_t uptime_nanos = 0;
  uint64_t requests_malformed = 0;
  uint64_t databases = 0;
  uint64_t peers_refused = 0;     ///< Without the secret, of another version, or silent.
  uint64_t frames_malformed = 0;  ///< By the transport; each ended a connection.
  std::string domain{};           ///< See MemoryNodeOptions.
  Keeping keeping = Keeping::kNone;
};

struct OpenDatabaseOptions {
  bool create_if_missing = false;
  bool error_if_exists = false;
  bool take_over = false;  ///< Also from an owner that lives; see PoolClient::OpenDatabase.
  /// Until SetNeedsLostNodes is called, no node that comes back gives up what it has of the
  /// database: nobody knows yet what is needed.
  bool keep_lost_nodes = false;
};

/// What `OpenDatabase` found or made.
struct DatabaseLease {
  uint64_t database_id = 0;
  uint64_t epoch = 0;
  bool existed = false;  ///< A root was found.
  std::string root;      ///< What the last owner published; empty for a new database.
  /// Offsets of the slabs that each live node holds for the database.
  std::map<NodeId, std::vector<uint64_t>> slabs;
};

/// What is known of a database to who does not own it.
struct DatabaseRoot {
  bool exists = false;
  uint64_t database_id = 0;
  uint64_t epoch = 0;             ///< Of the owner that wrote the value.
  uint64_t version = 0;           ///< Grows with each root of that owner.
  bool owned = false;             ///< Somebody has it open.
  std::vector<uint64_t> members;  ///< Instance ids of the nodes that count.
  bool members_change = false;    ///< Those that counted before do so, too, for a moment.
  std::string value;
};

/// The root of a database as one node has it.
struct RootCopy {
  NodeId node = kNoNode;
  uint64_t instance_id = 0;
  DatabaseRoot root;  ///< `owned`: that node has heard nothing of its owner's end.
};

/// Most node slots of one client, for as long as it lives. Each node that comes back without its
/// memory takes one.
inline constexpr size_t kMaxSlots = 4096;

struct PoolClientOptions {
  std::chrono::milliseconds operation_timeout{10'000};
  /// Slab size asked for; a node that was formatted with another one refuses. 0: any.
  uint64_t slab_bytes = 64 << 20;
  /// The node this client runs on, when a memory node uses it to reach its peers: no connection
  /// is made to it.
  NodeId self = kNoNode;
  /// Connect to every node at once: those that cannot be reached count as lost, and if none can,
  /// that is a failure. Else nodes are connected on first use.
  bool connect_all = true;
  /// Take nodes in that come back after they were lost, and those of AddNode.
  bool nodes_join = true;
  /// For nodes that join; at most kMaxSlots.
  size_t slots = kMaxSlots;
  /// As PoolOptions has it.
  int max_queue_pairs_per_node = 0;
  /// By node: the instance that must answer there; 0 or absent: any; kLostInstance: the node is
  /// lost, and not looked for. A node that was started anew counts as lost.
  std::vector<uint64_t> instance_ids;
};

inline constexpr uint64_t kLostInstance = UINT64_MAX;

/// This process's access to the nodes of a pool: sessions for point reads (see PointReader),
/// request channels for control messages, liveness.
///
/// Thread safety: all methods may be called from many threads at once.
///
/// A node whose connection breaks is reconnected on next use, with back-off, and is what it was.
/// One that comes back with another instance id, or without the databases of this client, has lost
/// what it held: it stays lost, and what answers at its address joins the pool as a new, empty
/// node, with the next NodeId. So a NodeId means the same memory for ever.
class PoolClient {
 public:
  /// `device` is used for everything and not owned.
  static Status Connect(const Uri& pool, const PoolClientOptions& options, rdma::Device* device,
                        Clock* clock, std::unique_ptr<PoolClient>* client);
  ~PoolClient();

  /// Nodes so far, lost ones included; grows as nodes join.
  int node_count() const;
  /// "shm:/run/n0.sock".
  const std::string& node_address(NodeId node) const;
  /// Has the node at `address` ("shm:/run/n6.sock", with the scheme of the pool) join when it can
  /// be reached; returns at once. Nothing happens if it is in the pool or wanted already.
  void AddNode(const std::string& address);
  /// Has the nodes join that were added to the pool (Directions::added_addresses), as those that
  /// are reached know it, and waits until they have or could not be reached once, a second at most.
  void JoinAddedNodes();
  /// `NoSpace` as long as there is a node that is wanted and for which there is no number, or no
  /// connection, any more.
  Status JoinRefusal() const;
  /// False once the node is known to be lost. One relaxed load.
  bool alive(NodeId node) const;
  int alive_count() const;
  /// For each node the first node of its failure domain: itself if it has no label. Nodes of one
  /// domain may fail together.
  std::vector<NodeId> Domains() const;
  /// Domains that have a node which is alive, or, with `of_all`, any node.
  int domain_count(bool of_all = false) const;
  /// 0 as long as the node was never connected.
  uint64_t region_bytes(NodeId node) const;
  uint64_t instance_id(NodeId node) const;
  rdma::Device* device() const;
  Clock* clock() const;
  const PoolClientOptions& options() const;
  /// The connections, for the other parts of memnode/.
  Fabric* fabric() const;

  // ---- Requests -----------------------------------------------------------------------------

  Status Ping(NodeId node);
  Status GetStats(NodeId node, NodeStats* stats);

  /// Leases `count` slabs for `database_id`, contiguous if `contiguous`. Offsets of the slabs in
  /// the node's region. `NoSpace` if there are not that many. Without a lease, or after its end,
  /// this client cannot write there.
  Status LeaseSlabs(NodeId node, uint64_t database_id, int count, bool contiguous,
                    std::vector<uint64_t>* offsets);
  Status ReturnSlabs(NodeId node, uint64_t database_id, const std::vector<uint64_t>& offsets);

  // ---- Databases: who owns them, and their roots (root_register.h) --------------------------

  /// Reads the database's root; it may be one that is being published. `NotFound` if there is none,
  /// `Unavailable`, naming nodes, if too few of them answer.
  Status FindDatabase(const std::string& name, DatabaseRoot* root);
  /// What each node that answers has of it, for who compares them. A node that does not know the
  /// database is among them, with `exists` false.
  Status ReadRootCopies(const std::string& name, std::vector<RootCopy>* copies);
  /// Makes this client the owner, with the next epoch. `Busy` if somebody has the database open,
  /// and lives, unless `take_over`: then that owner is fenced, with its jobs; or if another was
  /// faster. `Busy` in any case if this client has it open. `InvalidArgument` as for DB::Open,
  /// `Unavailable` if too few nodes answer. A database that is created comes to stay with its first
  /// root. A live node that cannot be claimed counts as lost to this client.
  Status OpenDatabase(const std::string& name, const OpenDatabaseOptions& options,
                      DatabaseLease* lease);
  /// Replaces the root of a database that is open here, in one round trip; in two after the set of
  /// live nodes has changed, which become its members. Durable if OK. `Fenced` once another owner
  /// has come, `Unavailable` if too few nodes answer: then the value may be found, or not.
  Status PublishRoot(uint64_t database_id, const std::string& value);
  /// Gives up ownership on all live nodes; what was published stays. After a failure, too, the
  /// database is open here no more. `Fenced` if another owner has it already.
  Status LeaveDatabase(uint64_t database_id);
  /// Removes the database with all that it has. `NotFound`, `Busy` if it is open, `Unavailable`.
  /// What it did not get to the end of is done by the next one, or by who creates the name anew.
  Status DestroyDatabase(const std::string& name);
  /// Whether a node has said that another owner has taken the database over. It stays so until
  /// LeaveDatabase. One relaxed load as long as nothing is fenced.
  bool Fenced(uint64_t database_id) const;
  /// A node that was not there when the database was opened joins with nothing of it, once it is
  /// reached: what it has is given up. Unless `needs` answers true: then it stays away, so that
  /// the next opening finds it. Called by a thread of this client until LeaveDatabase has returned.
  void SetNeedsLostNodes(uint64_t database_id, std::function<bool()> needs);
  /// Asks all nodes whether this client still owns the database, within `timeout`. OK: nobody else
  /// can own it before kOwnerLease (pool/wire/protocol.h) after this was called, as long as
  /// `hang_ups` stays what it was before. `Fenced`: somebody else owns it. `Unavailable`: fewer
  /// than half of the nodes that keep the root say so.
  Status ConfirmOwner(uint64_t database_id, std::chrono::nanoseconds timeout);
  /// Grows before this client ends a lifeline: the node takes that for its end, and lets others in
  /// at once. As long as this client lives.
  const std::atomic<uint64_t>& hang_ups() const;
  /// Grows whenever a node joins or is lost: owners then publish their roots again, so that the
  /// members are nodes that live.
  uint64_t membership_changes() const;

  /// Runs the job on `node`; the calling thread sleeps until the node wakes it. While it runs,
  /// liveness of the node is watched: `Unavailable` or `TimedOut` soon after its death or silence.
  /// `*cancelled` (may be null) set: the job is aborted, with `Aborted`. `Busy`: the node has too
  /// many jobs already. `NotSupported`: it does not know the comparator. However it ends, `*end`
  /// (null: nobody uses the space again) says where the job may still write.
  Status Compact(NodeId node, const CompactionJob& job, const std::atomic<bool>* cancelled,
                 CompactionResult* result, JobEnd* end = nullptr);

  /// Has `node` make a table of updates in the log. Waits, and fails, as Compact does; `Corruption`
  /// if the log is not as the job says, `Busy` while the node has no thread for it.
  Status Flush(NodeId node, const FlushJob& job, const std::atomic<bool>* cancelled,
               CompactionResult* result, JobEnd* end = nullptr);

  /// Has `node` make fragments of tables anew; `result` tells of each table how that went. Waits,
  /// and fails, as Compact does.
  Status Rebuild(NodeId node, const RebuildJob& job, const std::atomic<bool>* cancelled,
                 RebuildResult* result, JobEnd* end = nullptr);

  /// Has `node` check fragments that it holds against their checksums. Waits, and fails, as Compact
  /// does.
  Status Scrub(NodeId node, const ScrubJob& job, const std::atomic<bool>* cancelled,
               ScrubResult* result);

  /// Asks the nodes that are open in each of `jobs` to end it there, and closes those that have, or
  /// that are lost. Bounded by a second or so; who does not answer stays open.
  void EndJobs(uint64_t database_id, std::vector<JobEnd>* jobs);

  /// Whether writes that were given up may still be stored on the node: space there must not be
  /// used again before this is false (pool/connect/abandoned_writes.h). One load as a rule.
  bool MayStillWriteOn(NodeId node) const;
  /// Has the nodes end the connections of such writes. Bounded by a second or so; MayStillWriteOn
  /// tells of those that have not answered.
  void EndAbandonedWrites();

  /// Has the node that holds `copy` of a manifest apply `delta` to it; for what it answers, see
  /// pool/wire/manifest_image.h. `InvalidArgument` if this client does not own the database, or the
  /// copy. After `TimedOut` the node may still do it.
  Status ApplyCheckpoint(const ExtentAddr& copy, const CheckpointDelta& delta);

  /// Tells `node` how a database of this client is, and hears what is wanted of all databases;
  /// for the three, see pool/wire/database_report.h. `NotSupported` by an earlier version.
  Status ReportDatabase(NodeId node, const DatabaseReport& report, Directions* directions);
  /// The databases that `node` knows, and what is wanted of them.
  Status ListDatabases(NodeId node, std::vector<KnownDatabase>* databases, Directions* directions);
  /// Has `node` take over `wanted` unless it has directions of the same or a later version.
  /// `*directions`: what it has now.
  Status SetDirections(NodeId node, const Directions& wanted, Directions* directions);

  /// As LeaseSlabs for `count` contiguous slabs, but rather the `extend_count` ones from
  /// `extend_at` on, if they are free: they join the free end of a slab that the caller has.
  Status LeaseContiguous(NodeId node, uint64_t database_id, int count, uint64_t extend_at,
                         int extend_count, std::vector<uint64_t>* offsets);

 private:
  friend class PointReader;
  class Rep;
  PoolClient();
  std::unique_ptr<Rep> rep_;
};

class ClientSession;

/// What the calling thread reads records with: its own queue pairs, or, if the pool's are bounded,
/// those that it has the turn of as long as this lives. A thread has one at a time, on its stack.
class PointReader {
 public:
  static constexpr size_t kMaxReadsAtOnce = 128;
  static constexpr uint64_t kMaxStarted = 8;

  explicit PointReader(PoolClient* client);
  /// Awaits what was started and not finished, which is so if its caller throws.
  ~PointReader() {
    while (started_ > 0) [[unlikely]] FinishReads();
    if (turn_ != nullptr) [[unlikely]]
      EndTurn();
  }
  PointReader(const PointReader&) = delete;
  PointReader& operator=(const PointReader&) = delete;

  /// Performs all of `reads` with one doorbell a node, in flight together; returns when each has
  /// its status. The bytes land in registered memory and stay until the next call, and no longer
  /// than this object. No allocation, no lock, no shared write.
  void ReadAll(std::span<PointRead> reads);

  /// A pipeline of reads: work goes on between the start of some and their end. Begins `reads` (at
  /// most kMaxReadsAtOnce), which stay where they are until FinishReads has ended them; at most
  /// kMaxStarted calls are ahead of it.
  void StartReads(std::span<PointRead> reads);
  /// Waits until each of the reads that were started first, and are not finished, has its status.
  /// Their bytes stay until the next FinishReads or ReadAll; no ReadAll while reads are started.
  void FinishReads();

 private:
  struct Turn;
  friend class PoolClient;

  void EndTurn();
  void Fail(std::span<PointRead> reads) const;

  ClientSession* session_ = nullptr;  ///< Null: there is none, for the reason below.
  Turn* turn_ = nullptr;              ///< Null: the session is the thread's own.
  uint64_t started_ = 0;              ///< Calls of StartReads that FinishReads has not ended.
  Status failure_;
};

}  // namespace nacre::pool
