#include <algorithm>
#include <cstring>
#include <set>
#include <string>
#include <utility>

#include "db/checkpoint/checkpoint_description.h"
#include "db/checkpoint/checkpoint_folder.h"
#include "db/checkpoint/table_file.h"
#include "db/checkpoint/table_jobs.h"
#include "db/checkpoint/table_restorer.h"
#include "db/db_impl.h"
#include "db/family/family_check.h"
#include "nacre/checkpoint.h"
#include "util/exceptions.h"
#include "util/log.h"

namespace nacre {
namespace {

/// Brings one table from its file to the nodes.
class TableRestore {
 public:
  TableRestore(const TableMeta& meta, TableFileReader* file, TableJobs* jobs)
      : meta_(meta), file_(file), jobs_(jobs), scratch_(meta.chunk_size, '\0') {}

  /// As TableRestorer::FillTable, once for each attempt. What the file has behind the records and
  /// indexes is where the table was; it is only checked.
  Status Fill(ExtentWriter* writer, const Slice& ending) {
    if (copied_ > 0) jobs_->Undo(std::exchange(copied_, 0));
    const uint64_t kept = meta_.lineage.offset;
    const uint64_t size = kept + ending.size();
    uint64_t chunk = 0;  // The next of the file.
    for (uint64_t at = 0; at < size;) {
      const uint64_t n = std::min(meta_.chunk_size, size - at);
      NACRE_RETURN_IF_ERROR(Pay(std::min(n, meta_.size - std::min(at, meta_.size))));
      char* buffer = nullptr;
      NACRE_RETURN_IF_ERROR(writer->NextChunk(&buffer));
      const uint64_t from_file = at < kept ? std::min(n, kept - at) : 0;
      if (from_file == meta_.chunk_size) {
        NACRE_RETURN_IF_ERROR(file_->ReadChunk(chunk++, buffer));
      } else if (from_file > 0) {
        NACRE_RETURN_IF_ERROR(file_->ReadChunk(chunk++, scratch_.data()));
        std::memcpy(buffer, scratch_.data(), from_file);
      }
      if (from_file < n) {
        std::memcpy(buffer + from_file, ending.data() + (at + from_file - kept), n - from_file);
      }
      NACRE_RETURN_IF_ERROR(writer->Commit(n));
      at += n;
    }
    for (; chunk < file_->chunks(); ++chunk) {
      NACRE_RETURN_IF_ERROR(file_->ReadChunk(chunk, scratch_.data()));
    }
    return Status::OK();
  }

  /// Bytes of the file that Fill has not counted.
  uint64_t rest() const { return meta_.size - std::min(meta_.size, copied_); }

 private:
  Status Pay(uint64_t bytes) {
    copied_ += bytes;
    return jobs_->Copy(bytes);
  }

