#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "archive/archive_folder.h"
#include "nacre/archive.h"
#include "nacre/db.h"
#include "nacre/transaction_log.h"
#include "util/clock.h"
#include "util/crypto/key_ring.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// What is written at once: a reader of the status waits for no more than this.
constexpr uint64_t kSyncedBytes = 1 << 20;
/// A base that does not cover what it was made for, as that is in no table yet, or failed, is tried
/// again after so long.
constexpr seconds kBaseAgain{5};
/// A failure, such as of a full disk, is met again after so long.
constexpr milliseconds kFailurePause{200};

/// Nodes that were started anew do not know of the archive until they are told once more.
constexpr seconds kAcknowledgedAgain{1};

uint64_t MicrosNow() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

/// Finds the column families of batches that are not among those that are known.
class FamilyFinder final : public WriteBatch::Handler {
 public:
  /// `found` gets the ids.
  FamilyFinder(const std::set<uint32_t>* known, std::set<uint32_t>* found)
      : known_(known), found_(found) {}

  Status PutCF(uint32_t family, const Slice&, const Slice&) override { return Look(family); }
  Status DeleteCF(uint32_t family, const Slice&) override { return Look(family); }
  Status SingleDeleteCF(uint32_t family, const Slice&) override { return Look(family); }
  Status DeleteRangeCF(uint32_t family, const Slice&, const Slice&) override {
    return Look(family);
  }
  Status MergeCF(uint32_t family, const Slice&, const Slice&) override { return Look(family); }

 private:
  Status Look(uint32_t family) {
    if (!known_->contains(family)) found_->insert(family);
    return Status::OK();
  }

  const std::set<uint32_t>* const known_;
  std::set<uint32_t>* const found_;
};

/// Opens the database for reading, with all its column families, which have the options of the
/// default one. `*ids`: theirs.
Status OpenReader(const Options& options, const std::string& database, std::unique_ptr<DB>* db,
                  std::set<uint32_t>* ids) {
  std::vector<std::string> names;
  NACRE_RETURN_IF_ERROR(DB::ListColumnFamilies(options, database, &names));
  std::vector<ColumnFamilyDescriptor> families;
  for (const std::string& name : names) families.emplace_back(name, options);
  std::vector<ColumnFamilyHandle*> handles;
  NACRE_RETURN_IF_ERROR(DB::OpenAsSecondary(options, database, families, &handles, db));
  ids->clear();
  for (ColumnFamilyHandle* const handle : handles) {
    ids->insert(handle->GetID());
    NACRE_RETURN_IF_ERROR((*db)->DestroyColumnFamilyHandle(handle));
  }
  return Status::OK();
}

/// Two threads: one writes what the log has, the other makes bases.
///
/// Invariant: the files of the log that follow one another without a gap have every sequence in
/// between, each once. A sequence that was missed begins a file behind it.
class ArchiverImpl final : public Archiver {
 public:
  ArchiverImpl(const Options& options, std::string database, ArchiveOptions archive)
      : options_(options), database_(std::move(database)), archive_(std::move(archive)) {}

  ~ArchiverImpl() override {
    {
      MutexLock lock(&mutex_);
      stopping_ = true;
      changed_.SignalAll();
    }
    if (log_thread_.joinable()) log_thread_.Join();
    if (base_thread_.joinable()) base_thread_.Join();
    if (file_ != nullptr) file_->Finish().IgnoreError();
  }

