#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace nacre {

/// The system call, by a command of <linux/membarrier.h>. False where the kernel refuses it. TSan
/// does not know it, and would report what it protects.
inline bool Membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace nacre
