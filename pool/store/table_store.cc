#include "pool/store/table_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "pool/store/remote_table.h"
#include "pool/store/table_store_rep.h"

namespace nacre::pool {

TableStore::Rep::Rep(PoolClient* pool_client, LocalMemory local_memory, int in_flight,
                     Memory tables)
    : client(pool_client),
      fabric(pool_client->fabric()),
      local(local_memory),
      memory(tables),
      buffers_in_flight(std::clamp(in_flight, 1, Lane::kDepth / 4)),
      connections(fabric, static_cast<int>(std::min<size_t>(fabric->slots(), kMaxFragments))),
      loadable(fabric) {}

Status TableStore::Rep::ConnectedLane(const Placement& placement, std::unique_ptr<Lane>* lane) {
  for (const ExtentAddr& fragment : placement.fragments) {
    if (Status s = CheckFragment(fragment, 0, placement.chunk_size); !s.ok())
      return Status::InvalidArgument(s.message());
  }
  NACRE_RETURN_IF_ERROR(connections.TakeLane(lane));
  for (const ExtentAddr& fragment : placement.fragments) {
    if (LocalBytes(fragment) != nullptr) continue;
    NodeLink* link = fabric->link(fragment.start.node);
    rdma::QueuePair* queue_pair = nullptr;
    Status s = Status::Unavailable("a node of earlier days is gone");
    if (link != nullptr) {
      const auto late = link->pace().slow() ? Lane::Late::kAwaited : Lane::Late::kLeft;
      s = (*lane)->Get(link, &queue_pair, late);
    }
    if (s.ok()) s = Fabric::CheckRange(link, fragment.start.offset, fragment.length);
    if (!s.ok()) {
      connections.GiveLane(std::move(*lane));
      return s;
    }
  }
  return Status::OK();
}

Status TableStore::Rep::CheckFragment(const ExtentAddr& fragment, uint64_t bytes,
                                      uint64_t chunk_size) const {
  const NodeId node = fragment.start.node;
  if (node == kLostNode) return Status::OK();
  if (node != local.node && fabric->link(node) == nullptr) {
    return Status::Corruption(fmt::format("a table lies on node {}, which the pool has not got",
                                          static_cast<unsigned>(node)));
  }
  const uint64_t tail = chunk_size == 0 ? 0 : FragmentTailBytes(bytes, chunk_size);
  if (fragment.length < kFragmentHeadBytes + tail ||
      fragment.length - kFragmentHeadBytes - tail < bytes) {
    return Status::Corruption(
        fmt::format("a fragment of {} bytes in an extent of {}", bytes, fragment.length));
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

TableStore::TableStore(PoolClient* client, LocalMemory local, int buffers_in_flight, Memory memory)
    : rep_(std::make_unique<Rep>(client, local, buffers_in_flight, memory)) {}
TableStore::~TableStore() = default;

EncodingWork TableStore::encoding_work() const {
  return {.data_bytes = rep_->encoded_bytes.load(std::memory_order_relaxed),
          .cpu_nanos = rep_->encoding_nanos.load(std::memory_order_relaxed)};
}

const char* TableStore::InLocalMemory(const ExtentAddr& extent) const {
  const char* const bytes = rep_->LocalBytes(extent);
  if (bytes == nullptr || extent.start.offset > rep_->local.size ||
      extent.length > rep_->local.size - extent.start.offset) {
    return nullptr;
  }
  return bytes - kFragmentHeadBytes;
}

void TableStore::Close() {
  rep_->closed.store(true, std::memory_order_release);  // Pairs with the reads of extents.
  rep_->loadable.Close();
}

PoolClient* TableStore::client() const { return rep_->client; }
TableStore::Memory TableStore::memory() const { return rep_->memory; }
uint64_t TableStore::damage_reports() const {
  return rep_->damage_reports.load(std::memory_order_acquire);  // Pairs with ReportDamage.
}

uint64_t TableStore::damaged_reads() const {
  return rep_->damaged_reads.load(std::memory_order_relaxed);
}

std::shared_ptr<Extent> TableStore::OpenExtent(uint64_t table_id, const Placement& placement,
                                               uint64_t size) {
  auto table = std::make_shared<RemoteTable>();
  table->store = rep_.get();
  table->id = table_id;
  table->placement = placement;
  table->size = size;
  Status& malformed = table->malformed;
  if (placement.fragments.empty()) malformed = Status::Corruption("a table lies nowhere");
  if (placement.redundancy.striped() && placement.chunk_size == 0) {
    malformed = Status::Corruption("a table is striped in chunks of no bytes");
  }
  for (size_t i = 0; malformed.ok() && i < placement.fragments.size(); ++i) {
    const uint64_t bytes = FragmentBytes(placement, static_cast<int>(i), size);
    malformed = rep_->CheckFragment(placement.fragments[i], bytes, placement.chunk_size);
  }
  return NewTableExtent(std::move(table));
}

Status TableStore::NewWriter(uint64_t table_id, const Placement& placement, size_t chunk_size,
                             std::unique_ptr<ExtentWriter>* writer, const WriteKeys* keys) {
  if (placement.fragments.empty()) return Status::InvalidArgument("a table is to lie nowhere");
  if (chunk_size == 0 || chunk_size > UINT32_MAX / 2) {
    return Status::InvalidArgument(fmt::format("chunks of {} bytes", chunk_size));
  }
  if (placement.chunk_size != chunk_size) {
    return Status::InvalidArgument(
        fmt::format("chunks of {} bytes where {} are placed", chunk_size, placement.chunk_size));
  }
  std::unique_ptr<Lane> lane;
  NACRE_RETURN_IF_ERROR(rep_->ConnectedLane(placement, &lane));
  *writer = NewTableWriter(rep_.get(), std::move(lane), table_id, placement, keys);
  return Status::OK();
}

int TableStore::FirstCopy(const Placement& placement, uint64_t offset) const {
  return static_cast<int>(rep_->FirstCopy(placement, offset));
}

size_t TableStore::Rep::FirstCopy(const Placement& placement, uint64_t offset) const {
  const size_t copies = placement.fragments.size();
  if (placement.redundancy.striped() || copies < 2) return 0;
  if (local.node != kNoNode) {
    for (size_t i = 0; i < copies; ++i) {
      if (placement.fragments[i].start.node == local.node) return i;
    }
  }
  // Records of a few hundred bytes lie side by side: their neighbourhood must not decide.
  uint64_t hash = offset * 0x9E3779B97F4A7C15;
  hash ^= hash >> 32;
  const size_t one = hash % copies;
  const size_t other = (one + 1 + (hash >> 40) % (copies - 1)) % copies;
  const auto pace_of = [&](size_t copy) -> const NodePace* {
    const NodeLink* const link = fabric->link(placement.fragments[copy].start.node);
    return link == nullptr || !link->prompt() ? nullptr : &link->pace();
  };
  const NodePace* const first = pace_of(one);
  const NodePace* const second = pace_of(other);
  if (first == nullptr || second == nullptr) return second == nullptr ? one : other;
  // Small differences are noise, and to follow them would have all go to one node.
  return 4 * second->recent_read_nanos() < 3 * first->recent_read_nanos() ? other : one;
}

RemoteAddr TableStore::Resolve(const Placement& placement, uint64_t offset, int copy,
                               bool only_prompt) const {
  auto fragment = static_cast<size_t>(copy);
  if (placement.redundancy.striped()) {
    if (copy > 0) return {};
    const Striping::Place place = Striping(placement).Locate(offset);
    fragment = place.fragment;
    offset = place.offset;
  }
  RemoteAddr address = placement.fragments[fragment].start;
  const bool serves =
      only_prompt ? rep_->client->prompt(address.node) : rep_->client->alive(address.node);
  if (!serves) return {};
  address.offset = address.offset + kFragmentHeadBytes + offset;
  return address;
}

}  // namespace nacre::pool
