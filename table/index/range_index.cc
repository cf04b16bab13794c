#include "table/index/range_index.h"

#include <algorithm>
#include <cassert>
#include <iterator>

#include "util/coding.h"

namespace nacre {
namespace {

constexpr uint32_t kRestartInterval = 16;
constexpr size_t kTrailerBytes = 8;
constexpr size_t kRestartBytes = 4;

size_t CommonPrefix(const Slice& a, const Slice& b) {
  const size_t limit = std::min(a.size(), b.size());
  return static_cast<size_t>(std::mismatch(a.begin(), a.begin() + limit, b.begin()).first -
                             a.begin());
}

}  // namespace

// ---- Building ---------------------------------------------------------------------------------

void RangeIndexBuilder::AddBoundary(const Slice& key, uint64_t offset, const uint64_t* tag) {
  assert(offset > last_offset_);
  const bool restart = count_ % kRestartInterval == 0;
  if (restart) restarts_.push_back(static_cast<uint32_t>(boundaries_.size()));
  const size_t shared = restart ? 0 : CommonPrefix(last_key_, key);
  const uint64_t units = (restart ? offset : offset - last_offset_) >> alignment_shift_;
  PutVarint32(&boundaries_, static_cast<uint32_t>(shared));
  PutVarint32(&boundaries_, static_cast<uint32_t>(key.size() - shared));
  PutVarint64(&boundaries_, units << 1 | (tag != nullptr ? 1 : 0));
  boundaries_.append(key.data() + shared, key.size() - shared);
  if (tag != nullptr) PutFixed64(&boundaries_, *tag);
  last_key_.assign(key.data(), key.size());
  last_offset_ = offset;
  ++count_;
}

size_t RangeIndexBuilder::Bytes() const {
  return boundaries_.size() + restarts_.size() * kRestartBytes + kTrailerBytes;
}

size_t RangeIndexBuilder::BytesBound(size_t key_size) {
  return 2 * kMaxVarint32Bytes + kMaxVarint64Bytes + key_size + kTagBytes + kRestartBytes;
}

void RangeIndexBuilder::Finish(std::string* dst) const {
  dst->append(boundaries_);
  for (const uint32_t restart : restarts_) PutFixed32(dst, restart);
  PutFixed32(dst, static_cast<uint32_t>(restarts_.size()));
  PutFixed32(dst, count_);
}

// ---- Reading ----------------------------------------------------------------------------------

/// Decodes the boundaries of one block: those from a restart to before the next one.
class RangeIndex::Cursor {
 public:
  Cursor(const RangeIndex& index, const char* position, const char* limit)
      : alignment_shift_(index.alignment_shift_), position_(position), limit_(limit) {}

  /// The next boundary; false at the end of the block, or where it is malformed. The key is put
  /// together only if `kWithKey`, on every call or on none.
  template <bool kWithKey>
  bool Next() {
    if (position_ == limit_) return false;
    uint32_t shared = 0;
    uint32_t further = 0;
    uint64_t units = 0;
    const char* p = DecodeVarint32(position_, limit_, &shared);
    if (p != nullptr) p = DecodeVarint32(p, limit_, &further);
    if (p != nullptr) p = DecodeVarint64(p, limit_, &units);
    if (p == nullptr) return false;
    tagged_ = (units & 1) != 0;
    const size_t rest = further + (tagged_ ? kTagBytes : 0);
    if (shared > key_size_ || static_cast<size_t>(limit_ - p) < rest) return false;
    if constexpr (kWithKey) SetKey(shared, p, further);
    key_size_ = shared + further;
    if (tagged_) tag_ = DecodeFixed64(p + further);
    if (units >> 1 > UINT64_MAX >> alignment_shift_) return false;
    step_ = units >> 1 << alignment_shift_;
    offset_ += step_;
    position_ = p + rest;
    return true;
  }

  Slice key() const {
    return {key_size_ <= kInlineKey ? inline_key_ : long_key_.data(), key_size_};
  }
  bool tagged() const { return tagged_; }
  uint64_t tag() const { return tag_; }
  uint64_t step() const { return step_; }
  uint64_t offset() const { return offset_; }
  const char* position() const { return position_; }

 private:
  static constexpr size_t kInlineKey = 128;

