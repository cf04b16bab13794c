#include "memnode/region_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "memnode/region_move.h"
#include "pool/wire/node_stats.h"
#include "rdma/dax.h"
#include "rdma/memory.h"
#include "util/codes/crc32c.h"
#include "util/draw_id.h"
#include "util/log.h"
#include "util/memory/round_up.h"
#include "util/uri.h"

namespace nacre::pool {
namespace {

constexpr uint64_t kMagic = 0x656c69666e72434eULL;  // "NCrnfile"
constexpr uint32_t kFormatVersion = 1;
constexpr uint64_t kHeadAt = 2048;
constexpr uint64_t kPageBytes = 4096;
/// The least size of a place for the state: a root is some hundred bytes.
constexpr uint64_t kMinStateBytes = 1 << 20;
constexpr uint64_t kMaxStateBytes = 64 << 20;

const char* const kSysfs = "/sys";
/// Peers let go of the memory when they have noticed that its process is gone, within a moment.
constexpr std::chrono::milliseconds kPatience{3000};
/// Peers change what they may do with memory in units of this.
constexpr uint64_t kMostAlignment = 2 << 20;

/// Marks of a place for the state; the number of the state is in the other bits.
constexpr uint64_t kMarkBits = uint64_t{0xffff} << 48;
constexpr uint64_t kWhole = uint64_t{0xc0de} << 48;
constexpr uint64_t kBeingWritten = uint64_t{0x3a17} << 48;

/// A device's node is the same device in whatever file system it lies.
uint64_t DeviceOf(const struct stat& attributes) {
  return S_ISCHR(attributes.st_mode) ? attributes.st_rdev : attributes.st_dev;
}

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  file >> id;
  return id;
}

}  // namespace

/// Little-endian, at kHeadAt. Constant once the file has its name.
struct RegionFile::Head {
  uint64_t magic;
  uint32_t format_version;
  uint32_t crc;  ///< CRC32C of the head with this field 0.
  uint64_t file_bytes;
  uint64_t region_bytes;
  uint64_t slab_bytes;
  uint64_t state_offset;
  uint64_t state_bytes;  ///< Size of each of the two places.
  uint64_t instance_id;
  uint64_t device;  ///< The file's own device: a copy of it is elsewhere.
  uint64_t inode;
  char boot_id[40];

  uint32_t Crc() const {
    Head copy = *this;
    copy.crc = 0;
    return Crc32c(reinterpret_cast<const char*>(&copy), sizeof(copy));
  }
};

/// Precedes the bytes of a state.
struct RegionFile::StateHead {
  uint64_t mark;  ///< 0: none was ever written here.
  uint64_t length;
  uint32_t crc;  ///< CRC32C of number and length, then of the bytes.
  uint32_t reserved;

  char* bytes() { return reinterpret_cast<char*>(this + 1); }
  uint64_t number() const { return mark & ~kMarkBits; }
  static uint32_t Crc(uint64_t number, const char* bytes, uint64_t length) {
    const uint64_t said[2] = {number, length};
    return Crc32c(bytes, length, Crc32c(reinterpret_cast<const char*>(said), sizeof(said)));
  }
};

Status RegionFile::Open(const RegionFileOptions& options, std::unique_ptr<RegionFile>* file) {
  static_assert(sizeof(Head) == 120 && sizeof(StateHead) == 24);
  std::unique_ptr<RegionFile> result(new RegionFile(options));
  if (options.in_place) {
    NACRE_RETURN_IF_ERROR(result->OpenInPlace().WithContext(result->Name()));
    *file = std::move(result);
    return Status::OK();
  }
  NACRE_RETURN_IF_ERROR(result->Lock());
  rdma::UniqueFd fd(::open(options.path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid() && errno != ENOENT) return rdma::SystemError(result->Name());
  bool usable = false;
  if (fd.valid() && options.reset) {
    // First of all, as there may be no room for two.
    fd.Reset();
    if (::unlink(options.path.c_str()) != 0) return rdma::SystemError(result->Name());
  } else if (fd.valid()) {
    NACRE_RETURN_IF_ERROR(result->Take(std::move(fd), &usable).WithContext(result->Name()));
  }
  if (!usable) NACRE_RETURN_IF_ERROR(result->Make().WithContext(result->Name()));
  *file = std::move(result);
  return Status::OK();
}

RegionFile::~RegionFile() { Unmap(); }

Status RegionFile::Lock() {
  const std::string path = options_.path + ".lock";
  // It is never handed over, so it ends with the process.
  lock_ = rdma::UniqueFd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock_.valid()) return rdma::SystemError(path);
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0) return Status::OK();
  if (errno != EWOULDBLOCK) return rdma::SystemError("lock " + path);
  return Status::Busy(Name() + ": another process has it");
}

