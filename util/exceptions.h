#pragma once

#include <utility>

#include "nacre/status.h"

namespace nacre {

/// The exception that is being handled, as a Status: `Aborted`, with what it says of itself. Only
/// within a catch clause; throws nothing. (RocksDB's MemoryLimit is an Aborted, too.)
Status StatusOfException() noexcept;

/// What `work` answers, or the exception that it threw. Costs nothing where none is thrown. For
/// calls into the application's code (comparators, operators, filters, listeners), and where an
/// exception must not get any further: at the API, on threads, and where somebody waits for what
/// the caller has begun.
template <typename Work>
Status CatchAll(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace nacre
