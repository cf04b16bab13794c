#include "tests/support/process/memnode_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

extern char** environ;

namespace nacre {
namespace {

using std::chrono::steady_clock;

constexpr int kNodeStartSeconds = 30;
constexpr int kNodeStopSeconds = 30;

/// The binaries lie beside the test's own, wherever that was built.
std::string BinaryPath(const std::string& binary) {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  return (self.parent_path() / binary).string();
}

}  // namespace

std::vector<std::string> ProcessSchemes() {
  std::vector<std::string> schemes{"shm", "tcp"};
  if (std::getenv("NACRE_TEST_VERBS_HOST") != nullptr) schemes.emplace_back("verbs");
  return schemes;
}

ChildProcess::ChildProcess(const std::string& binary, const std::vector<std::string>& arguments,
                           const std::vector<std::string>& environment) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) {
    ADD_FAILURE() << "cannot make a pipe";
    return;
  }
  const std::string path = BinaryPath(binary);
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> envp;
  for (char** variable = environ; *variable != nullptr; ++variable) envp.push_back(*variable);
  for (const std::string& variable : environment) {
    envp.push_back(const_cast<char*>(variable.c_str()));
  }
  envp.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO);
  const int failure =
      ::posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), envp.data());
  posix_spawn_file_actions_destroy(&actions);
  ::close(fds[1]);
  output_fd_ = fds[0];
  if (failure != 0) {
    pid_ = -1;
    ADD_FAILURE() << "cannot start " << path;
  }
}

ChildProcess::~ChildProcess() {
  if (running()) Kill();
  if (output_fd_ >= 0) ::close(output_fd_);
}

std::string ChildProcess::AwaitOutput(const std::string& text, int seconds) {
  const auto deadline = steady_clock::now() + std::chrono::seconds(seconds);
  std::string output;
  while (text.empty() || output.find(text) == std::string::npos) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - steady_clock::now());
    pollfd poll{.fd = output_fd_, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || ::poll(&poll, 1, static_cast<int>(left.count())) <= 0) break;
    char bytes[4096];
    const ssize_t n = ::read(output_fd_, bytes, sizeof(bytes));
    if (n <= 0) break;
    output.append(bytes, static_cast<size_t>(n));
  }
  return output;
}

void ChildProcess::Signal(int number) {
  if (running()) ::kill(pid_, number);
}

void ChildProcess::Kill() {
  Signal(SIGKILL);
  AwaitExit(60);
}

int ChildProcess::AwaitExit(int seconds) {
  if (!running()) return -1;
  const auto deadline = steady_clock::now() + std::chrono::seconds(seconds);
  int status = 0;
  while (::waitpid(pid_, &status, WNOHANG) == 0) {
    if (steady_clock::now() > deadline) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, &status, 0);
      pid_ = -1;
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

ProcessResult RunBinary(const std::string& binary, const std::vector<std::string>& arguments,
                        int seconds, const std::vector<std::string>& environment) {
  ChildProcess process(binary, arguments, environment);
  ProcessResult result;
  result.output = process.AwaitOutput("", seconds);
  result.exit_code = process.AwaitExit(seconds);
  return result;
}

namespace {

/// A file of the size of a device, which takes no memory before it is used.
void MakeMemory(const std::string& path) {
  constexpr uintmax_t kBytes = 80 << 20;
  std::ofstream(path).flush();
  std::filesystem::resize_file(path, kBytes);
}

}  // namespace

MemnodeProcess::MemnodeProcess(const MemnodeProcessOptions& options)
    : options_(options), plugins_(options.plugins) {
  if (folder_.path().empty()) return;
  socket_path_ = folder_.File("node.sock");
  if (!options.region_folder.empty()) {
    region_file_ = options.region_folder + "/" +
                   std::filesystem::path(folder_.path()).filename().string() + ".region";
  }
  address_ = (options.scheme == "cxl" ? "cxl:" : "shm:") + socket_path_;
  if (options.scheme == "cxl") MakeMemory(region_file_);
  if (options.scheme == "tcp") address_ = "tcp:127.0.0.1:0";
  if (options.scheme == "verbs") {
    const char* const host = std::getenv("NACRE_TEST_VERBS_HOST");
    if (host == nullptr) ADD_FAILURE() << "NACRE_TEST_VERBS_HOST is not set";
    address_ = std::string("verbs:") + (host == nullptr ? "" : host) + ":0";
  }
  Start();
}

MemnodeProcess::~MemnodeProcess() {
  if (running()) Kill();
}

void MemnodeProcess::Start() {
  std::vector<std::string> arguments = {
      "--listen=" + address() + options_.parameters, "--size=" + options_.size,
      "--slab_size=" + options_.slab_size, "--workers=" + std::to_string(options_.workers),
      options_.populate ? "--populate" : "--nopopulate"};
  if (!plugins_.empty()) arguments.push_back("--plugin=" + plugins_);
  if (!region_file_.empty()) {
    const char* const flag = options_.scheme == "cxl" ? "--memory=dax:" : "--region_file=";
    arguments.push_back(flag + region_file_);
  }
  process_ = std::make_unique<ChildProcess>("nacre-memnode", arguments, options_.environment);
  // "ready: tcp:127.0.0.1:40123 with ..."
  const std::string output = process_->AwaitOutput(" with ", kNodeStartSeconds);
  const size_t ready = output.find("ready: ");
  const size_t end = output.find(" with ");
  if (ready == std::string::npos || end == std::string::npos) {
    ADD_FAILURE() << "nacre-memnode says: " << output;
    return;
  }
  address_ = output.substr(ready + 7, end - ready - 7);
}

void MemnodeProcess::Kill() { process_.reset(); }

int MemnodeProcess::Terminate() {
  process_->Signal(SIGTERM);
  const int code = process_->AwaitExit(kNodeStopSeconds);
  process_.reset();
  return code;
}

void MemnodeProcess::Pause() {
  process_->Signal(SIGSTOP);
  // Its threads go on until they have seen the signal.
  ::waitpid(process_->pid(), nullptr, WUNTRACED);
}
void MemnodeProcess::Resume() { process_->Signal(SIGCONT); }

MemnodeProcesses::MemnodeProcesses(int count, const MemnodeProcessOptions& options) {
  for (int i = 0; i < count; ++i) nodes_.push_back(std::make_unique<MemnodeProcess>(options));
}

MemnodeProcesses::MemnodeProcesses(int count, MemnodeProcessOptions options,
                                   const std::vector<std::string>& schemes)
    : mixed_(true) {
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    options.scheme = schemes[i % schemes.size()];
    nodes_.push_back(std::make_unique<MemnodeProcess>(options));
  }
}

std::string MemnodeProcesses::pool_uri() const {
  std::string uri = mixed_ ? "mixed:" : "";
  for (const auto& node : nodes_) {
    const std::string& address = node->address();
    if (!uri.empty() && uri.back() != ':') uri += ',';
    // The scheme is said once, unless each node has its own.
    uri += mixed_ || uri.empty() ? address : address.substr(address.find(':') + 1);
  }
  return uri;
}

}  // namespace nacre
