#pragma once

#include <cassert>
#include <cstddef>
#include <memory>

namespace nacre {

/// The first `count` of N places hold objects, the rest is untouched memory: a small batch does not
/// pay for a large one.
template <typename T, size_t N>
class InlineArray {
 public:
  explicit InlineArray(size_t count) : count_(count) {
    assert(count <= N);
    std::uninitialized_default_construct_n(data(), count_);
  }
  ~InlineArray() { std::destroy_n(data(), count_); }
  InlineArray(const InlineArray&) = delete;
  InlineArray& operator=(const InlineArray&) = delete;

  T* data() { return reinterpret_cast<T*>(memory_); }
  T& operator[](size_t i) { return data()[i]; }

 private:
  const size_t count_;
  alignas(T) std::byte memory_[N * sizeof(T)];
};

}  // namespace nacre
