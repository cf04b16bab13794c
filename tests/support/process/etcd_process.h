#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/process/memnode_process.h"
#include "tests/support/temp_folder.h"
#include "util/clock.h"

namespace nacre {

/// A TCP port of the loopback device at which nothing listens now. It is not one of those that the
/// system gives to sockets by itself, so that it is likely to stay free.
uint16_t FreePort();

/// One member of an etcd cluster, a process of the installed `etcd`, with its data in a temporary
/// folder and ports of its own. Failures fail the test. Killed on destruction.
class EtcdProcess {
 public:
  /// Whether `etcd` and `etcdctl` are installed: skip the test if not.
  static bool Installed();
  /// A cluster of one member, which answers.
  EtcdProcess();
  ~EtcdProcess();
  EtcdProcess(const EtcdProcess&) = delete;
  EtcdProcess& operator=(const EtcdProcess&) = delete;

  /// At the same ports with the same data after Kill or Stop, and waits until it answers.
  void Start();
  /// kill -9, and waits for the process to be gone.
  void Kill();
  /// SIGTERM, and waits for it to end.
  void Stop();
  /// SIGSTOP and SIGCONT.
  void Freeze();
  void Continue();

  /// What `etcdctl` says to these arguments about this member.
  ProcessResult Control(const std::vector<std::string>& arguments) const;
  /// "127.0.0.1:PORT"
  const std::string& endpoint() const { return endpoint_; }

 private:
  friend class EtcdCluster;

  /// Not started.
  explicit EtcdProcess(std::string name);
  void PickPorts();
  /// "NAME=http://127.0.0.1:PORT", as etcd takes the members of a cluster.
  std::string Member() const;
  void Launch(const std::string& members);
  /// False if the process ended before it answered.
  bool AwaitAnswer();

  const std::string name_;
  const TempFolder folder_;
  std::string endpoint_;
  std::string peer_url_;
  std::string members_;
  std::unique_ptr<ChildProcess> process_;
};

/// A cluster of several members, which answers.
class EtcdCluster {
 public:
  explicit EtcdCluster(int members);

  EtcdProcess& operator[](size_t i) { return *members_[i]; }
  size_t size() const { return members_.size(); }
  /// "127.0.0.1:PORT,127.0.0.1:PORT"
  std::string endpoints() const;

 private:
  std::vector<std::unique_ptr<EtcdProcess>> members_;
};

/// What a call of a cluster that works never needs.
inline Deadline Ample() { return Deadline::After(Clock::System(), std::chrono::seconds(60)); }

}  // namespace nacre
