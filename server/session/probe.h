#pragma once

#include <chrono>
#include <string>

namespace nacre::server {

/// Whether a server at HOST:PORT answers within that time: PING, even if by an error, or with `tls`
/// what begins TLS. Blocks.
bool Answers(const std::string& address, bool tls, std::chrono::milliseconds patience);

}  // namespace nacre::server
