#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace nacre {

/// Replaces the machine's clock, its scheduler and its random numbers while a deterministic
/// simulation runs (as in FoundationDB and TigerBeetle). Code that blocks, sleeps, asks for the
/// time or draws a number asks `Current()` first: mutexes and condition variables (util/mutex.h),
/// threads (util/threads/thread.h), Clock::System, SpinWait and DrawId, and the `sim` transport,
/// which exists in a simulation only. In production this is null: one load and a branch that is
/// never taken.
///
/// In a simulation one thread runs at a time; it goes on until it calls a method below that says it
/// is a scheduling point, where a seed decides who is next. So nothing here needs a lock, and the
/// same seed replays a run.
///
/// Threads belong to simulated processes (a thread to its creator's), which may end or be stopped
/// at any scheduling point: a thread may never come back from one.
///
/// Thread safety: all methods are for threads of the simulation, and so for one at a time.
class Simulation {
 public:
  static constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();

  virtual ~Simulation() = default;

  /// Null when there is none. Relaxed: it is installed before any other thread exists.
  static Simulation* Current() { return current_.load(std::memory_order_relaxed); }

  // ---- Time ------------------------------------------------------------------------------------

  /// As the calling thread's process sees it, whose clock may be off. Never goes back.
  virtual uint64_t NowNanos() = 0;
  /// The time of all processes, by which timers of `At` go.
  virtual uint64_t TrueNanos() const = 0;
  /// Scheduling point. Returns no earlier than asked for, by the process's clock.
  virtual void SleepFor(std::chrono::nanoseconds duration) = 0;
  /// Calls `event` in between the turns of threads, no earlier than `nanos` of TrueNanos. It must
  /// neither block nor be a scheduling point. Events of one time are called in the order in which
  /// they were given.
  virtual void At(uint64_t nanos, std::function<void()> event) = 0;

  // ---- Chance ----------------------------------------------------------------------------------

  virtual uint64_t Random() = 0;
  /// Uniform in [0, n); n > 0.
  uint64_t Uniform(uint64_t n) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Random()) * n) >> 64);
  }
  bool OneIn(uint64_t n) { return Uniform(n) == 0; }

  // ---- Threads ---------------------------------------------------------------------------------

  /// Scheduling point, often without effect: others may go on here.
  virtual void Yield() = 0;
  /// Scheduling point. Sleeps until `Unpark` of the same object, or for `timeout` of the process's
  /// clock: false then. `what` (a literal) tells the reader of a log what is waited for.
  virtual bool Park(const void* object, std::chrono::nanoseconds timeout, const char* what) = 0;
  /// Wakes one of the threads that sleep on the object, or all. No scheduling point.
  virtual void Unpark(const void* object, bool all) = 0;

  /// A thread is about to be started by the calling one; its number.
  virtual uint64_t NewThread(const std::string& name) = 0;
  /// Must be the new thread's first call: returns when it is its turn. What its thread-local
  /// objects do at its end is still part of the simulation.
  virtual void BeginThread(uint64_t thread) = 0;
  /// Scheduling point: until it has ended.
  virtual void AwaitThread(uint64_t thread) = 0;
  /// The calling thread's simulated process, from 0.
  virtual uint32_t process() const = 0;

  // ---- The record ------------------------------------------------------------------------------

  /// Makes what happened part of the digest by which two runs of a seed are compared.
  virtual void Record(uint64_t what, uint64_t detail) = 0;
  /// Whether `Log` leads anywhere.
  virtual bool logs() const = 0;
  /// A line of the event log.
  virtual void Log(const std::string& line) = 0;

 protected:
  /// `simulation` may be null. While no other thread exists.
  static void Install(Simulation* simulation) {
    current_.store(simulation, std::memory_order_relaxed);
  }

 private:
  static inline constinit std::atomic<Simulation*> current_{nullptr};
};

}  // namespace nacre