  Status Start(const std::string& dir) {
    std::unique_ptr<DB> db;
    std::set<uint32_t> families;
    NACRE_RETURN_IF_ERROR(OpenReader(options_, database_, &db, &families));
    uint64_t id = 0;
    if (!db->GetIntProperty("nacre.database-id", &id)) {
      return Status::NotSupported("the database has no id");
    }
    std::shared_ptr<const KeyRing> keys;
    NACRE_RETURN_IF_ERROR(ReadKeys(&keys));
    NACRE_RETURN_IF_ERROR(ArchiveFolder::Open(dir, database_, id, std::move(keys), &folder_));
    if (!folder_->files().empty()) last_ = folder_->files().back().last;
    NACRE_RETURN_IF_ERROR(db->GetUpdatesSince(last_.has_value() ? *last_ + 1 : 0, &updates_));
    NACRE_RETURN_IF_ERROR(FindBases());
    NACRE_RETURN_IF_ERROR(folder_->ReadFamilies(&families));
    if (!last_.has_value()) last_ = FirstAvailable() - 1;
    const uint64_t now = clock_->NowNanos();
    {
      MutexLock lock(&mutex_);
      state_.archived_sequence = *last_;
      range_after_ = RangeAfter();
      families_ = std::move(families);
      complete_nanos_ = now;
    }
    // Until the owner knows of this archive it drops what it has flushed, which would be a gap.
    Acknowledge();
    log_thread_ = Thread("nacre-archive", [this] { FollowLog(); });
    base_thread_ = Thread("nacre-base", [this] { MakeBases(); });
    return Status::OK();
  }

  ArchiverStatus GetStatus() const override {
    MutexLock lock(&mutex_);
    ArchiverStatus status = state_;
    status.lag = milliseconds((clock_->NowNanos() - complete_nanos_) / 1'000'000);
    return status;
  }

  Status WaitForArchive(uint64_t sequence, milliseconds timeout) override {
    const Deadline deadline = Deadline::After(clock_, timeout);
    MutexLock lock(&mutex_);
    while (state_.archived_sequence < sequence || !IsCovered()) {
      if (stopping_) return Status::ShutdownInProgress("the archiver ends");
      if (deadline.Expired()) {
        if (!state_.status.ok()) return state_.status;
        return Status::TimedOut(
            fmt::format("archived up to {}, {}, not yet up to {}", state_.archived_sequence,
                        IsCovered() ? "behind a base" : "without a base for it", sequence));
      }
      changed_.WaitFor(deadline.Remaining());
    }
    return Status::OK();
  }

 private:
  /// Null if the archive is not to be encrypted. What the file has now counts: a key that an
  /// operator took out must not seal anything more.
  Status ReadKeys(std::shared_ptr<const KeyRing>* keys) const {
    if (archive_.encryption_key_file.empty()) return Status::OK();
    return KeyRing::Read(archive_.encryption_key_file, keys);
  }

  // ---- The log ----

  /// The sequence of the first batch that can be had, or that of the next one there will be.
  uint64_t FirstAvailable() {
    if (!updates_->Valid()) return updates_->LatestSequence() + 1;
    next_ = updates_->GetBatch();
    updates_->Next();
    return next_->sequence;
  }
  /// Behind which sequence the last range begins that the folder has.
  uint64_t RangeAfter() const {
    const std::vector<ArchivedRange> ranges = folder_->Ranges();
    return ranges.empty() ? *last_ : ranges.back().after;
  }

  void FollowLog() {
    for (;;) {
      const Status status = CatchAll([this]() -> Status {
        if (updates_ == nullptr) NACRE_RETURN_IF_ERROR(Reopen());
        return Round();
      });
      if (!status.ok()) GoBack();
      if (Report(status)) return;
    }
  }

  /// Writes what is new, until there is nothing more.
  Status Round() {
    for (;;) {
      const uint64_t begun = clock_->NowNanos();
      if (!next_.has_value() && !updates_->Valid()) updates_->Next();
      while (next_.has_value() || updates_->Valid()) {
        if (!next_.has_value()) {
          next_ = updates_->GetBatch();
          updates_->Next();
        }
        NACRE_RETURN_IF_ERROR(Take(*next_));
        next_.reset();
        if (file_ != nullptr && file_->unsynced_bytes() >= kSyncedBytes) break;
      }
      const bool all = !updates_->Valid();
      if (file_ != nullptr) NACRE_RETURN_IF_ERROR(file_->Sync());
      if (all) NACRE_RETURN_IF_ERROR(updates_->status());
      if (all && updates_->LatestSequence() > *last_) Miss(updates_->LatestSequence());
      bool ends = false;
      {
        MutexLock lock(&mutex_);
        state_.archived_sequence = *last_;
        state_.batches = batches_;
        state_.bytes = bytes_;
        if (all) complete_nanos_ = begun;
        changed_.SignalAll();
        ends = all || stopping_;
      }
      Acknowledge();
      if (ends) return Status::OK();
    }
  }

