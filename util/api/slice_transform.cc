#include "nacre/slice_transform.h"

#include <algorithm>
#include <string>
#include <utility>

namespace nacre {
namespace {

class PrefixTransform final : public SliceTransform {
 public:
  enum class Shorter : bool { kHaveNone, kAreTheirOwn };

  PrefixTransform(std::string name, size_t length, Shorter shorter)
      : name_(std::move(name)), length_(length), shorter_(shorter) {}

  const char* Name() const override { return name_.c_str(); }
  Slice Transform(const Slice& key) const override {
    return {key.data(), std::min(length_, key.size())};
  }
  bool InDomain(const Slice& key) const override {
    return key.size() >= length_ || shorter_ == Shorter::kAreTheirOwn;
  }

 private:
  const std::string name_;
  const size_t length_;
  const Shorter shorter_;
};

}  // namespace

std::shared_ptr<const SliceTransform> NewFixedPrefixTransform(size_t prefix_length) {
  return std::make_shared<PrefixTransform>("FixedPrefix." + std::to_string(prefix_length),
                                           prefix_length, PrefixTransform::Shorter::kHaveNone);
}

std::shared_ptr<const SliceTransform> NewCappedPrefixTransform(size_t cap_length) {
  return std::make_shared<PrefixTransform>("CappedPrefix." + std::to_string(cap_length), cap_length,
                                           PrefixTransform::Shorter::kAreTheirOwn);
}

std::shared_ptr<const SliceTransform> NewNoopTransform() {
  return std::make_shared<PrefixTransform>("Noop", SIZE_MAX,
                                           PrefixTransform::Shorter::kAreTheirOwn);
}

}  // namespace nacre
