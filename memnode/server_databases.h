#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "memnode/kept_state.pb.h"
#include "memnode/region_file.h"
#include "memnode/server_region.h"
#include "nacre/status.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/versions.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// The databases that one node knows: this node's part of their registers (root_register.h), and
/// what their owners report of them.
///
/// A claim in a later epoch is accepted for good, at once: the write keys of the database are
/// revoked, its jobs aborted, and from then on the former owner is answered `Fenced`. The new owner
/// may act once nothing writes for the former one any more, that is when no pin is left.
///
/// A database with a root stays when its owner leaves or is gone, also if the root says that the
/// database is no more: a node that forgot that would leave the decision to others, which may not
/// know of it. One without a root is dropped then: its slabs are freed as soon as no pin is left;
/// until then its name is Busy.
///
/// A database that was destroyed stays so: the ids of the latest ones are remembered, so that an
/// owner that was cut off meanwhile learns of it, and does not bring the database back.
///
/// Where the node's memory outlives its process, what was promised or taken over is in `file`
/// before it is answered, and before any peer can read it.
///
/// Thread safety: none (the node's I/O thread); `count` and `features_on` from any thread.
class ServerDatabases {
 public:
  /// `abort_jobs` is to end all jobs of a database soon; each has a pin. `file` may be null.
  /// `features`: what the node knows.
  ServerDatabases(ServerRegion* region, RegionFile* file, FeatureSet features,
                  std::function<void(uint64_t database_id)> abort_jobs)
      : region_(region), file_(file), features_(features), abort_jobs_(std::move(abort_jobs)) {}

  /// Takes over what is in the file, as if all owners had gone at once: they were confirmed, at the
  /// latest, when the process before ended. Slabs of databases that are no more become free.
  /// `*clean`: that process stopped by itself. `Corruption` if there is no sense in it.
  Status TakeKept(uint64_t now_nanos, bool* clean);
  /// Keeps what is about to be done to a replica of a manifest until RedoDone. If the process is
  /// killed in between, TakeKept does it. `NoSpace` if it is too much.
  Status KeepRedo(uint64_t database_id, const ExtentAddr& copy, std::string redo);
  Status RedoDone();
  /// The process is about to stop by itself.
  Status KeepAtEnd() { return Keep(/*clean=*/true); }

  void Read(const std::string& name, control::DatabaseState* state) const;
  /// The name of the database with this id; null if there is none.
  const std::string* NameOf(uint64_t database_id) const;
  /// The ids of databases with names like that (pool/wire/rights.h).
  std::set<uint64_t> IdsLike(const std::string& pattern) const;
  /// The client that has claimed the database and lives, as far as is known; 0: none.
  uint64_t OwnerOf(const std::string& name) const;
  /// Whether the database is remembered as destroyed.
  bool Destroyed(uint64_t database_id) const { return DestroyedIn(database_id) != 0; }
  /// `Fenced`: it was destroyed in that epoch or a later one. `Busy`: it is open elsewhere, or the
  /// epoch is not later than all before. `TryAgain`: the claim is accepted, and to be repeated
  /// until nothing writes for the former owner, and until that one knows that it must not answer
  /// reads any more.
  Status Claim(uint64_t client, const control::ClaimDatabase& request, uint64_t now_nanos,
               control::DatabaseState* state);
  /// OK if `client` has the database open; no other gets it for kOwnerLease then, unless the client
  /// hangs up.
  Status Confirm(uint64_t client, uint64_t database_id, uint64_t now_nanos);
  /// `Fenced` unless the client has the claim with that epoch and the version has grown.
  Status Write(uint64_t client, const control::WriteRoot& request);
  /// `TryAgain` while something writes for the owner.
  Status Release(uint64_t client, const control::ReleaseDatabase& request);
  Status Destroy(uint64_t client, const control::DestroyDatabase& request);

  /// OK if `client` has the database open; `Fenced` if another has taken it over from it, or it was
  /// destroyed; else `InvalidArgument`.
  Status CheckOwner(uint64_t client, uint64_t database_id) const;
  /// OK if its present owner is that of `epoch`; `Fenced` if that is a later one, else
  /// `InvalidArgument`.
  Status CheckEpoch(uint64_t database_id, uint64_t epoch) const;