Status RegionFile::LayOut(int fd) {
  rdma::DaxMemory memory;
  NACRE_RETURN_IF_ERROR(rdma::DescribeDax(fd, kSysfs, &memory));
  page_bytes_ = memory.alignment;
  state_offset_ = RoundUp(options_.region_bytes, kPageBytes);
  state_bytes_ =
      RoundUp(std::clamp(options_.region_bytes / 256, kMinStateBytes, kMaxStateBytes), kPageBytes);
  file_bytes_ = RoundUp(state_offset_ + 2 * state_bytes_, page_bytes_);
  return Status::OK();
}

Status RegionFile::Reserve(int fd) const {
  struct statfs system {};
  if (::fstatfs(fd, &system) != 0) return rdma::SystemError("look at its file system");
  if (system.f_type == TMPFS_MAGIC) {
    // The kernel would rather end processes than say no.
    NACRE_RETURN_IF_ERROR(rdma::MappingTable::Process()->CheckRoomFor(file_bytes_));
  }
  if (::ftruncate(fd, static_cast<off_t>(file_bytes_)) != 0) {
    return rdma::SystemError("make it of " + FormatBytes(file_bytes_));
  }
  // The file gets all its memory now: a process that touches missing memory later is killed.
  while (::fallocate(fd, 0, 0, static_cast<off_t>(file_bytes_)) != 0) {
    if (errno == EINTR) continue;
    if (errno != ENOSPC) return rdma::SystemError("take " + FormatBytes(file_bytes_));
    const uint64_t left =
        static_cast<uint64_t>(system.f_bavail) * static_cast<uint64_t>(system.f_bsize);
    return Status::NoSpace(fmt::format("it takes {}, and its file system has room for {}",
                                       FormatBytes(file_bytes_), FormatBytes(left)));
  }
  return Status::OK();
}

Status RegionFile::Map(rdma::UniqueFd fd) {
  void* mapped = ::mmap(nullptr, file_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) return rdma::SystemError("map " + FormatBytes(file_bytes_));
  Unmap();
  fd_ = std::move(fd);
  data_ = static_cast<char*>(mapped);
  ::madvise(data_, file_bytes_, MADV_DONTFORK);
  return Status::OK();
}

void RegionFile::Unmap() {
  if (data_ != nullptr) ::munmap(std::exchange(data_, nullptr), file_bytes_);
}

void RegionFile::WriteHead() {
  struct stat attributes {};
  ::fstat(fd_.get(), &attributes);
  Head head{.magic = kMagic,
            .format_version = kFormatVersion,
            .crc = 0,
            .file_bytes = file_bytes_,
            .region_bytes = options_.region_bytes,
            .slab_bytes = options_.slab_bytes,
            .state_offset = state_offset_,
            .state_bytes = state_bytes_,
            .instance_id = instance_id_,
            .device = DeviceOf(attributes),
            .inode = attributes.st_ino,
            .boot_id = {}};
  const std::string boot_id = BootId();
  std::memcpy(head.boot_id, boot_id.data(), std::min(boot_id.size(), sizeof(head.boot_id)));
  head.crc = head.Crc();
  std::memcpy(data_ + kHeadAt, &head, sizeof(head));
  const RegionMove none{.moved_from = file_bytes_, .to_inode = 0};
  std::memcpy(data_ + RegionMove::kAt, &none, sizeof(none));
  std::memset(data_ + rdma::Device::kMovedAwayAt, 0, sizeof(uint64_t));
}

Status RegionFile::Make() {
  // What a process that was killed meanwhile left, or what is to be reset.
  const std::string path = options_.path + ".new";
  ::unlink(path.c_str());
  rdma::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return rdma::SystemError("make it");
  const auto fill = [&]() -> Status {
    NACRE_RETURN_IF_ERROR(LayOut(fd.get()));
    NACRE_RETURN_IF_ERROR(Reserve(fd.get()));
    NACRE_RETURN_IF_ERROR(DrawId(&instance_id_));
    NACRE_RETURN_IF_ERROR(Map(std::move(fd)));
    WriteHead();
    NACRE_RETURN_IF_ERROR(Save(std::string()));
    // Only a whole file gets the name.
    if (::rename(path.c_str(), options_.path.c_str()) != 0) return rdma::SystemError("name it");
    return Status::OK();
  };
  Status status = fill();
  if (!status.ok()) ::unlink(path.c_str());
  return status;
}