  /// Tells the owner how far the archive is, so that it keeps the log from there on: when there is
  /// something new, and now and then in any case.
  void Acknowledge() {
    const uint64_t now = clock_->NowNanos();
    bool covered = false;
    {
      MutexLock lock(&mutex_);
      covered = IsCovered();
    }
    const bool new_or_due = *last_ != acknowledged_ || covered != acknowledged_covered_ ||
                            now - acknowledged_nanos_ >= Nanos(kAcknowledgedAgain);
    if (!new_or_due) return;
    const Status status = updates_->Acknowledge(folder_->id(), *last_, covered);
    if (!status.ok()) {
      // What it costs is that the log may go too soon: then there is a gap, which is noticed.
      Log(options_.info_log, LogLevel::kDebug, "archive of {}: no node was told how far it is: {}",
          database_, status.ToString());
      return;
    }
    acknowledged_ = *last_;
    acknowledged_covered_ = covered;
    acknowledged_nanos_ = now;
  }

  Status Take(const BatchResult& batch) {
    const uint64_t last = batch.sequence + batch.write_batch->Count() - 1;
    if (last <= *last_) return Status::OK();
    if (batch.sequence > *last_ + 1) Miss(batch.sequence - 1);
    const bool full = file_ != nullptr && file_->bytes() >= archive_.log_file_bytes;
    if (full || (file_ != nullptr && file_->info().last != *last_)) {
      NACRE_RETURN_IF_ERROR(file_->Finish());
      MutexLock lock(&folder_mutex_);
      folder_->Put(file_->info());
      file_.reset();
    }
    if (file_ == nullptr) {
      std::shared_ptr<const KeyRing> keys;
      NACRE_RETURN_IF_ERROR(ReadKeys(&keys));
      MutexLock lock(&folder_mutex_);
      NACRE_RETURN_IF_ERROR(folder_->NewFile(*last_, keys, &file_));
    }
    NACRE_RETURN_IF_ERROR(LookForFamilies(*batch.write_batch));
    const uint64_t before = file_->bytes();
    file_->Add(batch.write_batch->Data(), MicrosNow());
    bytes_ += file_->bytes() - before;
    ++batches_;
    last_ = last;
    return Status::OK();
  }

  /// A batch of a family that no base has is replayed only where a later base has that family.
  Status LookForFamilies(const WriteBatch& batch) {
    MutexLock lock(&mutex_);
    const size_t before = families_found_.size();
    FamilyFinder finder(&families_, &families_found_);
    NACRE_RETURN_IF_ERROR(batch.Iterate(&finder));
    if (families_found_.size() == before) return Status::OK();
    base_wanted_ = true;
    changed_.SignalAll();
    return Status::OK();
  }

  /// What lies behind `*last_` up to `through` is in no log: only a base can have it.
  void Miss(uint64_t through) {
    Log(options_.info_log, LogLevel::kWarn,
        "archive of {}: sequences {} to {} are in no part of the log that is left: a base has to "
        "be made",
        database_, *last_ + 1, through);
    last_ = through;
    MutexLock lock(&mutex_);
    ++state_.gaps;
    range_after_ = through;
    changed_.SignalAll();
  }

  /// After a failure: the next round goes on behind what is on the disk. What the file has of a
  /// batch that failed is not known.
  void GoBack() {
    file_.reset();
    next_.reset();
    updates_.reset();
    MutexLock lock(&mutex_);
    last_ = state_.archived_sequence;
  }

  /// Reports how a round went, and rests; true: it is the end.
  bool Report(const Status& status) {
    MutexLock lock(&mutex_);
    if (!(state_.status == status)) {
      Log(options_.info_log, status.ok() ? LogLevel::kInfo : LogLevel::kError, "archive of {}: {}",
          database_, status.ToString());
    }
    state_.status = status;
    if (!stopping_) changed_.WaitFor(status.ok() ? archive_.interval : kFailurePause);
    return stopping_;
  }

