#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/manifest/manifest_edit.h"
#include "db/manifest/manifest_slots.h"
#include "db/manifest/manifest_state.h"
#include "db/manifest/manifest_writer.h"
#include "nacre/logger.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/pool_client.h"
#include "pool/wire/manifest_image.h"
#include "table/format/placement.h"
#include "util/clock.h"
#include "util/mutex.h"
#include "util/threads/periodic_task.h"

namespace nacre {

/// Whether a change whose commit failed like this may be durable, or become so with the next owner:
/// then nothing that it adds or removes may be freed.
inline bool MayBeDurable(const Status& failure) {
  return failure.IsTimedOut() || failure.IsFenced();
}

/// What a manifest needs of its database. Committing and renewing threads and the log's own task
/// call it, PublishRoot with the log's mutex held, so it must never call the log.
class ManifestSpace {
 public:
  virtual ~ManifestSpace() = default;
  /// Reserves `bytes` on each of several live nodes: one more than may be lost, or as many as are
  /// left. Reserved extents are freed by FreeReplicas.
  virtual Status ReserveReplicas(uint64_t bytes, std::vector<ExtentAddr>* copies) = 0;
  virtual void FreeReplicas(const std::vector<ExtentAddr>& copies) = 0;
  /// Makes `value` the root (see ManifestRoot). OK: it is, durably. Any failure: it may be.
  /// `Fenced`: another owner has taken over, and may have found it.
  virtual Status PublishRoot(const std::string& value) = 0;
};

struct ManifestLogOptions {
  pool::PoolClient* client = nullptr;
  Clock* clock = nullptr;
  uint64_t database_id = 0;
  uint64_t epoch = 0;  ///< The epoch of this owner; no earlier one had it.
  std::chrono::milliseconds image_interval{500};
  uint64_t image_edits = 256;       ///< The images are updated after so many edits at the latest.
  uint64_t ring_bytes = 256 << 10;  ///< Rounded up to what a ring can have.
  Logger* log = nullptr;
};

struct ManifestCounters {
  uint64_t edits = 0;
  uint64_t edit_bytes = 0;  ///< Encoded, of one replica.
  uint64_t image_updates = 0;
  uint64_t delta_bytes = 0;  ///< Sent to one replica to update its image, compressed.
  uint64_t image_bytes = 0;  ///< Bytes of the present image.
  uint64_t renewals = 0;     ///< Manifests made after the first.
};

/// Where a manifest lies at one moment, and which edits the rings of its replicas have to have.
struct ManifestPlace {
  ManifestRoot root;
  std::vector<ExtentAddr> copies;
  uint64_t first_edit = 0;     ///< Version of the first edit that the images may lack.
  uint64_t ring_position = 0;  ///< The edit's present or future place in the ring.
  uint64_t version = 0;        ///< Version of the latest edit.
};

/// The manifest of one open database: the authority on what it consists of. Every change is an
/// edit, which counts when it lies in the rings of all replicas (one round trip); in the
/// background, updates bring the replicas' images up to the latest edits, which frees the ring
/// (Aceso, SOSP 2024, section 3.2). When a replica is lost, when an edit is too large for the ring,
/// or the image for its place, a fresh manifest is made elsewhere and the root is set to it: a
/// renewal.
///
/// A renewal writes the image as it was at one moment, while commits go on in the manifest that
/// there is; image updates bring the new replicas up to the latest edit, and only the last of
/// these, if it is needed, and the setting of the root keep commits waiting. A manifest whose image
/// is about to outgrow its place is renewed by the log's task. Commits wait for a renewal only if
/// they need it: a replica is lost, or there is no room in any other way.
///
/// Invariant: an edit whose Commit answered OK is on all replicas that the root names, in the ring
/// or in the image; so is every edit before it.
///
/// Thread safety: all methods may be called from many threads at once, Close by one.
class ManifestLog {
 public:
  /// Makes a manifest that says `initial`, and the root. A new owner does that too, after recovery;
  /// the replicas of the manifest before are the caller's to free then. `space` and what the
  /// options name outlive the log. `Fenced`, `NoSpace`, `Unavailable` as ManifestSpace answers
  /// them; after any failure but these of ReserveReplicas the root may or may not have been set.
  static Status Create(const ManifestLogOptions& options, ManifestState initial,
                       ManifestSpace* space, std::unique_ptr<ManifestLog>* log) {
    return Create(options, std::move(initial), /*slots=*/nullptr, space, log);
  }
  /// The same with the image of `initial`, at ring position 0, if it was made already.
  static Status Create(const ManifestLogOptions& options, ManifestState initial,
                       std::unique_ptr<ManifestSlots> slots, ManifestSpace* space,
                       std::unique_ptr<ManifestLog>* log);
  /// As Close.
  ~ManifestLog();
  ManifestLog(const ManifestLog&) = delete;
  ManifestLog& operator=(const ManifestLog&) = delete;