Status RegionFile::CheckHead(const Head& head) const {
  const char* const remedy = " (--region_reset makes a new, empty one)";
  if (head.magic != kMagic) {
    return Status::Corruption(
        fmt::format("it is no region file, or its head is damaged{}", remedy));
  }
  if (head.format_version > kFormatVersion) {
    return Status::NotSupported(fmt::format("it has format {}, this program knows {}",
                                            head.format_version, kFormatVersion));
  }
  if (head.crc != head.Crc()) {
    return Status::Corruption(fmt::format("its head is damaged{}", remedy));
  }
  if (head.region_bytes != options_.region_bytes || head.slab_bytes != options_.slab_bytes) {
    return Status::InvalidArgument(
        fmt::format("it has {} of slabs of {}, {} of slabs of {} are asked for{}",
                    FormatBytes(head.region_bytes), FormatBytes(head.slab_bytes),
                    FormatBytes(options_.region_bytes), FormatBytes(options_.slab_bytes), remedy));
  }
  return Status::OK();
}

bool RegionFile::IsOfThisBoot(const Head& head) const {
  if (BootId() == std::string(head.boot_id, ::strnlen(head.boot_id, sizeof(head.boot_id)))) {
    return true;
  }
  Log(options_.log, LogLevel::kWarn,
      "{}: the machine was started anew since it was written, so something may be missing: begins "
      "empty, as another instance than {:x}",
      Name(), head.instance_id);
  return false;
}

Status RegionFile::Take(rdma::UniqueFd fd, bool* usable) {
  *usable = false;
  struct stat attributes {};
  if (::fstat(fd.get(), &attributes) != 0) return rdma::SystemError("look at it");
  if (!S_ISREG(attributes.st_mode)) return Status::InvalidArgument("it is no regular file");
  Head head{};
  if (::pread(fd.get(), &head, sizeof(head), kHeadAt) != sizeof(head)) head.magic = 0;
  NACRE_RETURN_IF_ERROR(CheckHead(head));
  if (head.device != DeviceOf(attributes) || head.inode != attributes.st_ino) {
    return Status::InvalidArgument(
        "it is a copy of a region file, or was moved to another file system: what it holds may be "
        "older than what the node had (--region_reset makes a new, empty one)");
  }
  NACRE_RETURN_IF_ERROR(LayOut(fd.get()));
  if (head.file_bytes != file_bytes_ || head.state_offset != state_offset_ ||
      head.state_bytes != state_bytes_ ||
      static_cast<uint64_t>(attributes.st_size) != file_bytes_) {
    return Status::Corruption(fmt::format(
        "it has {} bytes where there should be {} (--region_reset makes a new, empty one)",
        attributes.st_size, head.file_bytes));
  }
  if (!IsOfThisBoot(head)) return Status::OK();
  instance_id_ = head.instance_id;
  NACRE_RETURN_IF_ERROR(Map(std::move(fd)));
  RegionMove move{};
  std::memcpy(&move, data_ + RegionMove::kAt, sizeof(move));
  const bool begun = move.moved_from != file_bytes_;
  if (begun || IsFileShared(fd_.get(), options_.clock)) {
    const uint64_t started = options_.clock->NowNanos();
    rdma::UniqueFd to;
    NACRE_RETURN_IF_ERROR(
        MoveContent(options_.path, fd_.get(), data_, file_bytes_, page_bytes_, &to));
    NACRE_RETURN_IF_ERROR(Map(std::move(to)));
    WriteHead();
    if (::rename((options_.path + ".new").c_str(), options_.path.c_str()) != 0) {
      return rdma::SystemError("name it");
    }
    Log(options_.log, LogLevel::kInfo,
        "{}: peers of the last process have it mapped; moved {} into a new file in {} ms", Name(),
        FormatBytes(file_bytes_), (options_.clock->NowNanos() - started) / 1'000'000);
  }
  NACRE_RETURN_IF_ERROR(FindState());
  keeping_ = Keeping::kWarm;
  *usable = true;
  return Status::OK();
}

// ---- In place ----------------------------------------------------------------------------------

