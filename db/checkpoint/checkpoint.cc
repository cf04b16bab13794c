#include "nacre/checkpoint.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "db/checkpoint/checkpoint_description.h"
#include "db/checkpoint/checkpoint_folder.h"
#include "db/checkpoint/table_file.h"
#include "db/checkpoint/table_jobs.h"
#include "db/db_impl.h"
#include "table/table_stream_check.h"
#include "util/draw_id.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {
namespace {

CheckpointDescription Describe(const DBImpl& db, const PinnedTables& pinned) {
  CheckpointDescription description;
  description.database_id = db.database_id();
  description.database = db.GetName();
  description.comparator = db.comparator()->Name();
  description.num_levels = db.num_levels();
  description.sequence = pinned.sequence;
  description.manifest_version = pinned.manifest_version;
  description.next_table_id = pinned.next_table_id;
  description.families = pinned.families;
  description.next_family = pinned.next_family;
  for (const VersionEdit::Added& table : pinned.tables) {
    const auto level = static_cast<uint32_t>(table.level);
    TableMeta meta = table.table->meta();
    meta.database_id = description.database_id;
    meta.level = level;
    meta.placement = Placement();
    description.tables.emplace_back(level, std::move(meta));
  }
  return description;
}

Status CheckAll(const TableFileReader& file, TableJobs* jobs, bool count) {
  std::string chunk;
  for (uint64_t i = 0; i < file.chunks(); ++i) {
    chunk.resize(file.ChunkBytes(i));
    NACRE_RETURN_IF_ERROR(jobs->Copy(count ? chunk.size() : 0));
    NACRE_RETURN_IF_ERROR(file.ReadChunk(i, chunk.data()));
  }
  return Status::OK();
}

/// Copies one table from its nodes to a file.
class TableCopy {
 public:
  /// `meta` is what the description says.
  TableCopy(const TableMeta& meta, std::string path, TableJobs* jobs)
      : meta_(meta), path_(std::move(path)), jobs_(jobs) {}

