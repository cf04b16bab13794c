#pragma once

/// Marks a place where a bug would be: `if (NACRE_PLANTED_BUG("fence.keys-not-revoked")) ...`.
/// False, and so nothing at all, but in tests/planted, which compiles the sources that have some a
/// second time and shows that the simulation finds each of them. It must not be in headers: the
/// rest of that program is made of the ordinary objects.
#ifdef NACRE_PLANTED_BUGS

namespace nacre {

/// Whether this process is to have the bug of that name. Ends the process if the test does not know
/// such a bug.
bool IsPlanted(const char* name);

}  // namespace nacre

/// The linker makes an array of the names, so that the test knows which ones are there.
#define NACRE_PLANTED_BUG(name)                                                               \
  ([] {                                                                                       \
    [[gnu::section("nacre_bugs"), gnu::used]] static constexpr const char* nacre_name = name; \
    return ::nacre::IsPlanted(nacre_name);                                                    \
  }())

#else

#define NACRE_PLANTED_BUG(name) false

#endif
