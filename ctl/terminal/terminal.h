#pragma once

#include <sys/types.h>
#include <termios.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <string>

#include "nacre/status.h"

namespace nacre::ctl {

/// The terminal of this process, for a program that fills it: a screen of its own, without a
/// cursor, and keys that arrive at once and are not shown. Whatever ends the program but SIGKILL or
/// a crash, the terminal is then as it was, with all that it showed.
///
/// Signals that end or stop a process, and that of a changed size, become events. They are blocked
/// from Open on, so it comes before other threads are started.
///
/// Thread safety: none. One at a time.
class Terminal {
 public:
  enum class Event {
    kNone,     ///< The time is over.
    kKey,      ///< A key was pressed.
    kResized,  ///< The screen has another size, or is to be filled anew for another reason.
    kEnd,      ///< The process is to end.
  };
  struct Size {
    size_t width = 80;
    size_t height = 24;
  };

  /// Whether standard output is a terminal that can be filled.
  static bool IsThere();

  /// `IOError` if the system refuses. Changes nothing that is seen.
  static Status Open(std::unique_ptr<Terminal>* terminal);
  /// Leaves.
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  /// Begins to fill it. `IOError` if it is gone.
  Status Enter();
  /// Gives it back. Idempotent.
  void Leave();
  Size size() const;
  /// Sends bytes to it. `IOError` if it is gone.
  Status Write(const std::string& bytes);
  /// Waits for the next event, `timeout` at most. `*key`: the one of kKey. A stop (^Z) happens in
  /// here, with the terminal given back meanwhile.
  Event Await(std::chrono::milliseconds timeout, char* key);

 private:
  Terminal() = default;

  Event TakeSignal();
  /// Whether there was one.
  bool TakeKey(char* key);
  void Stop();

  sigset_t mask_before_{};
  int signals_ = -1;
  termios modes_before_{};
  bool entered_ = false;
  bool raw_ = false;       ///< The modes were changed.
  bool has_input_ = true;  ///< Keys may come.
};

}  // namespace nacre::ctl