  Status Reopen() {
    std::unique_ptr<DB> db;
    std::set<uint32_t> families;
    NACRE_RETURN_IF_ERROR(OpenReader(options_, database_, &db, &families));
    return db->GetUpdatesSince(*last_ + 1, &updates_);
  }

  // ---- Bases ----

  Status FindBases() {
    std::vector<CheckpointInfo> bases;
    NACRE_RETURN_IF_ERROR(folder_->GetBases(archive_.encryption_key_file, &bases));
    if (bases.empty()) return Status::OK();
    MutexLock lock(&mutex_);
    base_sequence_ = bases.back().sequence;
    state_.base_created_at = bases.back().created_at;
    // What is archived from here on does not depend on what is not encrypted.
    base_wanted_ = !archive_.encryption_key_file.empty() && bases.back().key_id.empty();
    return Status::OK();
  }

  void MakeBases() {
    uint64_t made_nanos = clock_->NowNanos();
    MutexLock lock(&mutex_);
    for (;;) {
      while (!stopping_ && !BaseIsDue(made_nanos)) changed_.WaitFor(seconds(1));
      if (stopping_) return;
      Status status;
      {
        MutexUnlock unlock(&mutex_);
        made_nanos = clock_->NowNanos();
        status = CatchAll([this] { return MakeBase(); });
        if (status.ok()) status = CatchAll([this] { return RemoveOld(); });
        if (!status.ok() && !status.IsAborted()) {
          Log(options_.info_log, LogLevel::kWarn, "archive of {}: no base could be made: {}",
              database_, status.ToString());
        }
      }
      base_wanted_ = base_wanted_ || !status.ok();
      changed_.SignalAll();
      if ((!status.ok() || !BaseLeadsToLog()) && !stopping_) changed_.WaitFor(kBaseAgain);
    }
  }

  /// Whether a base leads to the log that is being written.
  bool BaseLeadsToLog() const REQUIRES(mutex_) {
    return base_sequence_.has_value() && *base_sequence_ >= range_after_;
  }
  /// Whether all that is archived can be restored: batches of families that no base has cannot.
  bool IsCovered() const REQUIRES(mutex_) { return BaseLeadsToLog() && families_found_.empty(); }
  bool BaseIsDue(uint64_t made_nanos) const REQUIRES(mutex_) {
    if (base_wanted_ || !BaseLeadsToLog()) return true;
    return clock_->NowNanos() - made_nanos >= Nanos(archive_.base_interval) &&
           state_.archived_sequence > *base_sequence_;
  }

  Status MakeBase() {
    std::set<uint32_t> found;
    {
      // Before the families are read: those that the log has by now are among them, or were dropped
      // since, or are the database's own.
      MutexLock lock(&mutex_);
      base_wanted_ = false;
      found = families_found_;
    }
    std::unique_ptr<DB> db;
    std::set<uint32_t> families;
    NACRE_RETURN_IF_ERROR(OpenReader(options_, database_, &db, &families));
    std::unique_ptr<Checkpoint> checkpoint;
    NACRE_RETURN_IF_ERROR(Checkpoint::Create(db.get(), &checkpoint));
    CheckpointOptions options = archive_.base;
    options.encryption = folder_->BaseEncryption(archive_.encryption_key_file);
    options.progress = [this](const CheckpointProgress& progress) {
      if (archive_.base.progress != nullptr && !archive_.base.progress(progress)) return false;
      MutexLock lock(&mutex_);
      return !stopping_;
    };
    CheckpointInfo info;
    NACRE_RETURN_IF_ERROR(checkpoint->CreateCheckpoint(folder_->base(), options, &info));
    Log(options_.info_log, LogLevel::kInfo,
        "archive of {}: base {} has all up to sequence {}: {} tables, {} bytes, {} of them new",
        database_, info.number, info.sequence, info.tables, info.bytes, info.bytes_new);
    families.merge(found);
    NACRE_RETURN_IF_ERROR(folder_->WriteFamilies(families));
    MutexLock lock(&mutex_);
    for (const uint32_t id : families) families_found_.erase(id);
    ++state_.bases;
    state_.base_created_at = info.created_at;
    base_sequence_ = info.sequence;
    families_ = std::move(families);
    return Status::OK();
  }

