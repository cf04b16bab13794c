#include "rdma/memory.h"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <vector>

#include "rdma/dax.h"
#include "rdma/transport.h"
#include "util/memory/round_up.h"
#include "util/uri.h"

// The headers may be older than the kernel: these came with Linux 5.14 and 6.1.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace nacre::rdma {

namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;
const char* const kSysfs = "/sys";

/// The size of the file's pages: larger ones are mapped as a whole.
size_t PageBytesOf(int fd) {
  DaxMemory memory;
  if (fd < 0 || !DescribeDax(fd, kSysfs, &memory).ok()) return kPageBytes;
  return memory.alignment;
}

/// Bytes of a file or of a dax device; 0 if the system does not say.
size_t BytesOf(int fd) {
  struct stat attributes;
  if (fstat(fd, &attributes) != 0) return 0;
  if (!S_ISCHR(attributes.st_mode)) return static_cast<size_t>(attributes.st_size);
  DaxMemory memory;
  return DescribeDax(fd, kSysfs, &memory).ok() ? memory.bytes : 0;
}

/// Maps at a multiple of the huge page size if the object can hold a huge page at all, so that
/// file offsets and addresses are congruent. `fd` -1: private anonymous memory.
char* MapAligned(int fd, size_t size, int protection) {
  const int flags = fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  if (size < kHugePageBytes) {
    void* data = mmap(nullptr, size, protection, flags, fd, 0);
    return data == MAP_FAILED ? nullptr : static_cast<char*>(data);
  }
  const size_t alignment = std::max(kHugePageBytes, PageBytesOf(fd));
  const size_t reserved_size = size + alignment;
  void* reserved =
      mmap(nullptr, reserved_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  char* const begin = static_cast<char*>(reserved);
  char* const aligned =
      reinterpret_cast<char*>(RoundUp(reinterpret_cast<uintptr_t>(begin), alignment));
  void* data = mmap(aligned, size, protection, flags | MAP_FIXED, fd, 0);
  if (data == MAP_FAILED) {
    const int reason = errno;
    munmap(begin, reserved_size);
    errno = reason;
    return nullptr;
  }
  if (aligned > begin) munmap(begin, static_cast<size_t>(aligned - begin));
  munmap(aligned + size, static_cast<size_t>(begin + reserved_size - (aligned + size)));
  return aligned;
}

/// Hints only: a kernel without huge pages serves small ones. Children that fork without exec
/// must neither keep the memory alive nor turn private pages into copies.
void Advise(char* data, size_t size) {
  madvise(data, size, MADV_DONTFORK);
  if (size >= kHugePageBytes) madvise(data, size, MADV_HUGEPAGE);
}

Status ReadAvailableMemory(uint64_t* bytes) {
  std::ifstream file("/proc/meminfo");
  std::string name;
  uint64_t kibibytes = 0;
  std::string unit;
  while (file >> name >> kibibytes) {
    if (name == "MemAvailable:") {
      *bytes = kibibytes << 10;
      return Status::OK();
    }
    std::getline(file, unit);
  }
  return Status::IOError("/proc/meminfo: no MemAvailable");
}

}  // namespace

Status SystemError(const std::string& what) {
  return Status::IOError(what + ": " + std::strerror(errno));
}

uint64_t NewDeviceId() {
  uint64_t id = 0;
  while (id == 0) {
    // Cannot fail for 8 bytes once the system's pool is up; interrupted calls are repeated.
    if (getrandom(&id, sizeof(id), 0) != sizeof(id)) id = 0;
  }
  return id;
}

std::shared_ptr<Mapping> Mapping::Borrow(char* data, size_t size) {
  auto mapping = std::make_shared<Mapping>(ObjectName(), data, size, /*created_here=*/true);
  mapping->borrowed_ = true;
  return mapping;
}

std::shared_ptr<Mapping> Mapping::OfFile(ObjectName name, char* data, size_t size) {
  auto mapping = std::make_shared<Mapping>(name, data, size, /*created_here=*/true);
  mapping->kept_ = true;
  return mapping;
}

Mapping::~Mapping() {
  if (borrowed_) return;
  MappingTable::Process()->Erase(name_);
  munmap(data_, size_);
}

