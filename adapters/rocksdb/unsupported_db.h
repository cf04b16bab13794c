#pragma once

#include <rocksdb/db.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace nacre::rocksdb_api {

/// Implements the calls of rocksdb::DB that Nacre does not support: they answer `NotSupported`,
/// naming the call. Every rocksdb::DB of Nacre's is one of these.
class UnsupportedDb : public rocksdb::DB {
 public:
  using DB::CompactFiles;
  using DB::Delete;
  using DB::Merge;
  using DB::Put;
  using DB::SingleDelete;
  using Families = std::vector<rocksdb::ColumnFamilyHandle*>;
  using Family = rocksdb::ColumnFamilyHandle;
  using Slice = rocksdb::Slice;
  using Status = rocksdb::Status;

  // ---- RocksDB's functions of these names (rocksdb_calls.cc) ---------------------------------

  /// Nothing is flushed and compacted any more; with `wait`, returns when what runs has ended.
  virtual void CancelAllBackgroundWork(bool wait) = 0;
  /// Deletes what lies in the range of a table that is in one of `ranges` whole.
  virtual Status DeleteFilesInRanges(Family* family, const rocksdb::RangePtr* ranges, size_t count,
                                     bool include_end) = 0;

  // ---- Timestamps ----------------------------------------------------------------------------

  Status Put(const rocksdb::WriteOptions&, Family*, const Slice&, const Slice&,
             const Slice&) override {
    return No("timestamps");
  }
  Status Delete(const rocksdb::WriteOptions&, Family*, const Slice&, const Slice&) override {
    return No("timestamps");
  }
  Status SingleDelete(const rocksdb::WriteOptions&, Family*, const Slice&, const Slice&) override {
    return No("timestamps");
  }
  Status IncreaseFullHistoryTsLow(Family*, std::string) override { return No("timestamps"); }
  Status GetFullHistoryTsLow(Family*, std::string*) override { return No("timestamps"); }

  // ---- What decides over background work ----------------------------------------------------

  Status CompactFiles(const rocksdb::CompactionOptions&, Family*, const std::vector<std::string>&,
                      int, int, std::vector<std::string>*, rocksdb::CompactionJobInfo*) override {
    return No("CompactFiles");
  }

  // ---- Files, of which there are none -------------------------------------------------------

  Status GetCreationTimeOfOldestFile(uint64_t*) override {
    return No("GetCreationTimeOfOldestFile");
  }
  Status GetUpdatesSince(rocksdb::SequenceNumber, std::unique_ptr<rocksdb::TransactionLogIterator>*,
                         const rocksdb::TransactionLogIterator::ReadOptions&) override {
    return No("GetUpdatesSince");
  }
  Status DeleteFile(std::string) override { return No("DeleteFile"); }
  Status GetLiveFilesChecksumInfo(rocksdb::FileChecksumList*) override {
    return No("GetLiveFilesChecksumInfo");
  }
  Status GetLiveFilesStorageInfo(const rocksdb::LiveFilesStorageInfoOptions&,
                                 std::vector<rocksdb::LiveFileStorageInfo>*) override {
    return No("GetLiveFilesStorageInfo");
  }
  Status GetLiveFiles(std::vector<std::string>&, uint64_t*, bool) override {
    return No("GetLiveFiles");
  }
  Status GetSortedWalFiles(rocksdb::VectorLogPtr&) override { return No("GetSortedWalFiles"); }
  Status GetCurrentWalFile(std::unique_ptr<rocksdb::LogFile>*) override {
    return No("GetCurrentWalFile");
  }
  Status IngestExternalFile(Family*, const std::vector<std::string>&,
                            const rocksdb::IngestExternalFileOptions&) override {
    return No("IngestExternalFile");
  }
  Status IngestExternalFiles(const std::vector<rocksdb::IngestExternalFileArg>&) override {
    return No("IngestExternalFiles");
  }
  Status CreateColumnFamilyWithImport(const rocksdb::ColumnFamilyOptions&, const std::string&,
                                      const rocksdb::ImportColumnFamilyOptions&,
                                      const rocksdb::ExportImportFilesMetaData&,
                                      Family**) override {
    return No("CreateColumnFamilyWithImport");
  }
  Status GetPropertiesOfAllTables(Family*, rocksdb::TablePropertiesCollection*) override {
    return No("GetPropertiesOfAllTables");
  }
  Status GetPropertiesOfTablesInRange(Family*, const rocksdb::Range*, std::size_t,
                                      rocksdb::TablePropertiesCollection*) override {
    return No("GetPropertiesOfTablesInRange");
  }

 protected:
  static Status No(const char* what) { return Status::NotSupported(what, "Nacre has not got it"); }
};

}  // namespace nacre::rocksdb_api
