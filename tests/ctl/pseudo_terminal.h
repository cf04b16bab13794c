#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

extern char** environ;

namespace nacre {

/// What a terminal shows that was sent these bytes: enough of one for what nacre-ctl sends. What it
/// does not know is kept in `unknown()`.
class TerminalScreen {
 public:
  TerminalScreen(size_t rows, size_t columns, bool alternate = false)
      : columns_(columns), lines_(rows), alternate_(alternate), cursor_shown_(!alternate) {}

  void Take(std::string_view bytes) {
    pending_ += bytes;
    size_t at = 0;
    while (at < pending_.size()) {
      const size_t taken = TakeOne(std::string_view(pending_).substr(at));
      if (taken == 0) break;
      at += taken;
    }
    pending_.erase(0, at);
  }

  /// The lines, without spaces at their ends.
  std::string Text() const {
    std::string text;
    for (const std::string& line : lines_) {
      const size_t end = line.find_last_not_of(' ');
      text += (end == std::string::npos ? "" : line.substr(0, end + 1)) + "\n";
    }
    return text;
  }
  bool alternate() const { return alternate_; }
  bool cursor_shown() const { return cursor_shown_; }
  const std::string& unknown() const { return unknown_; }

 private:
  /// Takes one character or escape sequence; 0: the rest of it is to come.
  size_t TakeOne(std::string_view bytes) {
    if (bytes[0] == '\r') return column_ = 0, 1;
    if (bytes[0] == '\n') return Feed(), 1;
    if (bytes[0] != '\033') return Put(bytes[0]), 1;
    const size_t end = bytes.find_first_not_of("[?0123456789;", 1);
    if (end == std::string_view::npos) return 0;
    Obey(bytes.substr(1, end));
    return end + 1;
  }
  void Put(char byte) {
    if (column_ >= columns_) {
      column_ = 0;
      Feed();
    }
    std::string& line = lines_[row_];
    if (line.size() <= column_) line.resize(column_ + 1, ' ');
    line[column_++] = byte;
  }
  void Feed() {
    if (row_ + 1 < lines_.size()) {
      ++row_;
      return;
    }
    lines_.erase(lines_.begin());
    lines_.emplace_back();
  }
  void Obey(std::string_view sequence) {
    std::string& line = lines_[row_];
    if (sequence == "[H") {
      row_ = column_ = 0;
    } else if (sequence == "[2K") {
      line.clear();
    } else if (sequence == "[K") {
      line.resize(std::min(line.size(), column_));
    } else if (sequence == "[J") {
      line.resize(std::min(line.size(), column_));
      for (size_t below = row_ + 1; below < lines_.size(); ++below) lines_[below].clear();
    } else if (sequence == "[?1049h" || sequence == "[?1049l") {
      alternate_ = sequence.back() == 'h';
      for (std::string& each : lines_) each.clear();
      row_ = column_ = 0;
    } else if (sequence == "[?25h" || sequence == "[?25l") {
      cursor_shown_ = sequence.back() == 'h';
    } else if (sequence.back() != 'm') {
      unknown_ += std::string(sequence) + " ";
    }
  }

