#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "nacre/slice.h"
#include "table/format/internal_key.h"

namespace nacre {

/// Maps keys that all begin with the same bytes to numbers: a number made of the eight bytes behind
/// these, as KeyPrefix makes it. So keys that differ late are told apart, too.
///
/// Thread safety: immutable once made.
class CommonPrefix {
 public:
  /// The place of a key relative to those with the prefix.
  enum class Place : uint8_t { kBefore, kAmong, kBehind };

  CommonPrefix() = default;
  /// What `first` and `last` begin with, and so all keys between them in the bytewise order.
  CommonPrefix(const Slice& first, const Slice& last) {
    const size_t most = std::min(first.size(), last.size());
    while (size_ < most && first[size_] == last[size_]) ++size_;
    bytes_.assign(first.data(), size_);
  }

  size_t size() const { return size_; }
  /// Sets `*number`, unless `key` begins otherwise: then it lies before or behind all of them.
  Place Find(const Slice& key, uint64_t* number) const {
    if (key.size() < size_ || !Begins(key)) [[unlikely]]
      return key.compare(Slice(bytes_)) < 0 ? Place::kBefore : Place::kBehind;
    *number = Number(key);
    return Place::kAmong;
  }
  /// The number of a key that begins so.
  uint64_t Number(const Slice& key) const {
    const size_t left = key.size() - size_;
    if (left >= sizeof(uint64_t)) return KeyPrefix({key.data() + size_, left});
    if (left == 0) return 0;
    if (key.size() < sizeof(uint64_t)) return KeyPrefix({key.data() + size_, left});
    // Its last eight bytes, of which the common ones are shifted out: no copy of a few bytes.
    return KeyPrefix({key.data() + key.size() - sizeof(uint64_t), sizeof(uint64_t)})
           << 8 * (sizeof(uint64_t) - left);
  }

 private:
  /// Compares words, as a call of memcmp takes longer than most of this.
  bool Begins(const Slice& key) const {
    if (size_ < sizeof(uint64_t)) {
      for (size_t i = 0; i < size_; ++i) {
        if (key[i] != bytes_[i]) return false;
      }
      return true;
    }
    for (size_t at = 0; at < size_; at += sizeof(uint64_t)) {
      const size_t from = std::min(at, size_ - sizeof(uint64_t));
      if (Word(key.data() + from) != Word(bytes_.data() + from)) return false;
    }
    return true;
  }
  static uint64_t Word(const char* bytes) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof(word));
    return word;
  }

  size_t size_ = 0;
  std::string bytes_;
};

/// Ascending numbers, to be searched: in blocks of 32, above which lie the last ones of each block,
/// again in blocks. A block is compared as a whole, by vector instructions where the target has
/// them: a search of a thousand looks at two, where a binary search takes ten steps, each of which
/// waits for the one before it, and many for a branch that was mispredicted.
///
/// Thread safety: immutable once made.
class SortedNumbers {
 public:
  SortedNumbers() = default;
  explicit SortedNumbers(const std::vector<uint64_t>& ascending) : size_(ascending.size()) {
    std::vector<int64_t> level;
    level.reserve(size_);
    for (const uint64_t number : ascending) level.push_back(Signed(number));
    for (;;) {
      std::vector<int64_t> above;
      for (size_t end = kBlock; end < level.size(); end += kBlock) above.push_back(level[end - 1]);
      if (!level.empty()) above.push_back(level.back());
      // What is not less than anything counts for nothing.
      level.resize((level.size() + kBlock - 1) / kBlock * kBlock, kGreatest);
      const bool is_top = level.size() <= kBlock;
      levels_.push_back(std::move(level));
      if (is_top) break;
      level = std::move(above);
    }
  }

  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  uint64_t operator[](size_t i) const { return Unsigned(levels_.front()[i]); }
  uint64_t front() const { return (*this)[0]; }
  uint64_t back() const { return (*this)[size_ - 1]; }
  /// How many of them are less than `number`, which is not greater than all of them.
  size_t CountLess(uint64_t number) const {
    const int64_t sought = Signed(number);
    size_t found = 0;
    for (size_t level = levels_.size(); level-- > 0;) {
      found = found * kBlock + CountLessInBlock(levels_[level].data() + found * kBlock, sought);
    }
    return found;
  }

  size_t MemoryUsage() const {
    size_t numbers = 0;
    for (const auto& level : levels_) numbers += level.capacity();
    return numbers * sizeof(int64_t);
  }

 private:
  static constexpr size_t kBlock = 32;
  static constexpr int64_t kGreatest = std::numeric_limits<int64_t>::max();

  // Signed numbers are what vector instructions compare.
  static int64_t Signed(uint64_t number) { return static_cast<int64_t>(number ^ kSign); }
  static uint64_t Unsigned(int64_t number) { return static_cast<uint64_t>(number) ^ kSign; }
  static constexpr uint64_t kSign = uint64_t{1} << 63;

  static size_t CountLessInBlock(const int64_t* block, int64_t number) {
    int64_t less = 0;
    for (size_t i = 0; i < kBlock; ++i) less += block[i] < number ? 1 : 0;
    return static_cast<size_t>(less);
  }

  size_t size_ = 0;
  std::vector<std::vector<int64_t>> levels_;  ///< All of them first.
};

}  // namespace nacre
