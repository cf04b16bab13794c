#include "ctl/terminal/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace nacre::ctl {
namespace {

// The alternate screen, and the cursor.
constexpr std::string_view kEnter = "\033[?1049h\033[?25l";
constexpr std::string_view kLeave = "\033[0m\033[?25h\033[?1049l";

Status Failure(const std::string& what) {
  return Status::IOError("the terminal: " + what + ": " + std::strerror(errno));
}

sigset_t Handled() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) {
    ::sigaddset(&set, signal);
  }
  return set;
}

}  // namespace

bool Terminal::IsThere() {
  const char* const kind = std::getenv("TERM");
  return ::isatty(STDOUT_FILENO) != 0 && (kind == nullptr || std::string_view(kind) != "dumb");
}

Status Terminal::Open(std::unique_ptr<Terminal>* terminal) {
  std::unique_ptr<Terminal> result(new Terminal);
  const sigset_t handled = Handled();
  if (::pthread_sigmask(SIG_BLOCK, &handled, &result->mask_before_) != 0) {
    return Failure("its signals cannot be blocked");
  }
  result->signals_ = ::signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  if (result->signals_ < 0) {
    const Status failure = Failure("signalfd");
    ::pthread_sigmask(SIG_SETMASK, &result->mask_before_, nullptr);
    return failure;
  }
  *terminal = std::move(result);
  return Status::OK();
}

Terminal::~Terminal() {
  if (signals_ < 0) return;
  Leave();
  ::close(signals_);
  // A signal that came too late to be an event acts now, with the terminal as it was.
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

Status Terminal::Enter() {
  if (entered_) return Status::OK();
  entered_ = true;
  if (::tcgetattr(STDIN_FILENO, &modes_before_) == 0) {
    termios modes = modes_before_;
    modes.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    modes.c_cc[VMIN] = 1;
    modes.c_cc[VTIME] = 0;
    raw_ = ::tcsetattr(STDIN_FILENO, TCSADRAIN, &modes) == 0;
  }
  return Write(std::string(kEnter));
}

void Terminal::Leave() {
  if (!entered_) return;
  entered_ = false;
  Write(std::string(kLeave)).IgnoreError();  // If it is gone, there is nothing to give back.
  // What was typed and not read was for this program.
  if (raw_) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &modes_before_);
  raw_ = false;
}

Terminal::Size Terminal::size() const {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {};
  }
  return {.width = size.ws_col, .height = size.ws_row};
}

Status Terminal::Write(const std::string& bytes) {
  for (size_t sent = 0; sent < bytes.size();) {
    const ssize_t n = ::write(STDOUT_FILENO, bytes.data() + sent, bytes.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      pollfd writable{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
      ::poll(&writable, 1, -1);
      continue;
    }
    if (n <= 0) return Failure("it takes no output");
    sent += static_cast<size_t>(n);
  }
  return Status::OK();
}

Terminal::Event Terminal::Await(std::chrono::milliseconds timeout, char* key) {
  pollfd polled[2] = {{.fd = signals_, .events = POLLIN, .revents = 0},
                      {.fd = has_input_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0}};
  const int ready = ::poll(polled, 2, static_cast<int>(timeout.count()));
  if (ready <= 0) return Event::kNone;
  if (polled[0].revents != 0) return TakeSignal();
  return TakeKey(key) ? Event::kKey : Event::kNone;
}

Terminal::Event Terminal::TakeSignal() {
  signalfd_siginfo taken{};
  if (::read(signals_, &taken, sizeof(taken)) != static_cast<ssize_t>(sizeof(taken))) {
    return Event::kNone;
  }
  switch (static_cast<int>(taken.ssi_signo)) {
    case SIGWINCH:
      return Event::kResized;
    case SIGTSTP:
      Stop();
      return Event::kResized;
    default:
      return Event::kEnd;
  }
}

bool Terminal::TakeKey(char* key) {
  const ssize_t n = ::read(STDIN_FILENO, key, 1);
  if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) has_input_ = false;
  return n == 1;
}

void Terminal::Stop() {
  Leave();
  ::raise(SIGSTOP);
  // If it is gone meanwhile, the next bytes find out.
  Enter().IgnoreError();
}

}  // namespace nacre::ctl
