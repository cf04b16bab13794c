#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "db/db_impl.h"
#include "db/repair_planner.h"
#include "db/table_changes.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {

namespace {

using memnode::RepairProgress;

/// How soon a change of the nodes is noticed.
constexpr std::chrono::milliseconds kTick{20};
/// How often the tables are looked through without such a change: one may have come whose nodes
/// were lost while it was made.
constexpr uint64_t kLookAroundNanos = 1'000'000'000;
/// Of fragments in one job: small enough to be limited evenly, and to be done again.
constexpr uint64_t kBatchBytes = 16 << 20;
constexpr size_t kBatchTables = 16;
/// Jobs at a time.
constexpr size_t kRepairWorkers = 2;

constexpr const char* kFencedMessage = "another owner has taken the database over";

bool Holds(const Version& version, int level, const std::shared_ptr<TableHandle>& table) {
  const TableList& tables = version.tables(level);
  return std::find(tables.begin(), tables.end(), table) != tables.end();
}

}  // namespace

NodeViews DBImpl::NodeViewsForRepair() const {
  // Asked once here, not for each fragment of each table: the reporter's lock is also taken by
  // threads that others wait for.
  std::vector<bool> draining;
  for (int i = 0; i < client_->node_count(); ++i) {
    draining.push_back(reporter_.draining(static_cast<NodeId>(i)));
  }
  return {.alive = [this](NodeId node) { return client_->alive(node); },
          .draining = [nodes = std::move(draining)](
                          NodeId node) { return node < nodes.size() && nodes[node]; }};
}

void DBImpl::FollowDirections(RepairOrders* orders) {
  const memnode::Directions directions = reporter_.directions();
  orders->paused = directions.repair_paused;
  orders->bytes_per_second = directions.repair_bytes_per_second != 0
                                 ? directions.repair_bytes_per_second
                                 : live_.repair_bytes_per_second.load();
  std::vector<NodeId> draining;
  std::vector<bool> nodes;
  for (int i = 0; i < client_->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    nodes.push_back(client_->alive(node));
    nodes.push_back(reporter_.draining(node));
    if (nodes.back()) draining.push_back(node);
  }
  orders->changed = nodes != orders->nodes;
  events_.NodesChanged(orders->nodes, nodes, *client_);
  if (orders->changed) space_->SetDraining(std::move(draining));
  orders->nodes = std::move(nodes);
  for (const std::string& address : directions.added_addresses) client_->AddNode(address);
}

void DBImpl::RepairLoop() {
  RepairOrders orders;
  uint64_t look_at_nanos = 0;
  for (;;) {
    {
      MutexLock lock(&mutex_);
      if (!closing_.load(std::memory_order_relaxed)) changed_.WaitFor(kTick);
      if (closing_.load(std::memory_order_relaxed)) return;
    }
    FollowDirections(&orders);
    FollowNodes();
    SettleWrites().IgnoreError();  // Who writes next is told.
    if (events_.listens() && client_->Fenced(database_id_)) {
      events_.Fenced(Status::Fenced(kFencedMessage));
    }
    const uint64_t now = clock_->NowNanos();
    if (!orders.changed && now < look_at_nanos) continue;
    look_at_nanos = now + kLookAroundNanos;
    LeaveLogSegments();
    if (RepairAll(orders)) look_at_nanos = 0;
  }
}