Status RegionFile::OpenInPlace() {
  rdma::UniqueFd fd(::open(options_.path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd.valid()) return rdma::SystemError("open it");
  rdma::DaxMemory memory;
  NACRE_RETURN_IF_ERROR(rdma::DescribeDax(fd.get(), kSysfs, &memory));
  NACRE_RETURN_IF_ERROR(LayOut(fd.get()));
  if (file_bytes_ > memory.bytes) {
    return Status::InvalidArgument(
        fmt::format("it has {} bytes, and {} are needed: {} for the region, the rest for what the "
                    "node must not forget",
                    memory.bytes, file_bytes_, options_.region_bytes));
  }
  if (memory.alignment > kMostAlignment || options_.region_bytes % memory.alignment != 0) {
    return Status::NotSupported(fmt::format(
        "its pages have {}, which a region of {} bytes does not fit (--slab_size of a "
        "multiple of it, up to {})",
        FormatBytes(memory.alignment), options_.region_bytes, FormatBytes(kMostAlignment)));
  }
  // The lock is the descriptor's, which is handed to peers, and so lasts as long as a mapping.
  const Deadline deadline = Deadline::After(options_.clock, kPatience);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return rdma::SystemError("lock it");
    if (deadline.Expired()) {
      return Status::Busy(
          "another process has it: a node, or a stopped peer of the last one that still has it "
          "mapped");
    }
    options_.clock->SleepFor(std::chrono::milliseconds(5));
  }
  // A file gets all its memory now: a process that touches missing memory later is killed.
  if (!memory.device && ::fallocate(fd.get(), 0, 0, static_cast<off_t>(file_bytes_)) != 0) {
    return errno == ENOSPC ? Status::NoSpace("its file system has no room for all of it")
                           : rdma::SystemError("take " + FormatBytes(file_bytes_));
  }
  struct stat attributes {};
  if (::fstat(fd.get(), &attributes) != 0) return rdma::SystemError("look at it");
  NACRE_RETURN_IF_ERROR(Map(std::move(fd)));
  Head head{};
  std::memcpy(&head, data_ + kHeadAt, sizeof(head));
  const bool blank = std::all_of(data_, data_ + kPageBytes, [](char byte) { return byte == 0; });
  if (options_.reset || blank) return FormInPlace();
  NACRE_RETURN_IF_ERROR(CheckHead(head));
  if (head.device != DeviceOf(attributes) || (!memory.device && head.inode != attributes.st_ino)) {
    return Status::InvalidArgument(
        "it is a copy of another node's memory: what it holds may be older than what the node had "
        "(--region_reset begins empty)");
  }
  if (!IsOfThisBoot(head)) return FormInPlace();
  instance_id_ = head.instance_id;
  NACRE_RETURN_IF_ERROR(FindState());
  keeping_ = Keeping::kWarm;
  return Status::OK();
}

Status RegionFile::FormInPlace() {
  // Nothing is taken for a region before all of it is there: the first page comes last.
  std::memset(data_, 0, std::max(options_.head_bytes, kPageBytes));
  for (int place = 0; place < 2; ++place) std::memset(StateAt(place), 0, sizeof(StateHead));
  NACRE_RETURN_IF_ERROR(DrawId(&instance_id_));
  NACRE_RETURN_IF_ERROR(Save(std::string()));
  WriteHead();
  return Status::OK();
}

// ---- State ------------------------------------------------------------------------------------

RegionFile::StateHead* RegionFile::StateAt(int place) const {
  return reinterpret_cast<StateHead*>(data_ + state_offset_ +
                                      static_cast<uint64_t>(place) * state_bytes_);
}

Status RegionFile::FindState() {
  // A place that was being written has the number after that of the other one, which is whole.
  const auto damaged = [] {
    return Status::Corruption("the state of the node is damaged (--region_reset begins empty)");
  };
  place_ = -1;
  uint64_t latest = 0;
  for (int place = 0; place < 2; ++place) {
    StateHead* const head = StateAt(place);
    if (head->mark == 0) continue;
    latest = std::max(latest, head->number());
    if ((head->mark & kMarkBits) == kBeingWritten) continue;
    if ((head->mark & kMarkBits) != kWhole || head->length > state_bytes_ - sizeof(StateHead) ||
        head->crc != StateHead::Crc(head->number(), head->bytes(), head->length)) {
      return damaged();
    }
    if (place_ >= 0 && StateAt(place_)->number() > head->number()) continue;
    place_ = place;
  }
  if (place_ < 0 || latest - StateAt(place_)->number() > 1) return damaged();
  state_number_ = StateAt(place_)->number();
  return Status::OK();
}

Slice RegionFile::state() const {
  StateHead* const head = StateAt(place_);
  return {head->bytes(), head->length};
}

Status RegionFile::Save(const std::string& state) {
  const uint64_t room = state_bytes_ - sizeof(StateHead);
  if (state.size() > room) {
    return Status::NoSpace(fmt::format("{}: what the node must not forget takes {} bytes of {}",
                                       Name(), state.size(), room));
  }
  const int place = 1 - place_;
  const uint64_t number = state_number_ + 1;
  StateHead* const head = StateAt(place);
  const std::atomic_ref<uint64_t> mark(head->mark);
  mark.store(kBeingWritten | number, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  head->length = state.size();
  std::memcpy(head->bytes(), state.data(), state.size());
  head->crc = StateHead::Crc(number, state.data(), state.size());
  // Release: a mark that says so finds all before it, whenever the process ends.
  mark.store(kWhole | number, std::memory_order_release);
  place_ = place;
  state_number_ = number;
  return Status::OK();
}

}  // namespace nacre::pool
