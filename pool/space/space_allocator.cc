#include "pool/space/space_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "pool/connect/fabric.h"
#include "pool/connect/pool_pace.h"
#include "pool/reports.h"
#include "pool/space/extent_placing.h"
#include "pool/space/pending_writes.h"
#include "pool/space/slab_exchange.h"
#include "pool/space/slab_leases.h"
#include "pool/space/space_allocator_rep.h"
#include "util/exceptions.h"

namespace nacre::pool {
namespace {

constexpr uint64_t kMaxTableBytes = uint64_t{1} << 40;
/// A node is preferred although it holds more than its share, by so many extents of the size asked
/// for.
constexpr uint64_t kPreferenceSlack = 4;

/// A database with fewer bytes than this is small.
constexpr uint64_t kSmallBytes = 4 << 20;
/// Below this, a table's fragments would be mostly heads (MicroEC section IV-E).
constexpr uint64_t kStripedBytesMin = 64 << 10;

}  // namespace

SpaceAllocator::Rep::~Rep() {
  MutexLock lock(&mutex_);
  while (background_ > 0) changed_.Wait();
}

void SpaceAllocator::Rep::Schedule(std::function<void()> task) {
  client_->threads()->ticks()->Schedule([this, task = std::move(task)] {
    CatchAll([&task] {
      task();
      return Status::OK();
    }).IgnoreError();  // A caller that needs what it was to do does it, and is told of failures.
    MutexLock lock(&mutex_);
    --background_;
    changed_.SignalAll();
  });
  ++background_;  // Unless it could not be scheduled; its end takes the mutex.
}

std::vector<NodeId> SpaceAllocator::Rep::Candidates(NodeId preferred, uint64_t bytes) const {
  std::vector<std::tuple<int, uint64_t, NodeId>> by_use;
  uint64_t total = 0;
  for (int i = 0; i < client_->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!client_->alive(node)) continue;
    // Those at home come first, and nodes that are slow behind all others, and those that are to be
    // left last.
    const bool away = home_.Excludes(node);
    const int rank = nodes_[node].draining ? 4 : (client_->prompt(node) ? 0 : 2) + (away ? 1 : 0);
    by_use.emplace_back(rank, nodes_[node].used_bytes, node);
    if (!away) total += nodes_[node].used_bytes;
  }
  std::sort(by_use.begin(), by_use.end());
  std::vector<NodeId> order;
  order.reserve(by_use.size());
  for (const auto& [rank, used, node] : by_use) order.push_back(node);

  // A node that wrote its own output without end would attract all compactions, and all data.
  const auto favourite = std::find(order.begin(), order.end(), preferred);
  if (favourite == order.end() || nodes_[preferred].draining || !client_->prompt(preferred)) {
    return order;
  }
  if (home_.Excludes(preferred)) return order;
  const uint64_t fair_share = total / (home_.empty() ? order.size() : home_.size());
  if (nodes_[preferred].used_bytes <= fair_share + fair_share / 4 + kPreferenceSlack * bytes) {
    std::rotate(order.begin(), favourite, favourite + 1);
  }
  return order;
}

bool SpaceAllocator::Rep::IsSmall() const {
  uint64_t used = 0;
  for (const Node& node : nodes_) used += node.used_bytes;
  return used < kSmallBytes;
}

bool SpaceAllocator::Rep::Carve(NodeId node, uint64_t bytes, ExtentAddr* extent) {
  const std::optional<uint64_t> start = nodes_[node].free.Take(bytes);
  if (!start.has_value()) return false;
  nodes_[node].used_bytes += bytes;
  extent->start.node = node;
  extent->start.offset = *start & ((uint64_t{1} << 48) - 1);
  extent->length = bytes;
  return true;
}

Status SpaceAllocator::Rep::Take(NodeId node, uint64_t bytes, Wait wait, ExtentAddr* extent) {
  if (!Carve(node, bytes, extent)) {
    // Another caller may take the free end that the lease was to extend, or what was leased.
    bool extend = true;
    do {
      NACRE_RETURN_IF_ERROR(wait == Wait::kInTime ? MakeRoomInTime(node, bytes, extend)
                                                  : MakeRoom(node, bytes, extend));
      extend = false;
    } while (!Carve(node, bytes, extent));
  }
  if (!nodes_[node].draining && !IsSmall() && !nodes_[node].free.CanTake(bytes)) LeaseAhead(node);
  return Status::OK();
}

