#include "tests/support/process/hang_report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/process/thread_stacks.h"

namespace nacre {

namespace {

using std::chrono::steady_clock;

/// What the test that runs began at, on the steady clock; 0: none runs.
std::atomic<int64_t> began_nanos = 0;

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

std::string StackOf(int thread) {
  const auto calls = CallsOf(thread);
  if (!calls.has_value()) return "has ended, or does not answer\n";
  return calls->empty() ? "\n" : NamesOf(*calls);
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

class TestTimer final : public testing::EmptyTestEventListener {
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
  PrepareStacks();
  testing::UnitTest::GetInstance()->listeners().Append(new TestTimer);
  std::thread(Watch, patience).detach();
}

}  // namespace nacre
