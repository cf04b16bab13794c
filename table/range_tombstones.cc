#include "table/range_tombstones.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "util/coding.h"

namespace nacre {
namespace {

/// The sequences of the tombstones that are open at some key, each as often as it is open.
class OpenTombstones {
 public:
  void Open(SequenceNumber sequence) {
    sequences_.insert(std::lower_bound(sequences_.begin(), sequences_.end(), sequence,
                                       std::greater<SequenceNumber>()),
                      sequence);
  }
  void Close(SequenceNumber sequence) {
    sequences_.erase(std::lower_bound(sequences_.begin(), sequences_.end(), sequence,
                                      std::greater<SequenceNumber>()));
  }
  bool empty() const { return sequences_.empty(); }
  std::vector<SequenceNumber> Distinct() const {
    std::vector<SequenceNumber> distinct = sequences_;
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    return distinct;
  }

 private:
  std::vector<SequenceNumber> sequences_;  ///< Descending.
};

/// Where a tombstone begins or ends.
struct Edge {
  const std::string* key;
  SequenceNumber sequence;
  bool begins;
};

}  // namespace

SequenceNumber RangeTombstones::Fragment::Newest(SequenceNumber snapshot) const {
  // As a rule the first one.
  for (const SequenceNumber sequence : sequences) {
    if (sequence <= snapshot) return sequence;
  }
  return 0;
}

RangeTombstones::RangeTombstones(const Comparator* comparator,
                                 const std::vector<RangeTombstone>& tombstones)
    : comparator_(comparator) {
  std::vector<Edge> edges;
  edges.reserve(2 * tombstones.size());
  for (const RangeTombstone& tombstone : tombstones) {
    if (comparator_.CompareUserKeys(tombstone.begin, tombstone.end) >= 0) continue;
    edges.push_back({&tombstone.begin, tombstone.sequence, true});
    edges.push_back({&tombstone.end, tombstone.sequence, false});
  }
  std::sort(edges.begin(), edges.end(), [this](const Edge& a, const Edge& b) {
    return comparator_.CompareUserKeys(*a.key, *b.key) < 0;
  });
  OpenTombstones open;
  for (size_t i = 0; i < edges.size();) {
    const std::string& key = *edges[i].key;
    if (!open.empty()) fragments_.back().end = key;
    const size_t first = i;
    for (; i < edges.size() && comparator_.CompareUserKeys(*edges[i].key, key) == 0; ++i) {
      if (edges[i].begins) open.Open(edges[i].sequence);
    }
    for (size_t j = first; j < i; ++j) {
      if (!edges[j].begins) open.Close(edges[j].sequence);
    }
    if (open.empty()) continue;
    std::vector<SequenceNumber> sequences = open.Distinct();
    const bool goes_on = !fragments_.empty() && fragments_.back().end == key &&
                         fragments_.back().sequences == sequences;
    if (!goes_on) {
      fragments_.push_back({.begin = key, .end = {}, .sequences = std::move(sequences)});
    }
  }
  Index();
}

RangeTombstones RangeTombstones::Merge(const Comparator* comparator,
                                       const std::vector<const RangeTombstones*>& parts) {
  std::vector<RangeTombstone> all;
  for (const RangeTombstones* part : parts) {
    for (const Fragment& fragment : part->fragments()) {
      for (const SequenceNumber sequence : fragment.sequences) {
        all.push_back({fragment.begin, fragment.end, sequence});
      }
    }
  }
  return {comparator, all};
}

void RangeTombstones::Index() {
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
  // Of what was deleted lately, and is a small part of it, often all lies on one side of the key.
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
  size_t bytes = sizeof(*this) + ends_.MemoryUsage() + begins_.capacity() * sizeof(uint64_t);
  for (const Fragment& fragment : fragments_) {
    bytes += sizeof(fragment) + fragment.begin.size() + fragment.end.size() +
             fragment.sequences.size() * sizeof(SequenceNumber);
  }
  return bytes;
}

void RangeTombstones::Encode(const std::vector<Fragment>& fragments, std::string* dst) {
  for (const Fragment& fragment : fragments) {
    PutLengthPrefixedSlice(dst, fragment.begin);
    PutLengthPrefixedSlice(dst, fragment.end);
    PutVarint32(dst, static_cast<uint32_t>(fragment.sequences.size()));
    for (const SequenceNumber sequence : fragment.sequences) PutVarint64(dst, sequence);
  }
}

Status RangeTombstones::Decode(const Slice& bytes, const Comparator* comparator,
                               std::unique_ptr<const RangeTombstones>* tombstones) {
  const auto malformed = [] { return Status::Corruption("malformed range tombstones"); };
  auto decoded = std::make_unique<RangeTombstones>(comparator);
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
    for (; count > 0; --count) {
      uint64_t sequence = 0;
      const bool read = GetVarint64(&input, &sequence);
      const uint64_t above =
          fragment.sequences.empty() ? kMaxSequenceNumber + 1 : fragment.sequences.back();
      if (!read || sequence == 0 || sequence >= above) return malformed();
      fragment.sequences.push_back(sequence);
    }
  }
  decoded->Index();
  *tombstones = std::move(decoded);
  return Status::OK();
}

}  // namespace nacre
