#pragma once

#include <fmt/format.h>
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/rocksdb/batch_checker.h"
#include "adapters/rocksdb/convert.h"
#include "adapters/rocksdb/engine.h"
#include "adapters/rocksdb/handles.h"
#include "adapters/rocksdb/iterator.h"
#include "adapters/rocksdb/metadata.h"
#include "adapters/rocksdb/properties.h"
#include "adapters/rocksdb/sanitize.h"
#include "adapters/rocksdb/unsupported_db.h"
#include "nacre/db.h"
#include "util/log.h"
#include "util/mutex.h"

namespace nacre::rocksdb_api {

inline rocksdb::ColumnFamilyHandle* NewHandle(nacre::DB* db, nacre::ColumnFamilyHandle* ours,
                                              const rocksdb::ColumnFamilyOptions& options) {
  return std::make_unique<FamilyHandle>(db, ours, options, FamilyHandle::Owns::kHandle).release();
}

/// ReadOptions::value_size_soft_limit: once values are more than that, the rest is not given.
class SizeLimit {
 public:
  explicit SizeLimit(uint64_t bytes) : limit_(bytes) {}
  void Add(uint64_t bytes) { sum_ += bytes; }
  bool passed() const { return sum_ > limit_; }

 private:
  const uint64_t limit_;
  uint64_t sum_ = 0;
};

/// A rocksdb::DB over a Nacre database.
/// Thread safety: as rocksdb::DB.
class NacreRocksdb final : public UnsupportedDb {
 public:
  /// `options` and `family_options`, of the default family: as given to Open, with a count of jobs
  /// that was sanitized. `base`: what new families have that RocksDB has no word for. `errors`
  /// listens to `db`.
  NacreRocksdb(const rocksdb::DBOptions& options,
               const rocksdb::ColumnFamilyOptions& family_options,
               const nacre::ColumnFamilyOptions& base, std::unique_ptr<nacre::DB> db,
               std::shared_ptr<ErrorCounter> errors)
      : options_(options),
        base_(base),
        db_(std::move(db)),
        errors_(std::move(errors)),
        properties_(db_.get(), &snapshot_times_, errors_.get()),
        session_id_(NewSessionId()),
        family_(db_.get(), db_->DefaultColumnFamily(), family_options,
                FamilyHandle::Owns::kNothing) {}

  /// Writes them to the LOG.
  void LogNotes(const std::vector<std::string>& notes) const {
    const std::shared_ptr<nacre::Logger> log = db_->GetDBOptions().info_log;
    for (const std::string& note : notes) Log(log, LogLevel::kInfo, "{}: {}", GetName(), note);
  }

  Status Close() override { return ToRocksdb(db_->Close()); }

  // ---- Column families ----------------------------------------------------------------------

  Status CreateColumnFamily(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                            Family** handle) override {
    nacre::ColumnFamilyOptions ours = base_;
    if (Status s = ToNacre(options, options_.info_log, &ours); !s.ok()) return s;
    std::vector<std::string> notes;
    NoteUnused(name, options, &notes);
    LogNotes(notes);
    nacre::ColumnFamilyHandle* made = nullptr;
    const nacre::Status status = db_->CreateColumnFamily(ours, name, &made);
    if (status.ok()) *handle = NewHandle(db_.get(), made, options);
    return ToRocksdb(status);
  }
  Status CreateColumnFamilies(const rocksdb::ColumnFamilyOptions& options,
                              const std::vector<std::string>& names, Families* handles) override {
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
    families.reserve(names.size());
    for (const std::string& name : names) families.emplace_back(name, options);
    return CreateColumnFamilies(families, handles);
  }
  Status CreateColumnFamilies(const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                              Families* handles) override {
    handles->clear();
    for (const auto& [name, options] : families) {
      Family* handle = nullptr;
      if (Status s = CreateColumnFamily(options, name, &handle); !s.ok()) return s;
      handles->push_back(handle);
    }
    return Status::OK();
  }
  Status DropColumnFamily(Family* family) override {
    if (family == nullptr) return NoSuchFamily();
    const nacre::Status status = db_->DropColumnFamily(Ours(family));
    if (status.ok()) Handle(family).MarkDropped();
    return ToRocksdb(status);
  }
  Status DropColumnFamilies(const Families& families) override {
    for (Family* family : families) {
      if (Status s = DropColumnFamily(family); !s.ok()) return s;
    }
    return Status::OK();
  }