bool DBImpl::RepairAll(const RepairOrders& orders) {
  RepairPass pass;
  {
    const VersionList versions = Versions();
    pass.items = PlanRepair(versions, NodeViewsForRepair());
    if (pass.items.empty()) {
      pass.items = PlanBalance(versions, NodeViewsForRepair(), client_->node_count());
    }
  }
  uint64_t to_do = 0;
  for (const RepairItem& item : pass.items) to_do += item.bytes;
  const bool only_balance = to_do > 0 && pass.items.front().target != kNoNode;
  pass.bytes_per_second = orders.bytes_per_second;
  pass.started_nanos = clock_->NowNanos();
  pass.next_nanos = pass.started_nanos;
  const bool at_risk = TablesAtRisk() > 0;
  {
    MutexLock lock(&mutex_);
    RepairProgress& progress = repair_progress_;
    if (to_do == 0) {
      progress = RepairProgress();
      if (at_risk) progress.state = RepairProgress::State::kRunning;
    } else {
      progress.state =
          orders.paused ? RepairProgress::State::kPaused : RepairProgress::State::kRunning;
      progress.bytes_total = progress.bytes_done + to_do;
      progress.bytes_per_second = 0;
      progress.seconds_left = 0;
    }
  }
  if (to_do == 0 || orders.paused) return false;

  RunTogether("nacre-repair", kRepairWorkers, [&](size_t) { RepairWorker(&pass); });
  RetireUnlinkedViews();

  MutexLock lock(&mutex_);
  const uint64_t nanos = clock_->NowNanos() - pass.started_nanos;
  if (pass.bytes_repaired > 0) {
    events_.Rebuilt({.tables = pass.tables_repaired, .bytes = pass.bytes_repaired});
    Log(options_.info_log, LogLevel::kInfo,
        "{}: repaired {} tables, {} bytes of fragments in {} ms", name_, pass.tables_repaired,
        pass.bytes_repaired, nanos / 1'000'000);
    return true;
  }
  // Without a failure compactions have what there was to do.
  const bool stuck = !only_balance && !pass.failure.ok();
  const bool paused = reporter_.directions().repair_paused;
  repair_progress_.state = paused  ? RepairProgress::State::kPaused
                           : stuck ? RepairProgress::State::kWaiting
                                   : RepairProgress::State::kIdle;
  if (!stuck) return false;
  if (!(repair_failure_ == pass.failure)) {
    repair_failure_ = pass.failure;
    Log(options_.info_log, LogLevel::kWarn, "{}: {} bytes of fragments wait to be repaired: {}",
        name_, to_do, pass.failure.ToString());
  }
  return false;
}

bool DBImpl::TakeBatch(RepairPass* pass, std::vector<RepairItem>* batch) {
  batch->clear();
  uint64_t wait_until = 0;
  {
    MutexLock lock(&mutex_);
    uint64_t bytes = 0;
    while (pass->next < pass->items.size() && batch->size() < kBatchTables &&
           (batch->empty() || bytes + pass->items[pass->next].bytes <= kBatchBytes)) {
      RepairItem& item = pass->items[pass->next++];
      if (item.table->being_compacted) continue;  // It is about to be replaced as a whole.
      bytes += item.bytes;
      batch->push_back(std::move(item));
    }
    if (batch->empty()) return false;
    wait_until = pass->next_nanos;
    if (pass->bytes_per_second > 0) {
      pass->next_nanos = std::max(pass->next_nanos, clock_->NowNanos()) +
                         bytes * 1'000'000'000 / pass->bytes_per_second;
    }
  }
  while (!closing_.load(std::memory_order_relaxed)) {
    const uint64_t now = clock_->NowNanos();
    if (now >= wait_until) break;
    const std::chrono::nanoseconds left(wait_until - now);
    clock_->SleepFor(std::min<std::chrono::nanoseconds>(left, kTick));
  }
  return !closing_.load(std::memory_order_relaxed) && !reporter_.directions().repair_paused;
}

void DBImpl::RepairWorker(RepairPass* pass) {
  std::vector<RepairItem> batch;
  while (TakeBatch(pass, &batch)) RepairBatch(pass, &batch);
}

