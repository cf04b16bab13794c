#pragma once

#include <cstdint>

namespace nacre {

/// While it lives, one allocation of the thread that made it fails with `std::bad_alloc`: the
/// `nth`, counted from 0. Counted are those of `operator new`. A test repeats a step with each
/// number until the step ends with `reached()` false, so that each allocation has failed once.
/// A binary that uses it gets another `operator new`, which is malloc. Not to be nested.
class FailingAllocation {
 public:
  explicit FailingAllocation(int64_t nth);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;

  bool reached() const;

  /// For its scope, allocations of the thread are not counted and do not fail: those of the test.
  class Pause {
   public:
    Pause();
    ~Pause();
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    const int64_t left_;
  };
};

/// While it lives, some of the allocations of threads of this name fail with `std::bad_alloc`: one
/// in `one_in`, drawn at random. One at a time in a process.
class FailingThreads {
 public:
  /// `name`: as the system has it, so at most 15 bytes of it count.
  FailingThreads(const char* name, uint32_t one_in);
  ~FailingThreads();
  FailingThreads(const FailingThreads&) = delete;
  FailingThreads& operator=(const FailingThreads&) = delete;

  /// Allocations that have failed so far.
  uint64_t failed() const;
};

}  // namespace nacre
