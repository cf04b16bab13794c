#include "adapters/rocksdb/nacre_rocksdb.h"

#include <rocksdb/write_batch.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "adapters/rocksdb/batch_checker.h"
#include "adapters/rocksdb/convert.h"
#include "adapters/rocksdb/handles.h"
#include "adapters/rocksdb/iterator.h"
#include "adapters/rocksdb/unsupported_db.h"
#include "nacre/db.h"

namespace nacre::rocksdb_api {
namespace {

rocksdb::ColumnFamilyHandle* NewHandle(nacre::DB* db, nacre::ColumnFamilyHandle* ours,
                                       const rocksdb::ColumnFamilyOptions& options) {
  return std::make_unique<FamilyHandle>(db, ours, options, FamilyHandle::Owns::kHandle).release();
}

class NacreRocksdb final : public UnsupportedDb {
 public:
  /// `family_options`: of the default family. `base`: what new families have that RocksDB has no
  /// word for.
  NacreRocksdb(const rocksdb::DBOptions& options,
               const rocksdb::ColumnFamilyOptions& family_options,
               const nacre::ColumnFamilyOptions& base, std::unique_ptr<nacre::DB> db)
      : options_(options),
        base_(base),
        db_(std::move(db)),
        family_(db_.get(), db_->DefaultColumnFamily(), family_options,
                FamilyHandle::Owns::kNothing) {}

  Status Close() override { return ToRocksdb(db_->Close()); }

  // ---- Column families ----------------------------------------------------------------------

