#include "adapters/rocksdb_fs/remote_file.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "pool/read/point_reader.h"

namespace nacre::rocksfs {
namespace {

/// Small files are many; a large one shall lie in few pieces.
constexpr uint64_t kFirstExtentBytes = 256 << 10;
constexpr uint64_t kLargestExtentBytes = 8 << 20;
constexpr uint64_t kExtentGrowth = 4;

uint64_t WallNanos() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace

const FileExtent& FileMap::Find(uint64_t offset) const {
  auto behind =
      std::upper_bound(extents.begin(), extents.end(), offset,
                       [](uint64_t at, const FileExtent& extent) { return at < extent.begin; });
  return *--behind;
}

RemoteFile::~RemoteFile() {
  MutexLock lock(&mutex_);
  for (const FileExtent& extent : map_.extents) space_->Free(extent);
}

uint64_t RemoteFile::size() const {
  if (const FileMap* map = complete_map()) return map->size;
  MutexLock lock(&mutex_);
  return map_.size;
}

Status RemoteFile::Extend(uint64_t bytes, FileExtent* extent) {
  uint64_t begin = 0;
  uint64_t wanted = kFirstExtentBytes;
  {
    MutexLock lock(&mutex_);
    if (!map_.extents.empty()) {
      const FileExtent& last = map_.extents.back();
      begin = last.end();
      wanted = std::min(last.bytes * kExtentGrowth, kLargestExtentBytes);
    }
  }
  // May ask a node for memory. No other thread makes the file longer meanwhile.
  NACRE_RETURN_IF_ERROR(space_->Reserve(begin, std::max(wanted, bytes), extent));
  MutexLock lock(&mutex_);
  map_.extents.push_back(*extent);
  return Status::OK();
}

void RemoteFile::Publish(uint64_t bytes) {
  modified_nanos_.store(WallNanos(), std::memory_order_relaxed);
  MutexLock lock(&mutex_);
  map_.size = bytes;
}

void RemoteFile::Finish(uint64_t bytes) {
  modified_nanos_.store(WallNanos(), std::memory_order_relaxed);
  MutexLock lock(&mutex_);
  map_.size = bytes;
  while (!map_.extents.empty() && map_.extents.back().begin >= bytes) {
    space_->Free(map_.extents.back());
    map_.extents.pop_back();
  }
  if (!map_.extents.empty()) {
    FileExtent& last = map_.extents.back();
    space_->Trim(&last, bytes - last.begin);
  }
  complete_.store(&map_, std::memory_order_release);
}

const FileMap& RemoteFile::Map(FileMap* copy) const {
  if (const FileMap* map = complete_map()) return *map;
  MutexLock lock(&mutex_);
  *copy = map_;
  return *copy;
}

namespace {

using pool::PointRead;
using pool::PointReader;

/// One request; a longer read is several, so that they land in memory that the processor's cache
/// holds until they are copied from there.
constexpr size_t kRequestBytes = 64 << 10;
constexpr size_t kRequestsAtOnce = 16;
constexpr size_t kBytesAtOnce = 512 << 10;

RemoteAddr Locate(const FileExtent& extent, size_t copy, uint64_t offset) {
  RemoteAddr address = extent.placement.fragments[copy].start;
  address.offset = (address.offset + (offset - extent.begin)) & ((uint64_t{1} << 48) - 1);
  return address;
}

/// The first copy on a node that is there.
size_t LivingCopy(const FileSpace& space, const FileExtent& extent) {
  const auto& copies = extent.placement.fragments;
  if (copies.size() == 1) return 0;
  for (size_t i = 0; i < copies.size(); ++i) {
    if (space.client()->alive(copies[i].start.node)) return i;
  }
  return 0;
}

/// Requests that are in flight together.
class Requests {
 public:
  Requests(const FileSpace* space, const FileMap* map) : space_(space), map_(map) {}

  /// Whether as many are in flight as may be.
  bool full() const { return count_ == kRequestsAtOnce || bytes_ >= kBytesAtOnce; }
  bool empty() const { return count_ == 0; }

