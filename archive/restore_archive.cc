#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "archive/archive_folder.h"
#include "archive/log_read_ahead.h"
#include "nacre/archive.h"
#include "nacre/checkpoint.h"
#include "nacre/db.h"
#include "nacre/slice.h"
#include "util/crypto/key_ring.h"
#include "util/log.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

struct Plan {
  CheckpointInfo base;
  std::vector<LogFileInfo> files;  ///< Those behind it that are needed, without a gap.
};

/// What can be restored to, for people.
std::string Covered(const std::vector<CheckpointInfo>& bases,
                    const std::vector<ArchivedRange>& ranges) {
  std::string covered;
  for (const CheckpointInfo& base : bases) {
    uint64_t last = base.sequence;
    for (const ArchivedRange& range : ranges) {
      if (range.after <= base.sequence && base.sequence <= range.last) last = range.last;
    }
    covered += fmt::format("{}{} to {}", covered.empty() ? "" : ", ", base.sequence, last);
  }
  return covered.empty() ? "it has no base yet" : "it covers sequences " + covered;
}

/// Chooses the latest base that the log leads from to what is asked for.
Status MakePlan(const std::string& dir, const ArchiveFolder& folder,
                const ArchiveRestoreOptions& asked, Plan* plan) {
  std::vector<CheckpointInfo> bases;
  NACRE_RETURN_IF_ERROR(folder.GetBases(asked.restore.encryption.key_file, &bases));
  const std::vector<ArchivedRange> ranges = folder.Ranges();
  const bool to_end = asked.to_sequence == UINT64_MAX && asked.to_micros == UINT64_MAX;
  for (auto base = bases.rbegin(); base != bases.rend(); ++base) {
    if (base->sequence > asked.to_sequence) continue;
    const auto range = std::ranges::find_if(ranges, [&](const ArchivedRange& each) {
      return each.after <= base->sequence && base->sequence <= each.last;
    });
    const bool in_log = range != ranges.end();
    const bool bounded = asked.to_sequence != UINT64_MAX;
    if (bounded && asked.to_sequence > (in_log ? range->last : base->sequence)) continue;
    // The end of the archive is that of its last range.
    if (to_end && !ranges.empty() && (!in_log || range + 1 != ranges.end())) continue;
    plan->base = *base;
    for (const LogFileInfo& file : folder.files()) {
      const bool needed = in_log && file.last > base->sequence && file.last <= range->last;
      if (needed) plan->files.push_back(file);
    }
    // A base has what was archived up to then, and perhaps more.
    if (asked.to_micros == UINT64_MAX || (base->created_at + 1) * 1'000'000 <= asked.to_micros) {
      return Status::OK();
    }
    plan->files.clear();
  }
  return Status::NotFound(dir + ": nothing leads to what is asked for: " + Covered(bases, ranges));
}

/// Fails if the archive should be encrypted, and a file of its log is not.
Status CheckEncrypted(const std::vector<LogFileInfo>& files, const FileEncryption& encryption) {
  if (encryption.key_file.empty() || encryption.accept_plain) return Status::OK();
  for (const LogFileInfo& file : files) {
    if (!file.key_id.empty()) continue;
    return Status::InvalidArgument(
        file.path +
        ": it is not encrypted, though there is a key file: accept_plain (--accept_plain) takes "
        "what is from before there was a key");
  }
  return Status::OK();
}

/// Which of the archived batches a restore takes, as they come.
class BatchChoice {
 public:
  /// `last`: the last sequence that the database has.
  BatchChoice(const ArchiveRestoreOptions& asked, uint64_t last) : asked_(asked), last_(last) {}

  /// Those of `batches` that are to be loaded. `Corruption` if one is missing before them.
  Status Choose(const std::vector<ArchivedBatch>& batches, std::vector<Slice>* chosen) {
    chosen->clear();
    for (const ArchivedBatch& batch : batches) {
      if (batch.last() <= last_) continue;
      ended_ = batch.last() > asked_.to_sequence || batch.micros > asked_.to_micros;
      if (ended_) break;
      if (batch.sequence != last_ + 1) {
        return Status::Corruption(fmt::format("sequence {} follows {}", batch.sequence, last_));
      }
      chosen->push_back(batch.bytes);
      last_ = batch.last();
    }
    return Status::OK();
  }
  /// What comes next is beyond what is asked for.
  bool ended() const { return ended_; }
  uint64_t last() const { return last_; }

 private:
  const ArchiveRestoreOptions& asked_;
  uint64_t last_;
  bool ended_ = false;
};

/// Half as many threads as write: reading and checking takes a third of what inserting does.
size_t ReadingThreads(int threads) {
  const size_t all = threads > 0 ? static_cast<size_t>(threads)
                                 : std::min<size_t>(Thread::HardwareConcurrency(), 8);
  return std::max<size_t>(1, all / 2);
}

