#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace nacre {

/// Memory straight from the kernel, given back on destruction.
///
/// Thread safety: none.
class ArenaBlock {
 public:
  static constexpr size_t kHugePage = 2 << 20;

  /// Aligned to huge pages if it could hold one. Throws std::bad_alloc.
  explicit ArenaBlock(size_t bytes);
  ~ArenaBlock();
  ArenaBlock(ArenaBlock&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  ArenaBlock& operator=(ArenaBlock&&) = delete;

  /// Has the kernel provide and clear all pages now, instead of each when it is touched first.
  void Populate();

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

/// Where arenas take large blocks from, and give all of theirs back to.
///
/// Thread safety: all methods may be called from many threads at once.
class ArenaBlockSource {
 public:
  static constexpr size_t kBlockSize = 8 << 20;

  virtual ~ArenaBlockSource() = default;
  /// A block of kBlockSize. Throws std::bad_alloc.
  virtual ArenaBlock Take() = 0;
  /// Takes all of `*blocks`, which may be of any size.
  virtual void Return(std::vector<ArenaBlock>* blocks) = 0;
};

}  // namespace nacre
