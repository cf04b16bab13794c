#pragma once

#include <string>

#include "nacre/comparator.h"

namespace nacre {

/// An order that is given by functions of C, as LevelDB's and RocksDB's C APIs do. It shortens no
/// keys: the functions do not say how.
/// Thread safety: as the functions'; they are called from many threads at once.
class CallbackComparator final : public Comparator {
 public:
  using Destructor = void (*)(void* state);
  using CompareFunction = int (*)(void* state, const char* a, size_t a_size, const char* b,
                                  size_t b_size);
  using NameFunction = const char* (*)(void* state);

  /// `destructor` may be null.
  CallbackComparator(void* state, Destructor destructor, CompareFunction compare, NameFunction name)
      : state_(state), destructor_(destructor), compare_(compare), name_(name) {}
  ~CallbackComparator() override {
    if (destructor_ != nullptr) destructor_(state_);
  }
  CallbackComparator(const CallbackComparator&) = delete;
  CallbackComparator& operator=(const CallbackComparator&) = delete;

  int Compare(const Slice& a, const Slice& b) const override {
    return compare_(state_, a.data(), a.size(), b.data(), b.size());
  }
  const char* Name() const override { return name_(state_); }
  void FindShortestSeparator(std::string*, const Slice&) const override {}
  void FindShortSuccessor(std::string*) const override {}

 private:
  void* const state_;
  const Destructor destructor_;
  const CompareFunction compare_;
  const NameFunction name_;
};

}  // namespace nacre
