#include "nacre/checkpoint.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/checkpoint/checkpoint_description.h"
#include "db/checkpoint/checkpoint_folder.h"
#include "db/checkpoint/checkpoint_source.h"
#include "db/checkpoint/table_file.h"
#include "db/checkpoint/table_jobs.h"
#include "db/version/table_handle.h"
#include "table/table_stream_check.h"
#include "util/draw_id.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {
namespace {

Status CheckAll(TableFileReader* file, TableJobs* jobs, bool count) {
  std::string chunk;
  for (uint64_t i = 0; i < file->chunks(); ++i) {
    chunk.resize(file->ChunkBytes(i));
    NACRE_RETURN_IF_ERROR(jobs->Copy(count ? chunk.size() : 0));
    NACRE_RETURN_IF_ERROR(file->ReadChunk(i, chunk.data()));
  }
  return Status::OK();
}

/// Copies one table from its nodes to a file.
class TableFileCopy {
 public:
  /// `meta` is what the description says. The file is sealed by `sealing`, unless that is null.
  TableFileCopy(const TableMeta& meta, std::string path, const Sealing* sealing, TableJobs* jobs)
      : meta_(meta), path_(std::move(path)), sealing_(sealing), jobs_(jobs) {}

  /// Whether there is a whole file already. One that a checkpoint names (`named`) is whole if its
  /// ends are right.
  Status FindWhole(bool named, bool* whole) {
    std::unique_ptr<TableFileReader> file;
    Status status = TableFileReader::Open(path_, meta_, sealing_, &file);
    if (status.ok() && !named) status = CheckAll(file.get(), jobs_, /*count=*/false);
    *whole = status.ok();
    // Made anew, whatever is wrong with it.
    return status.IsNotFound() || status.IsCorruption() || status.IsNotSupported() ? Status::OK()
                                                                                   : status;
  }

  /// Copies `table` from its nodes. `Unavailable` when too many of these are lost.
  Status From(const TableHandle& table) {
    Extent* const extent = table.reader().extent();
    uint64_t suspected = 0;
    for (DamagedRead damage;;) {
      TableSection suspect;
      const Status status = Try(table.meta(), extent, &suspect);
      if (status.ok()) return Name();
      if (copied_ > 0) jobs_->Undo(std::exchange(copied_, 0));
      if (suspect.length == 0) return status;
      // Another place: what was suspected before is right now.
      if (suspect.offset > suspected) damage = DamagedRead();
      suspected = suspect.offset;
      if (!damage.ReadAgain(extent, suspect.offset, suspect.length)) return Named(status, damage);
    }
  }

 private:
  static constexpr uint64_t kPieceBytes = 1 << 20;
  static constexpr size_t kReadsAhead = 2;

  static Status Named(const Status& status, const DamagedRead& damage) {
    if (damage.nodes().empty()) return status;
    return Status::Corruption(std::string(status.message()) + " (damaged on " + damage.nodes() +
                              ")");
  }

  /// Copies once. After a failure with a suspect, the caller tries again from the beginning and
  /// reads the suspect anew, as parts of it are in the file already.
  Status Try(const TableMeta& meta, Extent* extent, TableSection* suspect) {
    std::unique_ptr<TableFileWriter> file;
    NACRE_RETURN_IF_ERROR(TableFileWriter::Create(path_ + ".tmp", meta_, sealing_,
                                                  path_.substr(path_.rfind('/') + 1), &file));
    std::optional<TableStreamCheck> check(&meta);
    const uint64_t chunk = meta.plain_chunk_size();
    const uint64_t piece = std::max<uint64_t>(1, kPieceBytes / chunk) * chunk;
    const uint64_t size = meta.plain_size();
    std::deque<std::unique_ptr<PendingRead>> reads;
    uint64_t started = 0;
    for (uint64_t done = 0; done < size;) {
      while (started < size && reads.size() <= kReadsAhead) {
        const uint64_t n = std::min(piece, size - started);
        NACRE_RETURN_IF_ERROR(Pay(n));
        reads.push_back(extent->StartRead(started, n));
        started += n;
      }
      Slice bytes;
      NACRE_RETURN_IF_ERROR(AwaitRight(extent, done, &reads.front(), &check, &bytes, suspect));
      NACRE_RETURN_IF_ERROR(file->Append(bytes));
      done += bytes.size();
      reads.pop_front();
    }
    if (Status status = check->Finish(); !status.ok()) {
      *suspect = check->suspect();
      return status;
    }
    return file->Finish();
  }

