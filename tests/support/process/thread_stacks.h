#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace nacre {

// The stacks of other threads of this process, which a signal has them write down.

/// To be called before CallsOf, by one thread. Takes SIGUSR2.
void PrepareStacks();

/// The calls of this program that a thread is in, innermost first, as addresses within the program.
/// Nothing if the thread has ended, or does not answer within a second: it may be in the kernel for
/// good. Called by one thread at a time.
std::optional<std::vector<uintptr_t>> CallsOf(int system_id);

}  // namespace nacre
