#include "memnode/table_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "memnode/table_store_rep.h"
#include "util/thread_index.h"

namespace nacre::memnode {
namespace {

/// A read that could not even be started.
class FailedRead : public PendingRead {
 public:
  explicit FailedRead(Status status) : status_(std::move(status)) {}
  Status Await(Slice* /*bytes*/) override { return status_; }

 private:
  const Status status_;
};

class LocalRead : public PendingRead {
 public:
  explicit LocalRead(const Slice& bytes) : bytes_(bytes) {}
  Status Await(Slice* bytes) override {
    *bytes = bytes_;
    return Status::OK();
  }

 private:
  const Slice bytes_;
};

class LocalExtent : public Extent {
 public:
  explicit LocalExtent(const Slice& bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  const char* InPlace() const override { return bytes_.data(); }
  std::unique_ptr<PendingRead> StartRead(uint64_t offset, size_t n) override {
    if (offset > bytes_.size() || n > bytes_.size() - offset) {
      return std::make_unique<FailedRead>(Status::Corruption(
          fmt::format("read of bytes {} to {} of {}", offset, offset + n, bytes_.size())));
    }
    return std::make_unique<LocalRead>(Slice(bytes_.data() + offset, n));
  }

 private:
  const Slice bytes_;
};

/// Where the copies of a remote table are, and how to read from any of them. Shared by the extent
/// and the reads that it started.
struct RemoteCopies {
  TableStore::Rep* store;
  Placement placement;
  Status malformed;  ///< Why the placement cannot be used, if it cannot.

  /// Starts a read at the live copies from `*copy` on; `*copy` is the one that took it.
  Status Start(uint64_t offset, size_t n, size_t* copy, RemoteStream** stream,
               std::shared_ptr<StreamRead>* read, Status* failure) const;
};

Status RemoteCopies::Start(uint64_t offset, size_t n, size_t* copy, RemoteStream** stream,
                           std::shared_ptr<StreamRead>* read, Status* failure) const {
  for (; *copy < placement.fragments.size(); ++*copy) {
    const RemoteAddr start = placement.fragments[*copy].start;
    NodeLink* link = store->fabric->link(start.node);
    Status s = store->Stream(stream);
    if (!s.ok()) return s;
    s = (*stream)->Start(link, start.offset + kFragmentHeadBytes + offset, n, read);
    if (s.ok()) return s;
    // The first copy's failure is followed by the others', so that all lost nodes are named.
    *failure = failure->ok()
                   ? s
                   : Status::FromCode(static_cast<int>(s.code()),
                                      fmt::format("{}; {}", failure->message(), s.message()));
  }
  return *failure;
}

class RemoteRead : public PendingRead {
 public:
  RemoteRead(std::shared_ptr<const RemoteCopies> copies, uint64_t offset, size_t n)
      : copies_(std::move(copies)), offset_(offset), length_(n) {
    status_ = copies_->Start(offset_, length_, &copy_, &stream_, &read_, &failure_);
  }

  Status Await(Slice* bytes) override {
    while (read_ != nullptr && !awaited_) {
      NodeLink* link = copies_->store->fabric->link(copies_->placement.fragments[copy_].start.node);
      stream_->Await(link, *read_);
      if (read_->status().ok()) {
        awaited_ = true;
        break;
      }
      failure_ = failure_.ok() ? read_->status()
                               : Status::FromCode(static_cast<int>(read_->status().code()),
                                                  fmt::format("{}; {}", failure_.message(),
                                                              read_->status().message()));
      read_.reset();
      ++copy_;
      status_ = copies_->Start(offset_, length_, &copy_, &stream_, &read_, &failure_);
    }
    NACRE_RETURN_IF_ERROR(status_);
    *bytes = Slice(read_->buffer().data(), length_);
    return Status::OK();
  }

 private:
  const std::shared_ptr<const RemoteCopies> copies_;
  const uint64_t offset_;
  const size_t length_;
  size_t copy_ = 0;
  RemoteStream* stream_ = nullptr;
  std::shared_ptr<StreamRead> read_;
  Status status_;
  Status failure_;  ///< Of copies tried so far.
  bool awaited_ = false;
};

class RemoteExtent : public Extent {
 public:
  RemoteExtent(RemoteCopies copies, uint64_t size)
      : copies_(std::make_shared<RemoteCopies>(std::move(copies))), size_(size) {}

  uint64_t size() const override { return size_; }
  std::unique_ptr<PendingRead> StartRead(uint64_t offset, size_t n) override {
    if (!copies_->malformed.ok()) return std::make_unique<FailedRead>(copies_->malformed);
    if (offset > size_ || n > size_ - offset) {
      return std::make_unique<FailedRead>(Status::Corruption(
          fmt::format("read of bytes {} to {} of {}", offset, offset + n, size_)));
    }
    if (n == 0) return std::make_unique<LocalRead>(Slice());
    return std::make_unique<RemoteRead>(copies_, offset, n);
  }

