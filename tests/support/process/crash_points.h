#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "tests/support/temp_folder.h"
#include "util/named_point.h"

namespace nacre {

/// Where a process is to die: when it reaches `point` for the `hit`-th time. Together, those of a
/// run are all of its hits; unlike the number of a hit among all, one of these stays the same when
/// threads change places.
struct CrashAt {
  std::string point;
  uint64_t hit = 0;  ///< From 1; 0: nowhere.
};

/// "flush.begin:2".
std::string ToString(const CrashAt& at);

/// What a process that is to die and its test share, in memory that outlives the process.
///
/// The process counts how often it reaches each point (util/named_point.h) and kills itself, as
/// SIGKILL does it, where it was told to. Both run the same binary, so points have the same
/// numbers.
class CrashPoints {
 public:
  /// For the test: with a file of its own. A failure fails the test.
  CrashPoints();
  /// For the process that is to die: what its test has made at `path`.
  explicit CrashPoints(const std::string& path);
  ~CrashPoints();
  CrashPoints(const CrashPoints&) = delete;
  CrashPoints& operator=(const CrashPoints&) = delete;

  const std::string& path() const { return path_; }

  /// Forgets what was counted. From now on the process dies at `at`. A point that is not linked
  /// fails the test.
  void Aim(const CrashAt& at);
  /// This process is the one that is to die: counts from now on. One at a time.
  void Install();

  /// How often each point was reached.
  std::map<std::string, uint64_t> Hits() const;

  // What the process tells, beside its points.
  void Acknowledge(uint64_t operations);
  uint64_t acknowledged() const;
  /// From now on the database may be gone.
  void Destroying();
  bool destroying() const;
  void Fail(const Status& status);
  /// "" unless Fail was called.
  std::string failure() const;

 private:
  struct Shared;
  static void Reached(const NamedPoint& point);

  const std::unique_ptr<TempFolder> folder_;
  const std::string path_;
  Shared* shared_ = nullptr;
};

/// Whether memory nodes reach the point; else owners do.
bool IsOfNode(const NamedPoint& point);

/// Calls `run` without a crash, and then with each hit of part `shard` that was counted in
/// `points` (those `of_interest`, by name), or with some of them where a sanitizer makes each
/// dearer (tests/support/scale.h), until one fails the test fatally. To which of `shards` parts a
/// hit belongs does not depend on the others, so runs that differ a little leave nothing out. The
/// environment's NACRE_CRASH_AT
/// ("flush.begin:2") stands for all crashes.
void RunWithEachCrash(const CrashPoints& points, size_t shard, size_t shards,
                      const std::function<void(const CrashAt&)>& run,
                      const std::function<bool(const std::string&)>& of_interest = nullptr);

}  // namespace nacre
