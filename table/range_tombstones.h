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
#include "table/key_search.h"

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

  /// Where a key lies among the fragments.
  struct Position {
    size_t fragment;  ///< The first that ends behind the key; the number of fragments: none does.
    bool covered;     ///< It begins at or before the key.
  };
  Position Find(const Slice& user_key) const;
  /// The sequence of the newest tombstone up to `snapshot` that covers the key; 0: there is none.
  SequenceNumber Covering(const Slice& user_key, SequenceNumber snapshot) const {
    const Position position = Find(user_key);
    return position.covered ? fragments_[position.fragment].Newest(snapshot) : 0;
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
  /// By comparing keys; in [from, to) is the fragment, or `to` is it.
  Position FindByKeys(const Slice& user_key, size_t from, size_t to) const;

  InternalKeyComparator comparator_;
  std::vector<Fragment> fragments_;
  // If the order is that of bytes: numbers of the fragments' ends and begins, which decide nearly
  // all searches, so that no key is touched.
  CommonPrefix common_;
  SortedNumbers ends_;
  std::vector<uint64_t> begins_;
};

}  // namespace nacre
