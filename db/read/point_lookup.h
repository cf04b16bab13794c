#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <span>

#include "db/cache/record_ring.h"
#include "db/version/version.h"
#include "nacre/slice.h"
#include "pool/pool_client.h"
#include "pool/read/point_reader.h"
#include "pool/store/degraded_read.h"
#include "pool/store/table_store.h"
#include "table/format/record.h"
#include "table/index/point_index.h"
#include "table/table_reader.h"
#include "util/memory/loadable_memory.h"

namespace nacre {

/// One key on its way through the tables of a version, newest to oldest. It does no I/O: it names
/// the next bytes to read and is given them, so that one thread can have many in flight.
///
///     while (lookup.Next(&read)) {
///       if (lookup.loads()) {
///         switch (lookup.Load(value, &record)) ...
///         continue;
///       }
///       if (read.from.valid()) a PointReader reads it
///       else parts = lookup.StartFetch(read, most), a PointReader reads them,
///            lookup.Fetch(parts, &read);
///       switch (lookup.Consume(read, &record)) ...
///     }
///
/// A read without an address takes bytes of several nodes, since one is lost, or has to be opened,
/// as the table is encrypted. What lies in memory that this process has mapped is not read but
/// loaded, once the processor has fetched it.
///
/// Records have checksums, and so has an index as a whole. A single bucket has none: what it finds
/// is proved by the record, unless the table has several of a key; what it does not find, by the
/// interval of records where the key would be.
///
/// Thread safety: none. The version stays pinned meanwhile.
class PointLookup {
 public:
  enum class Outcome : uint8_t {
    kContinue,  ///< Not in what was read: call Next again.
    kFound,     ///< `*record` (viewing the bytes read) is the answer, perhaps a tombstone.
    kSearch,    ///< It takes an iterator: the key is there but newer than the snapshot, the index
                ///< cannot tell, what was read is damaged (iterators read it elsewhere), or the
                ///< range index is not here (they read it).
    kUnloaded,  ///< `table` has to prepare for lookups first; then start again.
    kFailed,    ///< See status().
  };

  PointLookup() = default;
  /// `key` stays valid while the lookup is used. Asks the processor for the bucket of every table
  /// that may hold the key.
  void Start(const Version* version, const pool::TableStore* store, const Slice& key, uint64_t hash,
             SequenceNumber snapshot, bool verify_checksums);

  /// The next read, or false: then `outcome()` is kContinue if no table is left (the key is not
  /// there), kSearch, kUnloaded or kFailed.
  bool Next(pool::PointRead* read);
  /// For a read without an address: sets it off. What a PointReader is to read of other nodes, here
  /// or in a copy; nothing if that would be more than `most` reads, or does not do.
  std::span<pool::PointRead> StartFetch(const pool::PointRead& read, size_t most);
  /// Ends it, once `parts`, those reads, have ended. Its bytes stay until the next StartFetch.
  void Fetch(std::span<const pool::PointRead> parts, pool::PointRead* read);
  Outcome outcome() const { return outcome_; }
  /// What MemTables have takes an iterator.
  void LeaveToSearch() { outcome_ = Outcome::kSearch; }
  Outcome Consume(const pool::PointRead& read, Record* record);
  /// After Next: the bytes that it named can be loaded, and are on their way into the cache.
  bool loads() const { return load_.memory != nullptr; }
  /// Takes them. As Consume, but a value that is found may be in `*value` already, which `*record`
  /// views then. kContinue as well if the memory does not count any more: they are read then.
  Outcome Load(PinnableSlice* value, Record* record);

  /// Whether the read that Next named, or the last one consumed, is of a single record: of this.
  bool reads_record() const { return candidate_ < candidate_count_; }
  RecordName record_name() const { return {table_->id(), candidates_[candidate_].offset}; }
  const Status& status() const { return status_; }
  const TableHandle* table() const { return table_; }
  /// In the end: finds out what is damaged in the buckets that were read, if they seem to be. Does
  /// I/O.
  void FindDamage() const;

