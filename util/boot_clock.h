#pragma once

#include "util/clock.h"

namespace nacre {

/// The machine's clock, or that of the simulation that runs, which goes on while the host sleeps:
/// for what is promised by time to others, or by them, as Clock::System() stands still meanwhile.
/// Its times are not those of Clock::System(). Lives for ever.
///
/// A virtual machine that is stopped together with all of its clocks, and never told, is beyond it.
Clock* BootClock();

}  // namespace nacre