  /// Whether there is a whole file already. One that a checkpoint names (`named`) is whole if its
  /// ends are right.
  Status FindWhole(bool named, bool* whole) {
    std::unique_ptr<TableFileReader> file;
    Status status = TableFileReader::Open(path_, meta_, &file);
    if (status.ok() && !named) status = CheckAll(*file, jobs_, /*count=*/false);
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
    NACRE_RETURN_IF_ERROR(TableFileWriter::Create(path_ + ".tmp", meta_, &file));
    std::optional<TableStreamCheck> check(&meta);
    const uint64_t piece = std::max<uint64_t>(1, kPieceBytes / meta.chunk_size) * meta.chunk_size;
    std::deque<std::unique_ptr<PendingRead>> reads;
    uint64_t started = 0;
    for (uint64_t done = 0; done < meta.size;) {
      while (started < meta.size && reads.size() <= kReadsAhead) {
        const uint64_t n = std::min(piece, meta.size - started);
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
  TableJobs* const jobs_;
  uint64_t copied_ = 0;
};

class CheckpointImpl final : public Checkpoint {
 public:
  explicit CheckpointImpl(DBImpl* db) : db_(db) {}

  Status CreateCheckpoint(const std::string& dir, const CheckpointOptions& options,
                          CheckpointInfo* info) override {
    NACRE_RETURN_IF_ERROR(TableJobs::Check(options));
    std::unique_ptr<CheckpointFolder> folder;
    NACRE_RETURN_IF_ERROR(CheckpointFolder::Open(dir, FileLock::Kind::kExclusive, &folder));
    PinnedTables pinned;
    NACRE_RETURN_IF_ERROR(db_->PinTables(&pinned).WithContext("checkpoint of " + db_->GetName()));
    CheckpointDescription description = Describe(*db_, pinned);
    NACRE_RETURN_IF_ERROR(DrawId(&description.id));
    NACRE_RETURN_IF_ERROR(folder->Sweep(&description));

    const uint64_t start = db_->clock()->NowNanos();
    TableJobs jobs(db_->clock(), options, description.tables.size(), description.bytes());
    NACRE_RETURN_IF_ERROR(jobs.Run([&](size_t i) {
      const TableMeta& meta = description.tables[i].second;
      const std::string path = folder->TablePath(description, meta.id);
      // Once it is copied its space can go, if it is not part of the database any more.
      const std::shared_ptr<TableHandle> table = std::move(pinned.tables[i].table);
      return CopyTable(meta, path, folder->Names(path), table, &jobs);
    }));
    const uint64_t number = folder->next_number();
    const CheckpointInfo made = InfoOf(description, number, jobs.progress());
    NACRE_RETURN_IF_ERROR(folder->Add(number, std::move(description)));
    Log(db_->options().info_log, LogLevel::kInfo,
        "{}: checkpoint {} in {}: {} tables, {} bytes, {} of them new, sequence {}, in {} ms",
        db_->GetName(), number, dir, made.tables, made.bytes, made.bytes_new, made.sequence,
        (db_->clock()->NowNanos() - start) / 1'000'000);
    if (info != nullptr) {
      *info = made;
      info->created_at = FileTime(folder->DescriptionPath(number));
    }
    return Status::OK();
  }

 private:
  static CheckpointInfo InfoOf(const CheckpointDescription& description, uint64_t number,
                               const CheckpointProgress& progress) {
    CheckpointInfo info = description.Info(number);
    info.bytes_new = progress.bytes_copied;
    return info;
  }

  Status CopyTable(const TableMeta& meta, const std::string& path, bool named,
                   std::shared_ptr<TableHandle> table, TableJobs* jobs) {
    TableCopy copy(meta, path, jobs);
    bool whole = false;
    NACRE_RETURN_IF_ERROR(copy.FindWhole(named, &whole));
    if (whole) return jobs->Done(meta.size);
    for (;;) {
      const Status status = copy.From(*table);
      if (status.ok()) return jobs->Done(0);
      if (!status.IsUnavailable() && !status.IsTimedOut()) return status;
      // Its nodes may be lost since, and the table repaired onto others.
      std::shared_ptr<TableHandle> moved = db_->FindTable(meta);
      if (moved == nullptr || moved == table) return status;
      table = std::move(moved);
    }
  }

  DBImpl* const db_;
};

}  // namespace

Status Checkpoint::Create(DB* db, std::unique_ptr<Checkpoint>* checkpoint) {
  auto* const impl = dynamic_cast<DBImpl*>(db);
  if (impl == nullptr) return Status::NotSupported("checkpoint of a DB that DB::Open has not made");
  *checkpoint = std::make_unique<CheckpointImpl>(impl);
  return Status::OK();
}

Status GetCheckpoints(const std::string& dir, std::vector<CheckpointInfo>* checkpoints) {
  checkpoints->clear();
  std::unique_ptr<CheckpointFolder> folder;
  NACRE_RETURN_IF_ERROR(CheckpointFolder::Look(dir, &folder));
  for (const auto& [number, description] : folder->checkpoints()) {
    checkpoints->push_back(description.Info(number));
    checkpoints->back().created_at = FileTime(folder->DescriptionPath(number));
  }
  return folder->DamageOf();
}

Status DeleteCheckpoint(const std::string& dir, uint64_t number) {
  std::vector<std::string> names;
  NACRE_RETURN_IF_ERROR(ListFolder(dir, &names));
  std::unique_ptr<CheckpointFolder> folder;
  NACRE_RETURN_IF_ERROR(CheckpointFolder::Open(dir, FileLock::Kind::kExclusive, &folder));
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
  NACRE_RETURN_IF_ERROR(CheckpointFolder::Open(dir, FileLock::Kind::kShared, &folder));
  const CheckpointDescription* description = nullptr;
  NACRE_RETURN_IF_ERROR(folder->Find(number, &number, &description));
  TableJobs jobs(Clock::System(), options, description->tables.size(), description->bytes());
  return jobs.Run([&](size_t i) -> Status {
    const TableMeta& meta = description->tables[i].second;
    std::unique_ptr<TableFileReader> file;
    NACRE_RETURN_IF_ERROR(OpenTableOf(*folder, *description, meta, &file));
    NACRE_RETURN_IF_ERROR(CheckAll(*file, &jobs, /*count=*/true));
    return jobs.Done(0);
  });
}

}  // namespace nacre
