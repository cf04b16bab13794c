#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

namespace nacre {

struct MemnodeProcessOptions {
  std::string size = "64MiB";
  std::string slab_size = "1MiB";
  int workers = 1;
};

/// What a process of ours printed and how it ended.
struct ProcessResult {
  int exit_code = -1;  ///< -1: by a signal, or it did not end in time and was killed.
  std::string output;  ///< Standard output and standard error.
};

/// Runs `binary`, which lies beside the test, and waits for at most `seconds`.
ProcessResult RunBinary(const std::string& binary, const std::vector<std::string>& arguments,
                        int seconds = 20);

/// One nacre-memnode process that listens at a socket in a directory of its own. Failures to start
/// fail the test. Killed on destruction.
class MemnodeProcess {
 public:
  explicit MemnodeProcess(const MemnodeProcessOptions& options = {});
  ~MemnodeProcess();
  MemnodeProcess(const MemnodeProcess&) = delete;
  MemnodeProcess& operator=(const MemnodeProcess&) = delete;

  /// Waits until it serves. At the same address after Kill or Terminate.
  void Start();
  /// kill -9, and waits for the process to be gone.
  void Kill();
  /// SIGTERM; returns the exit code.
  int Terminate();
  /// SIGSTOP and SIGCONT.
  void Pause();
  void Resume();

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }
  const std::string& socket_path() const { return socket_path_; }
  /// "shm:/tmp/.../node.sock"
  std::string address() const { return "shm:" + socket_path_; }

 private:
  const MemnodeProcessOptions options_;
  std::string directory_;
  std::string socket_path_;
  pid_t pid_ = -1;
};

/// `count` processes, started.
class MemnodeProcesses {
 public:
  explicit MemnodeProcesses(int count, const MemnodeProcessOptions& options = {});

  MemnodeProcess& operator[](size_t i) { return *nodes_[i]; }
  size_t size() const { return nodes_.size(); }
  /// "shm:PATH,PATH,..."
  std::string pool_uri() const;

 private:
  std::vector<std::unique_ptr<MemnodeProcess>> nodes_;
};

}  // namespace nacre
