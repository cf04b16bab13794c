#include "table/ranges/covering_sequences.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace nacre {

CoveringSequences::CoveringSequences(size_t positions, std::vector<Interval> intervals)
    : positions_(positions), intervals_(std::move(intervals)) {
  std::sort(intervals_.begin(), intervals_.end(),
            [](const Interval& a, const Interval& b) { return a.sequence > b.sequence; });
  begins_.resize(2 * positions_ + 1);
  for (const Interval& interval : intervals_) {
    ForEachNode(interval, [this](size_t node) { ++begins_[node + 1]; });
  }
  for (size_t node = 0; node < 2 * positions_; ++node) begins_[node + 1] += begins_[node];
  sequences_.resize(begins_.back());
  std::vector<uint32_t> ends = begins_;
  for (const Interval& interval : intervals_) {
    ForEachNode(interval, [&](size_t node) { sequences_[ends[node]++] = interval.sequence; });
  }
}

template <typename Note>
void CoveringSequences::ForEachNode(const Interval& interval, Note note) const {
  size_t first = interval.first + positions_;
  size_t last = interval.last + positions_;
  for (; first < last; first /= 2, last /= 2) {
    if (first % 2 == 1) note(first++);
    if (last % 2 == 1) note(--last);
  }
}

SequenceNumber CoveringSequences::Newest(size_t position, SequenceNumber snapshot) const {
  SequenceNumber newest = 0;
  for (size_t node = position + positions_; node > 0; node /= 2) {
    const auto begin = sequences_.begin() + begins_[node];
    const auto end = sequences_.begin() + begins_[node + 1];
    const auto found = std::lower_bound(begin, end, snapshot, std::greater<SequenceNumber>());
    if (found != end) newest = std::max(newest, *found);
  }
  return newest;
}

size_t CoveringSequences::Count(size_t position) const {
  size_t count = 0;
  for (size_t node = position + positions_; node > 0; node /= 2) {
    count += begins_[node + 1] - begins_[node];
  }
  return count;
}

}  // namespace nacre
