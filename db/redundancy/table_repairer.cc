#include "db/redundancy/table_repairer.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include "db/manifest/manifest_edit.h"
#include "db/redundancy/repair_planner.h"
#include "db/version/table_changes.h"
#include "jobs/job_client.h"
#include "jobs/rebuild_job.h"
#include "pool/reports.h"
#include "pool/space/pending_writes.h"
#include "pool/wire/node_stats.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"

namespace nacre {

using pool::RepairProgress;

namespace {

/// How soon a change of the nodes is noticed.
constexpr std::chrono::milliseconds kTick{20};
/// How often the tables are looked through without such a change: one may have come whose nodes
/// were lost while it was made.
constexpr uint64_t kLookAroundNanos = 1'000'000'000;
/// How long a plan holds while the nodes stay as they are: damage is found, and tables come and go.
constexpr uint64_t kPlanNanos = 10'000'000'000;
/// How long a table that could not be repaired comes after the others.
constexpr uint64_t kForgetNanos = 60'000'000'000;
/// Bytes of fragments in one job: few enough to be limited evenly, and to be done again.
constexpr uint64_t kBatchBytes = 16 << 20;
constexpr size_t kBatchTables = 16;
/// Jobs at a time: one for each node that lives, as a node runs one. Fewer than the first would
/// leave a node idle between two jobs.
constexpr size_t kWorkersMin = 2;
constexpr size_t kWorkersMax = 32;
/// How often nodes are asked whether they answer as soon as usual, and how many of them.
constexpr uint64_t kAskNanos = 50'000'000;
constexpr int kAskedMax = 16;

}  // namespace

void TableRepairer::Start() {
  task_.Start(context_.client->PeriodicOn(&pool::Background::repairs), "nacre-repair", kTick,
              PeriodicTask::Begin::kWithRest, [this] { Look(); });
}

RepairProgress TableRepairer::progress() const {
  MutexLock lock(&mutex_);
  return progress_;
}

uint64_t TableRepairer::TablesToRepair() const {
  // This comes first: tables that are made by then are in the version.
  const uint64_t at_risk = context_.tables_begun.AtRisk();
  const uint64_t damage_reports = context_.store.damage_reports();
  return at_risk + PlanRepair(state_->Versions(), look_(), damage_reports).size();
}

void TableRepairer::Look() {
  // A node that is not there may be in maintenance.
  if (!reporter_->has_asked()) return;
  const uint64_t now = context_.clock->NowNanos();
  const uint64_t changes = keeper_->changes();
  if (changes == node_changes_ && now < look_at_nanos_) return;
  node_changes_ = changes;
  look_at_nanos_ = now + kLookAroundNanos;
  const Status status = CatchAll([this] {
    if (RepairAll()) look_at_nanos_ = 0;
    return Status::OK();
  });
  if (!status.ok()) node_changes_ = UINT64_MAX;  // The change is looked at again.
}

RepairPass TableRepairer::PlanPass() {
  RepairPass pass;
  pass.node_changes = keeper_->changes();
  const uint64_t now = context_.clock->NowNanos();
  pass.until_nanos = now + kPlanNanos;
  if (now >= run_.forget_at_nanos) {
    run_.failed.clear();
    run_.forget_at_nanos = now + kForgetNanos;
  }
  const uint64_t damage_reports = context_.store.damage_reports();
  const VersionList versions = state_->Versions();
  const NodeStates nodes = look_();
  pass.items = PlanRepair(versions, nodes, damage_reports);
  std::stable_partition(pass.items.begin(), pass.items.end(), [this](const RepairItem& item) {
    return !run_.failed.contains(item.table->id());
  });
  if (pass.items.empty()) pass.items = PlanBalance(versions, nodes);
  return pass;
}

bool TableRepairer::RepairAll() {
  RepairPass pass = PlanPass();
  uint64_t to_do = 0;
  for (const RepairItem& item : pass.items) to_do += item.bytes;
  const bool only_balance = to_do > 0 && pass.items.front().target != kNoNode;
  if (run_.bytes_repaired == 0) run_.started_nanos = context_.clock->NowNanos();
  const bool paused = reporter_->directions().repair_paused;
  const bool at_risk = context_.tables_begun.AtRisk() > 0;
  {
    MutexLock lock(&mutex_);
    RepairProgress& progress = progress_;
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
    const auto alive = static_cast<size_t>(context_.client->alive_count());
    RunTogether("nacre-repair", std::clamp(alive, kWorkersMin, kWorkersMax),
                [&](size_t) { RepairWorker(&pass); });
    state_->RetireUnlinkedViews();
    if (pass.outdated || pass.bytes_repaired > 0) return true;
  }
  EndRun();
  if (to_do == 0 || paused) return false;

  MutexLock lock(&mutex_);
  // Without a failure compactions have what there was to do.
  const bool stuck = !only_balance && !pass.failure.ok();
  progress_.state = reporter_->directions().repair_paused ? RepairProgress::State::kPaused
                    : stuck                               ? RepairProgress::State::kWaiting
                                                          : RepairProgress::State::kIdle;
  if (stuck && !(failure_ == pass.failure)) {
    failure_ = pass.failure;
    Log(context_.options.info_log, LogLevel::kWarn,
        "{}: {} bytes of fragments wait to be repaired: {}", context_.name, to_do,
        pass.failure.ToString());
  }
  return false;
}

void TableRepairer::EndRun() {
  if (run_.bytes_repaired == 0) return;
  context_.events.Rebuilt({.tables = run_.tables_repaired, .bytes = run_.bytes_repaired});
  Log(context_.options.info_log, LogLevel::kInfo,
      "{}: repaired {} tables, {} bytes of fragments in {} ms", context_.name, run_.tables_repaired,
      run_.bytes_repaired, (context_.clock->NowNanos() - run_.started_nanos) / 1'000'000);
  run_.bytes_repaired = 0;
  run_.tables_repaired = 0;
}

uint64_t TableRepairer::Limit(const pool::Directions& directions) {
  if (directions.repair_bytes_per_second != 0) return directions.repair_bytes_per_second;
  const uint64_t limit = context_.live.repair_bytes_per_second;
  if (limit != kAdaptiveRepair) return limit;
  const uint64_t start = context_.clock->NowNanos();
  {
    MutexLock lock(&mutex_);
    if (start < run_.ask_at_nanos) return run_.rate.bytes_per_second();
    run_.ask_at_nanos = start + kAskNanos;  // No other worker asks them.
  }
  std::vector<AdaptiveRepairRate::Answer> answers;
  for (int i = 0; i < std::min(context_.client->node_count(), kAskedMax); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!context_.client->alive(node)) continue;
    const uint64_t asked = context_.clock->NowNanos();
    pool::NodeStats stats;
    // One that does not answer is about to be lost.
    constexpr auto kLeft = pool::NodeRequests::Late::kLeft;
    if (!pool::GetStats(context_.client, node, &stats, kLeft).ok()) continue;
    answers.push_back({node, context_.clock->NowNanos() - asked});
  }
  MutexLock lock(&mutex_);
  run_.rate.Heard(answers);
  return run_.rate.bytes_per_second();
}