  const TableMeta& meta_;
  TableFileReader* const file_;
  TableJobs* const jobs_;
  std::string scratch_;
  uint64_t copied_ = 0;
};

/// Checks whether the checkpoint can be restored with `options` and `restore`, and chooses the
/// options of its families.
Status ChooseFamilies(const CheckpointDescription& description, const Options& options,
                      const RestoreOptions& restore,
                      std::vector<ColumnFamilyDescriptor>* families) {
  if (options.pool == nullptr && options.pool_uri.starts_with("embedded:")) {
    return Status::InvalidArgument(
        "an embedded pool of its own would end with the restore: open one, and set Options::pool");
  }
  if (options.comparator == nullptr) {
    return Status::InvalidArgument("Options::comparator is null");
  }
  *families = {ColumnFamilyDescriptor(kDefaultColumnFamilyName, options)};
  for (const auto& [id, record] : description.families) {
    const ColumnFamilyDescriptor* named = FindDescriptor(restore.families, record.name);
    ColumnFamilyDescriptor family(record.name, named != nullptr ? named->options : options);
    if (named == nullptr && record.comparator == BytewiseComparator()->Name()) {
      family.options.comparator = BytewiseComparator();
    }
    families->push_back(std::move(family));
  }
  return CheckNamedFamiliesOf(description.InitialState(), *families, /*may_miss=*/false)
      .WithContext("the checkpoint");
}

Status RestoreTables(const CheckpointFolder& folder, const CheckpointDescription& description,
                     DBImpl* db, TableJobs* jobs) {
  PinnedTables there;
  NACRE_RETURN_IF_ERROR(db->PinTables(&there));
  std::set<uint64_t> ids;
  for (const VersionEdit::Added& table : there.tables) ids.insert(table.table->id());
  there.tables.clear();
  NACRE_RETURN_IF_ERROR(db->parts()->headroom.CheckRestore(description.tables, ids));
  return jobs->Run([&](size_t i) -> Status {
    const auto& [level, meta] = description.tables[i];
    if (ids.contains(meta.id)) return jobs->Done(meta.size);
    std::unique_ptr<TableFileReader> file;
    NACRE_RETURN_IF_ERROR(OpenTableOf(folder, description, meta, &file));
    TableRestore table(meta, file.get(), jobs);
    NACRE_RETURN_IF_ERROR(
        TableRestorer(db->parts())
            .Restore(level, meta, [&table](ExtentWriter* writer, const Slice& ending) {
              return table.Fill(writer, ending);
            }));
    return jobs->Done(table.rest());
  });
}

}  // namespace

Status RestoreDB(const Options& options, const std::string& name, const std::string& dir,
                 const RestoreOptions& restore) {
  CheckpointOptions copy{.threads = restore.threads,
                         .bytes_per_second = restore.bytes_per_second,
                         .progress = restore.progress};
  NACRE_RETURN_IF_ERROR(ChooseRestoreThreads(&copy.threads).WithContext("RestoreOptions"));
  std::unique_ptr<CheckpointFolder> folder;
  NACRE_RETURN_IF_ERROR(
      CheckpointFolder::Open(dir, FileLock::Kind::kShared, restore.encryption, &folder));
  uint64_t number = 0;
  const CheckpointDescription* description = nullptr;
  NACRE_RETURN_IF_ERROR(folder->Find(restore.checkpoint, &number, &description));
  const bool must_be_sealed = folder->sealing().keys != nullptr && !restore.encryption.accept_plain;
  if (must_be_sealed && description->key_id.empty()) {
    return Status::InvalidArgument(
        folder->DescriptionPath(number) +
        ": it is not encrypted, though there is a key file: accept_plain (--accept_plain) takes "
        "what is from before there was a key");
  }
  std::vector<ColumnFamilyDescriptor> families;
  NACRE_RETURN_IF_ERROR(ChooseFamilies(*description, options, restore, &families));
  // The files' ends are checked before anything is made.
  for (const auto& [level, meta] : description->tables) {
    std::unique_ptr<TableFileReader> file;
    NACRE_RETURN_IF_ERROR(OpenTableOf(*folder, *description, meta, &file));
  }

  DBOptions opened = options;
  opened.max_background_jobs = std::max(opened.max_background_jobs, copy.threads);
  std::unique_ptr<DBImpl> db;
  NACRE_RETURN_IF_ERROR(
      DBImpl::OpenToRestore(opened, name, families, description->InitialState(), &db)
          .WithContext("restore of " + name));
  TableJobs jobs(db->clock(), copy, description->tables.size(), description->bytes());
  const uint64_t start = db->clock()->NowNanos();
  Status status = RestoreTables(*folder, *description, db.get(), &jobs);
  if (status.ok() && restore.then != nullptr) {
    status = CatchAll([&] { return restore.then(db.get()); });
    if (status.ok()) status = db->Flush(FlushOptions(), nullptr);
  }
  if (status.ok()) status = TableRestorer(db->parts()).End();
  Log(options.info_log, status.ok() ? LogLevel::kInfo : LogLevel::kError,
      "{}: restored from checkpoint {} in {}: {} tables, {} bytes in {} ms: {}", name, number, dir,
      jobs.progress().tables_done, jobs.progress().bytes_done,
      (db->clock()->NowNanos() - start) / 1'000'000, status.ToString());
  Status closed = db->Close();
  return status.ok() ? closed : status.WithContext("restore of " + name);
}

}  // namespace nacre
