#pragma once

#include <cstddef>
#include <string_view>

// Memory that C code is given and gives back with free(), as the C APIs of LevelDB and RocksDB
// have it.

namespace nacre {

/// A copy of `bytes` from malloc. Never null, also of no bytes.
char* CopyToMalloc(std::string_view bytes);
/// The same with a terminator behind it.
char* CopyToCString(std::string_view text);
/// Puts a copy of `message` in the place of `*errptr`, which is freed.
void SetError(std::string_view message, char** errptr);

}  // namespace nacre
