#pragma once

#include <string>

#include "tests/support/process/memnode_process.h"

namespace nacre {

// The exit codes of tests/history/checker.
constexpr int kExplained = 0;
constexpr int kNotExplained = 1;
constexpr int kNoHistory = 2;

/// Has the history at `path` judged by "keys" or by "groups". What is refused is drawn in
/// `path`.html.
inline ProcessResult RunChecker(const std::string& by, const std::string& path) {
  return RunBinary("history_checker", {"-timeout", "120s", "-figure", path + ".html", by, path},
                   /*seconds=*/400);
}

}  // namespace nacre