  Status RemoveOld() {
    if (archive_.keep_for.count() == 0) return Status::OK();
    std::vector<CheckpointInfo> bases;
    NACRE_RETURN_IF_ERROR(folder_->GetBases(archive_.encryption_key_file, &bases));
    const uint64_t now = MicrosNow() / 1'000'000;
    const auto keep_for = static_cast<uint64_t>(archive_.keep_for.count());
    size_t removed = 0;
    // One that is older than the time asked for is needed to restore to that time.
    while (removed + std::max<size_t>(archive_.keep_bases, 1) < bases.size() &&
           bases[removed + 1].created_at + keep_for < now) {
      NACRE_RETURN_IF_ERROR(
          DeleteCheckpoint(folder_->base(), bases[removed].number,
                           folder_->BaseEncryption(archive_.encryption_key_file)));
      ++removed;
    }
    MutexLock lock(&folder_mutex_);
    return folder_->RemoveThrough(bases[removed].sequence);
  }

  const Options options_;
  const std::string database_;
  const ArchiveOptions archive_;
  Clock* const clock_ = Clock::System();

  /// Taken by the thread of the log and by that of the bases, for the list of files.
  Mutex folder_mutex_;
  std::unique_ptr<ArchiveFolder> folder_;

  // The thread of the log has these.
  std::unique_ptr<TransactionLogIterator> updates_;  ///< Null after a failure.
  std::optional<BatchResult> next_;                  ///< Taken from updates_, and not yet written.
  std::unique_ptr<LogFileWriter> file_;
  std::optional<uint64_t> last_;  ///< The last sequence in the archive, or missed.
  uint64_t batches_ = 0;
  uint64_t bytes_ = 0;
  uint64_t acknowledged_ = 0;  ///< The last time that the owner was told.
  bool acknowledged_covered_ = false;
  uint64_t acknowledged_nanos_ = 0;

  mutable Mutex mutex_;
  CondVar changed_{&mutex_};
  bool stopping_ GUARDED_BY(mutex_) = false;
  ArchiverStatus state_ GUARDED_BY(mutex_);
  uint64_t complete_nanos_ GUARDED_BY(mutex_) = 0;
  uint64_t range_after_ GUARDED_BY(mutex_) = 0;  ///< Where the log without a gap begins.
  std::optional<uint64_t> base_sequence_ GUARDED_BY(mutex_);
  std::set<uint32_t> families_ GUARDED_BY(mutex_);  ///< Those of the last base.
  /// Those of the log that are not among them.
  std::set<uint32_t> families_found_ GUARDED_BY(mutex_);
  bool base_wanted_ GUARDED_BY(mutex_) = false;  ///< For a new family, or after a failure.
  Thread log_thread_;
  Thread base_thread_;
};

}  // namespace

Status Archiver::Open(const Options& options, const std::string& database, const std::string& dir,
                      const ArchiveOptions& archive, std::unique_ptr<Archiver>* archiver) {
  archiver->reset();
  if (archive.interval.count() <= 0 || archive.log_file_bytes == 0) {
    return Status::InvalidArgument("ArchiveOptions::interval and log_file_bytes must not be 0");
  }
  if (!options.encryption_key_file.empty() && archive.encryption_key_file.empty()) {
    return Status::InvalidArgument("database " + database +
                                   " is encrypted, and its archive would not be: it needs a key "
                                   "file, too (ArchiveOptions::encryption_key_file)");
  }
  auto opened = std::make_unique<ArchiverImpl>(options, database, archive);
  NACRE_RETURN_IF_ERROR(
      CatchAll([&] { return opened->Start(dir); }).WithContext("archive of " + database));
  *archiver = std::move(opened);
  return Status::OK();
}

}  // namespace nacre
