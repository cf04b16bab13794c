#pragma once

#include <cstddef>

namespace nacre::rdma {

/// Copies so that the bytes become visible to other threads and processes in address order, the
/// last of them by a releasing store: whoever polls the last (up to 8, naturally aligned) bytes
/// with an acquiring load then sees all the others. Aligned groups of 8 bytes never tear.
void CopyInOrder(char* to, const char* from, size_t size);

/// Copies from memory that others may be writing to. Aligned groups of 8 bytes never tear; there
/// is no order among them.
void CopyConcurrent(char* to, const char* from, size_t size);

}  // namespace nacre::rdma