Status Mapping::MakeWritable(size_t offset, size_t size) const {
  // Keys of jobs are to small parts, as many as there are tables. Parts of huge pages would have
  // these split, and the system bounds the number of parts.
  const size_t unit = size_ >= kHugePageBytes ? kHugePageBytes : kPageBytes;
  const size_t begin = offset / unit * unit;
  const size_t end = std::min(size_, RoundUp(offset + size, unit));
  if (mprotect(data_ + begin, end - begin, PROT_READ | PROT_WRITE) == 0) return Status::OK();
  return SystemError("make " + FormatBytes(size) + " of a peer writable");
}

void Mapping::TakeAway() const {
  if (taken_away_.exchange(true)) return;
  // A device may have nothing smaller than huge pages to be exchanged.
  const size_t first = std::min(size_, kHugePageBytes);
  constexpr int kNothing = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* const head = mmap(nullptr, first, PROT_READ | PROT_WRITE, kNothing, -1, 0);
  if (head == MAP_FAILED) return;
  std::atomic_ref<uint64_t>(
      *reinterpret_cast<uint64_t*>(static_cast<char*>(head) + Device::kMovedAwayAt))
      .store(1);
  // Each of the two is seen by all threads once the call returns, so who copies from what has come
  // in the place of the memory finds the word set.
  if (mremap(head, first, first, MREMAP_MAYMOVE | MREMAP_FIXED, data_) == MAP_FAILED) {
    munmap(head, first);
    return;
  }
  if (size_ > first) {
    mmap(data_ + first, size_ - first, PROT_READ | PROT_WRITE, kNothing | MAP_FIXED, -1, 0);
  }
  madvise(data_, size_, MADV_DONTFORK);
}

size_t Mapping::ResidentBytes() const {
  constexpr size_t kStepPages = size_t{1} << 18;
  std::vector<unsigned char> resident(std::min(kStepPages, size_ / kPageBytes));
  size_t pages = 0;
  for (size_t offset = 0; offset < size_; offset += resident.size() * kPageBytes) {
    const size_t step = std::min(size_ - offset, resident.size() * kPageBytes);
    if (mincore(data_ + offset, step, resident.data()) != 0) break;
    pages += static_cast<size_t>(std::count_if(
        resident.begin(), resident.begin() + static_cast<ptrdiff_t>(step / kPageBytes),
        [](unsigned char flags) { return (flags & 1) != 0; }));
  }
  return pages * kPageBytes;
}

MappingTable* MappingTable::Process() {
  static MappingTable* const table = new MappingTable;  // Never destroyed: mappings may outlive it.
  return table;
}

std::shared_ptr<Mapping> MappingTable::Find(ObjectName name) {
  MutexLock lock(&mutex_);
  const auto found = mappings_.find(name);
  return found == mappings_.end() ? nullptr : found->second.lock();
}