NodeId TableRepairer::BeginOn(const pool::RebuildJob& job, RepairPass* pass) {
  MutexLock lock(&mutex_);
  std::map<NodeId, size_t>& jobs = pass->jobs_on_node;
  NodeId best = job.tables.front().fragments.front().to.start.node;
  for (const pool::TableRebuild& table : job.tables) {
    const NodeId node = table.fragments.front().to.start.node;
    if (jobs[node] < jobs[best]) best = node;
  }
  ++jobs[best];
  return best;
}

void TableRepairer::EndOn(NodeId node, RepairPass* pass) {
  MutexLock lock(&mutex_);
  --pass->jobs_on_node[node];
}

bool TableRepairer::TakeBatch(RepairPass* pass, std::vector<RepairItem>* batch) {
  batch->clear();
  // Nothing is chosen before it may be moved: the most urgent may be another one by then.
  for (;;) {
    const pool::Directions directions = reporter_->directions();
    if (state_->closing.load(std::memory_order_relaxed) || directions.repair_paused) return false;
    const uint64_t bytes_per_second = Limit(directions);
    const uint64_t now = context_.clock->NowNanos();
    uint64_t ready = 0;
    {
      MutexLock lock(&mutex_);
      if (keeper_->changes() != pass->node_changes || now >= pass->until_nanos) {
        pass->outdated = true;
        return false;
      }
      ready = run_.pace.ReadyNanos(bytes_per_second);
      if (now >= ready) return ChooseBatch(pass, now, batch);
    }
    const std::chrono::nanoseconds left(ready - now);
    context_.clock->SleepFor(std::min<std::chrono::nanoseconds>(left, kTick));
  }
}

bool TableRepairer::ChooseBatch(RepairPass* pass, uint64_t now_nanos,
                                std::vector<RepairItem>* batch) {
  uint64_t bytes = 0;
  while (pass->next < pass->items.size() && batch->size() < kBatchTables &&
         (batch->empty() || bytes + pass->items[pass->next].bytes <= kBatchBytes)) {
    RepairItem& item = pass->items[pass->next++];
    if (item.table->being_compacted) continue;  // It is about to be replaced as a whole.
    bytes += item.bytes;
    batch->push_back(std::move(item));
  }
  if (batch->empty()) return false;
  run_.pace.Spend(bytes, now_nanos);
  return true;
}

void TableRepairer::RepairWorker(RepairPass* pass) {
  std::vector<RepairItem> batch;
  while (TakeBatch(pass, &batch)) RepairBatch(pass, &batch);
}