  size_t columns_;
  std::vector<std::string> lines_;
  size_t row_ = 0;
  size_t column_ = 0;
  bool alternate_;
  bool cursor_shown_;
  std::string pending_;
  std::string unknown_;
};

/// A process on a terminal of its own, which it controls: what is typed reaches it, and its output
/// is a screen. Killed on destruction.
class PseudoTerminal {
 public:
  PseudoTerminal(const std::string& path, const std::vector<std::string>& arguments,
                 unsigned short rows = 30, unsigned short columns = 200)
      : screen_(rows, columns) {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64] = {};
    if (master_ < 0 || ::grantpt(master_) != 0 || ::unlockpt(master_) != 0 ||
        ::ptsname_r(master_, name, sizeof(name)) != 0) {
      ADD_FAILURE() << "cannot make a pseudo terminal";
      return;
    }
    // As long as this is open, the terminal outlives the process.
    slave_ = ::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    Resize(rows, columns);
    before_ = Modes();
    Start(path, arguments, name);
  }
  ~PseudoTerminal() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    if (slave_ >= 0) ::close(slave_);
    if (master_ >= 0) ::close(master_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  const TerminalScreen& screen() const { return screen_; }
  /// All bytes so far.
  const std::string& bytes() const { return bytes_; }
  pid_t pid() const { return pid_; }

  void Type(const std::string& keys) {
    EXPECT_EQ(::write(master_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
  }
  void Signal(int number) { ::kill(pid_, number); }
  void Resize(unsigned short rows, unsigned short columns) {
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(master_, TIOCSWINSZ, &size), 0);
  }
  /// The terminal is gone, as when its window is closed. Only AwaitExit is of use then.
  void HangUp() {
    ::close(std::exchange(slave_, -1));
    ::close(std::exchange(master_, -1));
  }
  /// From here on, the screen is an empty one of this size.
  void ResizeScreen(unsigned short rows, unsigned short columns) {
    screen_ = TerminalScreen(rows, columns, screen_.alternate());
    Resize(rows, columns);
  }

  /// Whether the screen showed `text`, or no longer shows it, before a time far beyond what it
  /// takes.
  bool AwaitShown(const std::string& text, bool shown = true) {
    return Await([&] { return (screen_.Text().find(text) != std::string::npos) == shown; });
  }
  /// Whether these bytes came.
  bool AwaitBytes(const std::string& text) {
    return Await([&] { return bytes_.find(text) != std::string::npos; });
  }
  /// The exit code; -1 for death by a signal, or if it does not end.
  int AwaitExit() {
    int status = -1;
    const bool ended = Await([&] { return ::waitpid(pid_, &status, WNOHANG) == pid_; });
    if (!ended) return -1;
    pid_ = -1;
    Read(0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  /// Whether it was stopped.
  bool AwaitStop() {
    int status = 0;
    const bool stopped = Await([&] {
      return ::waitpid(pid_, &status, WNOHANG | WUNTRACED) == pid_ && WIFSTOPPED(status);
    });
    Read(0);
    return stopped;
  }
  /// Whether the terminal is as the process found it.
  bool IsRestored() const {
    const termios now = Modes();
    return !screen_.alternate() && screen_.cursor_shown() && now.c_iflag == before_.c_iflag &&
           now.c_oflag == before_.c_oflag && now.c_lflag == before_.c_lflag &&
           now.c_cflag == before_.c_cflag;
  }
  /// Whether it gives keys to the process at once and shows none.
  bool IsRaw() const { return (Modes().c_lflag & (ICANON | ECHO)) == 0; }

 private:
  static constexpr std::chrono::seconds kPatience{60};

  void Start(const std::string& path, const std::vector<std::string>& arguments,
             const char* terminal) {
    std::vector<char*> argv{const_cast<char*>(path.c_str())};
    for (const std::string& each : arguments) argv.push_back(const_cast<char*>(each.c_str()));
    argv.push_back(nullptr);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    // The first terminal that the leader of a session opens is the one that controls it.
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, terminal, O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, STDIN_FILENO, STDERR_FILENO);
    if (::posix_spawn(&pid_, path.c_str(), &actions, &attributes, argv.data(), environ) != 0) {
      pid_ = -1;
      ADD_FAILURE() << "cannot start " << path;
    }
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  termios Modes() const {
    termios modes{};
    EXPECT_EQ(::tcgetattr(slave_, &modes), 0);
    return modes;
  }
  /// What there is, or comes within so many milliseconds.
  void Read(int millis) {
    if (master_ < 0) return std::this_thread::sleep_for(std::chrono::milliseconds(millis));
    pollfd poll{.fd = master_, .events = POLLIN, .revents = 0};
    char buffer[4096];
    while (::poll(&poll, 1, millis) > 0 && (poll.revents & POLLIN) != 0) {
      const ssize_t n = ::read(master_, buffer, sizeof(buffer));
      if (n <= 0) return;
      bytes_.append(buffer, static_cast<size_t>(n));
      screen_.Take({buffer, static_cast<size_t>(n)});
      millis = 0;
    }
  }
  template <typename Done>
  bool Await(const Done& done) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!done()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      Read(/*millis=*/20);
    }
    return true;
  }

  TerminalScreen screen_;
  std::string bytes_;
  int master_ = -1;
  int slave_ = -1;
  pid_t pid_ = -1;
  termios before_{};
};

}  // namespace nacre
