#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/internal_key.h"

namespace nacre {

/// All keys in [begin, end) were deleted at `sequence`.
struct RangeTombstone {
  std::string begin;
  std::string end;
  SequenceNumber sequence = 0;
};

/// Range tombstones, cut where others begin or end: fragments that do not overlap, each with the
/// sequences of all tombstones that cover it. Which one covers a key is found by one binary search,
/// whatever overlaps (the idea is RocksDB's FragmentedRangeTombstoneList).
///
/// Thread safety: immutable once made.
class RangeTombstones {
 public:
  struct Fragment {
    std::string begin;
    std::string end;
    std::vector<SequenceNumber> sequences;  ///< Descending, none twice.

    /// The greatest one up to `snapshot`; 0 if there is none.
    SequenceNumber Newest(SequenceNumber snapshot) const;
  };

  /// None. `comparator` is not owned and outlives this.
  explicit RangeTombstones(const Comparator* comparator) : comparator_(comparator) {}
  /// Empty ranges are left out.
  RangeTombstones(const Comparator* comparator, const std::vector<RangeTombstone>& tombstones);
  /// Of what other ones have.
  static RangeTombstones Merge(const Comparator* comparator,
                               const std::vector<const RangeTombstones*>& parts);

  bool empty() const { return fragments_.empty(); }
  /// In the order of keys.
  const std::vector<Fragment>& fragments() const { return fragments_; }

  /// Number of the first fragment that ends behind `user_key`; their number if there is none. It
  /// covers the key unless it begins behind it.
  size_t FirstEndingAfter(const Slice& user_key) const;
  bool Begins(size_t fragment, const Slice& user_key) const {
    return comparator_.CompareUserKeys(fragments_[fragment].begin, user_key) <= 0;
  }
  /// The sequence of the newest tombstone up to `snapshot` that covers the key; 0: there is none.
  SequenceNumber Covering(const Slice& user_key, SequenceNumber snapshot) const {
    const size_t i = FirstEndingAfter(user_key);
    if (i == fragments_.size() || !Begins(i, user_key)) return 0;
    return fragments_[i].Newest(snapshot);
  }

  size_t MemoryUsage() const;

  // The section of a table (docs/formats.md):
  //
  //     for each fragment: varint32 length and bytes of its begin, of its end; varint32 number of
  //         sequences; varint64 each, descending
  static void Encode(const std::vector<Fragment>& fragments, std::string* dst);
  /// `Corruption` unless `bytes` are such a section: fragments in order, with sequences.
  static Status Decode(const Slice& bytes, const Comparator* comparator,
                       std::unique_ptr<const RangeTombstones>* tombstones);

 private:
  void Index();

  InternalKeyComparator comparator_;
  std::vector<Fragment> fragments_;
  /// KeyPrefix of each fragment's end, if the order is that of bytes: decides most comparisons.
  std::vector<uint64_t> end_prefixes_;
};

}  // namespace nacre
