#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "rdma/unique_fd.h"
#include "util/clock.h"

namespace nacre::rdma {

// TCP sockets by name, with deadlines. Written "tcp:HOST:PORT" or "HOST:PORT", where HOST is a
// name, an IPv4 address, or an IPv6 address in brackets.

/// An address that a socket may have.
struct SocketName {
  sockaddr_storage address{};
  socklen_t size = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&address); }
  /// "tcp:127.0.0.1:7000".
  std::string ToString() const;
};

/// All addresses that the text names. `InvalidArgument` if it names none; `Unavailable` if the
/// system cannot resolve the host, for which it takes its own time.
Status ResolveTcpAddress(const std::string& text, std::vector<SocketName>* names);

/// A listening socket. `Busy` if another one listens there. `*name` receives the port that the
/// system chose for port 0.
Status ListenOnTcp(const std::string& text, UniqueFd* socket, SocketName* name);

/// Makes a connected socket. `Unavailable` naming the address: at once if no process listens there,
/// at the deadline if none answers.
Status ConnectTcp(const std::string& text, const Deadline& deadline, UniqueFd* socket);

/// Small frames leave at once; a peer that does not take them for `timeout` is given up, also when
/// nothing is sent.
Status SetUpTcpSocket(int socket, std::chrono::milliseconds timeout);

/// Name of the other end.
std::string PeerName(int socket);

/// Sends all of it. `TimedOut` at the deadline, `Unavailable` if the peer closed.
Status SendAllBy(int socket, const Deadline& deadline, const char* bytes, size_t size);
/// Receives exactly `size` bytes; errors as SendAllBy.
Status ReceiveAllBy(int socket, const Deadline& deadline, char* bytes, size_t size);

}  // namespace nacre::rdma
