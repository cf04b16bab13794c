#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "db/db_impl.h"
#include "db/redundancy/repair_planner.h"
#include "db/version/table_changes.h"
#include "jobs/job_client.h"
#include "pool/space/pending_writes.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {

namespace {

using pool::RepairProgress;

/// How soon a change of the nodes is noticed.
constexpr std::chrono::milliseconds kTick{20};
/// How often the tables are looked through without such a change: one may have come whose nodes
/// were lost while it was made.
constexpr uint64_t kLookAroundNanos = 1'000'000'000;
/// How long a plan holds while the nodes stay as they are: damage is found, and tables come and go.
constexpr uint64_t kPlanNanos = 10'000'000'000;
/// How long a table that could not be repaired comes after the others.
constexpr uint64_t kForgetNanos = 60'000'000'000;
/// Of fragments in one job: small enough to be limited evenly, and to be done again.
constexpr uint64_t kBatchBytes = 16 << 20;
constexpr size_t kBatchTables = 16;
/// Jobs at a time.
constexpr size_t kRepairWorkers = 2;

}  // namespace

void DBImpl::RepairLoop() {
  RepairRun run;
  uint64_t node_changes = 0;
  uint64_t look_at_nanos = 0;
  for (;;) {
    {
      MutexLock lock(&state_.mutex);
      if (!closing_.load(std::memory_order_relaxed)) changed_.WaitFor(kTick);
      if (closing_.load(std::memory_order_relaxed)) return;
    }
    const uint64_t now = clock_->NowNanos();
    const uint64_t changes = keeper_.changes();
    if (changes == node_changes && now < look_at_nanos) continue;
    node_changes = changes;
    look_at_nanos = now + kLookAroundNanos;
    const Status status = CatchAll([&] {
      if (RepairAll(&run)) look_at_nanos = 0;
      return Status::OK();
    });
    if (!status.ok()) node_changes = UINT64_MAX;  // The change is looked at again.
  }
}

RepairPass DBImpl::PlanPass(RepairRun* run) const {
  RepairPass pass;
  pass.run = run;
  pass.node_changes = keeper_.changes();
  const uint64_t now = clock_->NowNanos();
  pass.until_nanos = now + kPlanNanos;
  if (now >= run->forget_at_nanos) {
    run->failed.clear();
    run->forget_at_nanos = now + kForgetNanos;
  }
  const uint64_t damage_reports = store_->damage_reports();
  const VersionList versions = state_.Versions();
  const NodeStates nodes = LookAtNodes();
  pass.items = PlanRepair(versions, nodes, damage_reports);
  std::stable_partition(pass.items.begin(), pass.items.end(), [run](const RepairItem& item) {
    return !run->failed.contains(item.table->id());
  });
  if (pass.items.empty()) pass.items = PlanBalance(versions, nodes);
  return pass;
}

bool DBImpl::RepairAll(RepairRun* run) {
  RepairPass pass = PlanPass(run);
  uint64_t to_do = 0;
  for (const RepairItem& item : pass.items) to_do += item.bytes;
  const bool only_balance = to_do > 0 && pass.items.front().target != kNoNode;
  if (run->bytes_repaired == 0) run->started_nanos = clock_->NowNanos();
  const bool paused = reporter_.directions().repair_paused;
  const bool at_risk = context_.tables_begun.AtRisk() > 0;
  {
    MutexLock lock(&state_.mutex);
    RepairProgress& progress = repair_progress_;
    if (to_do == 0) {
      progress = RepairProgress();
      if (at_risk) progress.state = RepairProgress::State::kRunning;
    } else {
      progress.state = paused ? RepairProgress::State::kPaused : RepairProgress::State::kRunning;
      progress.bytes_total = progress.bytes_done + to_do;
      progress.seconds_left = 0;
    }
  }
  if (to_do > 0 && !paused) {
    RunTogether("nacre-repair", kRepairWorkers, [&](size_t) { RepairWorker(&pass); });
    state_.RetireUnlinkedViews();
    if (pass.outdated || pass.bytes_repaired > 0) return true;
  }
  EndRun(run);
  if (to_do == 0 || paused) return false;

  MutexLock lock(&state_.mutex);
  // Without a failure compactions have what there was to do.
  const bool stuck = !only_balance && !pass.failure.ok();
  repair_progress_.state = reporter_.directions().repair_paused ? RepairProgress::State::kPaused
                           : stuck                              ? RepairProgress::State::kWaiting
                                                                : RepairProgress::State::kIdle;
  if (stuck && !(repair_failure_ == pass.failure)) {
    repair_failure_ = pass.failure;
    Log(options_.info_log, LogLevel::kWarn, "{}: {} bytes of fragments wait to be repaired: {}",
        name_, to_do, pass.failure.ToString());
  }
  return false;
}

