#pragma once

#include <string>
#include <string_view>

// What tools print as JSON.

namespace nacre {

/// As a string of JSON, with quotes. Bytes above 0x7f stay as they are.
std::string JsonString(std::string_view text);

}  // namespace nacre
