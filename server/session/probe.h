#pragma once

#include <chrono>
#include <string>

namespace nacre::server {

/// Whether a server at HOST:PORT answers PING within that time, even if by an error. Blocks.
bool Answers(const std::string& address, std::chrono::milliseconds patience);

}  // namespace nacre::server
