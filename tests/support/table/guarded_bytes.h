#pragma once

#include <sys/mman.h>

#include <cassert>
#include <cstddef>

namespace nacre {

/// Memory behind which no byte can be read or written: code that reaches too far crashes.
class GuardedBytes {
 public:
  GuardedBytes()
      : pages_(static_cast<char*>(mmap(nullptr, kBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    assert(pages_ != MAP_FAILED);
    [[maybe_unused]] const int failed = mprotect(pages_ + kBytes, kGuardBytes, PROT_NONE);
    assert(failed == 0);
  }
  ~GuardedBytes() { munmap(pages_, kBytes + kGuardBytes); }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;

  /// `n` bytes, at most kBytes, right before the guard.
  char* EndingAtGuard(size_t n) const { return pages_ + kBytes - n; }

  static constexpr size_t kBytes = size_t{64} << 10;

 private:
  static constexpr size_t kGuardBytes = 4096;

  char* const pages_;
};

}  // namespace nacre
