#include "tests/support/process/exit_while_busy.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

namespace nacre {
namespace {

/// A node reporter sends what it knows once a second.
constexpr auto kLinger = std::chrono::milliseconds(2500);
/// The pool has room for what is written meanwhile.
constexpr auto kPause = std::chrono::milliseconds(1);
constexpr uint64_t kRoundsBefore = 200;

/// What is made first is destroyed last.
class LastStatic {
 public:
  ~LastStatic() {
    if (lingers_) std::this_thread::sleep_for(kLinger);
  }
  void Linger() { lingers_ = true; }

 private:
  bool lingers_ = false;
};

[[gnu::init_priority(101)]] LastStatic last_static;

}  // namespace

void ExitWhileBusy(int threads, const std::function<void(uint64_t round)>& work) {
  // The threads use it until there is no process any more.
  static std::atomic<uint64_t> rounds{0};
  const std::function<void(uint64_t)>* const kept =
      std::make_unique<const std::function<void(uint64_t)>>(work).release();
  for (int i = 0; i < threads; ++i) {
    std::thread([kept] {
      for (;;) {
        (*kept)(rounds.fetch_add(1, std::memory_order_relaxed));
        std::this_thread::sleep_for(kPause);
      }
    }).detach();
  }
  while (rounds.load(std::memory_order_relaxed) < kRoundsBefore) std::this_thread::yield();
  last_static.Linger();
  std::exit(EXIT_SUCCESS);
}

}  // namespace nacre
