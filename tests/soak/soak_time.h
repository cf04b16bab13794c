#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include "tests/support/temp_folder.h"
#include "util/log.h"

namespace nacre {

/// For how long a soak goes on: NACRE_SOAK_SECONDS, 10 at least; 30 seconds where that is not set.
inline std::chrono::seconds SoakTime() {
  const char* const text = std::getenv("NACRE_SOAK_SECONDS");
  return std::chrono::seconds(text == nullptr ? 30 : std::max(10, std::atoi(text)));
}

/// The same for one test of several that divide it: those that are run, or, where it is not set,
/// all `tests`.
inline std::chrono::milliseconds SoakTimeOfOne(int tests) {
  const bool set = std::getenv("NACRE_SOAK_SECONDS") != nullptr;
  const int run = testing::UnitTest::GetInstance()->test_to_run_count();
  return std::chrono::milliseconds(SoakTime()) / std::max(1, set ? run : tests);
}

/// What databases say goes to the file that NACRE_SOAK_LOG names; empty where that is not set.
inline std::string SoakLogPath() {
  const char* const path = std::getenv("NACRE_SOAK_LOG");
  return path == nullptr ? "" : path;
}

/// Null without a path.
inline std::shared_ptr<Logger> SoakLog() {
  const std::string path = SoakLogPath();
  return path.empty() ? nullptr : NewFileLogger(path);
}

/// Where nodes are to keep their memory over restarts (NACRE_SOAK_WARM); null: they come back
/// empty.
inline std::unique_ptr<TempFolder> SoakRegionFolder() {
  if (std::getenv("NACRE_SOAK_WARM") == nullptr) return nullptr;
  return std::make_unique<TempFolder>(MemoryFolder());
}

}  // namespace nacre