void SpaceAllocator::Rep::Release(const ExtentAddr& extent) {
  if (extent.start.node == kLostNode) return;
  Node& node = nodes_[extent.start.node];
  [[maybe_unused]] const bool inserted = node.free.Insert(extent.start.offset, extent.length);
  assert(inserted);
  node.used_bytes -= extent.length;
}

Status SpaceAllocator::Rep::TooFewAlive(const Redundancy& redundancy) const {
  std::string dead;
  int alive = 0;
  for (int i = 0; i < client_->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (client_->alive(node)) {
      ++alive;
      continue;
    }
    if (!dead.empty()) dead += ", ";
    dead += client_->node_address(node);
  }
  const int needed = redundancy.fragments();
  const int domains = client_->domain_count();
  if (domains >= needed) return Status::OK();
  const std::string in_domains =
      domains == alive ? "" : fmt::format(" in {} failure domains", domains);
  if (dead.empty()) {
    return Status::InvalidArgument(fmt::format("redundancy {} needs {} nodes, the pool has {}{}",
                                               redundancy.ToString(), needed, alive, in_domains));
  }
  return Status::Unavailable(fmt::format("redundancy {} needs {} nodes, {} are alive{}; lost: {}",
                                         redundancy.ToString(), needed, alive, in_domains, dead));
}

Status SpaceAllocator::Rep::Reserve(const Redundancy& wanted, uint64_t table_bytes,
                                    NodeId preferred, uint64_t chunk_size, Placement* placement) {
  const Redundancy redundancy = wanted.striped() && table_bytes < kStripedBytesMin
                                    ? Redundancy::Copies(wanted.parity + 1)
                                    : wanted;
  NACRE_RETURN_IF_ERROR(TooFewAlive(redundancy));
  if (table_bytes > kMaxTableBytes) {
    return Status::NoSpace(fmt::format("no node holds a table of {} bytes", table_bytes));
  }
  placement->redundancy = redundancy;
  placement->chunk_size = chunk_size;
  placement->fragments.clear();
  // The first fragment of a striped table is as long as any, and has whole chunks here.
  uint64_t fragment_bytes = FragmentBytes(*placement, 0, table_bytes);
  if (redundancy.striped()) {
    fragment_bytes = (fragment_bytes + chunk_size - 1) / chunk_size * chunk_size;
  }
  const uint64_t bytes = ExtentBytes(fragment_bytes, chunk_size);
  const auto count = static_cast<size_t>(redundancy.fragments());

  const std::vector<NodeId> domains = client_->Domains();
  MutexLock lock(&mutex_);
  ahead_bytes_ = bytes;
  Status failure;
  std::set<NodeId> full;
  std::vector<NodeId> late;
  const auto take = [&](NodeId node, Wait wait) REQUIRES(mutex_) {
    if (placement->fragments.size() == count || SharesDomain(domains, node, *placement)) return;
    ExtentAddr extent;
    Status s = Take(node, bytes, wait, &extent);
    if (s.ok()) {
      placement->fragments.push_back(extent);
    } else if (s.IsTimedOut() && wait == Wait::kInTime) {
      late.push_back(node);
    } else if (!s.IsUnavailable()) {
      if (s.IsNoSpace()) full.insert(node);
      failure = std::move(s);
    }
  };
  for (const NodeId node : Candidates(preferred, bytes)) take(node, Wait::kInTime);
  for (const NodeId node : late) take(node, Wait::kLong);
  if (placement->fragments.size() == count) {
    home_.Move(*placement, [&](NodeId node)
                               REQUIRES(mutex_) { return full.contains(node) || MustLeave(node); });
    if (redundancy.striped()) Turn(placement);
    return Status::OK();
  }

  for (const ExtentAddr& extent : placement->fragments) Release(extent);
  placement->fragments.clear();
  NACRE_RETURN_IF_ERROR(TooFewAlive(redundancy));
  if (!failure.ok() && !failure.IsNoSpace()) return failure;
  return Status::NoSpace(fmt::format("the pool has no room for {} times {} bytes{}{}", count, bytes,
                                     failure.message().empty() ? "" : ": ", failure.message()));
}