  /// Awaits the table's bytes from `offset` on, and reads them again if they are damaged.
  Status AwaitRight(Extent* extent, uint64_t offset, std::unique_ptr<PendingRead>* read,
                    std::optional<TableStreamCheck>* check, Slice* bytes, TableSection* suspect) {
    const TableStreamCheck before = **check;
    for (DamagedRead damage;;) {
      NACRE_RETURN_IF_ERROR((*read)->Await(bytes));
      const Status status = (*check)->Add(*bytes);
      if (status.ok()) return status;
      const uint64_t begin = (*check)->suspect().offset;
      if (begin < offset) {
        *suspect = (*check)->suspect();
        return status;
      }
      const uint64_t end = offset + bytes->size();
      if (!damage.ReadAgain(extent, begin, end - begin)) return Named(status, damage);
      *read = extent->StartRead(offset, end - offset);
      check->emplace(before);
    }
  }

  Status Pay(uint64_t bytes) {
    copied_ += bytes;
    return jobs_->Copy(bytes);
  }

  Status Name() {
    NACRE_POINT("checkpoint.table-written");
    NACRE_RETURN_IF_ERROR(RenameFile(path_ + ".tmp", path_));
    NACRE_POINT("checkpoint.table-named");
    return Status::OK();
  }

  const TableMeta& meta_;
  const std::string path_;
  const Sealing* const sealing_;
  TableJobs* const jobs_;
  uint64_t copied_ = 0;
};

class CheckpointImpl final : public Checkpoint {
 public:
  CheckpointImpl(std::string database, std::unique_ptr<CheckpointSource> source)
      : database_(std::move(database)), source_(std::move(source)) {}

  Status CreateCheckpoint(const std::string& dir, const CheckpointOptions& options,
                          CheckpointInfo* info) override {
    NACRE_RETURN_IF_ERROR(TableJobs::Check(options));
    std::unique_ptr<CheckpointFolder> folder;
    NACRE_RETURN_IF_ERROR(
        CheckpointFolder::Open(dir, FileLock::Kind::kExclusive, options.encryption, &folder));
    if (!source_->options().encryption_key_file.empty() && folder->sealing().keys == nullptr) {
      return Status::InvalidArgument("database " + database_ +
                                     " is encrypted, and the checkpoint would not be: it needs a "
                                     "key file, too (CheckpointOptions::encryption)");
    }
    const uint64_t start = source_->clock()->NowNanos();
    CheckpointDescription description;
    CheckpointProgress copied;
    for (int attempt = 0;; ++attempt) {
      const Status status = CopyAll(*folder, options, &description, &copied)
                                .WithContext("checkpoint of " + database_);
      if (status.ok()) break;
      // Tables that were copied stay, unless they are gone as well.
      if (!status.IsTryAgain() || attempt == kAttempts) return status;
    }
    const uint64_t number = folder->next_number();
    const CheckpointInfo made = InfoOf(description, number, copied);
    NACRE_RETURN_IF_ERROR(folder->Add(number, std::move(description)));
    Log(source_->options().info_log, LogLevel::kInfo,
        "{}: checkpoint {} in {}: {} tables, {} bytes, {} of them new, sequence {}, in {} ms",
        database_, number, dir, made.tables, made.bytes, made.bytes_new, made.sequence,
        (source_->clock()->NowNanos() - start) / 1'000'000);
    if (info != nullptr) {
      *info = made;
      info->created_at = FileTime(folder->DescriptionPath(number));
    }
    return Status::OK();
  }

 private:
  /// So often tables that are to be copied may be compacted away by an owner that does not know.
  static constexpr int kAttempts = 20;

