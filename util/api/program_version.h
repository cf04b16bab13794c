#pragma once

#include <gflags/gflags.h>

#include <cstdio>

#include "nacre/version.h"

DECLARE_bool(version);

// For main files: what the flags that all programs have in common do.

namespace nacre {

/// Answers --version, if it was given, with one line such as "nacre-ctl 0.2.0 (commit 1a2b3c4d5e,
/// release)"; true if so, and the program is to end. To be called once the flags are parsed.
inline bool PrintVersion(const char* program) {
  if (!FLAGS_version) return false;
  std::printf("%s %s\n", program, GetNacreVersionAsString(/*with_commit=*/true).c_str());
  return true;
}

/// Takes the flags out of the command line, as gflags does by itself, but for --version, which is
/// answered as above.
inline bool ParseFlagsOrPrintVersion(const char* program, int* argc, char*** argv) {
  gflags::ParseCommandLineNonHelpFlags(argc, argv, /*remove_flags=*/true);
  if (PrintVersion(program)) return true;
  gflags::HandleCommandLineHelpFlags();
  return false;
}

}  // namespace nacre
