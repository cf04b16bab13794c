#include "adapters/rocksdb/nacre_rocksdb.h"

#include <rocksdb/write_batch.h>

#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "adapters/rocksdb/convert.h"
#include "adapters/rocksdb/unsupported_db.h"
#include "nacre/db.h"

namespace nacre::rocksdb_api {
namespace {

/// A failure that concerns this interface, as the failure of an iterator.
class FailedIterator final : public rocksdb::Iterator {
 public:
  explicit FailedIterator(rocksdb::Status status) : status_(std::move(status)) {}
  bool Valid() const override { return false; }
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Seek(const rocksdb::Slice& /*target*/) override {}
  void SeekForPrev(const rocksdb::Slice& /*target*/) override {}
  void Next() override {}
  void Prev() override {}
  rocksdb::Slice key() const override { return {}; }
  rocksdb::Slice value() const override { return {}; }
  rocksdb::Status status() const override { return status_; }

 private:
  const rocksdb::Status status_;
};

class NacreIterator final : public rocksdb::Iterator {
 public:
  NacreIterator(nacre::DB* db, nacre::ReadOptions options, const rocksdb::ReadOptions& theirs) {
    // The bounds have to stay as long as the iterator: these do.
    if (theirs.iterate_lower_bound != nullptr) {
      lower_ = ToNacre(*theirs.iterate_lower_bound);
      options.iterate_lower_bound = &lower_;
    }
    if (theirs.iterate_upper_bound != nullptr) {
      upper_ = ToNacre(*theirs.iterate_upper_bound);
      options.iterate_upper_bound = &upper_;
    }
    iterator_ = db->NewIterator(options);
  }
  bool Valid() const override { return iterator_->Valid(); }
  void SeekToFirst() override { iterator_->SeekToFirst(); }
  void SeekToLast() override { iterator_->SeekToLast(); }
  void Seek(const rocksdb::Slice& target) override { iterator_->Seek(ToNacre(target)); }
  void SeekForPrev(const rocksdb::Slice& target) override {
    iterator_->SeekForPrev(ToNacre(target));
  }
  void Next() override { iterator_->Next(); }
  void Prev() override { iterator_->Prev(); }
  rocksdb::Slice key() const override { return ToRocksdb(iterator_->key()); }
  rocksdb::Slice value() const override { return ToRocksdb(iterator_->value()); }
  rocksdb::Status status() const override { return ToRocksdb(iterator_->status()); }

 private:
  nacre::Slice lower_;
  nacre::Slice upper_;
  std::unique_ptr<nacre::Iterator> iterator_;
};

class NacreSnapshot final : public rocksdb::Snapshot {
 public:
  explicit NacreSnapshot(const nacre::Snapshot* snapshot) : snapshot_(snapshot) {}
  ~NacreSnapshot() override = default;
  rocksdb::SequenceNumber GetSequenceNumber() const override {
    return snapshot_->GetSequenceNumber();
  }
  int64_t GetUnixTime() const override { return seconds_; }
  uint64_t GetTimestamp() const override { return UINT64_MAX; }
  const nacre::Snapshot* ours() const { return snapshot_; }

 private:
  const nacre::Snapshot* const snapshot_;
  const int64_t seconds_ = std::chrono::duration_cast<std::chrono::seconds>(
                               std::chrono::system_clock::now().time_since_epoch())
                               .count();
};

/// The one column family.
class DefaultFamily final : public rocksdb::ColumnFamilyHandle {
 public:
  explicit DefaultFamily(const rocksdb::Options& options) : options_(options) {}
  const std::string& GetName() const override { return rocksdb::kDefaultColumnFamilyName; }
  uint32_t GetID() const override { return 0; }
  rocksdb::Status GetDescriptor(rocksdb::ColumnFamilyDescriptor* descriptor) override {
    *descriptor = {rocksdb::kDefaultColumnFamilyName, options_};
    return rocksdb::Status::OK();
  }
  const rocksdb::Comparator* GetComparator() const override { return options_.comparator; }

