#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace nacre::server {

/// The bytes that go to and fro over a client's socket, as they are or by TLS (server_tls.h).
///
/// Thread safety: none.
class ClientStream {
 public:
  enum class Outcome : uint8_t {
    kSome,        ///< One byte or more.
    kNeedsInput,  ///< Nothing, until something has arrived at the socket.
    kNeedsRoom,   ///< Nothing, until the socket takes something.
    kEnded,       ///< The client sends no more.
    kFailed,      ///< Neither can anything be sent any more.
  };

  virtual ~ClientStream() = default;
  virtual Outcome Receive(std::span<char> bytes, size_t* got) = 0;
  /// What was begun is gone on with: `bytes` then begin as before, and are no fewer.
  virtual Outcome Send(std::string_view bytes, size_t* sent) = 0;
  /// Tells the client that nothing follows, as far as the socket has room for that.
  virtual void End() = 0;
};

/// The socket stays the caller's.
std::unique_ptr<ClientStream> NewPlainStream(int socket);

}  // namespace nacre::server
