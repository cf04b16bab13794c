#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "nacre/iterator.h"
#include "nacre/slice.h"
#include "nacre/statistics.h"
#include "nacre/status.h"
#include "util/clock.h"

namespace nacre {

// What operations add to Options::statistics. `start_nanos`: by `clock`, when they began.

void CountGet(Statistics* statistics, Clock* clock, uint64_t start_nanos, const Status& status,
              const PinnableSlice& value);
void CountMultiGet(Statistics* statistics, Clock* clock, uint64_t start_nanos,
                   std::span<const Status> statuses, std::span<const PinnableSlice> values);
/// A write of so many `updates` in `bytes`. One that failed counts as time only.
void CountWrite(Statistics* statistics, Clock* clock, uint64_t start_nanos, const Status& status,
                uint64_t updates, uint64_t bytes, bool logged);

/// An iterator that counts what is done with it, and adds it when it ends.
std::unique_ptr<Iterator> NewCountedIterator(std::unique_ptr<Iterator> iterator,
                                             std::shared_ptr<Statistics> statistics, Clock* clock);

}  // namespace nacre
