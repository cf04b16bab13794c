#include "rdma/verbs/region.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "util/log.h"
#include "util/mutex.h"
#include "util/uri.h"

namespace nacre::rdma {

namespace {

/// What one thread populates at a time, and the size from which on several are worth starting.
constexpr size_t kStepBytes = size_t{256} << 20;
/// The kernel clears pages at some GB/s a core; more threads than this meet the memory's limit.
constexpr size_t kMaxThreads = 8;
constexpr size_t kTellEveryBytes = size_t{8} << 30;
/// 48 bits of address are all there are.
constexpr uint32_t kOnePieceShift = 48;

int AccessFlags(const Adapter& adapter, Access access) {
  int flags = IBV_ACCESS_LOCAL_WRITE;
  if (access == Access::kLocalOnly) return flags;
  flags |= IBV_ACCESS_REMOTE_READ;
  if (access == Access::kRemoteAll) {
    flags |= IBV_ACCESS_REMOTE_WRITE;
    if (adapter.has_atomics()) flags |= IBV_ACCESS_REMOTE_ATOMIC;
  }
  if (adapter.parameters().relaxed_ordering) flags |= IBV_ACCESS_RELAXED_ORDERING;
  return flags;
}

Status RegistrationError(const Adapter& adapter, size_t size, int error) {
  std::string text =
      "ibv_reg_mr of " + FormatBytes(size) + " on " + adapter.name() + ": " + std::strerror(error);
  rlimit limit{};
  if (error == ENOMEM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur < size) {
    text += "; this process may lock " + FormatBytes(limit.rlim_cur) +
            " ('ulimit -l unlimited' or LimitMEMLOCK=infinity lifts that)";
  }
  return error == ENOMEM ? Status::NoSpace(text) : Status::IOError(text);
}

Status RegisterPart(const Adapter& adapter, char* data, size_t size, Access access,
                    UniqueMemoryRegion* part) {
  const int flags = AccessFlags(adapter, access);
  part->reset(ibv_reg_mr(adapter.protection_domain(), data, size, flags));
  return *part != nullptr ? Status::OK() : RegistrationError(adapter, size, errno);
}

/// Runs `step` for each of `count` numbers in several threads; the first failure.
Status InParallel(size_t count, const std::function<Status(size_t)>& step) {
  std::atomic<size_t> next{0};
  Mutex mutex;
  Status first;
  const auto work = [&] {
    for (size_t i = next++; i < count; i = next++) {
      Status status = step(i);
      if (status.ok()) continue;
      MutexLock lock(&mutex);
      if (first.ok()) first = std::move(status);
      next = count;
    }
  };
  std::vector<std::thread> threads;
  const size_t wanted = std::min({count, kMaxThreads, size_t{std::thread::hardware_concurrency()}});
  for (size_t i = 1; i < wanted; i++) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return first;
}

/// Registering pins all pages, and would have them cleared one after another.
Status Populate(const Mapping& mapping, const std::string& where, Logger* logger) {
  std::atomic<size_t> done{0};
  const size_t steps = (mapping.size() + kStepBytes - 1) / kStepBytes;
  return InParallel(steps, [&](size_t i) {
    const size_t begin = i * kStepBytes;
    const size_t size = std::min(kStepBytes, mapping.size() - begin);
    if (madvise(mapping.data() + begin, size, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
      const std::string text = "populate " + FormatBytes(size);
      return errno == ENOMEM ? Status::NoSpace(text + ": out of memory") : SystemError(text);
    }
    const size_t before = done.fetch_add(size);
    if (before / kTellEveryBytes != (before + size) / kTellEveryBytes) {
      Log(logger, LogLevel::kInfo, "{}: {} of {} of a region are there", where,
          FormatBytes(before + size), FormatBytes(mapping.size()));
    }
    return Status::OK();
  });
}

class VerbsGrant final : public RegionGrant {
 public:
  VerbsGrant(RemoteKey key, UniqueMemoryRegion part, std::shared_ptr<SpentKeys> spent_keys)
      : key_(key), part_(std::move(part)), spent_keys_(std::move(spent_keys)) {}
  ~VerbsGrant() override { End(); }
  RemoteKey remote_key() const override { return key_; }
  Status Revoke() override {
    End();
    return Status::OK();
  }

 private:
  void End() {
    if (part_ == nullptr) return;
    // This must precede the adapter's next use of the key.
    spent_keys_->Spend(key_.key);
    part_.reset();
  }

  const RemoteKey key_;
  UniqueMemoryRegion part_;
  const std::shared_ptr<SpentKeys> spent_keys_;
};

}  // namespace

Status VerbsRegion::Allocate(const Adapter& adapter, size_t size, Access access, Logger* logger,
                             std::unique_ptr<MemoryRegion>* region) {
  if (size == 0) return Status::InvalidArgument("a region of 0 bytes");
  NACRE_RETURN_IF_ERROR(MappingTable::Process()->CheckRoomFor(size));
  UniqueFd no_fd;
  std::shared_ptr<Mapping> mapping;
  NACRE_RETURN_IF_ERROR(
      CreateMemory({NewDeviceId(), 0}, size, MemoryKind::kPrivate, &no_fd, &mapping));
  NACRE_RETURN_IF_ERROR(nacre::rdma::Populate(*mapping, adapter.name(), logger));
  return Make(adapter, std::move(mapping), size, access, logger, region);
}

Status VerbsRegion::Map(const Adapter& adapter, int fd, size_t size, Access access, Logger* logger,
                        std::unique_ptr<MemoryRegion>* region) {
  if (size == 0) return Status::InvalidArgument("a region of 0 bytes");
  std::shared_ptr<Mapping> mapping;
  NACRE_RETURN_IF_ERROR(MapFile({NewDeviceId(), 0}, fd, size, &mapping));
  NACRE_RETURN_IF_ERROR(nacre::rdma::Populate(*mapping, adapter.name(), logger));
  return Make(adapter, std::move(mapping), size, access, logger, region);
}

Status VerbsRegion::RegisterLocal(const Adapter& adapter, char* data, size_t size, Logger* logger,
                                  std::unique_ptr<MemoryRegion>* region) {
  if (size == 0) return Status::InvalidArgument("a region of 0 bytes");
  return Make(adapter, Mapping::Borrow(data, size), size, Access::kLocalOnly, logger, region);
}

Status VerbsRegion::Make(const Adapter& adapter, std::shared_ptr<Mapping> mapping, size_t size,
                         Access access, Logger* logger, std::unique_ptr<MemoryRegion>* region) {
  uint64_t limit = adapter.parameters().piece_bytes;
  if (limit == 0) limit = adapter.attributes().max_mr_size;
  const uint32_t shift =
      size <= limit ? kOnePieceShift : static_cast<uint32_t>(std::bit_width(limit)) - 1;
  std::unique_ptr<VerbsRegion> made(new VerbsRegion(adapter, size, std::move(mapping), shift));
  NACRE_RETURN_IF_ERROR(made->Register(access, logger));
  *region = std::move(made);
  return Status::OK();
}

Status VerbsRegion::Register(Access access, Logger* logger) {
  const uint64_t piece = uint64_t{1} << piece_shift_;
  pieces_.resize((size_ - 1) / piece + 1);
  if (pieces_.size() > 1) {
    Log(logger, LogLevel::kInfo, "{}: a region of {} is registered in {} pieces", adapter_->name(),
        FormatBytes(size_), pieces_.size());
  }
  return InParallel(pieces_.size(), [&](size_t i) {
    const uint64_t begin = i * piece;
    return RegisterPart(*adapter_, data() + begin, std::min<uint64_t>(piece, size_ - begin), access,
                        &pieces_[i]);
  });
}

RemoteKey VerbsRegion::piece_key(size_t piece) const {
  const uint64_t begin = uint64_t{piece} << piece_shift_;
  return {.address = Address(begin),
          .size = std::min<uint64_t>(uint64_t{1} << piece_shift_, size_ - begin),
          .key = pieces_[piece]->rkey};
}

Status VerbsRegion::Grant(size_t offset, size_t size, Access access,
                          std::unique_ptr<RegionGrant>* grant) {
  if (size == 0 || offset > size_ || size > size_ - offset) {
    return Status::InvalidArgument("a grant of " + std::to_string(size) + " bytes at " +
                                   std::to_string(offset) + " of a region of " +
                                   std::to_string(size_));
  }
  UniqueMemoryRegion part;
  NACRE_RETURN_IF_ERROR(spent_keys_->Unspent(
      [&](UniqueMemoryRegion* made) {
        return RegisterPart(*adapter_, data() + offset, size, access, made);
      },
      [](const UniqueMemoryRegion& made) { return made->rkey; }, &part));
  const RemoteKey key{.address = Address(offset), .size = size, .key = part->rkey};
  *grant = std::make_unique<VerbsGrant>(key, std::move(part), spent_keys_);
  return Status::OK();
}

}  // namespace nacre::rdma
