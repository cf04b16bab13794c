#pragma once

#include <pthread.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "util/random.h"
#include "util/simulation.h"
#include "util/threads/thread.h"

namespace nacre::sim {

/// A simulated process, from 0: that of the thread which made the scheduler.
using ProcessId = uint32_t;

struct SchedulerOptions {
  uint64_t seed = 1;
  /// At a point where others could go on, they do so once in so many times.
  uint64_t switch_one_in = 4;
  /// Where the event log goes; null: nowhere.
  std::function<void(const std::string& line)> log{};
  /// Receives why the simulation cannot go on, with all threads' places; does not return. If no
  /// thread can go on, there are stacks, too.
  std::function<void(const std::string& why)> fail{};
  /// Beyond this there is no progress: a failure.
  uint64_t nanos_max = uint64_t{3600} * 1'000'000'000;
  uint64_t steps_max = 50'000'000;
};

/// Runs the threads of a simulation one at a time, by a baton that it hands over where the seed
/// says so, on a clock that jumps to the next timer when no thread can go on.
///
/// They are real threads of the system, so thread-local objects work. A thread of a process that
/// was killed sleeps for ever; so the simulation's process ends by _exit.
///
/// Thread safety: as Simulation.
class Scheduler final : public Simulation {
 public:
  /// Installs itself; the calling thread is the first, and there is no other yet.
  explicit Scheduler(const SchedulerOptions& options);
  /// All threads but the first have ended, or will never go on.
  ~Scheduler() override;
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // ---- Processes -------------------------------------------------------------------------------

  ProcessId NewProcess(const std::string& name);
  /// Starts a thread of that process.
  Thread Start(ProcessId process, const std::string& name, std::function<void()> body);
  /// Its threads do not come back from their next scheduling point. A thread that kills its own
  /// process does not come back from here.
  void Kill(ProcessId process);
  /// Its threads stay at their next scheduling point until Continue. (SIGSTOP.)
  void Stop(ProcessId process);
  void Continue(ProcessId process);
  /// The process's clock leaps ahead. What sleeps goes on sleeping.
  void Advance(ProcessId process, std::chrono::nanoseconds by);
  /// The process's clock runs faster or slower by so many parts in a million.
  void SetDrift(ProcessId process, int64_t parts_per_million);
  bool alive(ProcessId process) const { return !processes_[process].ended; }
  const std::string& NameOf(ProcessId process) const { return processes_[process].name; }

  // ---- The record ------------------------------------------------------------------------------

  /// Digest of all that happened so far.
  uint64_t digest() const { return digest_; }
  uint64_t steps() const { return steps_; }
  /// Ends by `SchedulerOptions::fail`.
  void Fail(const std::string& why);

  // ---- Simulation ------------------------------------------------------------------------------

  uint64_t NowNanos() override;
  uint64_t TrueNanos() const override { return now_; }
  void SleepFor(std::chrono::nanoseconds duration) override;
  void At(uint64_t nanos, std::function<void()> event) override;
  uint64_t Random() override { return random_.Next(); }
  void Yield() override;
  bool Park(const void* object, std::chrono::nanoseconds timeout, const char* what) override;
  void Unpark(const void* object, bool all) override;
  uint64_t NewThread(const std::string& name) override;
  void BeginThread(uint64_t thread) override;
  void AwaitThread(uint64_t thread) override;
  uint32_t process() const override;
  void Record(uint64_t what, uint64_t detail) override;
  bool logs() const override { return options_.log != nullptr; }
  void Log(const std::string& line) override;

 private:
  struct SimThread;
  struct Process {
    std::string name;
    bool ended = false;
    bool stopped = false;
    std::vector<SimThread*> held{};  ///< Could go on, were it not stopped.
    // Its clock: local = local_base + (true - true_base) * rate.
    uint64_t true_base = 0;
    uint64_t local_base = 0;
    double rate = 1.0;
  };
  struct Timer {
    uint64_t nanos;
    uint64_t number;
    SimThread* thread;  ///< Null: calls `event`.
    uint64_t park;
    std::shared_ptr<std::function<void()>> event;

    bool operator>(const Timer& other) const {
      return nanos != other.nanos ? nanos > other.nanos : number > other.number;
    }
  };

  static SimThread* Self();
  /// The end of the thread whose key has this value, when all else of it has ended.
  static void AtThreadEnd(void* value);
  void EndThread(SimThread* thread);
  uint64_t LocalNanos(const Process& process) const;
  void Rebase(Process* process);
  void MakeReady(SimThread* thread);
  /// Timers that are due.
  void Fire();
  /// Chooses the thread that goes on; time passes if it has to.
  SimThread* Choose();
  /// Gives the baton on; returns when it is back. `self` is ready, parked or ended.
  void Switch(SimThread* self);
  void AwaitTurn(SimThread* self);
  void Step();
  /// Where all threads are; `stacks`: with the addresses that lead there.
  std::string Places(bool stacks) const;
  void FailWithPlaces(const std::string& why, bool stacks);

  const SchedulerOptions options_;
  nacre::Random random_;
  uint64_t now_ = 1'000'000'000;
  uint64_t steps_ = 0;
  uint64_t digest_ = 0;
  uint64_t timers_made_ = 0;
  std::vector<std::unique_ptr<SimThread>> threads_;
  std::deque<Process> processes_;
  std::vector<SimThread*> ready_;
  /// Looked up only: where it keeps an object depends on addresses.
  std::unordered_map<const void*, std::deque<SimThread*>> parked_;
  std::priority_queue<Timer, std::vector<Timer>, std::greater<>> timers_;
  ProcessId next_process_ = 0;  ///< The process of the thread that Start makes.
  bool starting_ = false;
  bool firing_ = false;  ///< An event is being called.
  int ending_ = 0;       ///< The system's number of a thread that is about to vanish; 0: none.
  pthread_key_t key_ = 0;
};

}  // namespace nacre::sim
