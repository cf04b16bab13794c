#include "nacre/comparator.h"

#include <algorithm>

#include "util/never_destroyed.h"

namespace nacre {
namespace {

size_t CommonPrefix(const Slice& a, const Slice& b) {
  const size_t limit = std::min(a.size(), b.size());
  size_t n = 0;
  while (n < limit && a[n] == b[n]) ++n;
  return n;
}

class BytewiseOrder final : public Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }
  const char* Name() const override { return "nacre.BytewiseComparator"; }

  void FindShortestSeparator(std::string* start, const Slice& limit) const override {
    const size_t differ = CommonPrefix(*start, limit);
    if (differ >= start->size() || differ >= limit.size()) return;  // One is a prefix of the other.
    const auto start_byte = static_cast<unsigned char>((*start)[differ]);
    const auto limit_byte = static_cast<unsigned char>(limit[differ]);
    if (start_byte > limit_byte) return;  // This is not start < limit.
    if (start_byte + 1 < limit_byte || (start_byte < limit_byte && differ + 1 < limit.size())) {
      // Incrementing the byte that differs stays before the limit.
      (*start)[differ] = static_cast<char>(start_byte + 1);
      start->resize(differ + 1);
      return;
    }
    // The incremented byte would be the whole limit: keep it, increment a later byte instead.
    for (size_t i = differ + 1; i + 1 < start->size(); ++i) {
      const auto byte = static_cast<unsigned char>((*start)[i]);
      if (byte == 0xff) continue;
      (*start)[i] = static_cast<char>(byte + 1);
      start->resize(i + 1);
      return;
    }
  }

  void FindShortSuccessor(std::string* key) const override {
    for (size_t i = 0; i < key->size(); ++i) {
      const auto byte = static_cast<unsigned char>((*key)[i]);
      if (byte == 0xff) continue;
      (*key)[i] = static_cast<char>(byte + 1);
      key->resize(i + 1);
      return;
    }
  }
};

class ReverseBytewiseOrder final : public Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override { return b.compare(a); }
  const char* Name() const override { return "nacre.ReverseBytewiseComparator"; }

  void FindShortestSeparator(std::string* start, const Slice& limit) const override {
    // start > limit as bytes. A prefix of start that is still > limit as bytes lies in the range.
    const size_t differ = CommonPrefix(*start, limit);
    if (differ >= start->size()) return;
    if (differ < limit.size() &&
        static_cast<unsigned char>((*start)[differ]) < static_cast<unsigned char>(limit[differ])) {
      return;  // This is not start before limit.
    }
    start->resize(differ + 1);
    // A shorter key is a larger one in this order, as asked; equal to limit it cannot be.
  }

  /// In this order a key's prefixes come after it, and the empty key comes last.
  void FindShortSuccessor(std::string* key) const override {
    if (!key->empty()) key->resize(1);
  }
};

}  // namespace

const Comparator* BytewiseComparator() {
  static const NeverDestroyed<BytewiseOrder> order;
  return &*order;
}

const Comparator* ReverseBytewiseComparator() {
  static const NeverDestroyed<ReverseBytewiseOrder> order;
  return &*order;
}

}  // namespace nacre
