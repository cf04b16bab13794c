#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"
#include "table/index/key_search.h"
#include "table/ranges/covering_sequences.h"

namespace nacre {

/// All keys in [begin, end) were deleted at `sequence`.
struct RangeTombstone {
  std::string begin;
  std::string end;
  SequenceNumber sequence = 0;
};

/// Range tombstones, cut where others begin or end: fragments that do not overlap, of each of which
/// the newest sequence is known, and the older ones by a tree of them all (covering_sequences.h).
/// Which one covers a key is found by one binary search, whatever overlaps (fragments are an idea
/// of RocksDB's FragmentedRangeTombstoneList); n of them take no more than n log n words.
///
/// Thread safety: immutable once made.
class RangeTombstones {
 public:
  struct Fragment {
    std::string begin;
    std::string end;
    SequenceNumber newest = 0;  ///< The greatest of all tombstones that cover it.
  };
  /// A fragment as a table has it.
  struct ListedFragment {
    std::string begin;
    std::string end;
    std::vector<SequenceNumber> sequences;  ///< Descending, none twice, some.
  };

  /// None. `comparator` is not owned and outlives this.
  explicit RangeTombstones(const Comparator* comparator) : comparator_(comparator) {}
  /// Empty ranges are left out.
  RangeTombstones(const Comparator* comparator, std::vector<RangeTombstone> tombstones);
  /// Joins the tombstones of `parts`.
  static RangeTombstones Merge(const Comparator* comparator,
                               const std::vector<const RangeTombstones*>& parts);

  bool empty() const { return fragments_.empty(); }
  /// The fragments in the order of keys.
  const std::vector<Fragment>& fragments() const { return fragments_; }
  /// The greatest sequence of all; 0: there are none.
  SequenceNumber newest() const { return newest_; }
  /// Fragments [first, last) of which each but the last one ends where the next one begins.
  struct Swath {
    uint32_t first;
    uint32_t last;
  };
  /// The largest one with a fragment.
  Swath SwathOf(size_t fragment) const { return swaths_[swath_of_[fragment]]; }
  /// The greatest sequence up to `snapshot` of the tombstones that cover a fragment; 0 if there is
  /// none.
  SequenceNumber Newest(size_t fragment, SequenceNumber snapshot) const {
    const SequenceNumber newest = fragments_[fragment].newest;
    if (newest <= snapshot) [[likely]]
      return newest;
    return disjoint() ? 0 : sequences_.Newest(fragment, snapshot);
  }
  /// Ranges with their sequences that together hide what these do.
  std::vector<RangeTombstone> Tombstones() const;
  /// All fragments with all sequences: as many as the square of the tombstones if all overlap.
  std::vector<ListedFragment> Listed() const;

  /// The position of a key among the fragments.
  struct Position {
    size_t fragment;  ///< The first that ends behind the key; the number of fragments: none does.
    bool covered;     ///< It begins at or before the key.
  };
  Position Find(const Slice& user_key) const;
  /// The sequence of the newest tombstone up to `snapshot` that covers the key; 0: there is none.
  SequenceNumber Covering(const Slice& user_key, SequenceNumber snapshot) const {
    const Position position = Find(user_key);
    return position.covered ? Newest(position.fragment, snapshot) : 0;
  }
  /// The same for a key of which CommonPrefix::Find of `common()` has told the number.
  SequenceNumber Covering(const Slice& user_key, uint64_t number, SequenceNumber snapshot) const {
    const Position position = FindAmong(user_key, number);
    return position.covered ? Newest(position.fragment, snapshot) : 0;
  }
  /// What all keys begin with, if the order is that of bytes.
  const CommonPrefix& common() const { return common_; }

  size_t MemoryUsage() const;

  // The section of a table (docs/formats.md):
  //
  //     for each fragment: varint32 length and bytes of its begin, of its end; varint32 number of
  //         sequences; varint64 each, descending
  static void Encode(const std::vector<ListedFragment>& fragments, std::string* dst);
  /// The most bytes of the section, if no more than `sequences` of each fragment are kept.
  size_t EncodedBytesMax(size_t sequences) const;
  /// `Corruption` unless `bytes` are such a section: fragments in order, with sequences.
  static Status Decode(const Slice& bytes, const Comparator* comparator,
                       std::unique_ptr<const RangeTombstones>* tombstones);

 private:
  /// No fragment has more than one sequence.
  bool disjoint() const { return sequences_.intervals().empty(); }
  void SetSequences(std::vector<CoveringSequences::Interval> intervals);
  void Index();
  Position FindAmong(const Slice& user_key, uint64_t number) const;
  /// Compares keys; the fragment is in [from, to), or `to` is it.
  Position FindByKeys(const Slice& user_key, size_t from, size_t to) const;

  InternalKeyComparator comparator_;
  std::vector<Fragment> fragments_;
  std::vector<uint32_t> swath_of_;  ///< Indexed by fragment.
  std::vector<Swath> swaths_;
  SequenceNumber newest_ = 0;
  CoveringSequences sequences_;  ///< The fragments' sequences, unless the fragments are disjoint.
  // If the order is that of bytes, these are numbers of the fragments' ends and begins, which
  // decide nearly all searches, so that no key is touched.
  CommonPrefix common_;
  SortedNumbers ends_;
  std::vector<uint64_t> begins_;
};

}  // namespace nacre