  /// Assigns the edit the next version and makes it durable. Waits for the commits before it.
  ///
  /// OK: it is on all replicas, and part of the state. A replica that was lost meanwhile has been
  /// replaced. `TimedOut`: the outcome is unknown. The state is without it, but a recovery may find
  /// it. From here on every commit answers the same, until Renew has made a manifest that is
  /// certainly without it. Until then neither what the edit adds nor what it removes may be freed.
  /// `Fenced`: another owner has taken over; the log is over. That owner may find the edit all the
  /// same, on a replica or by a root of a node that it claimed last: nothing may be freed. Any
  /// other failure: nothing has happened. `Corruption`: the edit contradicts the state; `NoSpace`,
  /// `Unavailable`: there is no room for a renewal that it would have taken; `ShutdownInProgress`:
  /// the log is closed.
  Status Commit(ManifestEdit* edit) EXCLUDES(mutex_);

  /// Brings the images of all replicas up to the latest edit. When that fails, the manifest is
  /// renewed; the failure is that of the renewal.
  Status UpdateImages() EXCLUDES(mutex_);

  /// Makes a fresh manifest of the state on nodes that the space chooses, and sets the root to it:
  /// when a node that has a replica is lost or to be left. Failures as those of Commit; after a
  /// `TimedOut` of this, too, commits fail until a Renew succeeds.
  Status Renew() EXCLUDES(mutex_);

  /// A copy of all of it: for tools and tests, as it takes as long as there are tables.
  ManifestState Snapshot() const EXCLUDES(mutex_);
  std::vector<LogSegment> segments() const EXCLUDES(mutex_);
  SequenceNumber last_sequence() const EXCLUDES(mutex_);
  uint64_t version() const EXCLUDES(mutex_);
  std::vector<ExtentAddr> copies() const EXCLUDES(mutex_);
  /// Serves callers that check the replicas' bytes.
  ManifestPlace place() const EXCLUDES(mutex_);
  ManifestCounters counters() const EXCLUDES(mutex_);
  /// Why commits fail; OK while they do not.
  Status status() const EXCLUDES(mutex_);

  /// A last image update; afterwards commits fail. Waits for what is under way. Idempotent.
  void Close() EXCLUDES(mutex_);

 private:
  /// Space of manifests that are not the root's any more.
  struct Retired {
    ExtentAddr copy;
    /// The node may still apply an update to it.
    bool uncertain = false;
  };
  /// An image update on its way.
  struct Sending {
    std::vector<pool::SlotChange> changes;
    pool::ImageDelta delta;
    uint64_t ring_tail = 0;
    std::vector<Retired> copies;
  };

  /// What a manifest that is made has to have room for.
  struct Room {
    size_t edit_bytes = 0;  ///< Bytes of an encoded edit.
    size_t slots = 0;       ///< Beside those in use.
  };
  /// An edit that may or may not be on some replica. No other one may have its version.
  struct DoubtfulEdit {
    uint64_t version = 0;
    Slice encoded;
  };

  ManifestLog(const ManifestLogOptions& options, ManifestState initial,
              std::unique_ptr<ManifestSlots> slots, ManifestSpace* space);

