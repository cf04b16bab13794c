#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/temp_folder.h"

namespace nacre {

/// "shm", "tcp", and "verbs" where NACRE_TEST_VERBS_HOST names a device's address.
std::vector<std::string> ProcessSchemes();

struct MemnodeProcessOptions {
  /// "shm", "cxl" (with a region_folder: its files stand for devices), "tcp" or "verbs" (the last
  /// at the address that NACRE_TEST_VERBS_HOST names).
  std::string scheme = "shm";
  std::string size = "64MiB";
  std::string slab_size = "1MiB";
  int workers = 1;
  bool populate = false;
  /// Folder of files that keep the memory over restarts; empty: it ends with the process. A node's
  /// file is named there after its own folder.
  std::string region_folder = "";
  /// Parameters of the URI to listen at: "?secret_file=..."; or of the process: "NACRE_SECRET=...".
  std::string parameters = "";
  std::vector<std::string> environment{};
  std::string plugins = "";  ///< As --plugin takes them.
};

/// A process started from a binary that lies beside the test's own, with its output in a pipe.
/// Killed on destruction.
class ChildProcess {
 public:
  /// `environment`: "NAME=value" in addition to this process's. Failure to start fails the test.
  ChildProcess(const std::string& binary, const std::vector<std::string>& arguments,
               const std::vector<std::string>& environment = {});
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Reads output until `text` was seen, or the end if empty, for `seconds` at most. Returns it.
  std::string AwaitOutput(const std::string& text, int seconds);
  /// kill -9, and waits for the process to be gone.
  void Kill();
  void Signal(int number);
  /// The exit code; -1 for death by a signal, or after `seconds`, when it is killed.
  int AwaitExit(int seconds);

  bool running() const { return pid_ > 0; }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int output_fd_ = -1;
};

/// What a process of ours printed and how it ended.
struct ProcessResult {
  int exit_code = -1;  ///< -1: by a signal, or it did not end in time and was killed.
  std::string output;  ///< Standard output and standard error.
};

/// Runs `binary`, which lies beside the test, and waits for at most `seconds`.
ProcessResult RunBinary(const std::string& binary, const std::vector<std::string>& arguments,
                        int seconds = 20, const std::vector<std::string>& environment = {});

/// One nacre-memnode process that listens at a socket in a directory of its own, or at a port that
/// the system chose and that it keeps. Failures to start
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

  bool running() const { return process_ != nullptr; }
  pid_t pid() const { return process_->pid(); }
  const std::string& socket_path() const { return socket_path_; }
  /// "shm:/tmp/.../node.sock"
  const std::string& address() const { return address_; }
  /// Where it keeps its memory. What is set counts from the next Start on.
  const std::string& region_file() const { return region_file_; }
  void set_region_file(std::string path) { region_file_ = std::move(path); }
  void set_plugins(std::string plugins) { plugins_ = std::move(plugins); }

 private:
  const MemnodeProcessOptions options_;
  const TempFolder folder_;
  std::string socket_path_;
  std::string address_;
  std::string region_file_;
  std::string plugins_;
  std::unique_ptr<ChildProcess> process_;
};

/// `count` processes, started.
class MemnodeProcesses {
 public:
  explicit MemnodeProcesses(int count, const MemnodeProcessOptions& options = {});
  /// One by one with these schemes, over and over: a mixed pool.
  MemnodeProcesses(int count, MemnodeProcessOptions options,
                   const std::vector<std::string>& schemes);

  MemnodeProcess& operator[](size_t i) { return *nodes_[i]; }
  size_t size() const { return nodes_.size(); }
  /// "shm:PATH,PATH,...", or "mixed:shm:PATH,tcp:HOST:PORT,..."
  std::string pool_uri() const;

 private:
  bool mixed_ = false;
  std::vector<std::unique_ptr<MemnodeProcess>> nodes_;
};

}  // namespace nacre