  /// Replaces all but the first `shared` bytes of the key. Keys of usual size allocate nothing.
  void SetKey(size_t shared, const char* further, size_t further_size) {
    const bool was_inline = key_size_ <= kInlineKey;
    if (shared + further_size <= kInlineKey) {
      if (!was_inline) std::memcpy(inline_key_, long_key_.data(), shared);
      std::memcpy(inline_key_ + shared, further, further_size);
    } else {
      if (was_inline) long_key_.assign(inline_key_, shared);
      long_key_.resize(shared);
      long_key_.append(further, further_size);
    }
  }

  const uint32_t alignment_shift_;
  const char* position_;
  const char* const limit_;
  size_t key_size_ = 0;
  bool tagged_ = false;
  uint64_t tag_ = 0;
  uint64_t step_ = 0;
  uint64_t offset_ = 0;
  std::string long_key_;
  char inline_key_[kInlineKey];
};

bool RangeIndex::Parse(const Slice& section, const InternalKeyComparator& comparator,
                       uint32_t alignment_shift, uint64_t records_bytes) {
  if (section.size() < kTrailerBytes || alignment_shift > 32) return false;
  const char* const trailer = section.end() - kTrailerBytes;
  const uint32_t restarts = DecodeFixed32(trailer);
  count_ = DecodeFixed32(trailer + 4);
  if (records_bytes > uint64_t{1} << 62) return false;  // Sums below must not overflow.
  if (restarts > (section.size() - kTrailerBytes) / kRestartBytes) return false;
  if (restarts != (uint64_t{count_} + kRestartInterval - 1) / kRestartInterval) return false;
  boundaries_ = section.data();
  boundaries_end_ = trailer - restarts * kRestartBytes;
  alignment_shift_ = alignment_shift;
  records_bytes_ = records_bytes;
  comparator_ = &comparator;
  if (!BuildRestarts(section, restarts)) return false;
  return !comparator.bytewise() || BuildPrefixes();
}

/// Fills restarts_ and walks all boundaries, so that searches meet only well-formed ones.
bool RangeIndex::BuildRestarts(const Slice& section, uint32_t restarts) {
  const auto boundary_bytes = static_cast<size_t>(boundaries_end_ - section.data());
  restarts_.clear();
  restarts_.reserve(restarts);
  const char* expected = boundaries_;
  uint64_t last_offset = 0;
  uint32_t left = count_;
  for (uint32_t i = 0; i < restarts; ++i) {
    const uint32_t position = DecodeFixed32(boundaries_end_ + i * kRestartBytes);
    if (position > boundary_bytes || boundaries_ + position != expected) return false;
    Cursor cursor(*this, expected, boundaries_end_);
    const uint32_t in_block = std::min(left, kRestartInterval);
    for (uint32_t j = 0; j < in_block; ++j) {
      if (!cursor.Next<false>()) return false;
      if (cursor.step() > records_bytes_ || cursor.offset() <= last_offset ||
          cursor.offset() >= records_bytes_) {
        return false;
      }
      if (j == 0) restarts_.push_back({cursor.offset(), 0, position});
      last_offset = cursor.offset();
    }
    left -= in_block;
    expected = cursor.position();
  }
  return expected == boundaries_end_;
}

bool RangeIndex::BuildPrefixes() {
  common_.clear();
  if (restarts_.empty()) return true;
  const auto restart_key = [this](const Restart& restart) {
    Cursor cursor(*this, boundaries_ + restart.position, boundaries_end_);
    cursor.Next<true>();
    return cursor.key().ToString();
  };
  // All keys in between share what the first and the last do, if they are in order.
  const std::string first = restart_key(restarts_.front());
  common_ = first.substr(0, CommonPrefix(first, restart_key(restarts_.back())));
  for (Restart& restart : restarts_) {
    const std::string key = restart_key(restart);
    if (!Slice(key).starts_with(common_)) return false;
    restart.prefix = KeyPrefix(Slice(key.data() + common_.size(), key.size() - common_.size()));
  }
  return true;
}

bool RangeIndex::AtOrBefore(const Cursor& boundary, const Slice& user_key, uint64_t tag) const {
  const int r = comparator_->CompareUserKeys(boundary.key(), user_key);
  if (r != 0) return r < 0;
  // An entry of this very key without a tag ends on the left of the boundary.
  return boundary.tagged() && tag <= boundary.tag();
}

ptrdiff_t RangeIndex::FindRestart(const Slice& user_key, uint64_t tag) const {
  uint64_t prefix = 0;
  if (comparator_->bytewise()) {
    const int r =
        Slice(user_key.data(), std::min(user_key.size(), common_.size())).compare(common_);
    if (r < 0) return -1;
    if (r > 0) return std::ssize(restarts_) - 1;
    prefix = KeyPrefix(Slice(user_key.data() + common_.size(), user_key.size() - common_.size()));
  }
  const auto after =
      std::partition_point(restarts_.begin(), restarts_.end(), [&](const Restart& restart) {
        if (restart.prefix != prefix) return restart.prefix < prefix;
        Cursor cursor(*this, boundaries_ + restart.position, boundaries_end_);
        cursor.Next<true>();
        return AtOrBefore(cursor, user_key, tag);
      });
  return after - restarts_.begin() - 1;
}

const char* RangeIndex::BlockEnd(size_t restart) const {
  return restart + 1 < restarts_.size() ? boundaries_ + restarts_[restart + 1].position
                                        : boundaries_end_;
}

uint64_t RangeIndex::BlockEndOffset(size_t restart) const {
  return restart + 1 < restarts_.size() ? restarts_[restart + 1].record_offset : records_bytes_;
}

RecordInterval RangeIndex::Seek(const Slice& user_key, uint64_t tag) const {
  const ptrdiff_t found = FindRestart(user_key, tag);
  if (found < 0) return {0, restarts_.empty() ? records_bytes_ : restarts_[0].record_offset};
  const auto restart = static_cast<size_t>(found);
  RecordInterval interval{restarts_[restart].record_offset, BlockEndOffset(restart)};
  Cursor cursor(*this, boundaries_ + restarts_[restart].position, BlockEnd(restart));
  cursor.Next<true>();
  while (cursor.Next<true>()) {
    if (!AtOrBefore(cursor, user_key, tag)) {
      interval.end = cursor.offset();
      break;
    }
    interval.begin = cursor.offset();
  }
  return interval;
}

RecordInterval RangeIndex::Containing(uint64_t offset) const {
  assert(offset < records_bytes_);
  const auto after = std::partition_point(
      restarts_.begin(), restarts_.end(),
      [offset](const Restart& restart) { return restart.record_offset <= offset; });
  if (after == restarts_.begin()) {
    return {0, restarts_.empty() ? records_bytes_ : restarts_[0].record_offset};
  }
  const auto restart = static_cast<size_t>(after - restarts_.begin() - 1);
  RecordInterval interval{restarts_[restart].record_offset, BlockEndOffset(restart)};
  Cursor cursor(*this, boundaries_ + restarts_[restart].position, BlockEnd(restart));
  cursor.Next<false>();
  while (cursor.Next<false>()) {
    if (cursor.offset() > offset) {
      interval.end = cursor.offset();
      break;
    }
    interval.begin = cursor.offset();
  }
  return interval;
}

bool RangeIndex::KeyNear(uint64_t offset, std::string* user_key) const {
  const auto after = std::partition_point(
      restarts_.begin(), restarts_.end(),
      [offset](const Restart& restart) { return restart.record_offset <= offset; });
  if (after == restarts_.begin()) return false;
  Cursor cursor(*this, boundaries_ + std::prev(after)->position, boundaries_end_);
  cursor.Next<true>();
  *user_key = cursor.key().ToString();
  return true;
}

void RangeIndex::BoundariesUpTo(uint64_t limit, std::vector<uint64_t>* boundaries) const {
  assert(limit > 0 && limit <= records_bytes_);
  boundaries->clear();
  const auto after = std::partition_point(
      restarts_.begin(), restarts_.end(),
      [limit](const Restart& restart) { return restart.record_offset < limit; });
  if (after == restarts_.begin()) {
    boundaries->push_back(0);
  } else {
    const auto restart = static_cast<size_t>(after - restarts_.begin() - 1);
    boundaries->push_back(restarts_[restart].record_offset);
    Cursor cursor(*this, boundaries_ + restarts_[restart].position, BlockEnd(restart));
    cursor.Next<false>();
    while (cursor.Next<false>() && cursor.offset() < limit) boundaries->push_back(cursor.offset());
  }
  boundaries->push_back(limit);
}

}  // namespace nacre
