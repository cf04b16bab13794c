#pragma once

#include <cstdint>
#include <string>

#include "nacre/status.h"

namespace nacre::rdma {

/// Memory that is there before anyone uses it, and has a size of its own: a dax device, such as
/// pooled CXL memory shows as, or a regular file that stands for one.
struct DaxMemory {
  uint64_t bytes = 0;
  uint64_t alignment = 4096;  ///< Its pages: what is mapped begins and ends at multiples of it.
  bool device = false;
};

/// What `fd` is; of a device, `sysfs` (where the kernel has its files, "/sys") says how large it
/// is. `InvalidArgument` if it is neither a file nor a dax device, or its size is no multiple of
/// the alignment; `IOError` if the system does not say.
Status DescribeDax(int fd, const std::string& sysfs, DaxMemory* memory);

}  // namespace nacre::rdma
