#include "tests/support/hang_report.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace nacre {

namespace {

using std::chrono::steady_clock;

constexpr int kStackSignal = SIGUSR1;
constexpr int kMaxFrames = 48;
/// How long a thread may take to write its stack down: it may be in the kernel for good.
constexpr auto kAnswer = std::chrono::seconds(1);

std::array<void*, kMaxFrames> frames;
std::atomic<int> frame_count = -1;
/// What the test that runs began at, on the steady clock; 0: none runs.
std::atomic<int64_t> began_nanos = 0;

void WriteStack(int /*signal*/) {
  // Release and acquire: the thread that asked sees the frames.
  frame_count.store(::backtrace(frames.data(), kMaxFrames), std::memory_order_release);
}

/// A line of what addr2line knows of each call in this program; as addresses without it.
std::string NamesOf(const std::vector<uintptr_t>& places) {
  std::string addresses;
  for (const uintptr_t place : places) addresses += fmt::format(" {:#x}", place);
  // The shell's own /proc/self is another one.
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      fmt::format("addr2line -Cfpse '{}'{} 2>/dev/null", program, addresses);
  std::string names;
  if (FILE* const pipe = ::popen(command.c_str(), "r"); pipe != nullptr) {
    std::array<char, 1024> part{};
    while (std::fgets(part.data(), part.size(), pipe) != nullptr) names += part.data();
    ::pclose(pipe);
  }
  return names.empty() ? addresses + "\n" : names;
}

/// The calls of this program in `frames`, innermost first.
std::string Describe(int count) {
  Dl_info own;
  ::dladdr(reinterpret_cast<void*>(&WriteStack), &own);
  std::vector<uintptr_t> places;
  for (int i = 0; i < count; ++i) {
    Dl_info object;
    void* const frame = frames[static_cast<size_t>(i)];
    if (::dladdr(frame, &object) == 0 || object.dli_fbase != own.dli_fbase) continue;
    // The address of the call, not of where it returns to.
    places.push_back(reinterpret_cast<uintptr_t>(frame) - 1 -
                     reinterpret_cast<uintptr_t>(object.dli_fbase));
  }
  return places.empty() ? "\n" : NamesOf(places);
}

std::string StackOf(int thread) {
  frame_count.store(-1, std::memory_order_relaxed);
  if (::syscall(SYS_tgkill, ::getpid(), thread, kStackSignal) != 0) return "has ended\n";
  const auto asked = steady_clock::now();
  int count = -1;
  while ((count = frame_count.load(std::memory_order_acquire)) < 0) {
    if (steady_clock::now() - asked > kAnswer) return "does not answer\n";
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return Describe(count);
}

void WriteStacks() {
  const auto self = static_cast<int>(::syscall(SYS_gettid));
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    const int thread = std::stoi(entry.path().filename().string());
    if (thread == self) continue;
    std::string name;
    std::getline(std::ifstream(entry.path() / "comm"), name);
    std::cerr << "  thread " << thread << " (" << name << ")\n" << StackOf(thread) << std::flush;
  }
}

class Clock final : public testing::EmptyTestEventListener {
 public:
  void OnTestStart(const testing::TestInfo& /*test*/) override {
    began_nanos = steady_clock::now().time_since_epoch().count();
  }
  void OnTestEnd(const testing::TestInfo& /*test*/) override { began_nanos = 0; }
};

void Watch(std::chrono::seconds patience) {
  int64_t reported = 0;
  for (;;) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const int64_t began = began_nanos;
    const auto now = steady_clock::now().time_since_epoch();
    if (began == 0 || began == reported || now - std::chrono::nanoseconds(began) < patience) {
      continue;
    }
    reported = began;
    std::cerr << "The test has run for " << patience.count() << " seconds. Its threads:\n";
    WriteStacks();
  }
}

}  // namespace

void ReportHangs(std::chrono::seconds patience) {
  // The first call loads what a handler must not.
  ::backtrace(frames.data(), kMaxFrames);
  struct sigaction action = {};
  action.sa_handler = &WriteStack;
  action.sa_flags = SA_RESTART;
  ::sigaction(kStackSignal, &action, nullptr);
  testing::UnitTest::GetInstance()->listeners().Append(new Clock);
  std::thread(Watch, patience).detach();
}

}  // namespace nacre
