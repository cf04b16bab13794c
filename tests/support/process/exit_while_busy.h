#pragma once

#include <cstdint>
#include <functional>

namespace nacre {

/// Ends the process with `exit`, as a program ends that never closed its database, while `threads`
/// threads go on with `work` (the number of the round is its argument). Before that each of them
/// has done some rounds. All statics of the process are destroyed; only then, and after the threads
/// of the database have run for longer than the time between two of their reports, it is gone.
/// For EXPECT_EXIT with the "threadsafe" style.
[[noreturn]] void ExitWhileBusy(int threads, const std::function<void(uint64_t round)>& work);

}  // namespace nacre
