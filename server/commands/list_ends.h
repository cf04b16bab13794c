#pragma once

#include <string>
#include <vector>

#include "server/commands/collection.h"

namespace nacre::server {

/// Pushes values one after the other, at the head if `left`. Makes the list if it is not there.
void PushToList(Collection* list, bool left, const std::vector<std::string>& values);

/// Takes up to `count` values, from the head if `left`, in the order in which they are taken.
Task<std::vector<std::string>> PopFromList(Collection* list, bool left, size_t count);

}  // namespace nacre::server