 private:
  /// Finds the next tables whose range holds the key.
  void FindTables();
  bool NextTable();
  /// Takes what a lookup in an index or a bucket answered.
  void SetCandidates(int count);
  Outcome Fail(Status status);
  /// Whether the read at hand is that of an interval.
  bool ReadsInterval() const {
    return candidate_ >= candidate_count_ && bucket_ == PointIndex::kNoBucket;
  }
  /// What range tombstones of `table` hide the key from. False: they are not loaded.
  bool TakeCover(const TableHandle* table);
  /// `*record` is what the tables have.
  Outcome Found(Record* record);
  /// What a candidate's record says.
  Outcome Judge(TableReader::Match match, Record* record);
  Outcome SearchInterval(const Slice& bytes, Record* record);
  bool FindLoad(uint64_t offset, uint32_t length);
  /// What of a replicated table is to be read next. False: every copy has failed.
  bool NextCopy(const Placement& placement, uint64_t offset, pool::PointRead* read);
  bool NextOfStriped(const Placement& placement, uint64_t offset, pool::PointRead* read);
  /// Names a read without an address, unless the turn of the table's extent, `turn`, is over.
  bool NextFetch(uint64_t offset, int turn, pool::PointRead* read);
  /// What is encrypted has to be compared with its checksums: what does not open fails there.
  bool Verifies() const { return verify_checksums_ || table_->meta().sealed(); }
  /// Another copy of the bytes may be whole; else `failure` stands.
  Outcome TryAnotherCopy(Status failure);
  /// What was read is settled: the next read starts with the first copy again.
  void FinishRead() {
    if (source_.untouched()) [[likely]]
      return;
    source_ = {};
    failure_ = Status::OK();
  }
  Status AllCopiesLost() const;

  const Version* version_ = nullptr;
  const pool::TableStore* store_ = nullptr;
  Slice key_;
  uint64_t hash_ = 0;
  SequenceNumber snapshot_ = 0;
  SequenceNumber cover_ = 0;  ///< The newest range tombstone met so far: what is older is deleted.
  bool verify_checksums_ = true;

  /// Longer intervals, of large records, are left to an iterator.
  static constexpr uint64_t kIntervalBytesMax = 256 << 10;
  /// Tables found at a time: more than these are rare, only in a level 0 that lags behind.
  static constexpr int kTables = 12;
  const TableHandle* tables_[kTables];
  int table_next_ = 0;
  int table_count_ = 0;
  size_t level0_next_ = 0;  ///< Where FindTables goes on.
  int level_next_ = 1;
  const TableHandle* table_ = nullptr;

  RecordCandidate candidates_[kMaxCandidates];
  int candidate_ = 0;
  int candidate_count_ = 0;
  /// The remote index's shape: the tier may go meanwhile.
  PointIndexShape shape_;
  uint64_t bucket_ = PointIndex::kNoBucket;  ///< The remote index's bucket to be read next.
  bool bucket_is_home_ = true;
  bool unproved_ = false;    ///< The interval is to be searched, after the buckets if any are.
  RecordInterval interval_;  ///< The key's interval in this table.
  const TableHandle* suspect_ = nullptr;  ///< A table whose buckets did not show the key.
  uint64_t bucket_offsets_[2] = {};  ///< In the table at hand: of the home bucket, of the last.
  int buckets_ = 0;                  ///< Read of the table at hand.
  /// The nodes that are to be read from, in turn. Of a replicated table: its copies on nodes that
  /// are not slow, then the others; and if some were late, all again with more patience. Of an
  /// erasure-coded table, 0 is where the bytes lie, and 1 is what its extent makes of the other
  /// fragments.
  struct Source {
    int turn = 0;
    int first = 0;                     ///< The replica that is asked first.
    std::bitset<kMaxFragments> asked;  ///< Replicas that have failed with this patience.
    bool late = false;                 ///< One of them was late.
    int patience = 1;                  ///< See pool::PointRead.

    bool untouched() const { return turn == 0 && patience == 1 && !late; }
    int copy(int copies) const { return (first + turn) % copies; }
  };
  Source source_;
  Status failure_;  ///< Failure of the replica that was tried before.
  /// What lies in mapped memory.
  struct Loading {
    bool possible = true;  ///< Until memory was met that did not count any more.
    Slice bytes;
    const LoadableMemory* memory = nullptr;  ///< Null: the bytes at hand have to be read.
    std::unique_ptr<char[]> copy;
  };
  Loading load_;
  /// The read without an address.
  struct Fetching {
    uint64_t offset = 0;
    std::unique_ptr<PendingRead> read;             ///< By the table's extent.
    std::unique_ptr<pool::DegradedRead> degraded;  ///< Made when it is needed first.
  };
  Fetching fetch_;
  Outcome outcome_ = Outcome::kContinue;
  Status status_;
};

}  // namespace nacre
