#include "nacre/slice.h"

#include <utility>

namespace nacre {

std::string Slice::ToString(bool hex) const {
  if (!hex) return std::string(data_, size_);
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string result;
  result.reserve(2 * size_);
  for (size_t i = 0; i < size_; ++i) {
    const auto byte = static_cast<unsigned char>(data_[i]);
    result.push_back(kDigits[byte >> 4]);
    result.push_back(kDigits[byte & 15]);
  }
  return result;
}

PinnableSlice& PinnableSlice::operator=(PinnableSlice&& other) noexcept {
  if (this == &other) return *this;
  Release();
  // A short string lives inside the object, so owned bytes change their address by the move.
  const bool owns_bytes = !other.IsPinned() && other.data() == other.self_space_.data();
  const Slice view = other;
  self_space_ = std::move(other.self_space_);
  Slice::operator=(owns_bytes ? Slice(self_space_) : view);
  release_ = std::exchange(other.release_, nullptr);
  arg1_ = std::exchange(other.arg1_, nullptr);
  arg2_ = std::exchange(other.arg2_, nullptr);
  other.self_space_.clear();
  other.clear();
  return *this;
}

}  // namespace nacre
