#pragma once

#include <chrono>

namespace nacre {

/// Shortly before ctest's TIMEOUT, which ends a test without a word.
constexpr std::chrono::seconds kHangPatience{540};

/// Has a thread of its own write the stacks of all threads of this process to standard error, once
/// for each test that has run for `patience`. Nothing else happens to the test: its runner ends it.
/// Must be called once, before the tests; takes SIGUSR2.
void ReportHangs(std::chrono::seconds patience = kHangPatience);

}  // namespace nacre
