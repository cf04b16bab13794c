#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "nacre/compaction_filter.h"
#include "nacre/comparator.h"
#include "nacre/merge_operator.h"
#include "nacre/slice.h"

// Counters, such as counts of references: keys are decimal numbers, values are decimal numbers that
// `DB::Merge` adds to, and compactions forget the counters that have come down to zero. The
// application names these classes in its options, and the plug-in of the same name gives them to
// the memory nodes.

namespace counters {

/// False: `text` is no decimal number.
inline bool Parse(const nacre::Slice& text, int64_t* number) {
  const char* const end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, *number);
  return error == std::errc() && parsed == end;
}

/// Orders keys, decimal numbers without leading zeros, by their value: "9" before "10".
class ByNumber final : public nacre::Comparator {
 public:
  const char* Name() const override { return "counters.ByNumber"; }
  int Compare(const nacre::Slice& a, const nacre::Slice& b) const override {
    if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
    return a.compare(b);
  }
  void FindShortestSeparator(std::string* /*start*/, const nacre::Slice& /*limit*/) const override {
  }
  void FindShortSuccessor(std::string* /*key*/) const override {}
};

/// Adds. What is no number cannot be added to, and stays as it is.
class Add final : public nacre::AssociativeMergeOperator {
 public:
  const char* Name() const override { return "counters.Add"; }
  bool Merge(const nacre::Slice& /*key*/, const nacre::Slice* existing, const nacre::Slice& operand,
             std::string* result, nacre::Logger* /*logger*/) const override {
    int64_t count = 0;
    int64_t more = 0;
    if (existing != nullptr && !Parse(*existing, &count)) return false;
    if (!Parse(operand, &more) || __builtin_add_overflow(count, more, &count)) return false;
    *result = std::to_string(count);
    return true;
  }
};

/// Forgets counters at zero.
class ForgetZeros final : public nacre::CompactionFilter {
 public:
  const char* Name() const override { return "counters.ForgetZeros"; }
  bool Filter(int /*level*/, const nacre::Slice& /*key*/, const nacre::Slice& value,
              std::string* /*new_value*/, bool* /*value_changed*/) const override {
    return value == nacre::Slice("0");
  }
};

class ForgetZerosFactory : public nacre::CompactionFilterFactory {
 public:
  const char* Name() const override { return "counters.ForgetZeros"; }
  std::unique_ptr<nacre::CompactionFilter> CreateCompactionFilter(
      const nacre::CompactionFilter::Context& /*context*/) override {
    return std::make_unique<ForgetZeros>();
  }
};

}  // namespace counters