Status SpaceAllocator::Rep::ReserveFragments(const Placement& placement, uint64_t table_bytes,
                                             FragmentSet wanted, std::vector<ExtentAddr>* extents) {
  extents->clear();
  const std::vector<NodeId> domains = client_->Domains();
  Placement kept;  // The fragments that stay, and those that come to them.
  for (size_t i = 0; i < placement.fragments.size(); ++i) {
    if ((wanted >> i & 1) == 0) kept.fragments.push_back(placement.fragments[i]);
  }
  Status failure;
  MutexLock lock(&mutex_);
  for (size_t i = 0; i < placement.fragments.size(); ++i) {
    if ((wanted >> i & 1) == 0) continue;
    const uint64_t bytes = ExtentBytes(FragmentBytes(placement, static_cast<int>(i), table_bytes),
                                       placement.chunk_size);
    ExtentAddr extent;
    for (const NodeId node : Candidates(kNoNode, bytes)) {
      if (SharesDomain(domains, node, kept) || nodes_[node].draining) continue;
      Status s = Take(node, bytes, Wait::kLong, &extent);
      if (s.ok()) break;
      if (failure.ok() || failure.IsUnavailable()) failure = std::move(s);
    }
    if (!extent.start.valid()) {
      for (const ExtentAddr& reserved : *extents) Release(reserved);
      extents->clear();
      if (failure.ok()) failure = Status::Unavailable("each node that is left has a part already");
      return failure;
    }
    kept.fragments.push_back(extent);
    extents->push_back(extent);
  }
  return Status::OK();
}

void SpaceAllocator::Rep::Free(const ExtentAddr& extent) try {
  if (extent.start.node == kLostNode) return;
  MutexLock lock(&mutex_);
  Release(extent);
  ReturnSurplusLater(extent.start.node);
} catch (const std::bad_alloc&) {
  // Called as tables end, where nothing may be thrown. What is not noted now is free when the
  // database is opened again.
}

void SpaceAllocator::Rep::End() {
  MutexLock lock(&mutex_);
  ended_ = true;
  for (Node& node : nodes_) {
    while (node.exchanging) changed_.Wait();
  }
}

void SpaceAllocator::Rep::SetDraining(std::vector<NodeId> nodes) {
  MutexLock lock(&mutex_);
  for (Node& node : nodes_) node.draining = false;
  for (const NodeId node : nodes) {
    nodes_[node].draining = true;
    ReturnSurplusLater(node);
  }
}

void SpaceAllocator::Rep::Turn(Placement* placement) {
  const auto first = static_cast<ptrdiff_t>(turn_++ % placement->fragments.size());
  std::rotate(placement->fragments.begin(), placement->fragments.begin() + first,
              placement->fragments.end());
}

SpaceAllocator::Rep::Growth SpaceAllocator::Rep::FindGrowth(const Node& node,
                                                            uint64_t bytes) const {
  Growth growth;
  uint64_t longest = 0;
  for (const uint64_t slab : node.slabs) {
    const uint64_t end = slab + slab_bytes_;
    if (node.slabs.contains(end)) continue;
    auto range = node.free.ranges().lower_bound(end);
    if (range == node.free.ranges().begin()) continue;
    --range;
    if (range->first + range->second != end || range->second <= longest) continue;
    longest = range->second;
    growth = {.at = end, .slabs = SlabsFor(bytes - longest)};
  }
  return growth;
}

Status SpaceAllocator::Rep::MakeRoom(NodeId node, uint64_t bytes, bool extend) {
  Node& state = nodes_[node];
  while (state.exchanging) changed_.Wait();
  if (ended_) return Status::ShutdownInProgress("the database is closed");
  if (state.free.CanTake(bytes)) return Status::OK();

  const Growth growth = extend ? FindGrowth(state, bytes) : Growth();
  const SlabExchange exchange(&state.exchanging, &changed_);
  std::vector<uint64_t> offsets;
  Status s;
  {
    MutexUnlock unlock(&mutex_);
    s = LeaseSlabs(client_, node, database_id_,
                   {.count = static_cast<int>(SlabsFor(bytes)),
                    .contiguous = true,
                    .extend_count = static_cast<int>(growth.slabs),
                    .extend_at = growth.at},
                   &offsets);
  }
  for (const uint64_t offset : offsets) {
    // What can be leased was taken back before.
    std::erase_if(state.unanswered, [offset](const auto& slabs) {
      return std::find(slabs.begin(), slabs.end(), offset) != slabs.end();
    });
    if (!state.slabs.insert(offset).second || !state.free.Insert(offset, slab_bytes_)) {
      s = Status::Corruption(
          fmt::format("{}: leased the slab at {} twice", client_->node_address(node), offset));
    }
  }
  return s;
}

