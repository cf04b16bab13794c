#pragma once

#include <atomic>
#include <stdexcept>
#include <string>

#include "nacre/comparator.h"
#include "nacre/slice.h"

namespace nacre {

/// Whether callbacks of tests throw when they meet a key with "poison" in it.
inline std::atomic<bool> armed{false};

inline bool IsPoison(const Slice& key) {
  return key.ToString().find("poison") != std::string::npos;
}

inline void ThrowAt(const Slice& key) {
  if (armed.load() && IsPoison(key)) throw std::runtime_error("met poison");
}

/// Bytewise, but for what it throws.
class ThrowingComparator final : public Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override {
    ThrowAt(a);
    ThrowAt(b);
    return a.compare(b);
  }
  const char* Name() const override { return "nacre.test.ThrowingComparator"; }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}
};

}  // namespace nacre
