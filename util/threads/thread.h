#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace nacre {

/// A thread with a name, which a simulation (util/simulation.h) can schedule. It must be joined
/// before it is destroyed or assigned to.
///
/// Thread safety: none.
class Thread {
 public:
  Thread() = default;
  /// `name` (cut after 15 bytes) shows in `ps` and `perf`; `body` must not throw. As std::thread,
  /// it throws std::system_error if the system has no more threads.
  Thread(const std::string& name, std::function<void()> body);
  Thread(Thread&&) = default;
  Thread& operator=(Thread&&) = default;

  bool joinable() const { return thread_.joinable(); }
  /// Waits for its end. It is joinable.
  void Join();

  /// Names the calling thread from here on, as the constructor does.
  static void NameThis(const std::string& name);

  /// How many threads this machine runs at once; at least 1.
  static size_t HardwareConcurrency();

 private:
  std::thread thread_;
  uint64_t simulated_ = 0;  ///< Its number in the simulation, if there is one.
};

/// Calls `work` with each number below `count` concurrently, and returns when all calls have: the
/// first runs on the caller's thread, the others on threads of that name. If some throw, the caller
/// gets what the one with the least number has thrown; it gets std::system_error if the system has
/// too few threads, once those calls have ended that had begun. At most `at_once` run at a time, so
/// where that is less than `count` none may wait for another one.
void RunTogether(const std::string& name, size_t count, const std::function<void(size_t)>& work,
                 size_t at_once = SIZE_MAX);

}  // namespace nacre