void DBImpl::EndRun(RepairRun* run) {
  if (run->bytes_repaired == 0) return;
  events_.Rebuilt({.tables = run->tables_repaired, .bytes = run->bytes_repaired});
  Log(options_.info_log, LogLevel::kInfo, "{}: repaired {} tables, {} bytes of fragments in {} ms",
      name_, run->tables_repaired, run->bytes_repaired,
      (clock_->NowNanos() - run->started_nanos) / 1'000'000);
  run->bytes_repaired = 0;
  run->tables_repaired = 0;
}

bool DBImpl::TakeBatch(RepairPass* pass, std::vector<RepairItem>* batch) {
  batch->clear();
  // Nothing is chosen before it may be moved: the most urgent may be another one by then.
  for (;;) {
    const pool::Directions directions = reporter_.directions();
    if (closing_.load(std::memory_order_relaxed) || directions.repair_paused) return false;
    const uint64_t bytes_per_second = directions.repair_bytes_per_second != 0
                                          ? directions.repair_bytes_per_second
                                          : live_.repair_bytes_per_second.load();
    const uint64_t now = clock_->NowNanos();
    uint64_t ready = 0;
    {
      MutexLock lock(&state_.mutex);
      if (keeper_.changes() != pass->node_changes || now >= pass->until_nanos) {
        pass->outdated = true;
        return false;
      }
      ready = pass->run->pace.ReadyNanos(bytes_per_second);
      if (now >= ready) return ChooseBatch(pass, now, batch);
    }
    const std::chrono::nanoseconds left(ready - now);
    clock_->SleepFor(std::min<std::chrono::nanoseconds>(left, kTick));
  }
}

bool DBImpl::ChooseBatch(RepairPass* pass, uint64_t now_nanos, std::vector<RepairItem>* batch) {
  uint64_t bytes = 0;
  while (pass->next < pass->items.size() && batch->size() < kBatchTables &&
         (batch->empty() || bytes + pass->items[pass->next].bytes <= kBatchBytes)) {
    RepairItem& item = pass->items[pass->next++];
    if (item.table->being_compacted) continue;  // It is about to be replaced as a whole.
    bytes += item.bytes;
    batch->push_back(std::move(item));
  }
  if (batch->empty()) return false;
  pass->run->pace.Spend(bytes, now_nanos);
  return true;
}

void DBImpl::RepairWorker(RepairPass* pass) {
  std::vector<RepairItem> batch;
  while (TakeBatch(pass, &batch)) RepairBatch(pass, &batch);
}

