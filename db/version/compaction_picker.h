#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "db/version/version.h"
#include "nacre/options.h"

namespace nacre {

class ColumnFamily;

/// Tables to merge: `inputs` of `level` and `overlap` of `output_level`. While it exists they are
/// marked, so that no other compaction takes them.
struct Compaction {
  std::shared_ptr<ColumnFamily> family;  ///< Set by the thread that runs it.
  int level = 0;
  int output_level = 0;
  std::shared_ptr<const Version> version;
  TableList inputs;
  TableList overlap;                ///< Empty when both levels are the same.
  bool manual = false;              ///< Asked for.
  std::vector<std::string> cuts;    ///< User keys at which outputs begin. None: as it comes.
  uint32_t max_subcompactions = 0;  ///< 0: that of the options.
  /// Several tables that are smaller than this on average are merged even where they could be
  /// moved: each costs memory and a step of every search.
  uint64_t min_moved_bytes = 0;

  uint64_t InputBytes() const;
  /// Nothing to merge, and nothing that a rewrite would drop: the tables only change level.
  bool IsTrivialMove() const;
};

/// Leveled compaction as in RocksDB: chooses what to merge by each level's score, within a level
/// by the least overlap with the next one. Of a large level it compares some tables at a time, the
/// next ones with each choice, so that all get their turn and a choice costs the same however many
/// tables there are.
///
/// Thread safety: none; guarded by the database's mutex, but for the sizes that options give.
class CompactionPicker {
 public:
  /// `options` may become others between two calls.
  CompactionPicker(const std::atomic<const ColumnFamilyOptions*>* options,
                   const InternalKeyComparator* comparator)
      : options_(options), comparator_(comparator) {}

  /// The most urgent compaction that does not touch marked tables, marked; null if none is due.
  std::unique_ptr<Compaction> Pick(const std::shared_ptr<const Version>& version);
  /// Has these tables of `level` go one level down when nothing is more urgent.
  void Suggest(int level, const TableList& tables);
  /// Whether some level's score is 1 or more, or tables are suggested, whether or not they are
  /// marked.
  bool Due(const Version& version) const;

  /// A range that a caller wants compacted.
  struct Range {
    int level = 0;
    int output_level = 0;  ///< May be `level` itself: a rewrite.
    // User keys; null: open.
    const Slice* begin = nullptr;
    const Slice* end = nullptr;
    bool after_begin = false;  ///< Excludes tables that end with `begin`.
    uint64_t bytes_max = UINT64_MAX;
  };
  enum class Found : uint8_t { kNothing, kMarked, kPicked };
  /// The first tables of the range, marked: as many as come to `bytes_max` with those that they
  /// overlap in the output level, and one at least; of level 0, all. kMarked: some are already, by
  /// a compaction that is to end first.
  Found PickRange(const std::shared_ptr<const Version>& version, const Range& range,
                  std::unique_ptr<Compaction>* compaction) const;

  /// Takes the marks away. Every compaction is released once, whatever became of it.
  void Release(const Compaction& compaction) const;

  uint64_t MaxLevelBytes(int level) const;
  uint64_t TargetTableBytes(int level) const;
  /// Bytes that compactions have to rewrite until every score is below 1.
  uint64_t PendingBytes(const Version& version) const;

 private:
  double Score(const Version& version, int level) const;
  std::unique_ptr<Compaction> PickLevel(const std::shared_ptr<const Version>& version, int level);
  /// Compares the next tables of `compaction`'s level, kCompared at most, and takes the best that
  /// it can. `*looked_at` grows by those that it looked at.
  bool PickBest(Compaction* compaction, size_t* looked_at);
  /// Picks among suggested tables; forgets those that are gone.
  std::unique_ptr<Compaction> PickSuggested(const std::shared_ptr<const Version>& version);
  const ColumnFamilyOptions& options() const {
    return *options_->load(std::memory_order_acquire);  // Pairs with ColumnFamily::SetOptions.
  }
  /// Completes `compaction` from its inputs; false if a table is marked already.
  bool Complete(Compaction* compaction) const;
  /// Adds neighbours that share a user key with the ends of `tables`, until none does: versions of
  /// one key move together.
  void ExpandToCleanCut(const Version& version, int level, TableList* tables) const;

  const std::atomic<const ColumnFamilyOptions*>* const options_;
  const InternalKeyComparator* const comparator_;
  /// Tables that were suggested, and may be elsewhere by now, by level and id.
  std::map<std::pair<int, uint64_t>, std::shared_ptr<const TableMeta>> suggested_;
  /// For each level, the user key at which comparing the next tables begins.
  std::map<int, std::string> compare_from_;
};

}  // namespace nacre
