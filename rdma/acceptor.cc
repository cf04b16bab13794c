#include "rdma/acceptor.h"

#include <sys/eventfd.h>
#include <sys/socket.h>

#include <cerrno>

namespace nacre::rdma {

void Acceptor::Reserve() {
  if (!reserve_.valid()) reserve_ = UniqueFd(eventfd(0, EFD_CLOEXEC));
}

Acceptor::Taken Acceptor::Take(UniqueFd* caller) {
  const auto accept = [&] {
    *caller = UniqueFd(accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    return caller->valid();
  };
  Reserve();
  exhausted_ = false;
  if (accept()) return Taken::kCaller;
  if (errno != EMFILE && errno != ENFILE) return Taken::kNobody;
  // The system looks for a descriptor before it looks for callers.
  exhausted_ = !reserve_.valid();
  reserve_.Reset();
  if (!exhausted_ && accept()) return Taken::kToRefuse;
  Reserve();
  return Taken::kNobody;
}

}  // namespace nacre::rdma