  // ---- Writes -------------------------------------------------------------------------------

  using DB::DeleteRange;
  using DB::Merge;
  using UnsupportedDb::Delete;
  using UnsupportedDb::Put;
  using UnsupportedDb::SingleDelete;
  Status Put(const rocksdb::WriteOptions& options, Family* family, const Slice& key,
             const Slice& value) override {
    return Update(options, family, [&](const nacre::WriteOptions& ours) {
      return db_->Put(ours, Ours(family), ToNacre(key), ToNacre(value));
    });
  }
  Status Delete(const rocksdb::WriteOptions& options, Family* family, const Slice& key) override {
    return Update(options, family, [&](const nacre::WriteOptions& ours) {
      return db_->Delete(ours, Ours(family), ToNacre(key));
    });
  }
  Status SingleDelete(const rocksdb::WriteOptions& options, Family* family,
                      const Slice& key) override {
    return Update(options, family, [&](const nacre::WriteOptions& ours) {
      return db_->SingleDelete(ours, Ours(family), ToNacre(key));
    });
  }
  Status DeleteRange(const rocksdb::WriteOptions& options, Family* family, const Slice& begin,
                     const Slice& end) override {
    return Update(options, family, [&](const nacre::WriteOptions& ours) {
      return db_->DeleteRange(ours, Ours(family), ToNacre(begin), ToNacre(end));
    });
  }
  Status Merge(const rocksdb::WriteOptions& options, Family* family, const Slice& key,
               const Slice& operand) override {
    return Update(options, family, [&](const nacre::WriteOptions& ours) {
      return db_->Merge(ours, Ours(family), ToNacre(key), ToNacre(operand));
    });
  }
  Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* updates) override {
    if (updates == nullptr) return Status::InvalidArgument("Batch is nullptr!");
    nacre::WriteOptions ours;
    if (Status s = ToNacre(options, &ours); !s.ok()) return s;
    BatchChecker checker;
    if (Status s = updates->Iterate(&checker); !s.ok()) return s;
    NoteUnlogged(options);
    if (options.ignore_missing_column_families) return WriteToPresent(ours, *updates);
    nacre::WriteBatch batch(updates->Data());
    return ToRocksdb(db_->Write(ours, &batch));
  }

  // ---- Reads --------------------------------------------------------------------------------