/// Loads the batches of the log behind what `db` has.
Status Replay(const Plan& plan, const ArchiveRestoreOptions& asked, const Sealing& sealing, DB* db,
              uint64_t* last) {
  *last = db->GetLatestSequenceNumber();
  if (*last > asked.to_sequence) {
    return Status::InvalidArgument(fmt::format(
        "an earlier restore, which was not finished, has come to sequence {}: destroy it first",
        *last));
  }
  std::vector<LogFileInfo> files;
  for (const LogFileInfo& file : plan.files) {
    if (file.last > *last) files.push_back(file);
  }
  LogReadAhead log(std::move(files), sealing, ReadingThreads(asked.restore.threads));
  BatchChoice choice(asked, *last);
  std::vector<Slice> chosen;
  while (!choice.ended()) {
    const std::vector<ArchivedBatch>* batches = nullptr;
    NACRE_RETURN_IF_ERROR(log.Next(&batches));
    if (batches == nullptr) break;
    NACRE_RETURN_IF_ERROR(choice.Choose(*batches, &chosen));
    const Status status = LoadBatches(db, chosen, asked.restore.threads);
    if (status.IsInvalidArgument()) {
      return status.WithContext(
          fmt::format("the log behind base {} (restore to what is before it, or to what a later "
                      "base leads to)",
                      plan.base.number));
    }
    NACRE_RETURN_IF_ERROR(status);
    *last = choice.last();
  }
  return Status::OK();
}

Status LookAt(const std::string& dir, const std::string& key_file,
              std::unique_ptr<ArchiveFolder>* folder) {
  std::shared_ptr<const KeyRing> keys;
  if (!key_file.empty()) NACRE_RETURN_IF_ERROR(KeyRing::Read(key_file, &keys));
  return ArchiveFolder::Look(dir, std::move(keys), folder);
}

}  // namespace

Status GetArchive(const std::string& dir, ArchiveInfo* info,
                  const std::string& encryption_key_file) {
  *info = ArchiveInfo();
  std::unique_ptr<ArchiveFolder> folder;
  NACRE_RETURN_IF_ERROR(LookAt(dir, encryption_key_file, &folder));
  info->database = folder->database();
  info->log = folder->Ranges();
  NACRE_RETURN_IF_ERROR(GetCheckpointKeys(folder->base(), &info->files_by_key));
  for (const LogFileInfo& file : folder->files()) ++info->files_by_key[file.key_id];
  return folder->GetBases(encryption_key_file, &info->bases);
}

Status VerifyArchive(const std::string& dir, const CheckpointOptions& options) {
  std::unique_ptr<ArchiveFolder> folder;
  NACRE_RETURN_IF_ERROR(LookAt(dir, options.encryption.key_file, &folder));
  CheckpointOptions reading = options;
  reading.encryption.context = folder->sealing().context;
  std::vector<CheckpointInfo> bases;
  NACRE_RETURN_IF_ERROR(folder->GetBases(options.encryption.key_file, &bases));
  for (const CheckpointInfo& base : bases) {
    NACRE_RETURN_IF_ERROR(VerifyCheckpoint(folder->base(), base.number, reading));
  }
  LogReadAhead log(folder->files(), folder->sealing(), ReadingThreads(options.threads));
  for (const std::vector<ArchivedBatch>* batches = nullptr;;) {
    NACRE_RETURN_IF_ERROR(log.Next(&batches));
    if (batches == nullptr) return Status::OK();
  }
}

Status RestoreArchive(const Options& options, const std::string& name, const std::string& dir,
                      const ArchiveRestoreOptions& archive, uint64_t* sequence) {
  std::unique_ptr<ArchiveFolder> folder;
  NACRE_RETURN_IF_ERROR(LookAt(dir, archive.restore.encryption.key_file, &folder));
  ArchiveRestoreOptions asked = archive;
  asked.restore.encryption.context = folder->sealing().context;
  Plan plan;
  NACRE_RETURN_IF_ERROR(MakePlan(dir, *folder, asked, &plan));
  NACRE_RETURN_IF_ERROR(CheckEncrypted(plan.files, asked.restore.encryption));
  RestoreOptions restore = asked.restore;
  restore.checkpoint = plan.base.number;
  uint64_t last = 0;
  restore.then = [&](DB* db) -> Status {
    if (asked.restore.then != nullptr) NACRE_RETURN_IF_ERROR(asked.restore.then(db));
    return Replay(plan, asked, folder->sealing(), db, &last);
  };
  NACRE_RETURN_IF_ERROR(RestoreDB(options, name, folder->base(), restore));
  Log(options.info_log, LogLevel::kInfo,
      "{}: restored from the archive {}: base {}, then {} files "
      "of the log up to sequence {}",
      name, dir, plan.base.number, plan.files.size(), last);
  if (sequence != nullptr) *sequence = last;
  return Status::OK();
}

}  // namespace nacre