void TableRepairer::RepairBatch(RepairPass* pass, std::vector<RepairItem>* batch) {
  pool::RebuildJob job;
  job.database_id = context_.database_id;
  std::vector<RepairItem> items;
  std::map<uint64_t, uint64_t> failed;  // Bytes, by table.
  Status status;
  for (RepairItem& item : *batch) {
    const TableMeta& meta = item.table->meta();
    failed[meta.id] = item.bytes;
    std::vector<ExtentAddr> extents;
    Status s = context_.space.ReserveFragments(meta.placement, meta.size, item.wanted, &extents);
    if (s.ok() && item.target != kNoNode && extents.front().start.node != item.target) {
      for (const ExtentAddr& extent : extents) context_.space.Free(extent);
      s = Status::NoSpace(context_.client->node_address(item.target) +
                          ": has no room for its share");
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
    const NodeId executor = BeginOn(job, pass);
    bool here = context_.live.compaction == CompactionSite::kCompute;
    Status s;
    if (!here) {
      s = pool::RunOnNode(context_.client, executor, job, &state_->closing, &result, &end);
      // What keeps the node from the job need not keep this process.
      here = !s.ok() && end.ended() && !s.IsFenced() &&
             !state_->closing.load(std::memory_order_relaxed);
    }
    if (here) {
      result = pool::RebuildResult();
      s = pool::RunRebuild(job, &context_.store, &state_->closing, &result);
      context_.space.EndAbandonedWrites();  // Some of the tables may have failed.
    }
    EndOn(executor, pass);
    if (!s.ok()) result.tables.assign(items.size(), s);
    NACRE_POINT("repair.fragments-written");
  }
  context_.counters.repair_cpu_nanos.fetch_add(result.cpu_nanos, std::memory_order_relaxed);
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
    context_.space.Free(end, unused);
    if (status.ok()) status = std::move(s);
  }
  {
    MutexLock lock(&mutex_);
    if (!status.ok() && pass->failure.ok()) pass->failure = status;
    for (const auto& [table, bytes] : failed) {
      run_.failed.insert(table);
      run_.pace.GiveBack(bytes);
    }
  }
  CommitRepaired(pass, repaired);
}

void TableRepairer::CommitRepaired(RepairPass* pass, const std::vector<RepairedTable>& repaired) {
  MutexLock commit(&committer_->mutex);
  std::map<uint32_t, FamilyEdit> edits;
  std::vector<const RepairedTable*> current;
  {
    MutexLock lock(&state_->mutex);
    for (const RepairedTable& table : repaired) {
      const std::shared_ptr<TableHandle>& old = table.item.table;
      // It may be gone, or on its way down, or be read by a compaction that will drop it.
      const auto family = state_->families->by_id.find(old->meta().family);
      if (family == state_->families->by_id.end() || old->being_compacted ||
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
  const Status status = committer_->CommitEdit(&change);
  NACRE_POINT("repair.committed");
  if (!status.ok()) {
    for (const RepairedTable* table : current) {
      // Either placement may be the durable one.
      committer_->Free(
          status, [moved = table->moved, old = table->item.table] { moved->MarkReplacedBy(*old); });
    }
    NoteFailure(pass, status);
    return;
  }
  MutexLock lock(&state_->mutex);
  state_->manifest_version = change.version;
  uint64_t bytes = 0;
  for (const RepairedTable* table : current) {
    table->item.table->PassDamageTo(*table->moved);
    table->item.table->MarkReplacedBy(*table->moved);
    bytes += table->item.bytes;
  }
  for (const auto& [id, edit] : edits) state_->Install(edit);
  state_->MadeRoom();
  context_.counters.repaired_bytes.fetch_add(bytes, std::memory_order_relaxed);
  NoteRepaired(pass, current.size(), bytes);
}

void TableRepairer::NoteFailure(RepairPass* pass, const Status& failure) {
  MutexLock lock(&mutex_);
  if (pass->failure.ok()) pass->failure = failure;
}

void TableRepairer::NoteRepaired(RepairPass* pass, uint64_t tables, uint64_t bytes) {
  MutexLock lock(&mutex_);
  pass->bytes_repaired += bytes;
  run_.bytes_repaired += bytes;
  run_.tables_repaired += tables;
  progress_.bytes_done += bytes;
  const uint64_t millis = (context_.clock->NowNanos() - run_.started_nanos) / 1'000'000 + 1;
  progress_.bytes_per_second = run_.bytes_repaired * 1000 / millis;
  const uint64_t left =
      progress_.bytes_total - std::min(progress_.bytes_total, progress_.bytes_done);
  if (progress_.bytes_per_second == 0) return;
  progress_.seconds_left = left / progress_.bytes_per_second + 1;
}

}  // namespace nacre
