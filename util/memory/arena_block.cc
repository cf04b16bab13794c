#include "util/memory/arena_block.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "util/memory/round_up.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace nacre {
namespace {

constexpr size_t kPage = 4 << 10;

}  // namespace

ArenaBlock::ArenaBlock(size_t bytes) {
  const bool huge = bytes >= kHugePage;
  size_ = RoundUp(bytes, huge ? kHugePage : kPage);
  const size_t slack = huge ? kHugePage - kPage : 0;
  void* memory = ::mmap(nullptr, size_ + slack, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  data_ = static_cast<char*>(memory);
  if (!huge) return;
  const size_t head = -reinterpret_cast<uintptr_t>(data_) % kHugePage;
  if (head > 0) ::munmap(data_, head);
  if (slack > head) ::munmap(data_ + head + size_, slack - head);
  data_ += head;
  ::madvise(data_, size_, MADV_HUGEPAGE);  // A hint; small pages serve as well.
}

ArenaBlock::~ArenaBlock() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

void ArenaBlock::Populate() {
  // Whatever it does not do, the first touch of a page does: older kernels do not know it.
  ::madvise(data_, size_, MADV_POPULATE_WRITE);
}

}  // namespace nacre