  void Look() EXCLUDES(mutex_);
  Status Usable() const REQUIRES(mutex_);
  /// Slots that items may still take.
  uint64_t FreeSlots() const REQUIRES(mutex_);
  /// Whether a renewal is due that no commit waits for yet.
  bool RenewalIsDue() const REQUIRES(mutex_);
  /// The state, and the image, take an edit that is durable.
  void Applied(const ManifestEdit& edit, size_t encoded_bytes) REQUIRES(mutex_);
  /// The edit that the manifest failed to take becomes durable with another one.
  Status CommitByRenewal(const DoubtfulEdit& edit, const Status& written) REQUIRES(mutex_);
  Status AppendToAnother(const DoubtfulEdit& edit) REQUIRES(mutex_);
  Status UpdateImagesLocked() REQUIRES(mutex_);
  void PrepareUpdate(Sending* sending) REQUIRES(mutex_);
  /// Marks the replicas that may or may not have it.
  Status Send(Sending* sending) const;
  /// `sent`: how that went.
  Status FinishUpdate(const Sending& sending, const Status& sent) REQUIRES(mutex_);
  /// Afterwards none is under way. False: none was.
  bool AwaitRenewal() REQUIRES(mutex_);
  /// Once no other one is under way. Gives the mutex up meanwhile, but not any more when the
  /// manifest with `edit`, which may be null, has become the root's.
  Status RenewLocked(const Room& room, const DoubtfulEdit* edit) REQUIRES(mutex_);
  /// A manifest as of now, which has `edit`; not the root's yet. `*again`: other nodes may do.
  Status MakeManifest(const Room& room, const DoubtfulEdit* edit, bool waits_for_late,
                      std::unique_ptr<ManifestWriter>* writer, bool* again) REQUIRES(mutex_);
  ManifestRoot SizesOf(const Room& room) REQUIRES(mutex_);
  /// Brings the replicas of `writer`, whose image is of `version`, to the latest edit.
  Status CatchUp(const ManifestWriter& writer, uint64_t version, std::vector<Retired>* copies)
      REQUIRES(mutex_);
  Status Publish(const ManifestWriter& writer) REQUIRES(mutex_);
  /// What was made and published is the manifest from here on.
  void Adopt(std::unique_ptr<ManifestWriter> writer) REQUIRES(mutex_);
  /// May give the mutex up meanwhile.
  void FreeRetired() REQUIRES(mutex_);
  /// Whether nothing will be written into the replica any more.
  bool IsQuiet(const Retired& retired) const;

  const ManifestLogOptions options_;
  ManifestSpace* const space_;
  mutable Mutex mutex_;
  CondVar idle_{&mutex_};  ///< An image update or a renewal has ended, or an edit's doubtful fate.
  ManifestState state_ GUARDED_BY(mutex_);
  std::unique_ptr<ManifestSlots> slots_ GUARDED_BY(mutex_);
  std::unique_ptr<ManifestWriter> writer_ GUARDED_BY(mutex_);
  uint32_t generation_ GUARDED_BY(mutex_) = 0;
  /// The version that the replicas' images have or will have.
  uint64_t image_version_ GUARDED_BY(mutex_) = 0;
  uint64_t ring_version_ GUARDED_BY(mutex_) = 0;  ///< Edits up to it are free in the ring.
  bool sending_ GUARDED_BY(mutex_) = false;
  bool renewing_ GUARDED_BY(mutex_) = false;
  bool in_doubt_ GUARDED_BY(mutex_) = false;            ///< An edit is; others wait.
  uint64_t next_renewal_nanos_ GUARDED_BY(mutex_) = 0;  ///< The task renews no earlier than this.
  /// The replicas' images are not what they should be: no update can be sent to them.
  bool images_lost_ GUARDED_BY(mutex_) = false;
  Status broken_ GUARDED_BY(mutex_);  ///< Why commits fail until Renew succeeds.
  Status fenced_ GUARDED_BY(mutex_);
  std::vector<Retired> retired_ GUARDED_BY(mutex_);
  std::vector<Retired> limbo_ GUARDED_BY(mutex_);    ///< Replicas that may be the root's.
  std::vector<Retired> current_ GUARDED_BY(mutex_);  ///< Replicas of writer_.
  bool closing_ GUARDED_BY(mutex_) = false;
  ManifestCounters counters_ GUARDED_BY(mutex_);
  PeriodicTask task_;
};

}  // namespace nacre
