#pragma once

#include <cstdint>

#include "db/version.h"
#include "memnode/pool_client.h"
#include "memnode/table_store.h"
#include "table/point_index.h"
#include "table/record.h"

namespace nacre {

/// One key on its way through the tables of a version, newest to oldest. It does no I/O: it names
/// the next bytes to read and is given them, so that one thread can have many in flight.
///
///     while (lookup.Next(&read)) {
///       session reads...
///       switch (lookup.Consume(read, &record)) ...
///     }
///
/// Thread safety: none. The version stays pinned meanwhile.
class PointLookup {
 public:
  enum class Outcome : uint8_t {
    kContinue,  ///< Not in what was read: call Next again.
    kFound,     ///< `*record` (viewing the bytes read) is the answer, perhaps a tombstone.
    kOlder,     ///< The key is there, but newer than the snapshot: use an iterator.
    kFailed,    ///< See status().
  };

  PointLookup() = default;
  /// `key` stays valid while the lookup is used.
  void Start(const Version* version, const memnode::TableStore* store, const Slice& key,
             uint64_t hash, SequenceNumber snapshot, bool verify_checksums);

  /// Asks the processor for the buckets of every table that may hold the key.
  void Prefetch() const;

  /// The next read, or false when no table is left (the key is not there) or on failure.
  bool Next(memnode::PointRead* read);
  Outcome Consume(const memnode::PointRead& read, Record* record);

  const Status& status() const { return status_; }
  const TableHandle* table() const { return table_; }

 private:
  bool NextTable();
  void Fail(Status status);
  Outcome ConsumeBucket(const memnode::PointRead& read);

  const Version* version_ = nullptr;
  const memnode::TableStore* store_ = nullptr;
  Slice key_;
  uint64_t hash_ = 0;
  SequenceNumber snapshot_ = 0;
  bool verify_checksums_ = true;

  const TableHandle* table_ = nullptr;
  size_t level0_next_ = 0;
  int level_ = 0;

  RecordCandidate candidates_[kMaxCandidates];
  int candidate_ = 0;
  int candidate_count_ = 0;
  bool bucket_wanted_ = false;  ///< The next read is of a remote bucket, `bucket_distance_` on.
  int bucket_distance_ = 0;
  int attempt_ = 0;  ///< Copies tried for the current read.
  Status status_;
};

}  // namespace nacre
