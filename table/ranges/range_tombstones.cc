#include "table/ranges/range_tombstones.h"

#include <algorithm>
#include <optional>
#include <queue>
#include <utility>

#include "util/coding.h"

namespace nacre {
namespace {

/// Joins those of one sequence that touch, so that what merges of merges have cut becomes one
/// again.
void Join(const InternalKeyComparator& comparator, std::vector<RangeTombstone>* tombstones) {
  std::erase_if(*tombstones, [&](const RangeTombstone& tombstone) {
    return comparator.CompareUserKeys(tombstone.begin, tombstone.end) >= 0;
  });
  std::sort(tombstones->begin(), tombstones->end(),
            [&](const RangeTombstone& a, const RangeTombstone& b) {
              if (a.sequence != b.sequence) return a.sequence < b.sequence;
              return comparator.CompareUserKeys(a.begin, b.begin) < 0;
            });
  size_t joined = 0;
  for (size_t i = 1; i < tombstones->size(); ++i) {
    RangeTombstone& last = (*tombstones)[joined];
    RangeTombstone& next = (*tombstones)[i];
    if (next.sequence == last.sequence && comparator.CompareUserKeys(next.begin, last.end) <= 0) {
      if (comparator.CompareUserKeys(last.end, next.end) < 0) last.end = std::move(next.end);
    } else if (++joined != i) {
      (*tombstones)[joined] = std::move(next);
    }
  }
  if (!tombstones->empty()) tombstones->resize(joined + 1);
}

/// The begin or end of a tombstone.
struct Edge {
  const std::string* key;
  uint32_t tombstone;
  bool begins;
};

std::vector<Edge> SortedEdges(const InternalKeyComparator& comparator,
                              const std::vector<RangeTombstone>& tombstones) {
  std::vector<Edge> edges;
  edges.reserve(2 * tombstones.size());
  for (uint32_t i = 0; i < tombstones.size(); ++i) {
    edges.push_back({&tombstones[i].begin, i, true});
    edges.push_back({&tombstones[i].end, i, false});
  }
  std::sort(edges.begin(), edges.end(), [&](const Edge& a, const Edge& b) {
    return comparator.CompareUserKeys(*a.key, *b.key) < 0;
  });
  return edges;
}

/// The newest of the tombstones that are open at some key, each of which has a number; greater
/// numbers are newer. Those that were closed leave it once they are on top.
class OpenTombstones {
 public:
  explicit OpenTombstones(size_t tombstones) : closed_(tombstones) {}
  void Open(uint32_t tombstone) { open_.push(tombstone); }
  void Close(uint32_t tombstone) { closed_[tombstone] = true; }
  std::optional<uint32_t> Newest() {
    while (!open_.empty() && closed_[open_.top()]) open_.pop();
    if (open_.empty()) return std::nullopt;
    return open_.top();
  }