 private:
  const rocksdb::Options& options_;
};

/// Takes the updates of RocksDB's batch over into one of ours.
class BatchCopier final : public rocksdb::WriteBatch::Handler {
 public:
  rocksdb::Status PutCF(uint32_t family, const rocksdb::Slice& key,
                        const rocksdb::Slice& value) override {
    if (family != 0) return NoSuchFamily();
    return ToRocksdb(batch_.Put(ToNacre(key), ToNacre(value)));
  }
  rocksdb::Status DeleteCF(uint32_t family, const rocksdb::Slice& key) override {
    if (family != 0) return NoSuchFamily();
    return ToRocksdb(batch_.Delete(ToNacre(key)));
  }
  rocksdb::Status SingleDeleteCF(uint32_t family, const rocksdb::Slice& key) override {
    return DeleteCF(family, key);
  }
  rocksdb::Status DeleteRangeCF(uint32_t, const rocksdb::Slice&, const rocksdb::Slice&) override {
    return rocksdb::Status::NotSupported("DeleteRange");
  }
  rocksdb::Status MergeCF(uint32_t, const rocksdb::Slice&, const rocksdb::Slice&) override {
    return rocksdb::Status::NotSupported("Merge");
  }
  rocksdb::Status PutEntityCF(uint32_t, const rocksdb::Slice&, const rocksdb::Slice&) override {
    return rocksdb::Status::NotSupported("PutEntity");
  }
  void LogData(const rocksdb::Slice&) override {}

  nacre::WriteBatch* batch() { return &batch_; }

 private:
  static rocksdb::Status NoSuchFamily() {
    return rocksdb::Status::InvalidArgument("no such column family");
  }

  nacre::WriteBatch batch_;
};

class NacreRocksdb final : public UnsupportedDb {
 public:
  NacreRocksdb(const rocksdb::Options& options, std::unique_ptr<nacre::DB> db)
      : options_(options), family_(options_), db_(std::move(db)) {}

  Status Close() override { return ToRocksdb(db_->Close()); }

  // ---- Writes -------------------------------------------------------------------------------

  using UnsupportedDb::Delete;
  using UnsupportedDb::Put;
  using UnsupportedDb::SingleDelete;
  Status Put(const rocksdb::WriteOptions& options, Family* family, const Slice& key,
             const Slice& value) override {
    if (family != &family_) return NoSuchFamily();
    return ToRocksdb(db_->Put(ToNacre(options), ToNacre(key), ToNacre(value)));
  }
  Status Delete(const rocksdb::WriteOptions& options, Family* family, const Slice& key) override {
    if (family != &family_) return NoSuchFamily();
    return ToRocksdb(db_->Delete(ToNacre(options), ToNacre(key)));
  }
  Status SingleDelete(const rocksdb::WriteOptions& options, Family* family,
                      const Slice& key) override {
    return Delete(options, family, key);
  }
  Status Write(const rocksdb::WriteOptions& options, rocksdb::WriteBatch* updates) override {
    BatchCopier copier;
    if (Status s = updates->Iterate(&copier); !s.ok()) return s;
    return ToRocksdb(db_->Write(ToNacre(options), copier.batch()));
  }

  // ---- Reads --------------------------------------------------------------------------------

