#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/fabric.h"
#include "pool/owned_database.h"
#include "pool/wire/messages.h"
#include "table/format/placement.h"
#include "util/clock.h"
#include "util/mutex.h"

namespace nacre::pool {

class NodeRequests;
struct ImageDelta;
struct Claims;
struct RootAnswer;
struct RootsSeen;

struct OpenDatabaseOptions {
  bool create_if_missing = false;
  bool error_if_exists = false;
  bool take_over = false;  ///< Also from an owner that lives; see Databases::Open.
  /// Until SetNeedsLostNodes is called, no node that comes back gives up what it has of the
  /// database: what is needed is not known yet.
  bool keep_lost_nodes = false;
};

/// What `Open` found or made.
struct DatabaseLease {
  uint64_t database_id = 0;
  uint64_t epoch = 0;
  bool existed = false;  ///< A root was found.
  std::string root;      ///< What the last owner published; empty for a new database.
  /// Offsets of the slabs that each live node holds for the database.
  std::map<NodeId, std::vector<uint64_t>> slabs;
};

/// What is known of a database to a client that does not own it.
struct DatabaseRoot {
  bool exists = false;
  uint64_t database_id = 0;
  uint64_t epoch = 0;             ///< Epoch of the owner that wrote the value.
  uint64_t version = 0;           ///< Grows with each root of that owner.
  bool owned = false;             ///< Some client has it open.
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

/// The owners of a pool's databases, and their roots: the register that a quorum of the nodes keeps
/// for each (pool/wire/root_register.h), and those databases that this client owns.
///
/// Thread safety: all methods may be called from many threads at once.
class Databases {
 public:
  /// `fabric` and `requests` outlive this.
  Databases(Fabric* fabric, NodeRequests* requests) : fabric_(fabric), requests_(requests) {}
  Databases(const Databases&) = delete;
  Databases& operator=(const Databases&) = delete;

  // ---- All databases ------------------------------------------------------------------------

  /// Reads the database's root; it may be one that is being published. `NotFound` if there is none,
  /// `Unavailable`, naming nodes, if too few of them answer.
  Status Find(const std::string& name, DatabaseRoot* root);
  /// What each node that answers has of it, so that one can compare them. A node that does not know
  /// the database is among them, with `exists` false.
  Status ReadRootCopies(const std::string& name, std::vector<RootCopy>* copies);
  /// Makes this client the owner, with the next epoch. `Busy` if another client has the database
  /// open, and lives, unless `take_over`: then that owner is fenced, with its jobs; or if another
  /// was faster. `Busy` in any case if this client has it open. `InvalidArgument` as for DB::Open,
  /// `Unavailable` if too few nodes answer. A database that is created comes to stay with its first
  /// root. A live node that cannot be claimed counts as lost to this client.
  Status Open(const std::string& name, const OpenDatabaseOptions& options, DatabaseLease* lease);
  /// Removes the database with all that it has. `NotFound`, `Busy` if it is open, `Unavailable`.
  /// What it did not get to the end of is done by the next call, or by the client that creates the
  /// name anew.
  Status Destroy(const std::string& name);

  // ---- Databases that this client owns ------------------------------------------------------

  /// Replaces the root, in one round trip; in two after the set of live nodes has changed, which
  /// become its members. Durable if OK. `Fenced` once another owner has come, `Unavailable` if too
  /// few nodes answer: then the value may be found, or not.
  Status PublishRoot(uint64_t database_id, const std::string& value);
  /// Gives up ownership on all live nodes; what was published stays. After a failure, too, the
  /// database is open here no more. `Fenced` if another owner has it already.
  Status Leave(uint64_t database_id);
  /// Whether a node has said that another owner has taken the database over. It stays so until
  /// Leave. One relaxed load as long as nothing is fenced.
  bool Fenced(uint64_t database_id) const EXCLUDES(mutex_);
  /// Takes note if a node's answer about the database is `Fenced`; answers the same.
  Status Heed(uint64_t database_id, Status answer) EXCLUDES(mutex_);
  /// The epoch that this client owns the database with; 0 if it does not.
  uint64_t EpochOf(uint64_t database_id) const EXCLUDES(mutex_);
  /// A node that was not there when the database was opened joins with nothing of it, once it is
  /// reached: what it has is given up. Unless `needs` answers true: then it stays away, so that
  /// the next opening finds it. Called by a thread of this client until Leave has returned.
  void SetNeedsLostNodes(uint64_t database_id, std::function<bool()> needs);
  /// Asks all nodes whether this client still owns the database, within `timeout`. OK: no other
  /// client can own it before kOwnerLease (pool/wire/protocol.h) after this was called, as long as
  /// `hang_ups` of the client stays what it was before. `Fenced`: another client owns it.
  /// `Unavailable`: fewer than half of the nodes that keep the root say so.
  Status ConfirmOwner(uint64_t database_id, std::chrono::nanoseconds timeout);

