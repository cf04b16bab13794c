#include "tests/support/process/private_network.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

namespace nacre {

namespace {

constexpr char kMark[] = "NACRE_TEST_PRIVATE_NETWORK";
constexpr std::chrono::minutes kNetworkPatience{5};
constexpr int kNoNamespace = 77;
constexpr int kNoNftables = 78;
constexpr char kNft[] = "PATH=$PATH:/usr/sbin:/sbin nft ";

/// Between fork and exec: only what a signal handler might do.
bool WriteFile(const char* path, const char* text, size_t size) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool written = write(fd, text, size) == static_cast<ssize_t>(size);
  close(fd);
  return written;
}

bool BringLoopbackUp() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool up = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  close(fd);
  return up;
}

/// Runs this test alone in namespaces of its own; returns its exit code, -1 if it was killed.
int RunInside() {
  const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string filter =
      std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name();
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    // A report is written by the process outside.
    if (!std::string_view(*variable).starts_with("GTEST_OUTPUT")) variables.push_back(*variable);
  }
  std::string mark = std::string(kMark) + "=1";
  variables.push_back(mark.data());
  variables.push_back(nullptr);
  std::string self = "/proc/self/exe";
  std::string filter_argument = filter;
  char* const arguments[] = {self.data(), filter_argument.data(), nullptr};
  const std::string users = "0 " + std::to_string(getuid()) + " 1";
  const std::string groups = "0 " + std::to_string(getgid()) + " 1";
  const std::string deny = "deny";

  const pid_t child = fork();
  if (child < 0) return kNoNamespace;
  if (child == 0) {
    const bool ready = unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 &&
                       WriteFile("/proc/self/setgroups", deny.data(), deny.size()) &&
                       WriteFile("/proc/self/uid_map", users.data(), users.size()) &&
                       WriteFile("/proc/self/gid_map", groups.data(), groups.size()) &&
                       BringLoopbackUp();
    if (ready) execve(self.c_str(), arguments, variables.data());
    _exit(kNoNamespace);
  }
  const auto deadline = std::chrono::steady_clock::now() + kNetworkPatience;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > deadline) kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool Nft(const std::string& command) {
  return std::system((kNft + command + " >/dev/null 2>&1").c_str()) == 0;
}

}  // namespace

PrivateNetwork EnterPrivateNetwork(std::string* why) {
  if (std::getenv(kMark) != nullptr) {
    // The kernel may lack what the program would set up: the caller of this one skips the test.
    if (!Nft("add table inet probe") || !Nft("delete table inet probe")) _exit(kNoNftables);
    return PrivateNetwork::kInside;
  }
  if (!Nft("--version")) {
    *why = "there is no nft (Debian package nftables)";
    return PrivateNetwork::kUnavailable;
  }
  const int code = RunInside();
  if (code == kNoNamespace) {
    *why = "this system lets this user have no user and network namespaces";
    return PrivateNetwork::kUnavailable;
  }
  if (code == kNoNftables) {
    *why = "this kernel has no nftables in network namespaces";
    return PrivateNetwork::kUnavailable;
  }
  EXPECT_EQ(code, 0) << "in a network of its own; its output is above";
  return PrivateNetwork::kDone;
}

DroppedPackets::DroppedPackets(uint16_t port, Way way) {
  const std::string number = std::to_string(port);
  std::string rules =
      "add table inet nacre; add chain inet nacre in { type filter hook input priority 0; };";
  if (way != Way::kFromPort) rules += " add rule inet nacre in tcp dport " + number + " drop;";
  if (way != Way::kToPort) rules += " add rule inet nacre in tcp sport " + number + " drop;";
  EXPECT_TRUE(Nft("'" + rules + "'")) << rules;
}

DroppedPackets::~DroppedPackets() { EXPECT_TRUE(Nft("delete table inet nacre")); }

}  // namespace nacre
