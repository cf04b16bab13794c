#include "db_bench/engine/member_process.h"

#include <fcntl.h>
#include <gflags/gflags.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

// Not in a file whose flags --help shows: db_bench gives it to itself.
DEFINE_bool(serve_member, false, "Own shards until the standard input ends");

namespace nacre::bench {
namespace {

constexpr const char* kServeFlag = "--serve_member";
constexpr std::chrono::milliseconds kLookForExitAgain{5};

Status SystemError(const char* what, int error) {
  return Status::IOError(std::string("another process of db_bench: ") + what + ": " +
                         std::strerror(error));
}

/// This process's own arguments, and the flag.
Status ReadArguments(std::vector<std::string>* arguments) {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  for (std::string argument; std::getline(file, argument, '\0');) arguments->push_back(argument);
  if (arguments->empty()) return SystemError("/proc/self/cmdline", errno);
  arguments->insert(arguments->begin() + 1, kServeFlag);
  return Status::OK();
}

/// Two ends that no other process gets.
struct PipeEnds {
  int read = -1;
  int write = -1;

  Status Open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return SystemError("pipe2", errno);
    read = ends[0];
    write = ends[1];
    return Status::OK();
  }
  ~PipeEnds() {
    if (read >= 0) ::close(read);
    if (write >= 0) ::close(write);
  }
};

}  // namespace

Status MemberProcess::Start(Clock* clock, std::unique_ptr<MemberProcess>* process) {
  std::vector<std::string> arguments;
  NACRE_RETURN_IF_ERROR(ReadArguments(&arguments));
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  PipeEnds input;
  PipeEnds output;
  NACRE_RETURN_IF_ERROR(input.Open());
  NACRE_RETURN_IF_ERROR(output.Open());
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.read, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.write, STDOUT_FILENO);
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return SystemError("posix_spawn", error);
  process->reset(new MemberProcess(clock, pid, std::exchange(input.write, -1),
                                   std::exchange(output.read, -1)));
  return Status::OK();
}

MemberProcess::~MemberProcess() {
  Kill();
  BeginEnd();
  ::close(output_);
}

Status MemberProcess::AwaitMember(Deadline deadline) {
  std::string line;
  while (!line.ends_with('\n')) {
    pollfd ready{.fd = output_, .events = POLLIN, .revents = 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.Remaining());
    const int events = ::poll(&ready, 1, static_cast<int>(left.count()));
    if (events < 0 && errno == EINTR) continue;
    if (events < 0) return SystemError("poll", errno);
    if (events == 0) return Status::TimedOut("another process of db_bench is no member so far");
    char byte = 0;
    if (::read(output_, &byte, 1) <= 0) {
      return Status::Aborted("another process of db_bench has ended before it was a member");
    }
    line.push_back(byte);
  }
  member_ = std::strtoll(line.c_str(), nullptr, 10);
  return Status::OK();
}

void MemberProcess::Kill() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(std::exchange(pid_, 0), nullptr, 0);
}

void MemberProcess::BeginEnd() {
  if (input_ >= 0) ::close(std::exchange(input_, -1));
}

Status MemberProcess::AwaitEnd(Deadline deadline) {
  BeginEnd();
  int how = 0;
  while (pid_ != 0 && ::waitpid(pid_, &how, WNOHANG) == 0) {
    if (deadline.Expired()) {
      Kill();
      return Status::TimedOut("another process of db_bench did not end");
    }
    clock_->SleepFor(kLookForExitAgain);
  }
  pid_ = 0;
  if (how == 0) return Status::OK();
  return Status::Aborted("another process of db_bench failed");
}

bool IsMemberProcess() { return FLAGS_serve_member; }

Status ServeUntilItShallEnd(int64_t member) {
  std::printf("%lld\n", static_cast<long long>(member));
  std::fflush(stdout);
  char byte = 0;
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, &byte, 1);
    if (count == 0) return Status::OK();
    if (count < 0 && errno != EINTR) return SystemError("standard input", errno);
  }
}

}  // namespace nacre::bench
