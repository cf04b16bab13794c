// A disk that loses what was not synced, for processes that are killed: a library for LD_PRELOAD,
// or a part of a simulation. What a process writes to files below the directory that
// NACRE_LOSSY_DISK names stays in its memory until it calls fsync or fdatasync, or opens a file
// there, and so is gone with it. As on a real disk, some of it may be there nevertheless: now and
// then a beginning is written at once, by the seed NACRE_LOSSY_SEED. Names are there as soon as
// they are made.
//
// It does not use the project's code: it is loaded into processes of all kinds.

#include "tests/archive/lossy_disk.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace {

template <typename Function>
Function* Real(const char* name, Function* /*type*/) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}
#define REAL(function) Real(#function, &function)

class LossyDisk {
 public:
  static LossyDisk& Get() {
    static auto* const disk = new LossyDisk;  // Never destroyed: calls come until the end.
    return *disk;
  }

  bool Has(const char* path) const {
    return !folder_.empty() && std::strncmp(path, folder_.c_str(), folder_.size()) == 0;
  }
  void Opened(int descriptor) {
    const std::lock_guard lock(mutex_);
    unsynced_[descriptor].clear();
  }
  /// False: the descriptor is none of the disk's.
  bool Write(int descriptor, const void* bytes, size_t n) {
    const std::lock_guard lock(mutex_);
    const auto file = unsynced_.find(descriptor);
    if (file == unsynced_.end()) return false;
    file->second.append(static_cast<const char*>(bytes), n);
    random_ = random_ * 6364136223846793005 + 1442695040888963407;
    const uint64_t chance = random_ >> 33;
    if (chance % 4 == 0) WriteOut(descriptor, &file->second, chance % file->second.size());
    return true;
  }
  void Sync(int descriptor) {
    const std::lock_guard lock(mutex_);
    const auto file = unsynced_.find(descriptor);
    if (file != unsynced_.end()) WriteOut(descriptor, &file->second, file->second.size());
  }
  void Become(const char* folder, uint64_t seed) {
    folder_ = folder;
    random_ = seed;
  }
  void Crash() {
    static auto* const real = REAL(close);
    const std::lock_guard lock(mutex_);
    for (const auto& [descriptor, bytes] : unsynced_) real(descriptor);
    unsynced_.clear();
  }
  void SyncAll() {
    const std::lock_guard lock(mutex_);
    for (auto& [descriptor, bytes] : unsynced_) WriteOut(descriptor, &bytes, bytes.size());
  }
  /// What was written stays in the system's memory, as far as the process can tell: so it is lost
  /// only if the process is killed before.
  void Closed(int descriptor) {
    const std::lock_guard lock(mutex_);
    const auto file = unsynced_.find(descriptor);
    if (file == unsynced_.end()) return;
    WriteOut(descriptor, &file->second, file->second.size());
    unsynced_.erase(file);
  }

 private:
  LossyDisk() {
    if (const char* const folder = std::getenv("NACRE_LOSSY_DISK")) folder_ = folder;
    if (const char* const seed = std::getenv("NACRE_LOSSY_SEED")) {
      random_ = std::strtoull(seed, nullptr, 10);
    }
  }
  static void WriteOut(int descriptor, std::string* bytes, size_t n) {
    static auto* const real = REAL(write);
    for (size_t done = 0; done < n;) {
      const ssize_t written = real(descriptor, bytes->data() + done, n - done);
      if (written <= 0) std::abort();  // The test's directory is full: nothing can be told.
      done += static_cast<size_t>(written);
    }
    bytes->erase(0, n);
  }

  std::string folder_;
  uint64_t random_ = 1;
  std::mutex mutex_;
  std::map<int, std::string> unsynced_;  // By descriptor; those of the disk are in it.
};

}  // namespace

// ---- What the system has
// -------------------------------------------------------------------------

extern "C" {

int open(const char* path, int flags, ...) {
  static auto* const real = REAL(open);
  mode_t mode = 0;
  if ((flags & O_CREAT) != 0) {
    va_list arguments;
    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t);
    va_end(arguments);
  }
  LossyDisk& disk = LossyDisk::Get();
  if (!disk.Has(path)) return real(path, flags, mode);
  // What another descriptor has in memory is read and appended to through this one.
  disk.SyncAll();
  const int descriptor = real(path, flags, mode);
  if (descriptor >= 0 && (flags & O_ACCMODE) != O_RDONLY) disk.Opened(descriptor);
  return descriptor;
}

int open64(const char* path, int flags, ...) __attribute__((alias("open")));

ssize_t write(int descriptor, const void* bytes, size_t n) {
  static auto* const real = REAL(write);
  if (n > 0 && LossyDisk::Get().Write(descriptor, bytes, n)) return static_cast<ssize_t>(n);
  return real(descriptor, bytes, n);
}

int fsync(int descriptor) {
  static auto* const real = REAL(fsync);
  LossyDisk::Get().Sync(descriptor);
  return real(descriptor);
}

int fdatasync(int descriptor) {
  static auto* const real = REAL(fdatasync);
  LossyDisk::Get().Sync(descriptor);
  return real(descriptor);
}

int ftruncate(int descriptor, off_t bytes) {
  static auto* const real = REAL(ftruncate);
  LossyDisk::Get().Sync(descriptor);
  return real(descriptor, bytes);
}

int close(int descriptor) {
  static auto* const real = REAL(close);
  LossyDisk::Get().Closed(descriptor);
  return real(descriptor);
}

void nacre_lossy_disk(const char* folder, uint64_t seed) { LossyDisk::Get().Become(folder, seed); }

void nacre_lossy_disk_crash(void) { LossyDisk::Get().Crash(); }

}  // extern "C"
