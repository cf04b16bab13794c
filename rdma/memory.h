#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "nacre/status.h"
#include "rdma/unique_fd.h"
#include "util/mutex.h"

namespace nacre::rdma {

// Memory that processes share, and where this process has it mapped.
//
// One object (a device's control block, a region, a connection's rings) is mapped at most once per
// process, however many connections lead to it and whichever of them is the owner's: page tables
// and TLB entries are shared, a second mapping would fault all its pages again, and the two ends
// of a connection inside one process synchronise on the same addresses.

/// Names a shared object among all processes: the owning device's random id, and a number within
/// it (see the k...Object helpers).
struct ObjectName {
  uint64_t device = 0;
  uint64_t object = 0;
  auto operator<=>(const ObjectName&) const = default;
};

inline constexpr uint64_t kControlObject = uint64_t{1} << 32;
inline uint64_t RegionObject(uint32_t key) { return key; }
/// A region of another process whose descriptor lets this one read only.
inline uint64_t ReadOnlyRegionObject(uint32_t key) { return (uint64_t{3} << 32) | key; }
inline uint64_t ConnectionObject(uint32_t number) { return (uint64_t{2} << 32) | number; }

/// Mapped memory; unmapped on destruction. Immutable but for the bytes it maps.
class Mapping {
 public:
  Mapping(ObjectName name, char* data, size_t size, bool created_here)
      : name_(name), data_(data), size_(size), created_here_(created_here) {}
  ~Mapping();
  /// Refers to memory that another object has mapped and that outlives this one.
  static std::shared_ptr<Mapping> Borrow(char* data, size_t size);
  /// Memory of a file that keeps it, mapped here.
  static std::shared_ptr<Mapping> OfFile(ObjectName name, char* data, size_t size);
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  char* data() const { return data_; }
  /// Bytes mapped: what was asked for, rounded up to whole pages.
  size_t size() const { return size_; }
  ObjectName name() const { return name_; }
  /// False for an object of another process.
  bool created_here() const { return created_here_; }
  bool borrowed() const { return borrowed_; }
  /// Whether the contents outlive all mappings.
  bool kept() const { return kept_; }
  /// Lets this process write to a part that was mapped for reading only, and to the rest of its
  /// pages. This is never undone, as a copy may be under way when the right to it ends. `IOError`
  /// if the system refuses.
  Status MakeWritable(size_t offset, size_t size) const;
  /// The memory has Device::kMovedAwayAt, and its owner is gone: puts other memory in its place,
  /// where that word is set, so that this process can reach it no more, whatever still refers here.
  /// What copies from or to it meanwhile does no harm, and finds that it does not count. If the
  /// system refuses, the memory stays until the last user lets it go.
  void TakeAway() const;
  /// Bytes that occupy memory now.
  size_t ResidentBytes() const;

 private:
  friend class MappingTable;

  const ObjectName name_;
  char* const data_;
  const size_t size_;
  const bool created_here_;
  bool borrowed_ = false;
  bool kept_ = false;
  mutable std::atomic<bool> taken_away_{false};
};

/// The mappings of this process, by name. Process-wide by nature: it mirrors the address space.
/// Thread safety: all methods may be called from many threads.
class MappingTable {
 public:
  static MappingTable* Process();

  /// Null if there is none.
  std::shared_ptr<Mapping> Find(ObjectName name) EXCLUDES(mutex_);
  /// The mapping that exists, else maps `size` bytes of `fd`. `IOError` if the file is smaller,
  /// is a memfd that may shrink (a peer could then kill this process by a SIGBUS), or cannot be
  /// mapped. Of a file with a name, which cannot be sealed, its peer vouches for the size.
  Status FindOrMap(ObjectName name, int fd, size_t size, bool writable,
                   std::shared_ptr<Mapping>* mapping) EXCLUDES(mutex_);
  void Insert(const std::shared_ptr<Mapping>& mapping) EXCLUDES(mutex_);
  /// `NoSpace` naming both numbers unless `size` more bytes fit into what the machine has
  /// available beyond what this process's own objects will still fill up.
  Status CheckRoomFor(size_t size) EXCLUDES(mutex_);

 private:
  friend class Mapping;
  void Erase(ObjectName name) EXCLUDES(mutex_);

  Mutex mutex_;
  std::map<ObjectName, std::weak_ptr<Mapping>> mappings_ GUARDED_BY(mutex_);
};

/// What a new shared object is made of.
enum class MemoryKind : uint8_t {
  /// A sealed memfd, in 2 MiB pages where the kernel grants them to shared memory. Its mode lets
  /// other users that are handed a descriptor open no other one to write.
  kShareable,
  kPrivate,  ///< Anonymous, for peers in this process only: transparent huge pages always work.
};

/// Creates zeroed memory, maps it and enters it into the process's table. `fd` stays invalid for
/// kPrivate. `IOError` with the system's reason.
Status CreateMemory(ObjectName name, size_t size, MemoryKind kind, UniqueFd* fd,
                    std::shared_ptr<Mapping>* mapping);

/// Maps the first `size` bytes of a file that keeps them, and enters them into the process's table.
/// `IOError` with the system's reason, also if the file is smaller.
Status MapFile(ObjectName name, int fd, size_t size, std::shared_ptr<Mapping>* mapping);

/// Has the kernel give memory for all of the mapping, in huge pages as far as it can. Safe beside
/// any access. `IOError` if there is not enough.
Status PopulateMemory(const Mapping& mapping);

/// Gives the pages of an object that is neither borrowed nor kept back to the system at once,
/// though peers may have it mapped: later accesses see zeros.
void DiscardMemory(const Mapping& mapping, int fd);

/// A random 64-bit number that no other device has.
uint64_t NewDeviceId();

/// "what: reason" for the current errno.
Status SystemError(const std::string& what);

}  // namespace nacre::rdma
