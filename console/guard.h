#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "nacre/status.h"

// Which requests the console answers at all.

namespace nacre::console {

/// Where to listen: "127.0.0.1:8080", "[::1]:8080", "localhost:0".
struct ListenAddress {
  std::string host;  ///< Without brackets.
  int port = 0;      ///< 0: any that is free.
};

/// `InvalidArgument` naming the text if it is not HOST:PORT.
Status ParseListenAddress(const std::string& text, ListenAddress* address);
/// Whether only processes of this machine can reach what listens at `host`.
bool IsLoopback(const std::string& host);

/// The token that a file holds: its first line, 16 to 1,024 printable characters without spaces.
/// `IOError` if it cannot be read, `InvalidArgument` if it holds no such token; both name the file,
/// and neither says what is in it. `*open_to_all`: other users of the machine may read it.
Status ReadTokenFile(const std::string& path, std::string* token, bool* open_to_all);

/// Decides by the headers of a request.
///
/// Thread safety: it is constant, so many threads may call at once.
class Guard {
 public:
  /// `token`: empty if none is asked for. `hosts`: names by which this machine may be called beside
  /// "localhost". `session`: drawn at random; browsers that have shown the token get it as a
  /// cookie.
  Guard(std::string token, std::vector<std::string> hosts, std::string session);

  /// Whether the header Host names this machine: by an IP address, "localhost" or one of the hosts.
  /// A page elsewhere whose name was made to lead here (DNS rebinding) has its own name there.
  bool KnowsHost(std::string_view header) const;
  bool asks_for_token() const { return !token_.empty(); }
  /// Takes as long for a wrong one, wherever it differs.
  bool IsToken(std::string_view text) const;
  /// Whether the headers Authorization ("Bearer TOKEN") or Cookie have what is asked for.
  bool Admits(std::string_view authorization, std::string_view cookie) const;
  /// The value of Set-Cookie for a browser that has shown the token.
  std::string SetCookie() const;

 private:
  const std::string token_;
  const std::vector<std::string> hosts_;
  const std::string session_;
};

}  // namespace nacre::console