 private:
  const std::shared_ptr<const RemoteCopies> copies_;
  const uint64_t size_;
};

}  // namespace

TableStore::Rep::Rep(PoolClient* pool_client, LocalMemory local_memory, int in_flight)
    : client(pool_client),
      fabric(pool_client->fabric()),
      local(local_memory),
      buffers_in_flight(std::clamp(in_flight, 1, Lane::kDepth / 4)),
      stream_limit(
          static_cast<size_t>(StreamLimit(pool_client->options().max_queue_pairs_per_node))),
      buffers(pool_client->device(), kMaxIdleBufferBytes) {}

Status TableStore::Rep::Stream(RemoteStream** stream) {
  const size_t number = ThreadIndex::Current() % stream_limit;
  // Acquire: pairs with the release below.
  *stream = streams[number].load(std::memory_order_acquire);
  if (*stream != nullptr) return Status::OK();
  MutexLock lock(&mutex);
  *stream = streams[number].load(std::memory_order_relaxed);
  if (*stream != nullptr) return Status::OK();
  std::unique_ptr<RemoteStream> made;
  NACRE_RETURN_IF_ERROR(RemoteStream::Create(fabric, &buffers, &made));
  *stream = made.get();
  stream_owners.push_back(std::move(made));
  streams[number].store(*stream, std::memory_order_release);
  return Status::OK();
}

Status TableStore::Rep::TakeLane(std::unique_ptr<Lane>* lane) {
  {
    MutexLock lock(&mutex);
    if (!idle_lanes.empty()) {
      *lane = std::move(idle_lanes.back());
      idle_lanes.pop_back();
      return Status::OK();
    }
  }
  return Lane::Create(fabric, fabric->node_count(), lane);
}

void TableStore::Rep::GiveLane(std::unique_ptr<Lane> lane) {
  MutexLock lock(&mutex);
  if (idle_lanes.size() < kMaxIdleLanes) idle_lanes.push_back(std::move(lane));
}

Status TableStore::Rep::CheckFragment(const ExtentAddr& fragment, uint64_t table_bytes) const {
  const NodeId node = fragment.start.node;
  if (node != local.node && fabric->link(node) == nullptr) {
    return Status::Corruption(fmt::format("a table lies on node {}, which the pool has not got",
                                          static_cast<unsigned>(node)));
  }
  if (fragment.length < kFragmentHeadBytes || fragment.length - kFragmentHeadBytes < table_bytes) {
    return Status::Corruption(
        fmt::format("a table of {} bytes in an extent of {}", table_bytes, fragment.length));
  }
  const uint64_t region = node == local.node ? local.size : fabric->link(node)->region_bytes();
  const bool known = node == local.node || region != 0;
  if (known &&
      (fragment.start.offset > region || fragment.length > region - fragment.start.offset)) {
    return Status::Corruption(fmt::format("a table lies at {} of node {}, beyond its {} bytes",
                                          static_cast<uint64_t>(fragment.start.offset),
                                          static_cast<unsigned>(node), region));
  }
  return Status::OK();
}

char* TableStore::Rep::LocalBytes(const ExtentAddr& fragment) const {
  if (local.node == kNoNode || fragment.start.node != local.node) return nullptr;
  return local.base + fragment.start.offset + kFragmentHeadBytes;
}

TableStore::TableStore(PoolClient* client, LocalMemory local, int buffers_in_flight)
    : rep_(std::make_unique<Rep>(client, local, buffers_in_flight)) {}
TableStore::~TableStore() = default;

PoolClient* TableStore::client() const { return rep_->client; }

std::shared_ptr<Extent> TableStore::OpenExtent(const Placement& placement, uint64_t size) {
  RemoteCopies copies{.store = rep_.get(), .placement = placement, .malformed = Status::OK()};
  if (placement.fragments.empty()) copies.malformed = Status::Corruption("a table lies nowhere");
  for (const ExtentAddr& fragment : placement.fragments) {
    if (Status s = rep_->CheckFragment(fragment, size); !s.ok()) copies.malformed = s;
  }
  if (copies.malformed.ok()) {
    for (const ExtentAddr& fragment : placement.fragments) {
      if (const char* bytes = rep_->LocalBytes(fragment)) {
        return std::make_shared<LocalExtent>(Slice(bytes, size));
      }
    }
  }
  return std::make_shared<RemoteExtent>(std::move(copies), size);
}

Status TableStore::NewWriter(const Placement& placement, size_t chunk_size,
                             std::unique_ptr<ExtentWriter>* writer) {
  if (placement.fragments.empty()) return Status::InvalidArgument("a table is to lie nowhere");
  if (chunk_size == 0 || chunk_size > UINT32_MAX / 2) {
    return Status::InvalidArgument(fmt::format("chunks of {} bytes", chunk_size));
  }
  std::unique_ptr<Lane> lane;
  for (const ExtentAddr& fragment : placement.fragments) {
    if (Status s = rep_->CheckFragment(fragment, 0); !s.ok()) {
      return Status::InvalidArgument(s.message());
    }
  }
  NACRE_RETURN_IF_ERROR(rep_->TakeLane(&lane));
  for (const ExtentAddr& fragment : placement.fragments) {
    if (rep_->LocalBytes(fragment) != nullptr) continue;
    NodeLink* link = rep_->fabric->link(fragment.start.node);
    rdma::QueuePair* queue_pair = nullptr;
    Status s = lane->Get(link, &queue_pair);
    if (s.ok()) s = Fabric::CheckRange(link, fragment.start.offset, fragment.length);
    if (!s.ok()) {
      rep_->GiveLane(std::move(lane));
      return s;
    }
  }
  *writer = NewTableWriter(rep_.get(), std::move(lane), placement, chunk_size);
  return Status::OK();
}

RemoteAddr TableStore::Resolve(const Placement& placement, uint64_t offset, int copy) const {
  RemoteAddr address = placement.fragments[static_cast<size_t>(copy)].start;
  if (!rep_->client->alive(address.node)) return {};
  address.offset = address.offset + kFragmentHeadBytes + offset;
  return address;
}

}  // namespace nacre::memnode