  Status CopyAll(CheckpointFolder& folder, const CheckpointOptions& options,
                 CheckpointDescription* description, CheckpointProgress* copied) {
    std::vector<std::shared_ptr<TableHandle>> tables;
    *description = CheckpointDescription();
    NACRE_RETURN_IF_ERROR(source_->Pin(description, &tables));
    NACRE_RETURN_IF_ERROR(DrawId(&description->id));
    if (folder.sealing().keys != nullptr) description->key_id = folder.sealing().keys->first().id;
    NACRE_RETURN_IF_ERROR(folder.Sweep(description));
    TableJobs jobs(source_->clock(), options, tables.size(), description->bytes());
    NACRE_RETURN_IF_ERROR(jobs.Run([&](size_t i) {
      const TableMeta& meta = description->tables[i].second;
      const std::string path = folder.TablePath(*description, meta.id);
      // Once it is copied its space can go, if it is not part of the database any more.
      const Sealing* const sealing = description->key_id.empty() ? nullptr : &folder.sealing();
      TableFileCopy copy(meta, path, sealing, &jobs);
      return CopyTable(meta, &copy, folder.Names(path), std::move(tables[i]), &jobs);
    }));
    *copied = jobs.progress();
    return Status::OK();
  }
  static CheckpointInfo InfoOf(const CheckpointDescription& description, uint64_t number,
                               const CheckpointProgress& progress) {
    CheckpointInfo info = description.Info(number);
    info.bytes_new = progress.bytes_copied;
    return info;
  }

  Status CopyTable(const TableMeta& meta, TableFileCopy* copy, bool named,
                   std::shared_ptr<TableHandle> table, TableJobs* jobs) {
    bool whole = false;
    NACRE_RETURN_IF_ERROR(copy->FindWhole(named, &whole));
    if (whole) return jobs->Done(meta.size);
    for (;;) {
      const Status status = copy->From(*table);
      if (status.ok()) return jobs->Done(0);
      NACRE_RETURN_IF_ERROR(source_->Find(meta, status, &table));
    }
  }

  const std::string database_;
  const std::unique_ptr<CheckpointSource> source_;
};

}  // namespace

Status Checkpoint::Create(DB* db, std::unique_ptr<Checkpoint>* checkpoint) {
  std::unique_ptr<CheckpointSource> source;
  NACRE_RETURN_IF_ERROR(CheckpointSource::Of(db, &source));
  *checkpoint = std::make_unique<CheckpointImpl>(db->GetName(), std::move(source));
  return Status::OK();
}

Status GetCheckpoints(const std::string& dir, std::vector<CheckpointInfo>* checkpoints,
                      const FileEncryption& encryption) {
  checkpoints->clear();
  std::unique_ptr<CheckpointFolder> folder;
  NACRE_RETURN_IF_ERROR(CheckpointFolder::Look(dir, encryption, &folder));
  for (const auto& [number, description] : folder->checkpoints()) {
    checkpoints->push_back(description.Info(number));
    checkpoints->back().created_at = FileTime(folder->DescriptionPath(number));
  }
  return folder->DamageOf();
}

Status GetCheckpointKeys(const std::string& dir, std::map<std::string, uint64_t>* files) {
  return CountCheckpointKeys(dir, files);
}

Status DeleteCheckpoint(const std::string& dir, uint64_t number, const FileEncryption& encryption) {
  std::vector<std::string> names;
  NACRE_RETURN_IF_ERROR(ListFolder(dir, &names));
  std::unique_ptr<CheckpointFolder> folder;
  NACRE_RETURN_IF_ERROR(
      CheckpointFolder::Open(dir, FileLock::Kind::kExclusive, encryption, &folder));
  for (const auto& [damaged, status] : folder->damaged()) {
    if (damaged != number) return status;
  }
  if (!folder->checkpoints().contains(number) && !folder->damaged().contains(number)) {
    return Status::NotFound(dir + ": there is no checkpoint " + std::to_string(number));
  }
  NACRE_RETURN_IF_ERROR(folder->Remove(number));
  return folder->Sweep(nullptr);
}

Status VerifyCheckpoint(const std::string& dir, uint64_t number, const CheckpointOptions& options) {
  NACRE_RETURN_IF_ERROR(TableJobs::Check(options));
  std::unique_ptr<CheckpointFolder> folder;
  NACRE_RETURN_IF_ERROR(
      CheckpointFolder::Open(dir, FileLock::Kind::kShared, options.encryption, &folder));
  const CheckpointDescription* description = nullptr;
  NACRE_RETURN_IF_ERROR(folder->Find(number, &number, &description));
  TableJobs jobs(Clock::System(), options, description->tables.size(), description->bytes());
  return jobs.Run([&](size_t i) -> Status {
    const TableMeta& meta = description->tables[i].second;
    std::unique_ptr<TableFileReader> file;
    NACRE_RETURN_IF_ERROR(OpenTableOf(*folder, *description, meta, &file));
    NACRE_RETURN_IF_ERROR(CheckAll(file.get(), &jobs, /*count=*/true));
    return jobs.Done(0);
  });
}

}  // namespace nacre