 private:
  std::priority_queue<uint32_t> open_;
  std::vector<bool> closed_;
};

}  // namespace

RangeTombstones::RangeTombstones(const Comparator* comparator,
                                 std::vector<RangeTombstone> tombstones)
    : comparator_(comparator) {
  Join(comparator_, &tombstones);
  const std::vector<Edge> edges = SortedEdges(comparator_, tombstones);
  std::vector<CoveringSequences::Interval> intervals(tombstones.size());
  OpenTombstones open(tombstones.size());
  bool goes_on = false;  // The last fragment, up to the key at hand.
  for (size_t i = 0; i < edges.size();) {
    const std::string& key = *edges[i].key;
    if (goes_on) fragments_.back().end = key;
    const auto next = static_cast<uint32_t>(fragments_.size());
    for (; i < edges.size() && comparator_.CompareUserKeys(*edges[i].key, key) == 0; ++i) {
      const uint32_t tombstone = edges[i].tombstone;
      if (edges[i].begins) {
        intervals[tombstone].first = next;
        intervals[tombstone].sequence = tombstones[tombstone].sequence;
        open.Open(tombstone);
      } else {
        intervals[tombstone].last = next;
        open.Close(tombstone);
      }
    }
    const std::optional<uint32_t> newest = open.Newest();
    goes_on = newest.has_value();
    if (goes_on) {
      fragments_.push_back({.begin = key, .end = {}, .newest = tombstones[*newest].sequence});
    }
  }
  SetSequences(std::move(intervals));
  Index();
}

RangeTombstones RangeTombstones::Merge(const Comparator* comparator,
                                       const std::vector<const RangeTombstones*>& parts) {
  std::vector<RangeTombstone> all;
  for (const RangeTombstones* part : parts) {
    for (RangeTombstone& tombstone : part->Tombstones()) all.push_back(std::move(tombstone));
  }
  return {comparator, std::move(all)};
}

void RangeTombstones::SetSequences(std::vector<CoveringSequences::Interval> intervals) {
  // As each fragment is covered, none has two.
  if (std::all_of(intervals.begin(), intervals.end(),
                  [](const CoveringSequences::Interval& i) { return i.last - i.first == 1; }) &&
      intervals.size() == fragments_.size()) {
    return;
  }
  sequences_ = CoveringSequences(fragments_.size(), std::move(intervals));
}

std::vector<RangeTombstone> RangeTombstones::Tombstones() const {
  std::vector<RangeTombstone> tombstones;
  if (disjoint()) {
    tombstones.reserve(fragments_.size());
    for (const Fragment& fragment : fragments_) {
      tombstones.push_back({fragment.begin, fragment.end, fragment.newest});
    }
    return tombstones;
  }
  tombstones.reserve(sequences_.intervals().size());
  for (const CoveringSequences::Interval& interval : sequences_.intervals()) {
    // Nothing that is not covered lies between fragments of one tombstone.
    tombstones.push_back(
        {fragments_[interval.first].begin, fragments_[interval.last - 1].end, interval.sequence});
  }
  return tombstones;
}

std::vector<RangeTombstones::ListedFragment> RangeTombstones::Listed() const {
  std::vector<ListedFragment> listed;
  listed.reserve(fragments_.size());
  for (size_t i = 0; i < fragments_.size(); ++i) {
    listed.push_back({.begin = fragments_[i].begin, .end = fragments_[i].end, .sequences = {}});
    for (SequenceNumber sequence = fragments_[i].newest; sequence > 0;
         sequence = Newest(i, sequence - 1)) {
      listed.back().sequences.push_back(sequence);
    }
  }
  return listed;
}

void RangeTombstones::Index() {
  swath_of_.reserve(fragments_.size());
  for (uint32_t i = 0; i < fragments_.size(); ++i) {
    newest_ = std::max(newest_, fragments_[i].newest);
    const bool joins =
        i > 0 && comparator_.CompareUserKeys(fragments_[i - 1].end, fragments_[i].begin) == 0;
    if (!joins) swaths_.push_back({i, i});
    swaths_.back().last = i + 1;
    swath_of_.push_back(static_cast<uint32_t>(swaths_.size() - 1));
  }
  if (!comparator_.bytewise() || fragments_.empty()) return;
  common_ = CommonPrefix(fragments_.front().begin, fragments_.back().end);
  std::vector<uint64_t> ends;
  ends.reserve(fragments_.size());
  begins_.reserve(fragments_.size());
  for (const Fragment& fragment : fragments_) {
    ends.push_back(common_.Number(fragment.end));
    begins_.push_back(common_.Number(fragment.begin));
  }
  ends_ = SortedNumbers(ends);
}

RangeTombstones::Position RangeTombstones::Find(const Slice& user_key) const {
  if (ends_.empty()) return FindByKeys(user_key, 0, fragments_.size());
  uint64_t number = 0;
  switch (common_.Find(user_key, &number)) {
    case CommonPrefix::Place::kAmong:
      break;
    case CommonPrefix::Place::kBefore:
      return {0, false};
    case CommonPrefix::Place::kBehind:
      return {fragments_.size(), false};
  }
  return FindAmong(user_key, number);
}

RangeTombstones::Position RangeTombstones::FindAmong(const Slice& user_key, uint64_t number) const {
  // Recent deletions, a small part of the keys, often lie all on one side of the key.
  if (number < begins_.front()) return {0, false};
  if (number > ends_.back()) return {fragments_.size(), false};
  const size_t i = ends_.CountLess(number);
  if (ends_[i] == number || begins_[i] == number) [[unlikely]] {
    // Keys of one number may be equal or not.
    const size_t end = number < ends_.back() ? ends_.CountLess(number + 1) : ends_.size();
    return FindByKeys(user_key, i, end);
  }
  return {i, begins_[i] < number};
}

RangeTombstones::Position RangeTombstones::FindByKeys(const Slice& user_key, size_t from,
                                                      size_t to) const {
  const auto begin = fragments_.begin();
  const auto found =
      std::partition_point(begin + static_cast<ptrdiff_t>(from), begin + static_cast<ptrdiff_t>(to),
                           [&](const Fragment& fragment) {
                             return comparator_.CompareUserKeys(fragment.end, user_key) <= 0;
                           });
  const bool covered =
      found != fragments_.end() && comparator_.CompareUserKeys(found->begin, user_key) <= 0;
  return {static_cast<size_t>(found - begin), covered};
}

size_t RangeTombstones::MemoryUsage() const {
  size_t bytes = sizeof(*this) + ends_.MemoryUsage() + begins_.capacity() * sizeof(uint64_t) +
                 sequences_.MemoryUsage() + swath_of_.capacity() * sizeof(uint32_t) +
                 swaths_.capacity() * sizeof(Swath);
  for (const Fragment& fragment : fragments_) {
    bytes += sizeof(fragment) + fragment.begin.size() + fragment.end.size();
  }
  return bytes;
}

void RangeTombstones::Encode(const std::vector<ListedFragment>& fragments, std::string* dst) {
  for (const ListedFragment& fragment : fragments) {
    PutLengthPrefixedSlice(dst, fragment.begin);
    PutLengthPrefixedSlice(dst, fragment.end);
    PutVarint32(dst, static_cast<uint32_t>(fragment.sequences.size()));
    for (const SequenceNumber sequence : fragment.sequences) PutVarint64(dst, sequence);
  }
}

size_t RangeTombstones::EncodedBytesMax(size_t sequences) const {
  size_t bytes = 0;
  for (size_t i = 0; i < fragments_.size(); ++i) {
    const size_t count = disjoint() ? 1 : std::min(sequences, sequences_.Count(i));
    bytes += fragments_[i].begin.size() + fragments_[i].end.size() + 3 * kMaxVarint32Bytes +
             count * kMaxVarint64Bytes;
  }
  return bytes;
}

Status RangeTombstones::Decode(const Slice& bytes, const Comparator* comparator,
                               std::unique_ptr<const RangeTombstones>* tombstones) {
  const auto malformed = [] { return Status::Corruption("malformed range tombstones"); };
  auto decoded = std::make_unique<RangeTombstones>(comparator);
  std::vector<CoveringSequences::Interval> intervals;
  Slice input = bytes;
  while (!input.empty()) {
    Slice begin;
    Slice end;
    uint32_t count = 0;
    if (!GetLengthPrefixedSlice(&input, &begin) || !GetLengthPrefixedSlice(&input, &end) ||
        !GetVarint32(&input, &count) || count == 0 || count > input.size()) {
      return malformed();
    }
    std::vector<Fragment>& fragments = decoded->fragments_;
    if (comparator->Compare(begin, end) >= 0) return malformed();
    if (!fragments.empty() && comparator->Compare(fragments.back().end, begin) > 0) {
      return malformed();
    }
    Fragment& fragment = fragments.emplace_back();
    fragment.begin = begin.ToString();
    fragment.end = end.ToString();
    const auto at = static_cast<uint32_t>(fragments.size() - 1);
    for (uint64_t above = kMaxSequenceNumber + 1; count > 0; --count) {
      uint64_t sequence = 0;
      const bool read = GetVarint64(&input, &sequence);
      if (!read || sequence == 0 || sequence >= above) return malformed();
      fragment.newest = std::max(fragment.newest, sequence);
      intervals.push_back({.first = at, .last = at + 1, .sequence = sequence});
      above = sequence;
    }
  }
  decoded->SetSequences(std::move(intervals));
  decoded->Index();
  *tombstones = std::move(decoded);
  return Status::OK();
}

}  // namespace nacre
