#pragma once

#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>

#include "util/clock.h"

namespace nacre::ctl {

/// Shows how far a long command has come. On a terminal it is one line that is rewritten a few
/// times a second at most, with a bar, the rate of the last seconds, and the time that is left; its
/// end removes it. Elsewhere it is plain lines, each of which stays.
///
/// Thread safety: none; the callers of one line take turns.
class ProgressLine {
 public:
  /// Which plain lines are written.
  enum class Plain : uint8_t {
    kChanges,     ///< Each that says something else than the one before it.
    kTenths,      ///< One for each tenth that is done, and none sooner: " 40 %: " and the line.
    kRareTenths,  ///< The same, of which those are left out that come within ten seconds.
  };

  /// `stream` and `clock` outlive this.
  ProgressLine(std::FILE* stream, Clock* clock, std::string title, Plain plain);
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// `done` of `total` bytes are done, and `detail` is what else a terminal shows; `plain` is what
  /// others do. The rate counts from the first call on: what was done before that took other time.
  void Show(uint64_t done, uint64_t total, const std::string& detail, const std::string& plain);
  /// Removes the line from a terminal, so that the next output begins there.
  void Clear();

 private:
  struct Point {
    uint64_t nanos = 0;
    uint64_t done = 0;
  };

  void ShowOnTerminal(uint64_t done, uint64_t total, const std::string& detail);
  void ShowPlain(uint64_t done, uint64_t total, const std::string& plain);
  /// Takes a point, and answers the bytes a second since the oldest one; 0: not known yet.
  uint64_t RateWith(const Point& point);

  std::FILE* const stream_;
  Clock* const clock_;
  const std::string title_;
  const Plain plain_;
  const bool terminal_;
  std::deque<Point> points_;  ///< The last seconds' ones, one for each rewriting.
  uint64_t shown_at_nanos_;   ///< When a line was written last, or the beginning.
  bool shown_ = false;        ///< The line stands on the terminal.
  uint64_t tenths_ = 0;       ///< Those that were told.
  std::string last_plain_;
};

}  // namespace nacre::ctl