  using DB::Get;
  using DB::MultiGet;
  using DB::NewIterator;
  Status Get(const rocksdb::ReadOptions& options, Family* family, const Slice& key,
             rocksdb::PinnableSlice* value) override {
    if (family != &family_) return NoSuchFamily();
    nacre::ReadOptions ours;
    if (Status s = OptionsOf(options, &ours); !s.ok()) return s;
    nacre::PinnableSlice found;
    const nacre::Status status = db_->Get(ours, ToNacre(key), &found);
    if (status.ok()) value->PinSelf(ToRocksdb(found));
    return ToRocksdb(status);
  }
  void MultiGet(const rocksdb::ReadOptions& options, Family* family, size_t count,
                const Slice* keys, rocksdb::PinnableSlice* values, Status* statuses,
                bool /*sorted_input*/) override {
    nacre::ReadOptions ours;
    Status refused = family == &family_ ? OptionsOf(options, &ours) : NoSuchFamily();
    if (!refused.ok()) {
      for (size_t i = 0; i < count; ++i) statuses[i] = refused;
      return;
    }
    std::vector<nacre::Slice> our_keys;
    for (size_t i = 0; i < count; ++i) our_keys.push_back(ToNacre(keys[i]));
    std::vector<nacre::PinnableSlice> found(count);
    std::vector<nacre::Status> answers(count);
    db_->MultiGet(ours, count, our_keys.data(), found.data(), answers.data());
    for (size_t i = 0; i < count; ++i) {
      statuses[i] = ToRocksdb(answers[i]);
      if (answers[i].ok()) values[i].PinSelf(ToRocksdb(found[i]));
    }
  }
  std::vector<Status> MultiGet(const rocksdb::ReadOptions& options, const Families& families,
                               const std::vector<Slice>& keys,
                               std::vector<std::string>* values) override {
    std::vector<Status> statuses(keys.size());
    values->assign(keys.size(), "");
    for (Family* family : families) {
      if (family != &family_) return std::vector<Status>(keys.size(), NoSuchFamily());
    }
    std::vector<rocksdb::PinnableSlice> found(keys.size());
    MultiGet(options, &family_, keys.size(), keys.data(), found.data(), statuses.data(), false);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (statuses[i].ok()) (*values)[i] = found[i].ToString();
    }
    return statuses;
  }
  rocksdb::Iterator* NewIterator(const rocksdb::ReadOptions& options, Family* family) override {
    nacre::ReadOptions ours;
    Status refused = family == &family_ ? OptionsOf(options, &ours) : NoSuchFamily();
    if (!refused.ok()) return std::make_unique<FailedIterator>(std::move(refused)).release();
    return std::make_unique<NacreIterator>(db_.get(), ours, options).release();
  }
  Status NewIterators(const rocksdb::ReadOptions& options, const Families& families,
                      std::vector<rocksdb::Iterator*>* iterators) override {
    for (Family* family : families) {
      if (family != &family_) return NoSuchFamily();
    }
    iterators->clear();
    for (Family* family : families) iterators->push_back(NewIterator(options, family));
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
    return family == &family_ && db_->GetProperty(OurName(property), value);
  }
  bool GetIntProperty(Family* family, const Slice& property, uint64_t* value) override {
    return family == &family_ && db_->GetIntProperty(OurName(property), value);
  }
  bool GetMapProperty(Family* /*family*/, const Slice& /*property*/,
                      std::map<std::string, std::string>* /*value*/) override {
    return false;
  }
  bool GetAggregatedIntProperty(const Slice& property, uint64_t* value) override {
    return GetIntProperty(&family_, property, value);
  }
  Status GetApproximateSizes(const rocksdb::SizeApproximationOptions& options, Family* family,
                             const rocksdb::Range* ranges, int count, uint64_t* sizes) override {
    if (family != &family_) return NoSuchFamily();
    if (options.include_memtables) return No("SizeApproximationOptions::include_memtables");
    std::vector<nacre::Range> ours;
    for (int i = 0; i < count; ++i) {
      ours.push_back({.start = ToNacre(ranges[i].start), .limit = ToNacre(ranges[i].limit)});
    }
    return ToRocksdb(db_->GetApproximateSizes(ours.data(), count, sizes));
  }
  /// Nothing is known of parts of a MemTable.
  void GetApproximateMemTableStats(Family* /*family*/, const rocksdb::Range& /*range*/,
                                   uint64_t* count, uint64_t* size) override {
    *count = 0;
    *size = 0;
  }

  // ---- Background work ----------------------------------------------------------------------

