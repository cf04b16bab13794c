#include "table/ranges/range_cover.h"

#include <algorithm>

namespace nacre {

void RangeCover::Find(const Slice& user_key) {
  known_ = true;
  begin_.reset();
  end_.reset();
  sequence_ = 0;
  swath_begin_ = swath_end_ = nullptr;
  const auto begin_at = [this](const std::string& key) {
    if (!begin_.has_value() || comparator_.CompareUserKeys(*begin_, key) < 0) begin_ = key;
  };
  const auto end_at = [this](const std::string& key) {
    if (!end_.has_value() || comparator_.CompareUserKeys(key, *end_) < 0) end_ = key;
  };
  for (const RangeTombstones* part : parts_) {
    const auto& fragments = part->fragments();
    const auto [i, covered] = part->Find(user_key);
    if (covered) {
      const SequenceNumber newest = part->Newest(i, snapshot_);
      sequence_ = std::max(sequence_, newest);
      if (newest > 0) FindSwath(*part, i);
      begin_at(fragments[i].begin);
      end_at(fragments[i].end);
      continue;
    }
    if (i > 0) begin_at(fragments[i - 1].end);
    if (i < fragments.size()) end_at(fragments[i].begin);
  }
}

void RangeCover::FindSwath(const RangeTombstones& part, size_t fragment) {
  const auto at = static_cast<uint32_t>(fragment);
  // The snapshot does not see newer tombstones, so each fragment would have to be asked.
  const RangeTombstones::Swath swath =
      part.newest() <= snapshot_ ? part.SwathOf(fragment) : RangeTombstones::Swath{at, at + 1};
  const std::string& begin = part.fragments()[swath.first].begin;
  const std::string& end = part.fragments()[swath.last - 1].end;
  if (swath_begin_ == nullptr || comparator_.CompareUserKeys(begin, *swath_begin_) < 0) {
    swath_begin_ = &begin;
  }
  if (swath_end_ == nullptr || comparator_.CompareUserKeys(*swath_end_, end) < 0) {
    swath_end_ = &end;
  }
}

}  // namespace nacre
