#pragma once

#include <string>

#include "nacre/status.h"

namespace nacre {

class DBImpl;

/// A key that about half of the bytes of all tables come before, in whatever family they are.
/// Flushes before. `NotFound` if no key has others on both sides.
Status FindMiddleKey(DBImpl* db, std::string* key);

}  // namespace nacre