Status SpaceAllocator::Rep::MakeRoomInTime(NodeId node, uint64_t bytes, bool extend) {
  struct Attempt {
    bool ended = false;
    bool thrown = false;  ///< Memory ran out.
    bool left = false;    ///< The space was taken elsewhere meanwhile.
    Status status;
  };
  NodeLink* const link = client_->fabric()->link(node);
  PoolPace* const pace = &client_->fabric()->pace;
  const auto late = [&] {
    return Status::TimedOut(client_->node_address(node) + ": slow to lease slabs");
  };
  if (link->pace().slow()) return late();
  const auto attempt = std::make_shared<Attempt>();
  Schedule([this, attempt, node, bytes, extend] {
    MutexLock lock(&mutex_);
    try {
      attempt->status = MakeRoom(node, bytes, extend);
    } catch (...) {
      attempt->thrown = true;
    }
    attempt->ended = true;
    if (attempt->left) ReturnSurplusLater(node);
  });
  const Deadline patience =
      Deadline::After(client_->clock(), pace->Patience(NodeOperation::kRequest));
  while (!attempt->ended) {
    if (patience.Expired()) {
      pace->NoteLate(link);
      attempt->left = true;
      return late();
    }
    changed_.WaitFor(patience.Remaining());
  }
  return attempt->thrown ? MakeRoom(node, bytes, extend) : attempt->status;
}

void SpaceAllocator::Rep::LeaseAhead(NodeId node) {
  if (nodes_[node].lease_scheduled) return;
  Schedule([this, node] {
    MutexLock lock(&mutex_);
    // A failure concerns the callers that come to need the space.
    try {
      MakeRoom(node, ahead_bytes_, /*extend=*/true).IgnoreError();
    } catch (...) {
      nodes_[node].lease_scheduled = false;
      throw;
    }
    nodes_[node].lease_scheduled = false;
  });
  nodes_[node].lease_scheduled = true;
}

void SpaceAllocator::Rep::Trim(Placement* placement, uint64_t table_bytes,
                               std::vector<ExtentAddr>* held) {
  MutexLock lock(&mutex_);
  int fragment = 0;
  for (ExtentAddr& extent : placement->fragments) {
    const uint64_t bytes =
        ExtentBytes(FragmentBytes(*placement, fragment++, table_bytes), placement->chunk_size);
    if (extent.length <= bytes) continue;
    ExtentAddr rest = extent;
    rest.start.offset = extent.start.offset + bytes;
    rest.length = extent.length - bytes;
    extent.length = bytes;
    if (MayStillWriteOn(client_, rest.start.node)) [[unlikely]] {
      held->push_back(rest);
    } else {
      Release(rest);
      ReturnSurplusLater(static_cast<NodeId>(rest.start.node));
    }
  }
}

std::vector<uint64_t> SpaceAllocator::Rep::Surplus(const Node& node, uint64_t keep) const {
  std::vector<uint64_t> free_slabs;
  // Each extent that is freed asks this; most free ranges are shorter than a slab.
  for (const auto& [start, length] : node.free.AtLeast(slab_bytes_)) {
    for (auto slab = node.slabs.lower_bound(start);
         slab != node.slabs.end() && *slab + slab_bytes_ <= start + length; ++slab) {
      free_slabs.push_back(*slab);
    }
  }
  if (free_slabs.size() <= keep) return {};
  return {free_slabs.begin() + static_cast<ptrdiff_t>(keep), free_slabs.end()};
}

void SpaceAllocator::Rep::ReturnSurplusLater(NodeId node) {
  Node& state = nodes_[node];
  if (ended_ || state.return_scheduled || !client_->alive(node)) return;
  if (state.unanswered.empty() && Surplus(state, SparesToKeep(state)).empty()) return;
  Schedule([this, node] {
    MutexLock lock(&mutex_);
    nodes_[node].return_scheduled = false;
    ReturnSurplus(node, SparesToKeep(nodes_[node]), NodeRequests::Late::kLeft).IgnoreError();
  });
  state.return_scheduled = true;
}