  /// Keeps the report of the database's owner, and fills in what is wanted of it. What the owner
  /// has heard to be on goes on here, too.
  Status Report(uint64_t client, const control::ReportDatabase& report, uint64_t now_nanos,
                control::Directions* directions);
  /// Takes `wanted` over if it is later than what there is, and fills in what there is then.
  /// `NotSupported`: it has features on that this node does not know.
  Status Direct(const control::Directions& wanted, uint64_t now_nanos,
                control::Directions* directions);
  /// Notes how far a reader of the database's log has come. `NotFound`: there is no such database.
  Status AcknowledgeLog(const control::AcknowledgeLog& request, uint64_t now_nanos);
  /// Appends the readers of its log that are remembered.
  void ListLogReaders(uint64_t database_id, uint64_t now_nanos,
                      google::protobuf::RepeatedPtrField<control::LogReader>* readers) const;
  void List(const control::ListDatabases& request, uint64_t now_nanos,
            control::DatabaseList* list) const;

  /// While pinned, a database keeps its slabs.
  void Pin(uint64_t database_id) { ++pins_[database_id]; }
  void Unpin(uint64_t database_id);

  /// Records that the client's lifeline has ended, and returns the ids of the databases that are
  /// dropped. If the client `hung_up`, it knows, or is no more, and does not answer reads on the
  /// strength of what was confirmed before.
  std::vector<uint64_t> OwnerGone(uint64_t client, bool hung_up);

  /// The names of the databases that the client owns.
  std::vector<std::string> OwnedBy(uint64_t client) const;

  uint64_t count() const { return count_.load(std::memory_order_relaxed); }
  /// Features that are on in the pool, as far as this node has heard.
  FeatureSet features_on() const { return features_on_.load(std::memory_order_relaxed); }

 private:
  struct LogReader {
    uint64_t sequence = 0;
    uint64_t restorable = 0;
    uint64_t heard_nanos = 0;
  };
  struct Database {
    uint64_t id = 0;
    uint64_t epoch = 0;         ///< The highest that was claimed.
    uint64_t epoch_before = 0;  ///< What that was before the present claim.
    uint64_t claimant = 0;      ///< Client that claimed it; 0: it has left.
    bool alive = false;         ///< The claimant's lifeline is open.
    bool ready = false;         ///< Nothing writes for the former owner: the claimant may act.
    bool dropping = false;
    uint64_t leaseholder = 0;  ///< Client that was confirmed last.
    uint64_t lease_until_nanos = 0;
    control::Root root;
    control::ReportDatabase report;             ///< Report of the present owner.
    uint64_t reported_nanos = 0;                ///< 0: none yet.
    std::map<uint64_t, LogReader> log_readers;  ///< Keyed by their numbers.

    bool open() const { return alive && ready && !dropping; }
  };
  using Map = std::map<std::string, Database>;

  /// Makes the file say what there is now; nothing to do without one.
  Status Keep(bool clean = false, const control::KeptRedo* redo = nullptr);
  Status Redo(const control::KeptRedo& redo) const;
  Status CheckClaim(uint64_t client, const control::ClaimDatabase& request) const;
  Status MakeClaim(uint64_t client, const control::ClaimDatabase& request, uint64_t now_nanos,
                   control::DatabaseState* state);
  /// The database that `client` has claimed with `epoch`.
  Status Claimed(uint64_t client, uint64_t database_id, uint64_t epoch, Map::iterator* database);
  /// The database gets the id, in place of the one that it may have had.
  void SetId(Map::iterator database, uint64_t database_id);
  Map::iterator Find(uint64_t database_id);
  Map::const_iterator Find(uint64_t database_id) const;
  /// Ends what was written for the owner.
  void Fence(Database* database);
  /// The directions as they are at this moment: the time that orders are given for goes by.
  control::Directions DirectionsAt(uint64_t now_nanos) const;
  /// Directions with features that had been on before, too; those of before are back if they cannot
  /// be kept.
  Status TakeOver(control::Directions directions);
  /// The epoch of the owner that destroyed the database; 0: it is not remembered as destroyed.
  uint64_t DestroyedIn(uint64_t database_id) const;
  void NoteDestroyed(const Database& database);
  void Drop(Map::iterator database);
  void FinishDrop(Map::iterator database);

  ServerRegion* const region_;
  RegionFile* const file_;
  const FeatureSet features_;
  const std::function<void(uint64_t)> abort_jobs_;
  Map databases_;
  std::unordered_map<uint64_t, Map::iterator> by_id_;  ///< Each request names one.
  std::set<std::pair<uint64_t, uint64_t>> fenced_;  ///< Client and database, as long as both live.
  std::map<uint64_t, int> pins_;                    ///< Keyed by database id.
  /// Ids and epochs, oldest first.
  std::deque<std::pair<uint64_t, uint64_t>> destroyed_;
  control::Directions directions_;
  uint64_t directed_nanos_ = 0;  ///< When they were taken over.
  std::atomic<uint64_t> count_{0};
  std::atomic<FeatureSet> features_on_{0};  ///< Those of directions_.
};

}  // namespace nacre::pool
