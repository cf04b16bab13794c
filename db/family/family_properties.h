#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "db/family/column_family.h"
#include "db/family/read_view.h"

namespace nacre {

/// What `GetProperty` answers about one column family, as it was when this was made.
///
/// Thread safety: all methods may be called from many threads at once, under an epoch guard.
class FamilyProperties {
 public:
  /// `generation` is the one that takes writes. Call this under the database's mutex; the family
  /// outlives the object.
  FamilyProperties(const ColumnFamily& family, uint16_t generation);

  /// False if a family has no number of this name, which has no prefix.
  bool Number(std::string_view name, uint64_t* value) const;
  /// "cfstats" or "aggregated-table-properties"; false for other names.
  bool Map(std::string_view name, std::map<std::string, std::string>* value) const;
  /// A table with one line a level.
  std::string LevelStats() const;
  /// One line for each table, with its keys and where it lies.
  std::string Tables() const;

  /// Bytes that the MemTables take.
  uint64_t MemTableBytes() const;
  /// MemTables that wait to be flushed.
  uint64_t FullMemTables() const;

 private:
  struct Entry;

  const Version& version() const { return *view_->version; }
  /// The MemTable that takes writes; null if nothing was written since the last one was full.
  const MemTable* Active() const;
  template <typename Function>
  uint64_t SumOverActive(Function function) const;
  template <typename Function>
  uint64_t SumOverFull(Function function) const;
  template <typename Function>
  uint64_t SumOverTables(Function function) const;
  uint64_t TableBytes() const;
  uint64_t Tombstones() const;
  uint64_t EstimatedKeys() const;

  const ColumnFamily& family_;
  const std::shared_ptr<const ReadView> view_;
  const uint16_t generation_;
  const bool compaction_due_;
};

}  // namespace nacre