  /// As many bytes of [offset, offset + n), into `to`, as one request may have. `*status` is told
  /// of failures, the first one first.
  size_t Add(uint64_t offset, size_t n, char* to, Status* status) {
    const FileExtent& extent = map_->Find(offset);
    const size_t bytes = std::min({n, kRequestBytes, size_t{extent.end() - offset}});
    const size_t copy = LivingCopy(*space_, extent);
    reads_[count_].from = Locate(extent, copy, offset);
    reads_[count_].length = static_cast<uint32_t>(bytes);
    wanted_[count_] = {
        .extent = &extent, .copy = copy, .offset = offset, .to = to, .status = status};
    ++count_;
    bytes_ += bytes;
    return bytes;
  }

  void Run() {
    {
      PointReader reader(space_->client()->point_sessions());
      reader.ReadAll(std::span(reads_.data(), count_));
      for (size_t i = 0; i < count_; ++i) {
        if (reads_[i].status.ok()) [[likely]]
          std::memcpy(wanted_[i].to, reads_[i].data, reads_[i].length);
      }
    }
    for (size_t i = 0; i < count_; ++i) {
      if (!reads_[i].status.ok()) [[unlikely]]
        TurnToOthers(wanted_[i], &reads_[i]);
    }
    count_ = 0;
    bytes_ = 0;
  }

 private:
  struct Wanted {
    const FileExtent* extent;
    size_t copy;  ///< The copy that was asked.
    uint64_t offset;
    char* to;
    Status* status;
  };

  /// Asks the other copies, one after the other.
  void TurnToOthers(const Wanted& wanted, PointRead* read) {
    const size_t copies = wanted.extent->placement.fragments.size();
    PointReader reader(space_->client()->point_sessions());
    for (size_t i = 1; i < copies && !read->status.ok(); ++i) {
      read->from = Locate(*wanted.extent, (wanted.copy + i) % copies, wanted.offset);
      reader.ReadAll(std::span(read, 1));
    }
    if (read->status.ok()) {
      std::memcpy(wanted.to, read->data, read->length);
    } else if (wanted.status->ok()) {
      *wanted.status = read->status;
    }
    // The next request in this place begins anew.
    read->status = Status::OK();
  }

  const FileSpace* const space_;
  const FileMap* const map_;
  size_t count_ = 0;
  size_t bytes_ = 0;
  std::array<PointRead, kRequestsAtOnce> reads_;
  std::array<Wanted, kRequestsAtOnce> wanted_;
};

/// How many of `n` bytes from `offset` on there are.
size_t Within(const FileMap& map, uint64_t offset, size_t n) {
  return offset >= map.size ? 0 : std::min<uint64_t>(n, map.size - offset);
}

/// What most reads are: one request of a complete file. False: go the long way.
bool ReadBlock(const RemoteFile& file, uint64_t offset, size_t n, char* to) {
  const FileMap* const map = file.complete_map();
  if (map == nullptr || n > kRequestBytes || n == 0 || Within(*map, offset, n) < n) return false;
  const FileExtent& extent = map->Find(offset);
  if (extent.end() - offset < n) return false;
  PointRead read;
  read.from = Locate(extent, LivingCopy(*file.space(), extent), offset);
  read.length = static_cast<uint32_t>(n);
  PointReader reader(file.space()->client()->point_sessions());
  reader.ReadAll(std::span(&read, 1));
  if (!read.status.ok()) [[unlikely]]
    return false;
  std::memcpy(to, read.data, n);
  return true;
}

}  // namespace

Status ReadFile(const RemoteFile& file, uint64_t offset, size_t n, char* to, size_t* read) {
  if (ReadBlock(file, offset, n, to)) [[likely]] {
    *read = n;
    return Status::OK();
  }
  FileRead one;
  one.offset = offset;
  one.n = n;
  one.to = to;
  ReadFile(file, &one, 1);
  *read = one.read;
  return one.status;
}

void ReadFile(const RemoteFile& file, FileRead* reads, size_t count) {
  FileMap copy;
  const FileMap& map = file.Map(&copy);
  Requests requests(file.space(), &map);
  for (size_t i = 0; i < count; ++i) {
    FileRead& read = reads[i];
    read.status = Status::OK();
    read.read = Within(map, read.offset, read.n);
    for (size_t done = 0; done < read.read;) {
      done += requests.Add(read.offset + done, read.read - done, read.to + done, &read.status);
      if (requests.full()) requests.Run();
    }
  }
  if (!requests.empty()) requests.Run();
}

}  // namespace nacre::rocksfs
