#include "tests/support/memnode_process.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

extern char** environ;

namespace nacre {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::seconds kStartTimeout{20};
constexpr std::chrono::seconds kStopTimeout{20};

/// The binaries lie beside the test's own, wherever that was built.
std::string BinaryPath(const std::string& binary) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return (self.parent_path() / binary).string();
}

/// Starts a binary with standard output and error in `*output_fd`.
pid_t Spawn(const std::string& binary, const std::vector<std::string>& arguments, int* output_fd) {
  int fds[2];
  if (::pipe(fds) != 0) return -1;
  const std::string path = BinaryPath(binary);
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, fds[0]);
  posix_spawn_file_actions_addclose(&actions, fds[1]);
  pid_t pid = -1;
  const int failure = ::posix_spawn(&pid, path.c_str(), &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(fds[1]);
  if (failure != 0) {
    ::close(fds[0]);
    return -1;
  }
  *output_fd = fds[0];
  return pid;
}

/// Reads until `until` was read, or the end, or the deadline.
std::string ReadOutput(int fd, const std::string& until, steady_clock::time_point deadline) {
  std::string output;
  while (until.empty() || output.find(until) == std::string::npos) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    pollfd poll{.fd = fd, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&poll, 1, static_cast<int>(left.count())) <= 0) break;
    char bytes[4096];
    const ssize_t n = ::read(fd, bytes, sizeof(bytes));
    if (n <= 0) break;
    output.append(bytes, static_cast<size_t>(n));
  }
  return output;
}

/// The exit code; -1 for a signal's death, or after the deadline, when the process is killed.
int AwaitExit(pid_t pid, steady_clock::time_point deadline) {
  int status = 0;
  while (::waitpid(pid, &status, WNOHANG) == 0) {
    if (steady_clock::now() > deadline) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

ProcessResult RunBinary(const std::string& binary, const std::vector<std::string>& arguments,
                        int seconds) {
  ProcessResult result;
  const auto deadline = steady_clock::now() + std::chrono::seconds(seconds);
  int fd = -1;
  const pid_t pid = Spawn(binary, arguments, &fd);
  if (pid < 0) {
    ADD_FAILURE() << "cannot start " << BinaryPath(binary);
    return result;
  }
  result.output = ReadOutput(fd, "", deadline);
  ::close(fd);
  result.exit_code = AwaitExit(pid, deadline);
  return result;
}

MemnodeProcess::MemnodeProcess(const MemnodeProcessOptions& options) : options_(options) {
  std::string pattern = (std::filesystem::temp_directory_path() / "nacre-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    ADD_FAILURE() << "cannot make a directory like " << pattern;
    return;
  }
  directory_ = pattern;
  socket_path_ = directory_ + "/node.sock";
  Start();
}

MemnodeProcess::~MemnodeProcess() {
  if (running()) Kill();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void MemnodeProcess::Start() {
  int fd = -1;
  pid_ =
      Spawn("nacre-memnode",
            {"--listen=" + address(), "--size=" + options_.size,
             "--slab_size=" + options_.slab_size, "--workers=" + std::to_string(options_.workers)},
            &fd);
  if (pid_ < 0) {
    ADD_FAILURE() << "cannot start " << BinaryPath("nacre-memnode");
    return;
  }
  const std::string output = ReadOutput(fd, "ready", steady_clock::now() + kStartTimeout);
  ::close(fd);
  EXPECT_NE(output.find("ready"), std::string::npos) << "nacre-memnode says: " << output;
}

void MemnodeProcess::Kill() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

int MemnodeProcess::Terminate() {
  ::kill(pid_, SIGTERM);
  const int code = AwaitExit(pid_, steady_clock::now() + kStopTimeout);
  pid_ = -1;
  return code;
}

void MemnodeProcess::Pause() { ::kill(pid_, SIGSTOP); }
void MemnodeProcess::Resume() { ::kill(pid_, SIGCONT); }

MemnodeProcesses::MemnodeProcesses(int count, const MemnodeProcessOptions& options) {
  for (int i = 0; i < count; ++i) nodes_.push_back(std::make_unique<MemnodeProcess>(options));
}

std::string MemnodeProcesses::pool_uri() const {
  std::string uri = "shm:";
  for (const auto& node : nodes_) {
    if (uri.back() != ':') uri += ',';
    uri += node->socket_path();
  }
  return uri;
}

}  // namespace nacre