Status SpaceAllocator::Rep::ReturnSurplus(NodeId node, uint64_t keep, NodeRequests::Late late) {
  Node& state = nodes_[node];
  while (state.exchanging) changed_.Wait();
  if (ended_) return Status::OK();
  const std::vector<uint64_t> surplus = Surplus(state, keep);
  if (surplus.empty() && state.unanswered.empty()) return Status::OK();
  for (const uint64_t slab : surplus) {
    state.slabs.erase(slab);
    [[maybe_unused]] const bool removed = state.free.Remove(slab, slab_bytes_);
    assert(removed);
  }
  const SlabExchange exchange(&state.exchanging, &changed_);
  std::vector<std::vector<uint64_t>> requests = std::exchange(state.unanswered, {});
  const size_t earlier = requests.size();
  if (!surplus.empty()) requests.push_back(surplus);
  std::vector<Status> answers;
  {
    MutexUnlock unlock(&mutex_);
    for (const auto& slabs : requests) {
      answers.push_back(ReturnSlabs(client_, node, database_id_, slabs, late));
    }
  }
  Status s;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (answers[i].ok()) continue;
    if (answers[i].IsUnavailable() || answers[i].IsTimedOut()) {
      state.unanswered.push_back(std::move(requests[i]));  // They may be another's by now.
    } else if (i < earlier) {
      continue;  // They were: the node had taken them back, without an answer.
    } else {
      for (const uint64_t slab : requests[i]) {  // The node said no.
        if (state.slabs.insert(slab).second) state.free.Insert(slab, slab_bytes_);
      }
    }
    s = std::move(answers[i]);
  }
  return s;
}

Status SpaceAllocator::Rep::ReturnFreeSlabs() {
  MutexLock lock(&mutex_);
  Status failure;
  for (int i = 0; i < client_->node_count(); ++i) {
    if (!client_->alive(static_cast<NodeId>(i))) continue;
    Status s = ReturnSurplus(static_cast<NodeId>(i), 0, NodeRequests::Late::kAwaited);
    // A node that died meanwhile has nothing to take back.
    if (!s.ok() && !s.IsUnavailable() && failure.ok()) failure = std::move(s);
  }
  return failure;
}

Status SpaceAllocator::Rep::Restore(NodeId node, const std::vector<uint64_t>& slab_offsets,
                                    const std::vector<ExtentAddr>& live) {
  if (node >= client_->node_count()) {
    return Status::Corruption(fmt::format("slabs of node {}, which the pool has not got", node));
  }
  MutexLock lock(&mutex_);
  Node& state = nodes_[node];
  for (const uint64_t offset : slab_offsets) {
    if (!state.slabs.insert(offset).second || !state.free.Insert(offset, slab_bytes_)) {
      return Status::Corruption(
          fmt::format("{}: slabs overlap at {}", client_->node_address(node), offset));
    }
  }
  for (const ExtentAddr& extent : live) {
    if (extent.start.node != node || !state.free.Remove(extent.start.offset, extent.length)) {
      return Status::Corruption(fmt::format(
          "{}: {} bytes at {} are in use twice, or in no slab of the database",
          client_->node_address(node), extent.length, static_cast<uint64_t>(extent.start.offset)));
    }
    state.used_bytes += extent.length;
  }
  return Status::OK();
}

std::vector<uint64_t> SpaceAllocator::Rep::Slabs(NodeId node) {
  MutexLock lock(&mutex_);
  while (background_ > 0) changed_.Wait();
  return {nodes_[node].slabs.begin(), nodes_[node].slabs.end()};
}

Status SpaceAllocator::Rep::MeasureFree(NodeId node, uint64_t piece, FreeSpace* free) {
  MutexLock lock(&mutex_);
  Node& state = nodes_[node];
  Status s;
  // What others ask a node that stands still takes as long as an operation may.
  constexpr std::chrono::milliseconds kLook(1);
  constexpr std::chrono::milliseconds kPatience(500);
  const Deadline deadline = Deadline::After(client_->fabric()->context.clock, kPatience);
  while (state.exchanging && client_->prompt(node) && !deadline.Expired()) {
    changed_.WaitFor(kLook);
  }
  const bool known = state.measured.slabs_total > 0;
  if (state.exchanging) {
    if (!known) s = Status::TimedOut(client_->node_address(node) + ": slow to say what is free");
  } else if (client_->prompt(node) || !known) {  // What a slow node said last does.
    const SlabExchange exchange(&state.exchanging, &changed_);
    NodeStats stats;
    {
      MutexUnlock unlock(&mutex_);
      s = GetStats(client_, node, &stats, NodeRequests::Late::kLeft);
    }
    if (s.ok()) state.measured = stats;
    if (s.IsTimedOut() && state.measured.slabs_total > 0 && client_->alive(node)) s = Status::OK();
  }
  const NodeStats& stats = state.measured;
  free->bytes =
      state.free.BytesInPieces(piece) + (stats.slabs_total - stats.slabs_leased) * stats.slab_bytes;
  free->total = stats.slabs_total * stats.slab_bytes;
  return s;
}

