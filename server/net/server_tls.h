#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "nacre/status.h"
#include "server/net/client_stream.h"
#include "util/clock.h"

namespace nacre::server {

/// Files in PEM form.
struct TlsFiles {
  std::string certificate{};  ///< The server's, with those between it and its authority behind it.
  std::string key{};          ///< The private key of that.
  /// Certificates of authorities, one of which has to have signed those of clients. Empty: clients
  /// need none.
  std::string authorities{};
};

/// Speaks TLS 1.2 and 1.3 with clients.
///
/// Thread safety: all methods may be called from many threads at once.
class ServerTls {
 public:
  /// `InvalidArgument` or `IOError` that names the file and says what is wrong with it.
  static Status Open(const TlsFiles& files, std::shared_ptr<const ServerTls>* tls);
  ~ServerTls();
  ServerTls(const ServerTls&) = delete;
  ServerTls& operator=(const ServerTls&) = delete;

  /// The server's end of a connection, which begins with what is received and sent. Null if there
  /// is no memory. The socket stays the caller's, and outlives it.
  std::unique_ptr<ClientStream> Accept(int socket) const;

 private:
  struct Library;

  explicit ServerTls(std::unique_ptr<Library> library);

  const std::unique_ptr<Library> library_;
};

/// Whether a server at the other end of a connected socket, which does not block, agrees to speak
/// TLS before the deadline. It need not be able to prove who it is.
bool SpeaksTls(int socket, const Deadline& deadline);

}  // namespace nacre::server
