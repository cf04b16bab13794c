#include "db/redundancy/scrubber.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <set>
#include <utility>

#include "jobs/job_client.h"
#include "util/log.h"

namespace nacre {
namespace {

constexpr auto kTableScrubRest = std::chrono::seconds(60);
constexpr auto kRetryPause = std::chrono::milliseconds(200);
/// Failures of one node in a row, in one pass.
constexpr int kFailuresMax = 10;
/// A batch keeps its tables' space from being given back.
constexpr uint64_t kBatchBytesMax = 256 << 20;
constexpr size_t kBatchFragmentsMax = 1024;
constexpr size_t kNamedMax = 5;

FragmentSet LostFragments(const Placement& placement, const pool::PoolClient& client) {
  FragmentSet lost = 0;
  for (size_t i = 0; i < placement.fragments.size(); ++i) {
    if (!client.alive(placement.fragments[i].start.node)) lost |= FragmentSet{1} << i;
  }
  return lost;
}

}  // namespace

void Scrubber::Start(uint64_t bytes_per_second) {
  if (bytes_per_second == 0) return;
  task_.Start(database_.client->PeriodicOn(&pool::Background::table_scrubs), "nacre-scrub",
              kTableScrubRest, PeriodicTask::Begin::kWithWork,
              [this, bytes_per_second] { ScrubOnce(bytes_per_second); });
}

void Scrubber::Stop() {
  {
    MutexLock lock(&mutex_);
    stopping_.store(true, std::memory_order_release);
    interrupted_.store(true, std::memory_order_release);
    changed_.SignalAll();
  }
  task_.Stop();
}

void Scrubber::ScrubOnce(uint64_t bytes_per_second) {
  for (;;) {
    {
      MutexLock lock(&mutex_);
      while (verifying_ > 0 && !stopping_.load(std::memory_order_relaxed)) changed_.Wait();
      if (stopping_.load(std::memory_order_relaxed)) return;
      interrupted_.store(false, std::memory_order_relaxed);
    }
    Pass pass;
    pass.bytes_per_second = bytes_per_second;
    pass.cancelled = &interrupted_;
    const Status status = RunPass(&pass);
    if (!status.ok() && !status.IsAborted()) {
      Log(database_.log, LogLevel::kError, "{}: scrub: {}", database_.name, status.ToString());
    }
    // It makes way for VerifyNow, and begins anew after that.
    if (!status.IsAborted() || !interrupted_.load(std::memory_order_acquire)) return;
  }
}

Status Scrubber::VerifyNow() {
  {
    MutexLock lock(&mutex_);
    ++verifying_;
    interrupted_.store(true, std::memory_order_release);
  }
  Pass pass;
  pass.cancelled = &stopping_;
  Status status = RunPass(&pass);
  MutexLock lock(&mutex_);
  --verifying_;
  changed_.SignalAll();
  return status;
}

Status Scrubber::RunPass(Pass* pass) {
  std::set<NodeId> nodes;
  ForEachTable(database_.versions(), [&](const auto& table, int /*level*/) {
    pass->tables.push_back(table->shared_meta());
    for (const ExtentAddr& fragment : table->meta().placement.fragments) {
      nodes.insert(fragment.start.node);
    }
  });
  const std::vector<NodeId> each(nodes.begin(), nodes.end());
  RunTogether("nacre-scrub", each.size(), [&](size_t i) { ScrubNode(pass, each[i]); });
  return Judge(pass);
}

void Scrubber::ScrubNode(Pass* pass, NodeId node) {
  int failures = 0;
  for (size_t next = 0;;) {
    size_t after = next;
    const Batch batch = NextBatch(*pass, node, &after);
    if (batch.job.fragments.empty()) return;
    if (!database_.client->alive(node)) return;  // It has nothing that could be checked.
    pool::ScrubResult result;
    const Status status =
        pool::RunOnNode(database_.client, node, batch.job, pass->cancelled, &result);
    if (status.ok()) {
      Report(pass, node, batch, result);
      next = after;
      failures = 0;
      continue;
    }
    const bool may_pass = status.IsUnavailable() || status.IsTimedOut() || status.IsBusy();
    if (may_pass && ++failures < kFailuresMax) {
      database_.clock->SleepFor(kRetryPause);
      continue;
    }
    MutexLock lock(&pass->mutex);
    if (pass->failure.ok()) pass->failure = status;
    return;
  }
}

Scrubber::Batch Scrubber::NextBatch(const Pass& pass, NodeId node, size_t* next) const {
  const VersionList versions = database_.versions();
  Batch batch;
  batch.job.database_id = database_.id;
  batch.job.bytes_per_second = pass.bytes_per_second;
  const uint64_t most =
      pass.bytes_per_second == 0 ? kBatchBytesMax : std::min(kBatchBytesMax, pass.bytes_per_second);
  uint64_t bytes = 0;
  for (; *next < pass.tables.size(); ++*next) {
    if (bytes >= most || batch.tables.size() >= kBatchFragmentsMax) break;
    const TableMeta& meta = *pass.tables[*next];
    const auto& fragments = meta.placement.fragments;
    const bool here =
        std::any_of(fragments.begin(), fragments.end(),
                    [node](const ExtentAddr& fragment) { return fragment.start.node == node; });
    if (!here) continue;
    // Fragments that were moved since the pass began have just been made.
    const std::shared_ptr<TableHandle> table = FindTable(versions, meta);
    if (table == nullptr) continue;
    const Placement& placement = table->meta().placement;
    for (size_t i = 0; i < placement.fragments.size(); ++i) {
      if (placement.fragments[i].start.node != node) continue;
      batch.job.fragments.push_back(
          {.table_id = table->id(),
           .fragment = static_cast<uint32_t>(i),
           .extent = placement.fragments[i],
           .bytes = FragmentBytes(placement, static_cast<int>(i), table->size())});
      batch.tables.push_back(table);
      bytes += batch.job.fragments.back().bytes;
    }
  }
  return batch;
}

void Scrubber::Report(Pass* pass, NodeId node, const Batch& batch,
                      const pool::ScrubResult& result) {
  counters_.bytes.fetch_add(result.bytes, std::memory_order_relaxed);
  counters_.fragments.fetch_add(result.damaged.size(), std::memory_order_relaxed);
  for (const pool::FragmentDamage& damage : result.damaged) {
    const std::shared_ptr<TableHandle>& table = batch.tables[damage.index];
    const uint32_t fragment = batch.job.fragments[damage.index].fragment;
    const FragmentSet set = FragmentSet{1} << fragment;
    table->ReportDamage(set);
    for (const uint64_t chunk : damage.chunks) table->ReportDamage(set, chunk);
    Log(database_.log, LogLevel::kError,
        "{}: {}: fragment {} of table {} is damaged: {} chunks{}{}", database_.name,
        database_.client->node_address(node), fragment, table->id(), damage.chunks.size(),
        damage.head ? ", head" : "", damage.tail ? ", checksums" : "");
    MutexLock lock(&pass->mutex);
    DamagedTable& damaged = pass->damaged[table->id()];
    damaged.table = table;
    for (const uint64_t chunk : damage.chunks) damaged.rows[chunk] |= set;
  }
}

Status Scrubber::Judge(Pass* pass) {
  MutexLock lock(&pass->mutex);
  NACRE_RETURN_IF_ERROR(pass->failure);
  std::string damaged;
  size_t named = 0;
  for (const auto& [id, found] : pass->damaged) {
    const Placement& placement = found.table->meta().placement;
    const FragmentSet lost = LostFragments(placement, *database_.client);
    for (const auto& [row, fragments] : found.rows) {
      if (std::popcount(lost | fragments) <= placement.redundancy.parity) continue;
      if (++named <= kNamedMax)
        damaged += fmt::format("{}table {}", damaged.empty() ? "" : ", ", id);
      break;
    }
  }
  if (named > kNamedMax) damaged += fmt::format(" and {} more", named - kNamedMax);
  if (named > 0) return Status::Corruption("more damage than can be read around: " + damaged);
  Status lost_tables;
  ForEachTable(database_.versions(), [&](const auto& table, int /*level*/) {
    const Placement& placement = table->meta().placement;
    const FragmentSet lost = LostFragments(placement, *database_.client);
    if (std::popcount(lost) <= placement.redundancy.parity || !lost_tables.ok()) return;
    lost_tables =
        Status::Unavailable(fmt::format("table {} has lost {} of {} fragments", table->id(),
                                        std::popcount(lost), placement.fragments.size()));
  });
  NACRE_RETURN_IF_ERROR(lost_tables);
  counters_.passes.fetch_add(1, std::memory_order_relaxed);
  return Status::OK();
}

}  // namespace nacre
