#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "table/format/internal_key.h"
#include "table/ranges/range_tombstones.h"

namespace nacre {

/// Tells what range tombstones of several sources hide at one snapshot, for a caller that asks key
/// after key: as long as the keys stay between two edges of tombstones, an answer costs two
/// comparisons.
///
/// Thread safety: none.
class RangeCover {
 public:
  RangeCover(const InternalKeyComparator& comparator, SequenceNumber snapshot)
      : comparator_(comparator), snapshot_(snapshot) {}

  /// `tombstones` outlive this.
  void Add(const RangeTombstones* tombstones) {
    if (!tombstones->empty()) parts_.push_back(tombstones);
    known_ = false;
  }
  bool empty() const { return parts_.empty(); }

  /// The sequence of the newest tombstone that covers the key; 0: there is none. Entries of the key
  /// with lower sequences are deleted.
  SequenceNumber Of(const Slice& user_key) {
    if (parts_.empty()) [[likely]]
      return 0;
    if (!known_ || !Holds(user_key)) Find(user_key);
    return sequence_;
  }
  /// The bounds around the key that was asked for last: for all keys in [begin, end) the answer is
  /// the same. No value means unbounded.
  const std::optional<std::string>& begin() const { return begin_; }
  const std::optional<std::string>& end() const { return end_; }
  /// If Of found a tombstone, all keys in [swath_begin, swath_end) are covered, by some tombstone
  /// each. This includes [begin, end).
  const std::string& swath_begin() const { return *swath_begin_; }
  const std::string& swath_end() const { return *swath_end_; }

 private:
  bool Holds(const Slice& user_key) const {
    return (!begin_.has_value() || comparator_.CompareUserKeys(*begin_, user_key) <= 0) &&
           (!end_.has_value() || comparator_.CompareUserKeys(user_key, *end_) < 0);
  }
  void Find(const Slice& user_key);
  /// Keys around the one at hand that one part covers, as of the snapshot.
  void FindSwath(const RangeTombstones& part, size_t fragment);

  const InternalKeyComparator comparator_;
  const SequenceNumber snapshot_;
  std::vector<const RangeTombstones*> parts_;
  bool known_ = false;
  std::optional<std::string> begin_;
  std::optional<std::string> end_;
  SequenceNumber sequence_ = 0;
  const std::string* swath_begin_ = nullptr;  ///< Points into a part.
  const std::string* swath_end_ = nullptr;
};

}  // namespace nacre