  /// Has the node that holds `copy` of a manifest apply `delta` to it; for what it answers, see
  /// pool/wire/manifest_image.h. `InvalidArgument` if this client does not own the database, or the
  /// replica. After `TimedOut` the node may still do it.
  Status ApplyImageUpdate(const ExtentAddr& copy, const ImageDelta& delta);

  /// A node joins: makes this client the owner of its databases there too, with nothing of them
  /// left on the node. `Busy` if that would lose data. Or it `returns` after its lifeline ended,
  /// with all that it had. By the monitor.
  Status BringTo(NodeLink* link, bool returns, Deadline deadline) EXCLUDES(membership_);

 private:
  // ---- Owned databases (databases.cc) -------------------------------------------------------

  Status CheckNotOpenHere(const std::string& name) EXCLUDES(mutex_);
  /// Null if it is not open here.
  std::shared_ptr<OwnedDatabase> Owned(uint64_t database_id) const EXCLUDES(mutex_);
  /// Claims the database, and settles it as open here.
  Status OpenClaimed(const control::ClaimDatabase& claim, const RootsSeen& seen,
                     DatabaseLease* lease) REQUIRES(membership_);
  /// Removes what `seen` is of; see Destroy.
  Status Remove(const std::string& name, const RootsSeen& seen, bool take_over)
      REQUIRES(membership_);
  Status Confirm(OwnedDatabase* database, Deadline deadline) EXCLUDES(database->voting);
  Status BringAll(NodeLink* link, bool returns, Deadline deadline) REQUIRES(membership_);

  // ---- The register of roots (database_roots.cc) --------------------------------------------

  /// `Unavailable`, naming nodes, if too few of them answer.
  Status ReadRoots(const std::string& name, RootsSeen* seen);
  /// Claims the name on all nodes that answered; `Busy` if another was there first, `Unavailable`
  /// if too few grant it. A claim that fails is given up.
  Status Claim(const control::ClaimDatabase& claim, const RootsSeen& seen, Claims* claims);
  void ClaimOnce(const control::ClaimDatabase& claim, const RootsSeen& seen,
                 const std::vector<NodeId>& nodes, Claims* claims);
  /// Gives a claim up; if `abandoned`, as if it had never been.
  Status Release(const control::ClaimDatabase& claim, bool abandoned);
  /// The claim holds: what it found is written again if it may not have been acknowledged, or if a
  /// node lacks it, which would take the database for one that is being made.
  Status Settle(const Claims& claims, OwnedDatabase* database) EXCLUDES(database->publishing);
  Status Publish(OwnedDatabase* database, const std::string& value) EXCLUDES(database->publishing);
  /// Writes a root with these members to all live nodes. Tries until at least half of the members
  /// have it, or the operation's time is over.
  Status WriteRoot(OwnedDatabase* database, control::Root root) REQUIRES(database->publishing);
  Status TryWriteRoot(OwnedDatabase* database, const control::Root& root)
      REQUIRES(database->publishing);
  /// Instances of the nodes that the next root names, sorted.
  std::vector<uint64_t> NextMembers(const OwnedDatabase& database) const
      REQUIRES(database.publishing);
  /// Each address counts once: a node that came back has several numbers.
  int PoolSize() const;
  /// "shm:a: connection lost; ..." of those without an answer.
  std::string WhyMissing(const std::vector<RootAnswer>& answers) const;

  Fabric* const fabric_;
  NodeRequests* const requests_;
  /// Held while databases are opened and closed, and while nodes join: each node has all of them.
  Mutex membership_ ACQUIRED_BEFORE(mutex_);
  mutable Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<OwnedDatabase>> owned_ GUARDED_BY(mutex_);  ///< By id.
  std::atomic<bool> any_fenced_{false};  ///< Relaxed: OwnedDatabase::fenced says of which.
};

}  // namespace nacre::pool
