#pragma once

#include <cstddef>

#include "nacre/slice.h"

namespace nacre {

/// Copies, and makes the last bytes visible to other threads and processes after all others: a
/// thread that polls the last (up to 8, naturally aligned) bytes with an acquiring load then sees
/// the rest. Aligned groups of 8 bytes never tear. Long copies bypass the cache.
void CopyAndPublish(char* to, const char* from, size_t size);

/// Copies from memory that others may be writing to. Aligned groups of 8 bytes never tear; there
/// is no order among them, but all are read before what the caller loads afterwards.
void CopyConcurrent(char* to, const char* from, size_t size);

/// The same copy, into memory of `*to`.
void PinConcurrent(PinnableSlice* to, const Slice& from);

}  // namespace nacre