SpaceUsage SpaceAllocator::Rep::Usage(NodeId node) const {
  if (!client_->alive(node)) return {};
  MutexLock lock(&mutex_);
  return {.leased_bytes = nodes_[node].slabs.size() * slab_bytes_,
          .used_bytes = nodes_[node].used_bytes};
}

SpaceAllocator::SpaceAllocator(PoolClient* client, uint64_t database_id, uint64_t slab_bytes,
                               uint64_t chunk_size)
    : client_(client),
      rep_(std::make_unique<Rep>(client, database_id, slab_bytes, chunk_size)),
      quarantine_(
          client->threads()->ticks(),
          {.end_jobs = [client, database_id](
                           std::vector<JobEnd>* jobs) { EndJobs(client, database_id, jobs); },
           .may_still_write = [client](NodeId node) { return MayStillWriteOn(client, node); },
           .end_abandoned_writes = [client] { pool::EndAbandonedWrites(client); }},
          [rep = rep_.get()](const ExtentAddr& extent) { rep->Free(extent); }) {}
SpaceAllocator::~SpaceAllocator() = default;

Status SpaceAllocator::Reserve(const Redundancy& redundancy, uint64_t table_bytes, NodeId preferred,
                               Placement* placement, uint64_t chunk_size) {
  return rep_->Reserve(redundancy, table_bytes, preferred,
                       chunk_size == 0 ? rep_->chunk_size() : chunk_size, placement);
}
void SpaceAllocator::Trim(Placement* placement, uint64_t table_bytes) {
  std::vector<ExtentAddr> held;
  rep_->Trim(placement, table_bytes, &held);
  if (!held.empty()) quarantine_.Take({}, held);
}
void SpaceAllocator::Free(const Placement& placement) {
  for (const ExtentAddr& extent : placement.fragments) Free(extent);
}
void SpaceAllocator::Free(const ExtentAddr& extent) {
  if (MayStillWriteOn(client_, extent.start.node)) [[unlikely]]
    return quarantine_.Take({}, {extent});
  rep_->Free(extent);
}
Status SpaceAllocator::ReserveFragments(const Placement& placement, uint64_t table_bytes,
                                        FragmentSet wanted, std::vector<ExtentAddr>* extents) {
  return rep_->ReserveFragments(placement, table_bytes, wanted, extents);
}
void SpaceAllocator::End() { rep_->End(); }
void SpaceAllocator::SettleOn(int nodes) { rep_->SettleOn(nodes); }
HomeNodes SpaceAllocator::Home() const { return rep_->Home(); }
void SpaceAllocator::SetDraining(std::vector<NodeId> nodes) { rep_->SetDraining(std::move(nodes)); }
Status SpaceAllocator::Restore(NodeId node, const std::vector<uint64_t>& slab_offsets,
                               const std::vector<ExtentAddr>& live) {
  return rep_->Restore(node, slab_offsets, live);
}
std::vector<uint64_t> SpaceAllocator::Slabs(NodeId node) const { return rep_->Slabs(node); }
Status SpaceAllocator::ReturnFreeSlabs() { return rep_->ReturnFreeSlabs(); }
Status SpaceAllocator::MeasureFree(NodeId node, uint64_t piece, FreeSpace* free) {
  return rep_->MeasureFree(node, piece, free);
}
SpaceUsage SpaceAllocator::Usage(NodeId node) const { return rep_->Usage(node); }
SpaceUsage SpaceAllocator::Usage() const {
  SpaceUsage total;
  for (int node = 0; node < client_->node_count(); ++node) {
    const SpaceUsage usage = rep_->Usage(static_cast<NodeId>(node));
    total.leased_bytes += usage.leased_bytes;
    total.used_bytes += usage.used_bytes;
  }
  return total;
}

}  // namespace nacre::pool
