#include "memnode/table_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "memnode/read_plan.h"
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

/// Where a remote table is. Shared by the extent and the reads that it started.
struct RemoteTable {
  TableStore::Rep* store;
  Placement placement;
  uint64_t size;
  Status malformed;  ///< Why the placement cannot be used, if it cannot.

  /// Fragments on nodes that are known to be lost.
  FragmentSet Lost() const {
    FragmentSet lost = 0;
    for (size_t i = 0; i < placement.fragments.size(); ++i) {
      const NodeId node = placement.fragments[i].start.node;
      if (node != store->local.node && !store->client->alive(node)) lost |= FragmentSet{1} << i;
    }
    return lost;
  }
};

/// A read from whichever nodes can give its bytes: when one of them fails, from others.
class RemoteRead : public PendingRead {
 public:
  RemoteRead(std::shared_ptr<const RemoteTable> table, uint64_t offset, size_t n)
      : table_(std::move(table)), offset_(offset), length_(n) {
    Start();
  }

  Status Await(Slice* bytes) override {
    while (read_ != nullptr && !complete_) {
      stream_->Await(*read_);
      if (read_->status().ok()) {
        plan_.Complete(read_->buffer().data());
        complete_ = true;
      } else {
        TurnToOthers();
      }
    }
    NACRE_RETURN_IF_ERROR(status_);
    *bytes = Slice(plan_.in_place != nullptr ? plan_.in_place : read_->buffer().data(), length_);
    return Status::OK();
  }

 private:
  void Start() {
    const FragmentSet lost = lost_ | table_->Lost();
    status_ =
        PlanRead(*table_->store, table_->placement, table_->size, lost, offset_, length_, &plan_);
    if (status_.ok() && plan_.in_place == nullptr) status_ = table_->store->Stream(&stream_);
    if (status_.ok() && plan_.in_place == nullptr) {
      read_ = stream_->Start(plan_.parts, plan_.bytes);
    }
  }

  void TurnToOthers() {
    const Status why = read_->status();
    const std::vector<NodeLink*> failed = read_->failed();
    read_.reset();
    // So that in the end all nodes that failed are named.
    failure_ = failure_.ok()
                   ? why
                   : Status::FromCode(static_cast<int>(why.code()),
                                      fmt::format("{}; {}", failure_.message(), why.message()));
    for (size_t i = 0; i < table_->placement.fragments.size(); ++i) {
      NodeLink* const link = table_->store->fabric->link(table_->placement.fragments[i].start.node);
      if (std::find(failed.begin(), failed.end(), link) != failed.end()) {
        lost_ |= FragmentSet{1} << i;
      }
    }
    status_ = failure_;
    if (failed.empty()) return;
    Start();
    if (!status_.ok()) status_ = failure_;
  }

  const std::shared_ptr<const RemoteTable> table_;
  const uint64_t offset_;
  const size_t length_;
  ReadPlan plan_;
  FragmentSet lost_ = 0;  ///< Those that failed this read.
  RemoteStream* stream_ = nullptr;
  std::shared_ptr<StreamRead> read_;
  Status status_;
  Status failure_;  ///< Of what was tried so far.
  bool complete_ = false;
};

class RemoteExtent : public Extent {
 public:
  explicit RemoteExtent(RemoteTable table)
      : table_(std::make_shared<RemoteTable>(std::move(table))) {}

  uint64_t size() const override { return table_->size; }
  std::unique_ptr<PendingRead> StartRead(uint64_t offset, size_t n) override {
    if (!table_->malformed.ok()) return std::make_unique<FailedRead>(table_->malformed);
    const uint64_t size = table_->size;
    if (offset > size || n > size - offset) {
      return std::make_unique<FailedRead>(Status::Corruption(
          fmt::format("read of bytes {} to {} of {}", offset, offset + n, size)));
    }
    if (n == 0) return std::make_unique<LocalRead>(Slice());
    return std::make_unique<RemoteRead>(table_, offset, n);
  }

 private:
  const std::shared_ptr<const RemoteTable> table_;
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

EncodingWork TableStore::encoding_work() const {
  return {.data_bytes = rep_->encoded_bytes.load(std::memory_order_relaxed),
          .cpu_nanos = rep_->encoding_nanos.load(std::memory_order_relaxed)};
}

PoolClient* TableStore::client() const { return rep_->client; }

std::shared_ptr<Extent> TableStore::OpenExtent(const Placement& placement, uint64_t size) {
  RemoteTable table{
      .store = rep_.get(), .placement = placement, .size = size, .malformed = Status::OK()};
  if (placement.fragments.empty()) table.malformed = Status::Corruption("a table lies nowhere");
  if (placement.redundancy.striped() && placement.chunk_size == 0) {
    table.malformed = Status::Corruption("a table is striped in chunks of no bytes");
  }
  for (size_t i = 0; table.malformed.ok() && i < placement.fragments.size(); ++i) {
    table.malformed = rep_->CheckFragment(placement.fragments[i],
                                          FragmentBytes(placement, static_cast<int>(i), size));
  }
  if (table.malformed.ok() && !placement.redundancy.striped()) {
    for (const ExtentAddr& fragment : placement.fragments) {
      if (const char* bytes = rep_->LocalBytes(fragment)) {
        return std::make_shared<LocalExtent>(Slice(bytes, size));
      }
    }
  }
  return std::make_shared<RemoteExtent>(std::move(table));
}

Status TableStore::NewWriter(uint64_t table_id, const Placement& placement, size_t chunk_size,
                             std::unique_ptr<ExtentWriter>* writer) {
  if (placement.fragments.empty()) return Status::InvalidArgument("a table is to lie nowhere");
  if (chunk_size == 0 || chunk_size > UINT32_MAX / 2) {
    return Status::InvalidArgument(fmt::format("chunks of {} bytes", chunk_size));
  }
  if (placement.chunk_size != chunk_size) {
    return Status::InvalidArgument(
        fmt::format("chunks of {} bytes where {} are placed", chunk_size, placement.chunk_size));
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
  *writer = NewTableWriter(rep_.get(), std::move(lane), table_id, placement);
  return Status::OK();
}

RemoteAddr TableStore::Resolve(const Placement& placement, uint64_t offset, int copy) const {
  auto fragment = static_cast<size_t>(copy);
  if (placement.redundancy.striped()) {
    if (copy > 0) return {};
    const Striping::Place place = Striping(placement).Locate(offset);
    fragment = place.fragment;
    offset = place.offset;
  }
  RemoteAddr address = placement.fragments[fragment].start;
  if (!rep_->client->alive(address.node)) return {};
  address.offset = address.offset + kFragmentHeadBytes + offset;
  return address;
}

}  // namespace nacre::memnode
