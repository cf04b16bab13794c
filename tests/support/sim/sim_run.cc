#include "tests/support/sim/sim_run.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "util/named_point.h"
#include "util/random.h"

namespace nacre::sim {

namespace {

constexpr size_t kTextBytes = 64 << 10;
constexpr size_t kMaxPoints = 512;

/// How a forked process tells what became of its seed.
struct Sheet {
  bool ended;
  bool passed;
  uint64_t digest;
  uint64_t steps;
  uint64_t virtual_nanos;
  uint32_t points[kMaxPoints];
  char text[kTextBytes];
};

// Used by the forked process.
Sheet* current_sheet = nullptr;
PointVisitor point_visitor;

void VisitPoint(const NamedPoint& point) {
  static const std::vector<const NamedPoint*> all = AllPoints();
  const auto found = std::lower_bound(all.begin(), all.end(), std::string_view(point.name),
                                      [](const NamedPoint* each, std::string_view name) {
                                        return std::string_view(each->name) < name;
                                      });
  ++current_sheet->points[found - all.begin()];
  Simulation* const simulation = Simulation::Current();
  if (simulation->logs()) simulation->Log(std::string("(point) ") + point.name);
  simulation->Yield();
  if (point_visitor != nullptr) point_visitor(point.name);
}

void WriteText(Sheet* sheet, const std::string& text) {
  const size_t size = std::min(text.size(), kTextBytes - 1);
  std::memcpy(sheet->text, text.data(), size);
  sheet->text[size] = '\0';
}

[[noreturn]] void End(const Scheduler& scheduler, bool passed, const std::string& text,
                      Sheet* sheet) {
  sheet->passed = passed;
  sheet->digest = scheduler.digest();
  sheet->steps = scheduler.steps();
  sheet->virtual_nanos = scheduler.TrueNanos();
  WriteText(sheet, text);
  sheet->ended = true;
  // This is not exit, as threads that will never go on have no end.
  ::_exit(passed ? 0 : 1);
}

/// On one processor the baton goes from thread to thread without a detour. It is the one that the
/// system has chosen for a new process, so simulations that run beside one another are spread.
void StayOnOneProcessor() {
  const int here = ::sched_getcpu();
  if (here < 0) return;
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(here, &only);
  ::sched_setaffinity(0, sizeof(only), &only);
}

[[noreturn]] void RunChild(uint64_t seed, const Scenario& scenario, const RunOptions& options,
                           Sheet* sheet) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(static_cast<unsigned>(options.seconds_max));
  StayOnOneProcessor();
  // How eagerly threads give way is part of what a seed decides.
  constexpr uint64_t kSwitches[] = {4, 16, 64, 256, 1024};
  nacre::Random random(seed);
  SchedulerOptions scheduling{.seed = random.Next()};
  scheduling.nanos_max = options.nanos_max;
  scheduling.switch_one_in = kSwitches[random.Uniform(std::size(kSwitches))];
  if (options.log) {
    scheduling.log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  }
  const std::vector<char> ballast(options.ballast);
  Scheduler* scheduler = nullptr;
  scheduling.fail = [&scheduler, sheet](const std::string& why) {
    End(*scheduler, false, why, sheet);
  };
  alignas(Scheduler) static char storage[sizeof(Scheduler)];
  scheduler = new (storage) Scheduler(scheduling);
  current_sheet = sheet;
  SetPointHandler(&VisitPoint);
  const std::string summary = scenario(scheduler, seed);
  End(*scheduler, true, summary, sheet);
}

Sheet* NewSheet() {
  void* const memory =
      ::mmap(nullptr, sizeof(Sheet), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return static_cast<Sheet*>(memory);
}

struct Job {
  pid_t process = 0;
  uint64_t seed = 0;
  Sheet* sheet = nullptr;
};

Outcome Read(const Job& job, int status) {
  const Sheet& sheet = *job.sheet;
  Outcome outcome{.seed = job.seed};
  outcome.passed = sheet.ended && sheet.passed;
  outcome.digest = sheet.digest;
  outcome.steps = sheet.steps;
  outcome.virtual_nanos = sheet.virtual_nanos;
  (outcome.passed ? outcome.summary : outcome.failure) = sheet.text;
  outcome.points.assign(sheet.points, sheet.points + AllPoints().size());
  if (!sheet.ended) {
    outcome.failure = WIFSIGNALED(status)
                          ? std::string("its process ended by ") + ::strsignal(WTERMSIG(status))
                          : "its process ended by itself";
  }
  return outcome;
}

}  // namespace

void SetPointVisitor(PointVisitor visitor) { point_visitor = std::move(visitor); }

void RunSeeds(uint64_t first, uint64_t count, const Scenario& scenario, const RunOptions& options,
              const std::function<bool(const Outcome&)>& each) {
  std::vector<Job> jobs(static_cast<size_t>(std::max(1, options.jobs)));
  for (Job& job : jobs) job.sheet = NewSheet();
  uint64_t started = 0;
  size_t running = 0;
  bool wanted = true;
  while (true) {
    for (Job& job : jobs) {
      if (!wanted || started == count) break;
      if (job.process != 0) continue;
      job.seed = first + started++;
      std::memset(job.sheet, 0, offsetof(Sheet, text) + 1);
      std::fflush(nullptr);
      job.process = ::fork();
      if (job.process == 0) RunChild(job.seed, scenario, options, job.sheet);
      if (job.process < 0) throw std::bad_alloc();
      ++running;
    }
    if (running == 0) break;
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    const auto job = std::find_if(jobs.begin(), jobs.end(),
                                  [=](const Job& each_job) { return each_job.process == ended; });
    if (job == jobs.end()) continue;
    job->process = 0;
    --running;
    if (wanted) wanted = each(Read(*job, status));
  }
  for (const Job& job : jobs) ::munmap(job.sheet, sizeof(Sheet));
}

Outcome RunSeed(uint64_t seed, const Scenario& scenario, const RunOptions& options) {
  Outcome outcome;
  RunSeeds(seed, 1, scenario, options, [&outcome](const Outcome& only) {
    outcome = only;
    return true;
  });
  return outcome;
}

void FixAddresses(char** argv) {
  const int now = ::personality(0xffffffff);
  if (now < 0 || (now & ADDR_NO_RANDOMIZE) != 0) return;
  if (::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) < 0) return;
  // If this fails, addresses vary, and nothing else.
  ::execv("/proc/self/exe", argv);
}

}  // namespace nacre::sim