  using DB::Get;
  using DB::KeyMayExist;
  using DB::MultiGet;
  using DB::NewIterator;
  Status Get(const rocksdb::ReadOptions& options, Family* family, const Slice& key,
             rocksdb::PinnableSlice* value) override {
    if (family == nullptr) return NoSuchFamily();
    nacre::ReadOptions ours;
    if (Status s = PointOptions(options, &ours); !s.ok()) return s;
    if (options.read_tier == rocksdb::kBlockCacheTier) {
      return GetFromMemory(ours, family, key, value);
    }
    nacre::PinnableSlice found;
    const nacre::Status status = db_->Get(ours, Ours(family), ToNacre(key), &found);
    if (status.ok()) value->PinSelf(ToRocksdb(found));
    return ToRocksdb(status);
  }
  Status GetMergeOperands(const rocksdb::ReadOptions& options, Family* family, const Slice& key,
                          rocksdb::PinnableSlice* merge_operands,
                          rocksdb::GetMergeOperandsOptions* get_merge_operands_options,
                          int* number_of_operands) override {
    if (family == nullptr) return NoSuchFamily();
    if (get_merge_operands_options == nullptr || merge_operands == nullptr) {
      return Status::InvalidArgument("GetMergeOperands: options or merge_operands is null");
    }
    nacre::ReadOptions ours;
    if (Status s = PointOptions(options, &ours); !s.ok()) return s;
    if (options.read_tier == rocksdb::kBlockCacheTier) return No("ReadOptions::read_tier");
    const int most = std::max(0, get_merge_operands_options->expected_max_number_of_operands);
    nacre::GetMergeOperandsOptions our_options{.expected_max_number_of_operands = most};
    // One more, so that there is always an array.
    std::vector<nacre::PinnableSlice> operands(static_cast<size_t>(most) + 1);
    const nacre::Status status = db_->GetMergeOperands(
        ours, Ours(family), ToNacre(key), operands.data(), &our_options, number_of_operands);
    for (int i = 0; status.ok() && i < *number_of_operands; ++i) {
      merge_operands[i].PinSelf(ToRocksdb(operands[static_cast<size_t>(i)]));
    }
    return ToRocksdb(status);
  }
  void MultiGet(const rocksdb::ReadOptions& options, Family* family, size_t count,
                const Slice* keys, rocksdb::PinnableSlice* values, Status* statuses,
                bool /*sorted_input*/) override {
    nacre::ReadOptions ours;
    Status refused = family == nullptr ? NoSuchFamily() : PointOptions(options, &ours);
    if (!refused.ok()) {
      for (size_t i = 0; i < count; ++i) statuses[i] = refused;
      return;
    }
    if (options.read_tier == rocksdb::kBlockCacheTier) {
      for (size_t i = 0; i < count; ++i) {
        statuses[i] = GetFromMemory(ours, family, keys[i], &values[i]);
      }
      return;
    }
    std::vector<nacre::Slice> our_keys;
    for (size_t i = 0; i < count; ++i) our_keys.push_back(ToNacre(keys[i]));
    std::vector<nacre::PinnableSlice> found(count);
    std::vector<nacre::Status> answers(count);
    db_->MultiGet(ours, Ours(family), count, our_keys.data(), found.data(), answers.data());
    SizeLimit limit(options.value_size_soft_limit);
    for (size_t i = 0; i < count; ++i) {
      if (limit.passed()) {
        statuses[i] = Status::Aborted();
        continue;
      }
      statuses[i] = ToRocksdb(answers[i]);
      if (!answers[i].ok()) continue;
      values[i].PinSelf(ToRocksdb(found[i]));
      limit.Add(found[i].size());
    }
  }
  std::vector<Status> MultiGet(const rocksdb::ReadOptions& options, const Families& families,
                               const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override {
    nacre::ReadOptions ours;
    std::vector<nacre::ColumnFamilyHandle*> our_families;
    Status refused = PointOptions(options, &ours);
    if (refused.ok() && options.read_tier == rocksdb::kBlockCacheTier) {
      refused = No("ReadOptions::read_tier");
    }
    if (refused.ok()) refused = ToOurs(families, &our_families);
    if (!refused.ok()) return std::vector<Status>(keys.size(), refused);
    std::vector<nacre::Slice> our_keys;
    our_keys.reserve(keys.size());
    for (const Slice& key : keys) our_keys.push_back(ToNacre(key));
    std::vector<Status> statuses;
    SizeLimit limit(options.value_size_soft_limit);
    for (const nacre::Status& status : db_->MultiGet(ours, our_families, our_keys, values)) {
      std::string& value = (*values)[statuses.size()];
      if (limit.passed()) value.clear();
      statuses.push_back(limit.passed() ? Status::Aborted() : ToRocksdb(status));
      limit.Add(value.size());
    }
    return statuses;
  }
  bool KeyMayExist(const rocksdb::ReadOptions& options, Family* family, const Slice& key,
                   std::string* value, std::string* /*timestamp*/, bool* value_found) override {
    if (value_found != nullptr) *value_found = false;
    nacre::ReadOptions ours;
    if (family == nullptr || !PointOptions(options, &ours).ok()) return true;
    return db_->KeyMayExist(ours, Ours(family), ToNacre(key), value, value_found);
  }
  rocksdb::Iterator* NewIterator(const rocksdb::ReadOptions& options, Family* family) override {
    std::vector<rocksdb::Iterator*> one;
    if (Status s = NewIterators(options, {family}, &one); !s.ok()) {
      return std::make_unique<FailedIterator>(std::move(s)).release();
    }
    return one.front();
  }
  Status NewIterators(const rocksdb::ReadOptions& options, const Families& families,
                      std::vector<rocksdb::Iterator*>* iterators) override {
    iterators->clear();
    nacre::ReadOptions ours;
    SetSnapshot(options, &ours);
    if (Status s = ToNacre(options, ReadKind::kIterator, &ours); !s.ok()) return s;
    for (Family* family : families) {
      if (family == nullptr) return NoSuchFamily();
    }
    // They show one state.
    const bool shared = ours.snapshot == nullptr && families.size() > 1;
    if (shared) ours.snapshot = db_->GetSnapshot();
    for (Family* family : families) {
      NacreIterator::Source source{db_.get(), Handle(family).shared(), GetEnv()};
      iterators->push_back(
          std::make_unique<NacreIterator>(std::move(source), options, ours).release());
    }
    if (shared) db_->ReleaseSnapshot(ours.snapshot);
    return Status::OK();
  }
  const rocksdb::Snapshot* GetSnapshot() override {
    auto snapshot = std::make_unique<NacreSnapshot>(db_->GetSnapshot());
    snapshot_times_.Add(snapshot->GetUnixTime());
    return snapshot.release();
  }
  void ReleaseSnapshot(const rocksdb::Snapshot* snapshot) override {
    const std::unique_ptr<const NacreSnapshot> theirs(static_cast<const NacreSnapshot*>(snapshot));
    if (theirs == nullptr) return;
    snapshot_times_.Remove(theirs->GetUnixTime());
    db_->ReleaseSnapshot(theirs->ours());
  }

  // ---- Properties ---------------------------------------------------------------------------

  using DB::GetApproximateMemTableStats;
  using DB::GetApproximateSizes;
  using DB::GetIntProperty;
  using DB::GetMapProperty;
  using DB::GetProperty;
  bool GetProperty(Family* family, const Slice& property, std::string* value) override {
    return family != nullptr && properties_.Text(Ours(family), property.ToString(), value);
  }
  bool GetIntProperty(Family* family, const Slice& property, uint64_t* value) override {
    return family != nullptr && properties_.Number(Ours(family), property.ToString(), value);
  }
  bool GetMapProperty(Family* family, const Slice& property,
                      std::map<std::string, std::string>* value) override {
    return family != nullptr && properties_.Map(Ours(family), property.ToString(), value);
  }
  bool GetAggregatedIntProperty(const Slice& property, uint64_t* value) override {
    return properties_.Sum(property.ToString(), value);
  }
  Status ResetStats() override { return ToRocksdb(db_->ResetStats()); }
  Status GetApproximateSizes(const rocksdb::SizeApproximationOptions& options, Family* family,
                             const rocksdb::Range* ranges, int count, uint64_t* sizes) override {
    if (family == nullptr) return NoSuchFamily();
    if (!options.include_memtables && !options.include_files) {
      return Status::InvalidArgument("Invalid options");
    }
    std::vector<nacre::Range> ours;
    ours.reserve(static_cast<size_t>(std::max(count, 0)));
    for (int i = 0; i < count; ++i) {
      ours.push_back({.start = ToNacre(ranges[i].start), .limit = ToNacre(ranges[i].limit)});
    }
    std::fill_n(sizes, count, 0);
    if (options.include_files) {
      const nacre::Status status =
          db_->GetApproximateSizes(Ours(family), ours.data(), count, sizes);
      if (!status.ok()) return ToRocksdb(status);
    }
    for (int i = 0; options.include_memtables && i < count; ++i) {
      uint64_t entries = 0;
      uint64_t bytes = 0;
      db_->GetApproximateMemTableStats(Ours(family), ours[static_cast<size_t>(i)], &entries,
                                       &bytes);
      sizes[i] += bytes;
    }
    return Status::OK();
  }
  void GetApproximateMemTableStats(Family* family, const rocksdb::Range& range, uint64_t* count,
                                   uint64_t* size) override {
    *count = *size = 0;
    if (family == nullptr) return;
    db_->GetApproximateMemTableStats(
        Ours(family), {.start = ToNacre(range.start), .limit = ToNacre(range.limit)}, count, size);
  }

  void GetLiveFilesMetaData(std::vector<rocksdb::LiveFileMetaData>* metadata) override {
    std::vector<nacre::LiveTableMetaData> tables;
    db_->GetLiveTablesMetaData(&tables);
    *metadata = ToRocksdb(tables, GetName());
  }
  using DB::GetColumnFamilyMetaData;
  void GetColumnFamilyMetaData(Family* family, rocksdb::ColumnFamilyMetaData* metadata) override {
    nacre::ColumnFamilyMetaData ours;
    if (family != nullptr) db_->GetColumnFamilyMetaData(Ours(family), &ours);
    *metadata = ToRocksdb(ours, GetName());
  }
  void GetAllColumnFamilyMetaData(std::vector<rocksdb::ColumnFamilyMetaData>* metadata) override;

  // ---- Background work ----------------------------------------------------------------------

  using DB::CompactRange;
  using DB::Flush;
  using DB::VerifyChecksum;
  Status CompactRange(const rocksdb::CompactRangeOptions& options, Family* family,
                      const Slice* begin, const Slice* end) override {
    if (Status s = CheckBackground(family); !s.ok()) return s;
    if (options.full_history_ts_low != nullptr) return No("timestamps");
    if (options.target_path_id != 0) return Status::InvalidArgument("Invalid target path ID");
    if (options.canceled != nullptr && options.canceled->load(std::memory_order_acquire)) {
      return Status::Incomplete(Status::SubCode::kManualCompactionPaused);
    }
    nacre::CompactRangeOptions ours;
    ours.change_level = options.change_level;
    ours.target_level = options.target_level;
    ours.max_subcompactions = options.max_subcompactions;
    const nacre::Slice first = begin == nullptr ? nacre::Slice() : ToNacre(*begin);
    const nacre::Slice last = end == nullptr ? nacre::Slice() : ToNacre(*end);
    return ToRocksdb(db_->CompactRange(ours, Ours(family), begin == nullptr ? nullptr : &first,
                                       end == nullptr ? nullptr : &last));
  }
  Status Flush(const rocksdb::FlushOptions& options, Family* family) override {
    return Flush(options, Families{family});
  }
  Status Flush(const rocksdb::FlushOptions& options, const Families& families) override {
    for (Family* family : families) {
      if (Status s = CheckBackground(family); !s.ok()) return s;
    }
    std::vector<nacre::ColumnFamilyHandle*> our_families;
    if (Status s = ToOurs(families, &our_families); !s.ok()) return s;
    nacre::FlushOptions ours;
    ours.wait = options.wait;
    ours.allow_write_stall = options.allow_write_stall;
    return ToRocksdb(db_->Flush(ours, our_families));
  }
  Status FlushWAL(bool sync) override { return ToRocksdb(db_->FlushWAL(sync)); }
  Status SyncWAL() override { return FlushWAL(/*sync=*/true); }
  Status VerifyChecksum(const rocksdb::ReadOptions& /*options*/) override {
    return ToRocksdb(db_->VerifyChecksum());
  }
  Status SuggestCompactRange(Family* family, const Slice* begin, const Slice* end) override {
    if (family == nullptr) return NoSuchFamily();
    const nacre::Slice first = begin == nullptr ? nacre::Slice() : ToNacre(*begin);
    const nacre::Slice last = end == nullptr ? nacre::Slice() : ToNacre(*end);
    return ToRocksdb(db_->SuggestCompactRange(Ours(family), begin == nullptr ? nullptr : &first,
                                              end == nullptr ? nullptr : &last));
  }
  Status PauseBackgroundWork() override { return ToRocksdb(db_->PauseBackgroundWork()); }
  Status ContinueBackgroundWork() override { return ToRocksdb(db_->ContinueBackgroundWork()); }
  Status EnableAutoCompaction(const Families& families) override {
    std::vector<nacre::ColumnFamilyHandle*> ours;
    if (Status s = ToOurs(families, &ours); !s.ok()) return s;
    return ToRocksdb(db_->EnableAutoCompaction(ours));
  }
  void DisableManualCompaction() override { db_->DisableManualCompaction(); }
  void EnableManualCompaction() override { db_->EnableManualCompaction(); }
  Status Resume() override { return ToRocksdb(db_->Resume()); }
  void CancelAllBackgroundWork(bool wait) override {
    cancelled_.store(true, std::memory_order_relaxed);
    // Closing it ends the pause.
    if (wait) db_->PauseBackgroundWork().IgnoreError();
  }
  Status DeleteFilesInRanges(Family* family, const rocksdb::RangePtr* ranges, size_t count,
                             bool include_end) override;
  // There are no files that could be deleted.
  Status DisableFileDeletions() override {
    MutexLock lock(&mutex_);
    ++file_deletions_disabled_;
    properties_.set_file_deletions(false);
    return Status::OK();
  }
  Status EnableFileDeletions(bool force) override {
    MutexLock lock(&mutex_);
    file_deletions_disabled_ = force ? 0 : std::max(0, file_deletions_disabled_ - 1);
    properties_.set_file_deletions(file_deletions_disabled_ == 0);
    return Status::OK();
  }

  // ---- What it is ---------------------------------------------------------------------------

  using DB::GetOptions;
  using DB::Level0StopWriteTrigger;
  using DB::MaxMemCompactionLevel;
  using DB::NumberLevels;
  using DB::SetOptions;
  int NumberLevels(Family* family) override {
    return db_->NumberLevels(family == nullptr ? nullptr : Ours(family));
  }
  int MaxMemCompactionLevel(Family* /*family*/) override { return 0; }
  int Level0StopWriteTrigger(Family* family) override {
    return GetOptions(family).level0_stop_writes_trigger;
  }
  const std::string& GetName() const override { return db_->GetName(); }
  rocksdb::Env* GetEnv() const override {
    return options_.env == nullptr ? rocksdb::Env::Default() : options_.env;
  }
  rocksdb::Options GetOptions(Family* family) const override {
    const FamilyHandle& of = family == nullptr ? family_ : *static_cast<FamilyHandle*>(family);
    return {GetDBOptions(), of.CurrentOptions()};
  }
  rocksdb::DBOptions GetDBOptions() const override {
    rocksdb::DBOptions now = options_;
    CopyInForce(db_->GetDBOptions(), &now);
    return now;
  }
  Status SetOptions(Family* family,
                    const std::unordered_map<std::string, std::string>& changes) override {
    if (family == nullptr) return NoSuchFamily();
    return ToRocksdb(db_->SetOptions(Ours(family), changes));
  }
  Status SetDBOptions(const std::unordered_map<std::string, std::string>& changes) override {
    if (Status s = CheckChangeable(changes); !s.ok()) return s;
    return ToRocksdb(db_->SetDBOptions(changes));
  }
  rocksdb::SequenceNumber GetLatestSequenceNumber() const override {
    return db_->GetLatestSequenceNumber();
  }
  Status GetDbIdentity(std::string& identity) const override {
    identity = fmt::format("{:016x}", DatabaseIdOf(*db_));
    return Status::OK();
  }
  Status GetDbSessionId(std::string& id) const override {
    id = session_id_;
    return Status::OK();
  }
  Family* DefaultColumnFamily() const override { return &family_; }

 private:
  static Status NoSuchFamily() { return Status::InvalidArgument("no such column family"); }
  static FamilyHandle& Handle(Family* family) { return *static_cast<FamilyHandle*>(family); }
  static nacre::ColumnFamilyHandle* Ours(Family* family) { return Handle(family).ours(); }
  static Status ToOurs(const Families& families, std::vector<nacre::ColumnFamilyHandle*>* ours) {
    for (Family* family : families) {
      if (family == nullptr) return NoSuchFamily();
      ours->push_back(Ours(family));
    }
    return Status::OK();
  }
  /// Twenty characters, as RocksDB has them.
  static std::string NewSessionId();

  static void SetSnapshot(const rocksdb::ReadOptions& options, nacre::ReadOptions* ours) {
    if (options.snapshot == nullptr) return;
    ours->snapshot = static_cast<const NacreSnapshot*>(options.snapshot)->ours();
  }
  Status PointOptions(const rocksdb::ReadOptions& options, nacre::ReadOptions* ours) const {
    SetSnapshot(options, ours);
    if (options.read_tier == rocksdb::kPersistedTier && unlogged_.load(std::memory_order_relaxed)) {
      return No("ReadOptions::read_tier after writes without a log");
    }
    if (IsPast(options.deadline, GetEnv())) return Status::TimedOut("ReadOptions::deadline");
    return ToNacre(options, ReadKind::kPoint, ours);
  }
  /// `Incomplete` if it is not in this process's memory.
  Status GetFromMemory(const nacre::ReadOptions& ours, Family* family, const Slice& key,
                       rocksdb::PinnableSlice* value) {
    bool found = false;
    std::string text;
    if (!db_->KeyMayExist(ours, Ours(family), ToNacre(key), &text, &found)) {
      return Status::NotFound();
    }
    if (!found) return Status::Incomplete("no blocking io");
    value->PinSelf(text);
    return Status::OK();
  }

  void NoteUnlogged(const rocksdb::WriteOptions& options) {
    if (options.disableWAL) unlogged_.store(true, std::memory_order_relaxed);
  }
  template <typename Function>
  Status Update(const rocksdb::WriteOptions& options, Family* family, Function update) {
    if (family == nullptr) return NoSuchFamily();
    nacre::WriteOptions ours;
    if (Status s = ToNacre(options, &ours); !s.ok()) return s;
    NoteUnlogged(options);
    const nacre::Status status = update(ours);
    if (options.ignore_missing_column_families && Handle(family).dropped()) return Status::OK();
    return ToRocksdb(status);
  }
  /// Leaves out the updates of families that do not exist.
  Status WriteToPresent(const nacre::WriteOptions& ours, const rocksdb::WriteBatch& updates);

  /// Checks whether flushes and compactions may run. A null family stands for none.
  Status CheckBackground(Family* family) const {
    if (family == nullptr) return NoSuchFamily();
    if (Handle(family).dropped()) return Status::ColumnFamilyDropped();
    // What was flushed before it was set, and what comes too late, is the caller's business.
    return cancelled_.load(std::memory_order_relaxed) ? Status::ShutdownInProgress() : Status::OK();
  }

  const rocksdb::DBOptions options_;
  const nacre::ColumnFamilyOptions base_;
  const std::unique_ptr<nacre::DB> db_;
  const std::shared_ptr<ErrorCounter> errors_;
  SnapshotTimes snapshot_times_;
  PropertySource properties_;
  const std::string session_id_;
  std::atomic<bool> unlogged_{false};   ///< A write went without a log.
  std::atomic<bool> cancelled_{false};  ///< Background work was given up.
  Mutex mutex_;
  int file_deletions_disabled_ GUARDED_BY(mutex_) = 0;
  mutable FamilyHandle family_;
};

}  // namespace nacre::rocksdb_api
