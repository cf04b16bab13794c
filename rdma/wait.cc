#include "rdma/wait.h"

namespace nacre::rdma {

int WaitForAny(pollfd* entries, nfds_t count, std::chrono::nanoseconds timeout) {
  using std::chrono::nanoseconds;
  using std::chrono::seconds;
  const auto bounded = std::clamp<nanoseconds>(timeout, nanoseconds(0), std::chrono::hours(1));
  const seconds whole = std::chrono::duration_cast<seconds>(bounded);
  const timespec limit{.tv_sec = whole.count(), .tv_nsec = (bounded - whole).count()};
  return std::max(0, ppoll(entries, count, &limit, nullptr));
}

bool WaitFor(int fd, short events, std::chrono::nanoseconds timeout) {
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  return WaitForAny(&entry, 1, timeout) > 0;
}

}  // namespace nacre::rdma