  using DB::CompactRange;
  using DB::Flush;
  using DB::VerifyChecksum;
  Status CompactRange(const rocksdb::CompactRangeOptions& options, Family* family,
                      const Slice* begin, const Slice* end) override {
    if (family != &family_) return NoSuchFamily();
    nacre::CompactRangeOptions ours;
    ours.change_level = options.change_level;
    ours.target_level = options.target_level;
    ours.max_subcompactions = options.max_subcompactions;
    const nacre::Slice first = begin == nullptr ? nacre::Slice() : ToNacre(*begin);
    const nacre::Slice last = end == nullptr ? nacre::Slice() : ToNacre(*end);
    return ToRocksdb(db_->CompactRange(ours, begin == nullptr ? nullptr : &first,
                                       end == nullptr ? nullptr : &last));
  }
  Status Flush(const rocksdb::FlushOptions& options, Family* family) override {
    if (family != &family_) return NoSuchFamily();
    nacre::FlushOptions ours;
    ours.wait = options.wait;
    ours.allow_write_stall = options.allow_write_stall;
    return ToRocksdb(db_->Flush(ours));
  }
  Status Flush(const rocksdb::FlushOptions& options, const Families& families) override {
    for (Family* family : families) {
      if (Status s = Flush(options, family); !s.ok()) return s;
    }
    return Status::OK();
  }
  Status FlushWAL(bool sync) override { return ToRocksdb(db_->FlushWAL(sync)); }
  Status SyncWAL() override { return FlushWAL(/*sync=*/true); }
  Status VerifyChecksum(const rocksdb::ReadOptions& /*options*/) override {
    return ToRocksdb(db_->VerifyChecksum());
  }

  // ---- What it is ---------------------------------------------------------------------------

  using DB::GetOptions;
  using DB::Level0StopWriteTrigger;
  using DB::MaxMemCompactionLevel;
  using DB::NumberLevels;
  int NumberLevels(Family* /*family*/) override { return options_.num_levels; }
  int MaxMemCompactionLevel(Family* /*family*/) override { return 0; }
  int Level0StopWriteTrigger(Family* /*family*/) override {
    return options_.level0_stop_writes_trigger;
  }
  const std::string& GetName() const override { return db_->GetName(); }
  rocksdb::Env* GetEnv() const override { return options_.env; }
  rocksdb::Options GetOptions(Family* /*family*/) const override { return options_; }
  rocksdb::DBOptions GetDBOptions() const override { return options_; }
  rocksdb::SequenceNumber GetLatestSequenceNumber() const override {
    return db_->GetLatestSequenceNumber();
  }
  Status GetDbIdentity(std::string& /*identity*/) const override { return No("GetDbIdentity"); }
  Status GetDbSessionId(std::string& /*id*/) const override { return No("GetDbSessionId"); }
  Family* DefaultColumnFamily() const override { return &family_; }

 private:
  static Status NoSuchFamily() { return Status::InvalidArgument("no such column family"); }
  /// "rocksdb.stats" is "nacre.stats".
  static std::string OurName(const Slice& property) {
    constexpr std::string_view kTheirs = "rocksdb.";
    const std::string name = property.ToString();
    return name.starts_with(kTheirs) ? "nacre." + name.substr(kTheirs.size()) : name;
  }
  static Status OptionsOf(const rocksdb::ReadOptions& options, nacre::ReadOptions* ours) {
    if (options.snapshot != nullptr) {
      ours->snapshot = static_cast<const NacreSnapshot*>(options.snapshot)->ours();
    }
    return ToNacre(options, ours);
  }

  const rocksdb::Options options_;
  mutable DefaultFamily family_;
  const std::unique_ptr<nacre::DB> db_;
};

}  // namespace

rocksdb::Status Open(const rocksdb::Options& options, const nacre::Options& nacre_options,
                     const std::string& name, std::unique_ptr<rocksdb::DB>* db) {
  nacre::Options ours = nacre_options;
  if (rocksdb::Status s = ToNacre(options, &ours); !s.ok()) return s;
  std::unique_ptr<nacre::DB> opened;
  if (nacre::Status s = nacre::DB::Open(ours, name, &opened); !s.ok()) return ToRocksdb(s);
  *db = std::make_unique<NacreRocksdb>(options, std::move(opened));
  return rocksdb::Status::OK();
}

rocksdb::Status Destroy(const nacre::Options& nacre_options, const std::string& name) {
  return ToRocksdb(nacre::DestroyDB(name, nacre_options));
}

}  // namespace nacre::rocksdb_api
