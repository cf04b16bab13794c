#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/status.h"
#include "rdma/shm/wire.h"
#include "rdma/unique_fd.h"
#include "util/clock.h"

namespace nacre::rdma {

/// Where a shm device listens: a socket file, or a name in Linux's abstract namespace, which
/// vanishes with its listener. It is written "shm:/run/n0.sock" or "shm:@name"; "cxl:", "embedded:"
/// and no scheme at all mean the same as "shm:". For "@" alone the system chooses a name.
struct ShmAddress {
  bool abstract = false;
  std::string name;  ///< Path, or abstract name without "@".

  std::string ToString(const char* scheme) const;
};

/// `InvalidArgument` naming the text if it is empty, of another scheme, or longer than a socket
/// address can be.
Status ParseShmAddress(const std::string& text, ShmAddress* address);

/// A listening socket. A socket file whose listener is dead is replaced; `Busy` if it is alive,
/// `InvalidArgument` if the path is no socket. Fills in a name that the system chose.
Status ListenOn(ShmAddress* address, UniqueFd* socket);
/// Removes the socket file that ListenOn made, unless another listener has replaced it.
void StopListening(const ShmAddress& address, int socket);

/// Makes a connected socket. `Unavailable` naming the address: at once if no process listens there,
/// at the deadline if the listener does not accept.
Status ConnectTo(const ShmAddress& address, const Deadline& deadline, UniqueFd* socket);

/// A packet as it came, with its descriptors (close-on-exec).
inline constexpr size_t kMaxFds = 4;
struct Packet {
  std::array<char, kMaxMessageBytes> data;
  size_t size = 0;
  std::vector<UniqueFd> fds;

  std::string_view bytes() const { return {data.data(), size}; }
};

/// kMalformed: longer than any message, or with more descriptors than any has; such a peer cannot
/// be talked to.
enum class ReceiveResult : uint8_t { kMessage, kNothing, kClosed, kMalformed };

/// Takes one packet without blocking.
ReceiveResult Receive(int socket, Packet* packet);
/// As Receive; waits. `TimedOut` at the deadline, `Unavailable` if the peer closed,
/// `InvalidArgument` for kMalformed.
Status ReceiveBy(int socket, const Deadline& deadline, Packet* packet);
/// Sends one packet with descriptors. Waits for room: `TimedOut` at the deadline, `Unavailable` if
/// the peer closed.
Status SendBy(int socket, const Deadline& deadline, const void* message, size_t size,
              const std::vector<int>& fds);

}  // namespace nacre::rdma
