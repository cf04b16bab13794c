#pragma once

#include <cassert>
#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace nacre {

/// A view of bytes, which it does not own. Any byte value may occur; there is no terminator. Thread
/// safety: as a pointer and a length.
class Slice {
 public:
  constexpr Slice() = default;
  constexpr Slice(const char* data, size_t size) : data_(data), size_(size) {}
  // NOLINTBEGIN(google-explicit-constructor): implicit, as in RocksDB.
  Slice(const std::string& s) : data_(s.data()), size_(s.size()) {}
  constexpr Slice(std::string_view s) : data_(s.data()), size_(s.size()) {}
  constexpr Slice(const char* s) : data_(s), size_(std::string_view(s).size()) {}
  // NOLINTEND(google-explicit-constructor)

  constexpr const char* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const char* begin() const { return data_; }
  constexpr const char* end() const { return data_ + size_; }

  constexpr char operator[](size_t n) const {
    assert(n < size_);
    return data_[n];
  }
  void clear() { *this = Slice(); }
  void remove_prefix(size_t n) {
    assert(n <= size_);
    data_ += n;
    size_ -= n;
  }
  void remove_suffix(size_t n) {
    assert(n <= size_);
    size_ -= n;
  }

  std::string ToString(bool hex = false) const;
  constexpr std::string_view ToStringView() const { return {data_, size_}; }

  /// Bytewise, as unsigned: < 0, 0, > 0.
  int compare(const Slice& other) const {
    const size_t n = size_ < other.size_ ? size_ : other.size_;
    const int r = n == 0 ? 0 : std::memcmp(data_, other.data_, n);
    if (r != 0) return r;
    return size_ < other.size_ ? -1 : (size_ > other.size_ ? 1 : 0);
  }
  bool starts_with(const Slice& prefix) const {
    return size_ >= prefix.size_ &&
           (prefix.size_ == 0 || std::memcmp(data_, prefix.data_, prefix.size_) == 0);
  }

 private:
  const char* data_ = "";
  size_t size_ = 0;
};

inline bool operator==(const Slice& a, const Slice& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// A `Slice` that keeps its bytes alive: it either owns them (`PinSelf`) or holds a release
/// function for memory of the database (`PinSlice`). Reuse one object over many reads: the
/// memory it owns is kept.
///
/// Movable, not copyable. Thread safety: as `std::string`. Must be reset or destroyed before the
/// database that filled it is closed.
class PinnableSlice : public Slice {
 public:
  using ReleaseFunction = void (*)(void* arg1, void* arg2);

  PinnableSlice() = default;
  ~PinnableSlice() { Reset(); }
  PinnableSlice(const PinnableSlice&) = delete;
  PinnableSlice& operator=(const PinnableSlice&) = delete;
  PinnableSlice(PinnableSlice&& other) noexcept { *this = std::move(other); }
  PinnableSlice& operator=(PinnableSlice&& other) noexcept;

  /// Copies `value` into memory of this object.
  void PinSelf(const Slice& value) {
    Release();
    self_space_.assign(value.data(), value.size());
    Slice::operator=(Slice(self_space_));
  }
  /// Views `value`, whose memory stays valid until `release(arg1, arg2)` runs.
  void PinSlice(const Slice& value, ReleaseFunction release, void* arg1, void* arg2) {
    Release();
    Slice::operator=(value);
    release_ = release;
    arg1_ = arg1;
    arg2_ = arg2;
  }
  /// Gives up what is pinned; the slice is empty afterwards.
  void Reset() {
    Release();
    clear();
  }
  bool IsPinned() const { return release_ != nullptr; }

 private:
  void Release() {
    if (release_ != nullptr) {
      release_(arg1_, arg2_);
      release_ = nullptr;
    }
  }

  std::string self_space_;
  ReleaseFunction release_ = nullptr;
  void* arg1_ = nullptr;
  void* arg2_ = nullptr;
};

}  // namespace nacre
