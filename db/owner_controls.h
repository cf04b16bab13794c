#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "nacre/db.h"

namespace nacre {

struct DatabaseParts;

/// The calls by which an owner is looked at and steered while it is open, as DB has them: all that
/// is neither a write nor a read nor what these need. They look into the database that is made of
/// this, with its locks; nothing is kept here.
class OwnerControls : public DB {
 public:
  // ---- db_properties.cc ----
  bool GetProperty(ColumnFamilyHandle* family, const Slice& property, std::string* value) override;
  bool GetIntProperty(ColumnFamilyHandle* family, const Slice& property, uint64_t* value) override;
  bool GetMapProperty(ColumnFamilyHandle* family, const Slice& property,
                      std::map<std::string, std::string>* value) override;
  bool GetAggregatedIntProperty(const Slice& property, uint64_t* value) override;
  Status ResetStats() override;

  // ---- db_metadata.cc ----
  Status GetApproximateSizes(ColumnFamilyHandle* family, const Range* ranges, int n,
                             uint64_t* sizes) override;
  void GetApproximateMemTableStats(ColumnFamilyHandle* family, const Range& range, uint64_t* count,
                                   uint64_t* size) override;
  void GetLiveTablesMetaData(std::vector<LiveTableMetaData>* tables) override;
  void GetColumnFamilyMetaData(ColumnFamilyHandle* family, ColumnFamilyMetaData* metadata) override;
  int NumberLevels(ColumnFamilyHandle* family) override;
  Status GetUpdatesSince(uint64_t sequence,
                         std::unique_ptr<TransactionLogIterator>* updates) override;
  Status WaitForArchive(uint64_t sequence, std::chrono::milliseconds timeout) override;

  // ---- db_set_options.cc ----
  Options GetOptions(ColumnFamilyHandle* family) const override;
  DBOptions GetDBOptions() const override;
  Status SetOptions(ColumnFamilyHandle* family,
                    const std::unordered_map<std::string, std::string>& changes) override;
  Status SetDBOptions(const std::unordered_map<std::string, std::string>& changes) override;
  Status EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& families) override;

  // ---- db_background.cc ----
  Status SuggestCompactRange(ColumnFamilyHandle* family, const Slice* begin,
                             const Slice* end) override;
  Status PauseBackgroundWork() override;
  Status ContinueBackgroundWork() override;
  void DisableManualCompaction() override;
  void EnableManualCompaction() override;
  Status Resume() override;

 protected:
  explicit OwnerControls(DatabaseParts* parts) : parts_(parts) {}

 private:
  DatabaseParts* const parts_;
};

}  // namespace nacre