void DBImpl::RepairBatch(RepairPass* pass, std::vector<RepairItem>* batch) {
  pool::RebuildJob job;
  job.database_id = database_id_;
  std::vector<RepairItem> items;
  std::map<uint64_t, uint64_t> failed;  // Bytes, by table.
  Status status;
  for (RepairItem& item : *batch) {
    const TableMeta& meta = item.table->meta();
    failed[meta.id] = item.bytes;
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
    pool::TableRebuild& rebuild = job.tables.emplace_back();
    rebuild.table_id = meta.id;
    rebuild.table_bytes = meta.size;
    rebuild.placement = meta.placement;
    for (size_t i = 0, next = 0; i < meta.placement.fragments.size(); ++i) {
      if ((item.wanted >> i & 1) == 0) continue;
      rebuild.fragments.push_back({.fragment = static_cast<int>(i), .to = extents[next++]});
    }
    items.push_back(std::move(item));
  }
  pool::RebuildResult result;
  pool::JobEnd end;
  if (!items.empty()) {
    NACRE_POINT("repair.space-reserved");
    // Where the first of them goes: as a rule, where all go.
    const NodeId executor = job.tables.front().fragments.front().to.start.node;
    bool here = live_.compaction == CompactionSite::kCompute;
    Status s;
    if (!here) {
      s = pool::RunOnNode(client_, executor, job, &closing_, &result, &end);
      // What keeps the node from the job need not keep this process.
      here = !s.ok() && end.ended() && !s.IsFenced() && !closing_.load(std::memory_order_relaxed);
    }
    if (here) {
      result = pool::RebuildResult();
      s = pool::RunRebuild(job, store_, &closing_, &result);
      space_->EndAbandonedWrites();  // Some of the tables may have failed.
    }
    if (!s.ok()) result.tables.assign(items.size(), s);
    NACRE_POINT("repair.fragments-written");
  }
  counters_.repair_cpu_nanos.fetch_add(result.cpu_nanos, std::memory_order_relaxed);
  std::vector<RepairedTable> repaired;
  for (size_t i = 0; i < items.size(); ++i) {
    const pool::TableRebuild& rebuild = job.tables[i];
    Placement placement = rebuild.placement;
    for (const pool::FragmentRebuild& fragment : rebuild.fragments) {
      placement.fragments[static_cast<size_t>(fragment.fragment)] = fragment.to;
    }
    Status s = result.tables[i];
    std::shared_ptr<TableHandle> moved;
    if (s.ok()) {
      s = items[i].table->OpenMoved(std::move(placement), &moved);
    }
    if (s.ok()) {
      failed.erase(rebuild.table_id);
      repaired.push_back({.item = std::move(items[i]), .moved = std::move(moved)});
      continue;
    }
    std::vector<ExtentAddr> unused;
    for (const pool::FragmentRebuild& fragment : rebuild.fragments) {
      unused.push_back(fragment.to);
    }
    space_->Free(end, unused);
    if (status.ok()) status = std::move(s);
  }
  {
    MutexLock lock(&state_.mutex);
    for (const auto& [table, bytes] : failed) {
      pass->run->failed.insert(table);
      pass->run->pace.GiveBack(bytes);
    }
  }
  CommitRepaired(pass, repaired, status);
}

void DBImpl::CommitRepaired(RepairPass* pass, const std::vector<RepairedTable>& repaired,
                            const Status& failure) {
  MutexLock commit(&commit_mutex_);
  std::map<uint32_t, FamilyEdit> edits;
  std::vector<const RepairedTable*> current;
  {
    MutexLock lock(&state_.mutex);
    if (!failure.ok() && pass->failure.ok()) pass->failure = failure;
    for (const RepairedTable& table : repaired) {
      const std::shared_ptr<TableHandle>& old = table.item.table;
      // It may be gone, or on its way down, or be read by a compaction that will drop it.
      const auto family = state_.families->by_id.find(old->meta().family);
      if (family == state_.families->by_id.end() || old->being_compacted ||
          !family->second->version().Has(table.item.level, old)) {
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
  MutexLock lock(&state_.mutex);
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
  state_.manifest_version = change.version;
  for (const RepairedTable* table : current) {
    table->item.table->PassDamageTo(*table->moved);
    table->item.table->MarkReplacedBy(*table->moved);
    pass->bytes_repaired += table->item.bytes;
    pass->run->bytes_repaired += table->item.bytes;
    ++pass->run->tables_repaired;
    repair_progress_.bytes_done += table->item.bytes;
    counters_.repaired_bytes.fetch_add(table->item.bytes, std::memory_order_relaxed);
  }
  for (const auto& [id, edit] : edits) state_.Install(edit);
  state_.MadeRoom();
  const uint64_t millis = (clock_->NowNanos() - pass->run->started_nanos) / 1'000'000 + 1;
  RepairProgress& progress = repair_progress_;
  progress.bytes_per_second = pass->run->bytes_repaired * 1000 / millis;
  const uint64_t left = progress.bytes_total - std::min(progress.bytes_total, progress.bytes_done);
  if (progress.bytes_per_second > 0) progress.seconds_left = left / progress.bytes_per_second + 1;
}

}  // namespace nacre