void DBImpl::RepairBatch(RepairPass* pass, std::vector<RepairItem>* batch) {
  memnode::RebuildJob job;
  job.database_id = database_id_;
  std::vector<RepairItem> items;
  Status status;
  for (RepairItem& item : *batch) {
    const TableMeta& meta = item.table->meta();
    std::vector<ExtentAddr> extents;
    Status s = space_->ReserveFragments(meta.placement, meta.size, item.wanted, &extents);
    if (s.ok() && item.target != kNoNode && extents.front().start.node != item.target) {
      for (const ExtentAddr& extent : extents) space_->Free(extent);
      s = Status::NoSpace(client_->node_address(item.target) + ": has no room for its share");
    }
    if (!s.ok()) {
      if (status.ok()) status = std::move(s);
      continue;
    }
    memnode::TableRebuild& rebuild = job.tables.emplace_back();
    rebuild.table_id = meta.id;
    rebuild.table_bytes = meta.size;
    rebuild.placement = meta.placement;
    for (size_t i = 0, next = 0; i < meta.placement.fragments.size(); ++i) {
      if ((item.wanted >> i & 1) == 0) continue;
      rebuild.fragments.push_back({.fragment = static_cast<int>(i), .to = extents[next++]});
    }
    items.push_back(std::move(item));
  }
  memnode::RebuildResult result;
  if (!items.empty()) {
    NACRE_POINT("repair.space-reserved");
    // Where the first of them goes: as a rule, where all go.
    const NodeId executor = job.tables.front().fragments.front().to.start.node;
    Status s = live_.compaction == CompactionSite::kCompute
                   ? memnode::RunRebuild(job, store_.get(), &closing_, &result)
                   : client_->Rebuild(executor, job, &closing_, &result);
    if (!s.ok()) result.tables.assign(items.size(), s);
    NACRE_POINT("repair.fragments-written");
  }
  counters_.repair_cpu_nanos.fetch_add(result.cpu_nanos, std::memory_order_relaxed);
  std::vector<RepairedTable> repaired;
  for (size_t i = 0; i < items.size(); ++i) {
    const memnode::TableRebuild& rebuild = job.tables[i];
    Placement placement = rebuild.placement;
    for (const memnode::FragmentRebuild& fragment : rebuild.fragments) {
      placement.fragments[static_cast<size_t>(fragment.fragment)] = fragment.to;
    }
    Status s = result.tables[i];
    std::shared_ptr<TableHandle> moved;
    if (s.ok()) {
      s = items[i].table->OpenMoved(std::move(placement), store_.get(), &moved);
    }
    if (s.ok()) {
      repaired.push_back({.item = std::move(items[i]), .moved = std::move(moved)});
      continue;
    }
    for (const memnode::FragmentRebuild& fragment : rebuild.fragments) space_->Free(fragment.to);
    if (status.ok()) status = std::move(s);
  }
  CommitRepaired(pass, repaired, status);
}

void DBImpl::CommitRepaired(RepairPass* pass, const std::vector<RepairedTable>& repaired,
                            const Status& failure) {
  MutexLock commit(&commit_mutex_);
  std::map<uint32_t, FamilyEdit> edits;
  std::vector<const RepairedTable*> current;
  {
    MutexLock lock(&mutex_);
    if (!failure.ok() && pass->failure.ok()) pass->failure = failure;
    for (const RepairedTable& table : repaired) {
      const std::shared_ptr<TableHandle>& old = table.item.table;
      // It may be gone, or on its way down, or be read by a compaction that will drop it.
      const auto family = families_->by_id.find(old->meta().family);
      if (family == families_->by_id.end() || old->being_compacted ||
          !Holds(family->second->version(), table.item.level, old)) {
        table.moved->MarkReplacedBy(*old);
        continue;
      }
      FamilyEdit& change = edits[family->first];
      change.family = family->second;
      change.edit.removed.push_back(old);
      change.edit.added.push_back({table.item.level, table.moved});
      current.push_back(&table);
    }
  }
  if (edits.empty()) return;
  ManifestEdit change;
  for (const auto& [id, edit] : edits) DescribeTables(edit.edit, &change);
  const Status status = CommitEdit(&change);
  NACRE_POINT("repair.committed");
  MutexLock lock(&mutex_);
  if (!status.ok()) {
    if (pass->failure.ok()) pass->failure = status;
    for (const RepairedTable* table : current) {
      const auto free = [moved = table->moved, old = table->item.table] {
        moved->MarkReplacedBy(*old);
      };
      if (MayBeDurable(status)) {
        uncertain_.emplace_back(free);  // Either placement may be the durable one.
      } else {
        free();
      }
    }
    return;
  }
  manifest_version_ = change.version;
  for (const RepairedTable* table : current) {
    table->item.table->PassDamageTo(*table->moved);
    table->item.table->MarkReplacedBy(*table->moved);
    pass->bytes_repaired += table->item.bytes;
    ++pass->tables_repaired;
    repair_progress_.bytes_done += table->item.bytes;
    counters_.repaired_bytes.fetch_add(table->item.bytes, std::memory_order_relaxed);
  }
  for (const auto& [id, edit] : edits) Install(edit);
  MadeRoom();
  const uint64_t nanos = clock_->NowNanos() - pass->started_nanos + 1;
  RepairProgress& progress = repair_progress_;
  progress.bytes_per_second = pass->bytes_repaired * 1'000'000'000 / nanos;
  const uint64_t left = progress.bytes_total - std::min(progress.bytes_total, progress.bytes_done);
  if (progress.bytes_per_second > 0) progress.seconds_left = left / progress.bytes_per_second + 1;
}

}  // namespace nacre