  Status CreateColumnFamily(const rocksdb::ColumnFamilyOptions& options, const std::string& name,
                            Family** handle) override {
    nacre::ColumnFamilyOptions ours = base_;
    if (Status s = ToNacre(options, options_.info_log, &ours); !s.ok()) return s;
    nacre::ColumnFamilyHandle* made = nullptr;
    const nacre::Status status = db_->CreateColumnFamily(ours, name, &made);
    if (status.ok()) *handle = NewHandle(db_.get(), made, options);
    return ToRocksdb(status);
  }
  Status CreateColumnFamilies(const rocksdb::ColumnFamilyOptions& options,
                              const std::vector<std::string>& names, Families* handles) override {
    std::vector<rocksdb::ColumnFamilyDescriptor> families;
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
    return ToRocksdb(db_->DropColumnFamily(Ours(family)));
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
    if (family == nullptr) return NoSuchFamily();
    return ToRocksdb(db_->Put(ToNacre(options), Ours(family), ToNacre(key), ToNacre(value)));
  }
  Status Delete(const rocksdb::WriteOptions& options, Family* family, const Slice& key) override {
    if (family == nullptr) return NoSuchFamily();
    return ToRocksdb(db_->Delete(ToNacre(options), Ours(family), ToNacre(key)));
  }
  Status SingleDelete(const rocksdb::WriteOptions& options, Family* family,
                      const Slice& key) override {
    if (family == nullptr) return NoSuchFamily();
    return ToRocksdb(db_->SingleDelete(ToNacre(options), Ours(family), ToNacre(key)));
  }
  Status DeleteRange(const rocksdb::WriteOptions& options, Family* family, const Slice& begin,
                     const Slice& end) override {
    if (family == nullptr) return NoSuchFamily();
    return ToRocksdb(
        db_->DeleteRange(ToNacre(options), Ours(family), ToNacre(begin), ToNacre(end)));
  }
  Status Merge(const rocksdb::WriteOptions& options, Family* family, const Slice& key,
               const Slice& operand) override {
    if (family == nullptr) return NoSuchFamily();
    return ToRocksdb(db_->Merge(ToNacre(options), Ours(family), ToNacre(key), ToNacre(operand)));
  }
  Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* updates) override {
    BatchChecker checker;
    if (Status s = updates->Iterate(&checker); !s.ok()) return s;
    nacre::WriteBatch ours(updates->Data());
    return ToRocksdb(db_->Write(ToNacre(options), &ours));
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
    if (Status s = OptionsOf(options, &ours); !s.ok()) return s;
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
    if (Status s = OptionsOf(options, &ours); !s.ok()) return s;
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
    Status refused = family == nullptr ? NoSuchFamily() : OptionsOf(options, &ours);
    if (!refused.ok()) {
      for (size_t i = 0; i < count; ++i) statuses[i] = refused;
      return;
    }
    std::vector<nacre::Slice> our_keys;
    for (size_t i = 0; i < count; ++i) our_keys.push_back(ToNacre(keys[i]));
    std::vector<nacre::PinnableSlice> found(count);
    std::vector<nacre::Status> answers(count);
    db_->MultiGet(ours, Ours(family), count, our_keys.data(), found.data(), answers.data());
    for (size_t i = 0; i < count; ++i) {
      statuses[i] = ToRocksdb(answers[i]);
      if (answers[i].ok()) values[i].PinSelf(ToRocksdb(found[i]));
    }
  }
  std::vector<Status> MultiGet(const rocksdb::ReadOptions& options, const Families& families,
                               const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override {
    nacre::ReadOptions ours;
    std::vector<nacre::ColumnFamilyHandle*> our_families;
    Status refused = OptionsOf(options, &ours);
    if (refused.ok()) refused = ToOurs(families, &our_families);
    if (!refused.ok()) return std::vector<Status>(keys.size(), refused);
    std::vector<nacre::Slice> our_keys;
    for (const Slice& key : keys) our_keys.push_back(ToNacre(key));
    std::vector<Status> statuses;
    for (const nacre::Status& status : db_->MultiGet(ours, our_families, our_keys, values)) {
      statuses.push_back(ToRocksdb(status));
    }
    return statuses;
  }
  bool KeyMayExist(const rocksdb::ReadOptions& options, Family* family, const Slice& key,
                   std::string* value, std::string* /*timestamp*/, bool* value_found) override {
    if (value_found != nullptr) *value_found = false;
    nacre::ReadOptions ours;
    if (family == nullptr || !OptionsOf(options, &ours).ok()) return true;
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
    if (Status s = OptionsOf(options, &ours); !s.ok()) return s;
    std::vector<nacre::ColumnFamilyHandle*> our_families;
    if (Status s = ToOurs(families, &our_families); !s.ok()) return s;
    const auto bounds = std::make_shared<const Bounds>(options);
    bounds->AddTo(&ours);
    std::vector<std::unique_ptr<nacre::Iterator>> made;
    if (nacre::Status s = db_->NewIterators(ours, our_families, &made); !s.ok()) {
      return ToRocksdb(s);
    }
    for (std::unique_ptr<nacre::Iterator>& iterator : made) {
      iterators->push_back(std::make_unique<NacreIterator>(std::move(iterator), bounds).release());
    }
    return Status::OK();
  }
  const rocksdb::Snapshot* GetSnapshot() override {
    return std::make_unique<NacreSnapshot>(db_->GetSnapshot()).release();
  }
  void ReleaseSnapshot(const rocksdb::Snapshot* snapshot) override {
    const std::unique_ptr<const NacreSnapshot> theirs(static_cast<const NacreSnapshot*>(snapshot));
    if (theirs != nullptr) db_->ReleaseSnapshot(theirs->ours());
  }

  // ---- Properties ---------------------------------------------------------------------------

  using DB::GetApproximateMemTableStats;
  using DB::GetApproximateSizes;
  using DB::GetIntProperty;
  using DB::GetMapProperty;
  using DB::GetProperty;
  bool GetProperty(Family* family, const Slice& property, std::string* value) override {
    return family != nullptr && db_->GetProperty(Ours(family), ToNacre(property), value);
  }
  bool GetIntProperty(Family* family, const Slice& property, uint64_t* value) override {
    return family != nullptr && db_->GetIntProperty(Ours(family), ToNacre(property), value);
  }
  bool GetMapProperty(Family* family, const Slice& property,
                      std::map<std::string, std::string>* value) override {
    return family != nullptr && db_->GetMapProperty(Ours(family), ToNacre(property), value);
  }
  bool GetAggregatedIntProperty(const Slice& property, uint64_t* value) override {
    return db_->GetAggregatedIntProperty(ToNacre(property), value);
  }
  Status ResetStats() override { return ToRocksdb(db_->ResetStats()); }
  Status GetApproximateSizes(const rocksdb::SizeApproximationOptions& options, Family* family,
                             const rocksdb::Range* ranges, int count, uint64_t* sizes) override {
    if (family == nullptr) return NoSuchFamily();
    if (options.include_memtables) return No("SizeApproximationOptions::include_memtables");
    std::vector<nacre::Range> ours;
    for (int i = 0; i < count; ++i) {
      ours.push_back({.start = ToNacre(ranges[i].start), .limit = ToNacre(ranges[i].limit)});
    }
    return ToRocksdb(db_->GetApproximateSizes(Ours(family), ours.data(), count, sizes));
  }
  void GetApproximateMemTableStats(Family* family, const rocksdb::Range& range, uint64_t* count,
                                   uint64_t* size) override {
    *count = *size = 0;
    if (family == nullptr) return;
    db_->GetApproximateMemTableStats(
        Ours(family), {.start = ToNacre(range.start), .limit = ToNacre(range.limit)}, count, size);
  }

  // ---- Background work ----------------------------------------------------------------------

  using DB::CompactRange;
  using DB::Flush;
  using DB::VerifyChecksum;
  Status CompactRange(const rocksdb::CompactRangeOptions& options, Family* family,
                      const Slice* begin, const Slice* end) override {
    if (family == nullptr) return NoSuchFamily();
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
  rocksdb::Env* GetEnv() const override { return options_.env; }
  rocksdb::Options GetOptions(Family* family) const override {
    const FamilyHandle& of = family == nullptr ? family_ : *static_cast<FamilyHandle*>(family);
    return {GetDBOptions(), of.CurrentOptions()};
  }
  rocksdb::DBOptions GetDBOptions() const override {
    rocksdb::DBOptions now = options_;
    CopyMutable(db_->GetDBOptions(), &now);
    return now;
  }
  Status SetOptions(Family* family,
                    const std::unordered_map<std::string, std::string>& changes) override {
    if (family == nullptr) return NoSuchFamily();
    return ToRocksdb(db_->SetOptions(Ours(family), changes));
  }
  Status SetDBOptions(const std::unordered_map<std::string, std::string>& changes) override {
    return ToRocksdb(db_->SetDBOptions(changes));
  }
  rocksdb::SequenceNumber GetLatestSequenceNumber() const override {
    return db_->GetLatestSequenceNumber();
  }
  Status GetDbIdentity(std::string& /*identity*/) const override { return No("GetDbIdentity"); }
  Status GetDbSessionId(std::string& /*id*/) const override { return No("GetDbSessionId"); }
  Family* DefaultColumnFamily() const override { return &family_; }

 private:
  static Status NoSuchFamily() { return Status::InvalidArgument("no such column family"); }
  static nacre::ColumnFamilyHandle* Ours(Family* family) {
    return static_cast<FamilyHandle*>(family)->ours();
  }
  static Status ToOurs(const Families& families, std::vector<nacre::ColumnFamilyHandle*>* ours) {
    for (Family* family : families) {
      if (family == nullptr) return NoSuchFamily();
      ours->push_back(Ours(family));
    }
    return Status::OK();
  }
  static Status OptionsOf(const rocksdb::ReadOptions& options, nacre::ReadOptions* ours) {
    if (options.snapshot != nullptr) {
      ours->snapshot = static_cast<const NacreSnapshot*>(options.snapshot)->ours();
    }
    return ToNacre(options, ours);
  }

  const rocksdb::DBOptions options_;
  const nacre::ColumnFamilyOptions base_;
  const std::unique_ptr<nacre::DB> db_;
  mutable FamilyHandle family_;
};

}  // namespace

rocksdb::Status Open(const rocksdb::Options& options, const nacre::Options& nacre_options,
                     const std::string& name, std::unique_ptr<rocksdb::DB>* db) {
  std::vector<rocksdb::ColumnFamilyHandle*> handles;
  rocksdb::Status status = Open(options, nacre_options, name,
                                {{rocksdb::kDefaultColumnFamilyName, options}}, &handles, db);
  for (rocksdb::ColumnFamilyHandle* handle : handles) {
    const std::unique_ptr<rocksdb::ColumnFamilyHandle> unused(handle);
  }
  return status;
}

rocksdb::Status Open(const rocksdb::DBOptions& options, const nacre::Options& nacre_options,
                     const std::string& name,
                     const std::vector<rocksdb::ColumnFamilyDescriptor>& families,
                     std::vector<rocksdb::ColumnFamilyHandle*>* handles,
                     std::unique_ptr<rocksdb::DB>* db) {
  handles->clear();
  nacre::DBOptions ours = nacre_options;
  if (rocksdb::Status s = ToNacre(options, &ours); !s.ok()) return s;
  std::vector<nacre::ColumnFamilyDescriptor> our_families;
  rocksdb::ColumnFamilyOptions of_default;
  for (const auto& [family, family_options] : families) {
    nacre::ColumnFamilyDescriptor& next = our_families.emplace_back(family, nacre_options);
    if (rocksdb::Status s = ToNacre(family_options, options.info_log, &next.options); !s.ok()) {
      return s;
    }
    if (family == rocksdb::kDefaultColumnFamilyName) of_default = family_options;
  }
  std::unique_ptr<nacre::DB> opened;
  std::vector<nacre::ColumnFamilyHandle*> our_handles;
  if (nacre::Status s = nacre::DB::Open(ours, name, our_families, &our_handles, &opened); !s.ok()) {
    return ToRocksdb(s);
  }
  for (size_t i = 0; i < families.size(); ++i) {
    handles->push_back(NewHandle(opened.get(), our_handles[i], families[i].options));
  }
  *db = std::make_unique<NacreRocksdb>(options, of_default, nacre_options, std::move(opened));
  return rocksdb::Status::OK();
}

rocksdb::Status ListColumnFamilies(const nacre::Options& nacre_options, const std::string& name,
                                   std::vector<std::string>* families) {
  return ToRocksdb(nacre::DB::ListColumnFamilies(nacre_options, name, families));
}

rocksdb::Status Destroy(const nacre::Options& nacre_options, const std::string& name) {
  return ToRocksdb(nacre::DestroyDB(name, nacre_options));
}

}  // namespace nacre::rocksdb_api
