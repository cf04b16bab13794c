#include "tests/support/process/etcd_process.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <sstream>
#include <thread>
#include <utility>

#include "util/thread_sanitizer.h"

// What sanitizers have to know in all programs that talk to etcd.
extern "C" {
const char* __lsan_default_suppressions();
/// c-ares 1.18 leaks the name "localhost" when it looks that up.
const char* __lsan_default_suppressions() { return "leak:libcares"; }
#if NACRE_TSAN
const char* __tsan_default_options();
/// The installed gRPC is not instrumented, so that not all is seen by which its threads wait for
/// one another.
const char* __tsan_default_options() { return "ignore_noninstrumented_modules=1"; }
#endif
}

namespace nacre {
namespace {

using std::chrono::steady_clock;

constexpr int kEtcdStartSeconds = 60;
constexpr int kEtcdStopSeconds = 30;
constexpr int kControlSeconds = 30;
/// Below those that Linux gives to sockets by itself, and away from the well-known ones of etcd.
constexpr int kFirstPort = 12000;
constexpr int kLastPort = 31999;

/// The path of `program`; empty if it is not installed.
std::string FindProgram(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = folder + "/" + program;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

bool IsFree(uint16_t port) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool free =
      ::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  ::close(listener);
  return free;
}

}  // namespace

uint16_t FreePort() {
  std::random_device chance;
  std::uniform_int_distribution<int> ports(kFirstPort, kLastPort);
  for (int attempt = 0; attempt < 1000; ++attempt) {
    const auto port = static_cast<uint16_t>(ports(chance));
    if (IsFree(port)) return port;
  }
  ADD_FAILURE() << "no port is free";
  return 0;
}

bool EtcdProcess::Installed() {
  return !FindProgram("etcd").empty() && !FindProgram("etcdctl").empty();
}

EtcdProcess::EtcdProcess() : EtcdProcess("alone") {
  // Another process may take a port between the look and the start.
  for (int attempt = 0; attempt < 3; ++attempt) {
    PickPorts();
    Launch(Member());
    if (AwaitAnswer()) return;
  }
  ADD_FAILURE() << "etcd does not answer; see its log";
}

EtcdProcess::EtcdProcess(std::string name) : name_(std::move(name)) { PickPorts(); }

EtcdProcess::~EtcdProcess() {
  if (process_ != nullptr) Kill();
}

void EtcdProcess::PickPorts() {
  endpoint_ = "127.0.0.1:" + std::to_string(FreePort());
  peer_url_ = "http://127.0.0.1:" + std::to_string(FreePort());
}

std::string EtcdProcess::Member() const { return name_ + "=" + peer_url_; }

void EtcdProcess::Launch(const std::string& members) {
  members_ = members;
  const std::string url = "http://" + endpoint_;
  process_ = std::make_unique<ChildProcess>(
      FindProgram("etcd"),
      std::vector<std::string>{"--name=" + name_, "--data-dir=" + folder_.File("data"),
                               "--listen-client-urls=" + url, "--advertise-client-urls=" + url,
                               "--listen-peer-urls=" + peer_url_,
                               "--initial-advertise-peer-urls=" + peer_url_,
                               "--initial-cluster=" + members, "--logger=zap",
                               // A pipe that is not read would stop it.
                               "--log-outputs=" + folder_.File("log")});
}

bool EtcdProcess::AwaitAnswer() {
  const auto deadline = steady_clock::now() + std::chrono::seconds(kEtcdStartSeconds);
  while (steady_clock::now() < deadline) {
    if (Control({"endpoint", "health"}).exit_code == 0) return true;
    siginfo_t ended{};
    ::waitid(P_PID, static_cast<id_t>(process_->pid()), &ended, WEXITED | WNOHANG | WNOWAIT);
    if (ended.si_pid != 0) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

void EtcdProcess::Start() {
  Launch(members_);
  EXPECT_TRUE(AwaitAnswer()) << "etcd does not answer at " << endpoint_;
}

void EtcdProcess::Kill() { process_.reset(); }

void EtcdProcess::Stop() {
  process_->Signal(SIGTERM);
  process_->AwaitExit(kEtcdStopSeconds);
  process_.reset();
}

void EtcdProcess::Freeze() {
  process_->Signal(SIGSTOP);
  // Its threads go on until they have seen the signal.
  ::waitpid(process_->pid(), nullptr, WUNTRACED);
}

void EtcdProcess::Continue() { process_->Signal(SIGCONT); }

ProcessResult EtcdProcess::Control(const std::vector<std::string>& arguments) const {
  std::vector<std::string> all{"--endpoints=" + endpoint_};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return RunBinary(FindProgram("etcdctl"), all, kControlSeconds, {"ETCDCTL_API=3"});
}

EtcdCluster::EtcdCluster(int members) {
  std::string all;
  for (int i = 0; i < members; ++i) {
    members_.push_back(std::unique_ptr<EtcdProcess>(new EtcdProcess("member" + std::to_string(i))));
    all += (all.empty() ? "" : ",") + members_.back()->Member();
  }
  for (const auto& member : members_) member->Launch(all);
  for (const auto& member : members_) {
    EXPECT_TRUE(member->AwaitAnswer()) << "etcd does not answer at " << member->endpoint();
  }
}

std::string EtcdCluster::endpoints() const {
  std::string all;
  for (const auto& member : members_) all += (all.empty() ? "" : ",") + member->endpoint();
  return all;
}

}  // namespace nacre