Status MappingTable::FindOrMap(ObjectName name, int fd, size_t size, bool writable,
                               std::shared_ptr<Mapping>* mapping) {
  assert(*mapping == nullptr);  // Its end would enter the table again.
  MutexLock lock(&mutex_);
  std::weak_ptr<Mapping>& slot = mappings_[name];
  *mapping = slot.lock();
  if (*mapping != nullptr) return Status::OK();
  struct stat attributes;
  const bool known = fstat(fd, &attributes) == 0;
  const int seals = fcntl(fd, F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
  // A device cannot shrink at all.
  const bool named = known && attributes.st_nlink > 0 &&
                     (S_ISREG(attributes.st_mode) || S_ISCHR(attributes.st_mode));
  if (!known || (!sealed && !named) || BytesOf(fd) < size) {
    return Status::IOError("a peer passed memory that is not sealed or not of " +
                           FormatBytes(size));
  }
  const size_t mapped_size = RoundUp(size, PageBytesOf(fd));
  char* data = MapAligned(fd, mapped_size, writable ? PROT_READ | PROT_WRITE : PROT_READ);
  if (data == nullptr) return SystemError("map " + FormatBytes(size) + " of a peer");
  Advise(data, mapped_size);
  *mapping = std::make_shared<Mapping>(name, data, mapped_size, false);
  (*mapping)->kept_ = !sealed;
  slot = *mapping;
  return Status::OK();
}

void MappingTable::Insert(const std::shared_ptr<Mapping>& mapping) {
  MutexLock lock(&mutex_);
  mappings_[mapping->name()] = mapping;
}

void MappingTable::Erase(ObjectName name) {
  MutexLock lock(&mutex_);
  const auto found = mappings_.find(name);
  // A new mapping may have taken the name between the last reference's end and this call.
  if (found != mappings_.end() && found->second.expired()) mappings_.erase(found);
}

Status MappingTable::CheckRoomFor(size_t size) {
  uint64_t available = 0;
  NACRE_RETURN_IF_ERROR(ReadAvailableMemory(&available));
  std::vector<std::shared_ptr<Mapping>> own;  // Declared before the lock: may hold the last one.
  MutexLock lock(&mutex_);
  uint64_t promised = 0;
  for (const auto& [name, slot] : mappings_) {
    std::shared_ptr<Mapping> mapping = slot.lock();
    if (mapping == nullptr || !mapping->created_here()) continue;
    promised += mapping->size();
    own.push_back(std::move(mapping));
  }
  // Counting resident pages takes time: only when the sizes alone would not do.
  if (size <= available && promised <= available - size) return Status::OK();
  for (const auto& mapping : own) promised -= std::min(promised, mapping->ResidentBytes());
  if (size <= available && promised <= available - size) return Status::OK();
  return Status::NoSpace("a region of " + FormatBytes(size) + " (" + std::to_string(size) +
                         " bytes) exceeds the " +
                         FormatBytes(available - std::min(available, promised)) +
                         " of memory that the machine has left");
}

Status CreateMemory(ObjectName name, size_t size, MemoryKind kind, UniqueFd* fd,
                    std::shared_ptr<Mapping>* mapping) {
  const size_t mapped_size = RoundUp(size, kPageBytes);
  if (kind == MemoryKind::kShareable) {
    *fd = UniqueFd(memfd_create("nacre", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!fd->valid()) return SystemError("memfd_create");
    if (fchmod(fd->get(), S_IRUSR) != 0 ||
        ftruncate(fd->get(), static_cast<off_t>(mapped_size)) != 0 ||
        fcntl(fd->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      return SystemError("size a memfd to " + FormatBytes(mapped_size));
    }
  }
  char* data = MapAligned(fd->get(), mapped_size, PROT_READ | PROT_WRITE);
  if (data == nullptr) return SystemError("map " + FormatBytes(mapped_size));
  Advise(data, mapped_size);
  *mapping = std::make_shared<Mapping>(name, data, mapped_size, true);
  MappingTable::Process()->Insert(*mapping);
  return Status::OK();
}

Status MapFile(ObjectName name, int fd, size_t size, std::shared_ptr<Mapping>* mapping) {
  const size_t mapped_size = RoundUp(size, PageBytesOf(fd));
  if (const size_t bytes = BytesOf(fd); bytes < mapped_size) {
    return Status::IOError("a file of " + FormatBytes(bytes) + " is too small for " +
                           FormatBytes(mapped_size));
  }
  char* data = MapAligned(fd, mapped_size, PROT_READ | PROT_WRITE);
  if (data == nullptr) return SystemError("map " + FormatBytes(mapped_size) + " of a file");
  Advise(data, mapped_size);
  *mapping = Mapping::OfFile(name, data, mapped_size);
  MappingTable::Process()->Insert(*mapping);
  return Status::OK();
}

Status PopulateMemory(const Mapping& mapping) {
  const auto small_pages = [&](size_t begin, size_t end) {
    if (begin == end || madvise(mapping.data() + begin, end - begin, MADV_POPULATE_WRITE) == 0) {
      return Status::OK();
    }
    return SystemError("populate " + FormatBytes(end - begin));
  };
  size_t done = 0;
  for (; mapping.size() - done >= kHugePageBytes; done += kHugePageBytes) {
    char* const page = mapping.data() + done;
    // The kernel passes over what has no memory at all, and takes its huge page of zeros, which a
    // read would have got, for memory. One small page of its own is enough.
    NACRE_RETURN_IF_ERROR(small_pages(done, done + kPageBytes));
    if (madvise(page, kHugePageBytes, MADV_COLLAPSE) == 0) continue;
    if (errno == EINVAL) break;  // This memory or an older kernel does not allow it.
    NACRE_RETURN_IF_ERROR(small_pages(done, done + kHugePageBytes));
  }
  return small_pages(done, mapping.size());
}

void DiscardMemory(const Mapping& mapping, int fd) {
  if (mapping.borrowed() || mapping.kept()) return;
  if (fd >= 0) {
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
              static_cast<off_t>(mapping.size()));
  } else {
    madvise(mapping.data(), mapping.size(), MADV_DONTNEED);
  }
}

}  // namespace nacre::rdma
