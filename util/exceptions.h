#pragma once

#include <utility>

#include "nacre/status.h"

namespace nacre {

/// The exception that is being handled, as a Status: `Aborted`, with what it says of itself. It may
/// be called only within a catch clause, and throws nothing. (RocksDB's MemoryLimit is an Aborted,
/// too.)
Status StatusOfException() noexcept;

/// Returns what `work` answers, or a Status for the exception that it threw. It costs nothing where
/// none is thrown. It serves calls into the application's code (comparators, operators, filters,
/// listeners), and places that an exception must not leave: the API, threads, and callers whose
/// work another thread awaits.
template <typename Work>
Status CatchAll(Work&& work) {
  try {
    return std::forward<Work>(work)();
  } catch (...) {
    return StatusOfException();
  }
}

}  // namespace nacre
