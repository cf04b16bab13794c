#pragma once

#include <sys/socket.h>

#include <string>

#include "nacre/status.h"

namespace nacre::rdma {

/// Where a verbs device listens: "verbs:HOST:PORT", with HOST a name, an IPv4 address, an IPv6
/// address in brackets, or "*" to listen at all of them; the scheme may be left out. For port 0 the
/// system chooses.
struct VerbsAddress {
  std::string host;
  int port = 0;
  sockaddr_storage socket_address{};

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&socket_address); }
  std::string ToString() const;
};

/// `InvalidArgument` naming the text if it is malformed, `Unavailable` if the name is not known.
/// Asks the system's resolver, which may take its time, if HOST is a name.
Status ParseVerbsAddress(const std::string& text, VerbsAddress* address);

}  // namespace nacre::rdma
