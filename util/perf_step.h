#pragma once

#include <cstdint>

#include "nacre/perf_context.h"

namespace nacre {

// How the parts of an operation are counted in their thread's PerfContext. While the level is
// kDisable each of these is one comparison of a byte in the thread's own memory.

namespace perf_internal {

// The initial-exec model finds them without a call, in a shared library too.
extern constinit thread_local PerfLevel level __attribute__((tls_model("initial-exec")));
extern constinit thread_local PerfContext context;

uint64_t NowNanos();

}  // namespace perf_internal

inline bool PerfCounts() { return perf_internal::level >= kEnableCount; }
inline bool PerfTimes() { return perf_internal::level >= kEnableTimeExceptForMutex; }

inline void CountPerf(uint64_t PerfContext::*field, uint64_t number = 1) {
  if (PerfCounts()) [[unlikely]]
    perf_internal::context.*field += number;
}

/// Adds the time from here to Stop, or to its end, to a field.
class PerfTimer {
 public:
  explicit PerfTimer(uint64_t PerfContext::*field) : field_(field), running_(PerfTimes()) {
    if (running_) [[unlikely]]
      start_ = perf_internal::NowNanos();
  }
  ~PerfTimer() { Stop(); }
  PerfTimer(const PerfTimer&) = delete;
  PerfTimer& operator=(const PerfTimer&) = delete;

  void Stop() {
    if (!running_) [[likely]]
      return;
    running_ = false;
    perf_internal::context.*field_ += perf_internal::NowNanos() - start_;
  }

 private:
  uint64_t PerfContext::*const field_;
  bool running_;
  uint64_t start_ = 0;
};

}  // namespace nacre
