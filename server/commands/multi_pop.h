#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "server/commands/collection.h"

// LMPOP, ZMPOP, BLMPOP and BZMPOP, which take elements from the first of several collections that
// has any.

namespace nacre::server {

/// What differs between those of lists and those of sorted sets.
struct MultiPop {
  Type type;
  std::string_view first;  ///< The words for the ends: LEFT and RIGHT, or MIN and MAX.
  std::string_view last;
  /// Takes up to `count` elements, and answers them as an array.
  Task<void> (*take)(Call& call, Collection* from, bool first, size_t count);
};

/// Once; false if there is nothing to take and nothing is answered. `pop` has to stay.
Task<bool> AttemptMultiPop(Call& call, const MultiPop& pop);
/// The whole command, which waits if its name begins with a b. `attempt` is AttemptMultiPop of
/// `pop`.
Task<void> AnswerMultiPop(Call& call, const MultiPop& pop, Task<bool> (*attempt)(Call& call));
/// The keys that such a command names.
void MultiPopKeys(const Call& call, std::vector<KeyRef>* keys);

/// The number of keys that argument `at` says follow it, which is 1 at least. Answers an error and
/// false if it is malformed.
bool KeyCountArgument(Call& call, size_t at, int64_t* count);

}  // namespace nacre::server
