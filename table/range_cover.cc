#include "table/range_cover.h"

#include <algorithm>

namespace nacre {

void RangeCover::Find(const Slice& user_key) {
  known_ = true;
  begin_.reset();
  end_.reset();
  sequence_ = 0;
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
      sequence_ = std::max(sequence_, part->Newest(i, snapshot_));
      begin_at(fragments[i].begin);
      end_at(fragments[i].end);
      continue;
    }
    if (i > 0) begin_at(fragments[i - 1].end);
    if (i < fragments.size()) end_at(fragments[i].begin);
  }
}

}  // namespace nacre
