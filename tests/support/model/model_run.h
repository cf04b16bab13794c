#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "pool/pool_impl.h"
#include "tests/support/model/checked_iterator.h"
#include "tests/support/model/model_db.h"
#include "util/random.h"

namespace nacre {

/// What is varied from one run to the next.
struct ModelCase {
  const char* name;
  const Comparator* comparator;
  CompactionSite site;
  const char* redundancy;
  size_t index_memory_budget = SIZE_MAX;
  uint32_t max_subcompactions = 1;
  /// Size of one value, written in the middle of the run.
  size_t large_value = 20'000'000;
  /// Besides puts and deletions: single deletions, merges and range deletions.
  bool all_kinds = false;
  /// The pool's: iterators load the nodes' memory, instead of reading it.
  bool map = true;
  size_t record_cache_size = 0;
  std::string encryption_key_file{};
};

inline std::ostream& operator<<(std::ostream& out, const ModelCase& model_case) {
  return out << model_case.name;
}

/// Seeded random operations on a database beside a model of it: writes, batches, deletions, reads,
/// iterators and snapshots (held for long), flushes, compactions, reopening.
class ModelRun {
 public:
  ModelRun(std::shared_ptr<pool::PoolImpl> pool, const ModelCase& model_case, uint64_t seed);
  virtual ~ModelRun() = default;
  ModelRun(const ModelRun&) = delete;
  ModelRun& operator=(const ModelRun&) = delete;

  /// Fails the test, fatally, at the first wrong answer. Once.
  void Run(size_t operations);

  /// The deepest level that held a table, plus 1.
  int deepest() const { return deepest_; }
  /// Those that nodes of the pool have run.
  uint64_t compactions_on_nodes() const;
  /// Those that the cache of records had when properties were looked at last.
  uint64_t cache_hits() const { return cache_hits_; }

 protected:
  /// Opens what is compared with the model: an ordinary database, unless this is overridden.
  virtual Status OpenDatabase(const Options& options, std::unique_ptr<DB>* db) {
    return DB::Open(options, "model", db);
  }
  /// For what changes nothing that is read, but ends snapshots and iterators. Done now and then if
  /// it is overridden, and `rearranges` with it.
  virtual void Rearrange(DB* /*db*/, Random* /*random*/) {}
  virtual bool rearranges() const { return false; }
  /// All that there may be, ascending bytewise.
  const std::vector<std::string>& keys() const { return keys_; }

 private:
  struct HeldSnapshot {
    const Snapshot* snapshot;
    uint64_t time;
  };

  // ---- What to write -------------------------------------------------------------------------

  void MakeKeys();

  /// Half of the time one of a few hot keys, so that keys have many versions.
  const std::string& Key();
  std::string Value();
  IteratorBounds Bounds();

  // ---- Operations ----------------------------------------------------------------------------

  void Step();
  void Open();
  void Put(const std::string& key, std::string value);
  void PutLargeValue();
  void Delete(const std::string& key);
  void WriteBatchOfMany();
  /// One of the kinds that not every run has.
  void WriteOfOtherKind();
  void DeleteRange();
  /// Puts one of a few keys that get nothing but this, or deletes it singly if it is there.
  void PutOrDeleteOnce(const std::string& key);

  /// Null, or one of those held; `*time` is what it sees.
  const Snapshot* AnySnapshot(uint64_t* time);
  void CheckGet();
  void CheckAnswer(const std::string& key, uint64_t time, const Status& status, const Slice& value);
  void CheckMultiGet();
  std::unique_ptr<CheckedIterator> NewCheckedIterator();
  void WalkIterator();

  /// Iterators that live through flushes and compactions.
  void HoldIterator();
  void StepHeldIterator();
  void TakeSnapshot();
  void ReleaseSnapshot();
  std::set<uint64_t> Times() const;
  void Flush();
  void Compact(bool everything);
  void ReleaseAll();
  void Reopen();
  int Depth();
  void LookAtProperties();

  // ---- Everything ----------------------------------------------------------------------------

  void CheckScan(bool forward);
  void CheckAll();

  /// Tombstones go at the bottom, and with them all space.
  void DeleteAll();

  Random random_;
  const Comparator* const comparator_;
  const size_t large_value_;
  const bool all_kinds_;
  ModelDB model_;
  std::vector<std::string> keys_;  ///< Bytewise ascending.
  std::shared_ptr<pool::PoolImpl> pool_;
  Options options_;
  std::unique_ptr<DB> db_;
  std::vector<HeldSnapshot> snapshots_;
  std::vector<std::unique_ptr<CheckedIterator>> iterators_;
  int deepest_ = 0;
  uint64_t cache_hits_ = 0;
};

}  // namespace nacre
