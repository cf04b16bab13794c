#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace nacre {

// What a test and a process that it starts tell one another.

/// An environment variable; empty if it is not set.
std::string Environment(const char* name);
/// The same as a number, which it is.
uint64_t EnvironmentNumber(const char* name);

/// Memory of `bytes` bytes, zero at first, that all processes share which map this file. Null on
/// failure; else until munmap.
void* MapShared(const std::string& path, size_t bytes);

}  // namespace nacre
