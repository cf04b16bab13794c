#include "db/compaction/compaction_runner.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "db/compaction/manual_compaction.h"
#include "db/space/reserved_outputs.h"
#include "db/version/table_changes.h"
#include "nacre/statistics.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre {

CompactionRunner::CompactionRunner(DatabaseContext* context, DatabaseState* state,
                                   StateCommitter* committer, WriteController* controller)
    : context_(*context),
      state_(state),
      committer_(committer),
      controller_(controller),
      ranges_(context, state),
      executor_(context->client->threads()->NewExecutor(context->live.most_compactions(),
                                                        "nacre-compact")) {}

void CompactionRunner::Schedule() {
  state_->mutex.AssertHeld();
  BackgroundWork& work = state_->work;
  if (work.pauses > 0 || work.compactions_held > 0) return;
  if (state_->closing.load(std::memory_order_relaxed)) return;
  if (work.compactions_running >= context_.live.most_compactions()) return;
  if (!state_->CompactionDue()) return;
  // What cannot be scheduled is not running; the task begins with the mutex.
  executor_->Schedule([this] { Loop(); });
  ++work.compactions_running;
}

std::unique_ptr<Compaction> CompactionRunner::Pick() {
  const auto& families = state_->families->by_id;
  auto next = families.upper_bound(state_->work.last_compacted);
  for (size_t i = 0; i < families.size(); ++i, ++next) {
    if (next == families.end()) next = families.begin();
    std::unique_ptr<Compaction> compaction =
        next->second->picker().Pick(next->second->current_view()->version);
    if (compaction == nullptr) continue;
    compaction->family = next->second;
    state_->work.last_compacted = next->first;
    return compaction;
  }
  return nullptr;
}

void CompactionRunner::Loop() {
  int failures = 0;
  for (;;) {
    std::unique_ptr<Compaction> compaction;
    uint64_t room = 0;
    {
      MutexLock commit(&committer_->mutex);  // What is being changed is not picked.
      MutexLock lock(&state_->mutex);
      room = state_->work.room_made;
      if (!state_->closing.load(std::memory_order_relaxed) && state_->work.compactions_held == 0 &&
          state_->work.pauses == 0 &&
          state_->work.compactions_running <= context_.live.most_compactions()) {
        try {
          compaction = Pick();
          // Each piece reserves room for its worst case, which may be what was missing.
          if (compaction != nullptr && failures > 0) compaction->max_subcompactions = 1;
        } catch (...) {
          // A comparator that throws has none picked until something changes.
        }
      }
      if (compaction == nullptr) {
        --state_->work.compactions_running;
        state_->changed.SignalAll();
        return;
      }
      try {
        state_->MaybeSchedule();  // Perhaps another one can run beside this one.
      } catch (...) {
        // This one looks for the next one itself when it has ended.
      }
    }
    const Status status = RunAndCommit(compaction.get());
    compaction.reset();
    state_->RetireUnlinkedViews();
    MutexLock lock(&state_->mutex);
    if (status.ok()) {
      failures = 0;
      state_->MadeRoom();
    } else if (!state_->closing.load(std::memory_order_relaxed) && state_->work.room_made == room) {
      ++state_->work.compactions_stuck;
      context_.events.WorkFailed(BackgroundErrorReason::kCompaction, status);
      state_->changed.SignalAll();  // A waiter for room may wait in vain now.
      state_->BackOff(DatabaseState::Work::kCompaction, ++failures, room);
      if (state_->work.room_made == room) --state_->work.compactions_stuck;
    }
  }
}

Status CompactionRunner::RunAndCommit(Compaction* compaction) {
  std::optional<uint64_t> begun;
  bool released = false;
  Status status = CatchAll([&] {
    begun = context_.tables_begun.Begin();
    return TryCompaction(compaction, &released);
  });
  if (begun.has_value()) context_.tables_begun.End(*begun);
  if (released) [[likely]]
    return status;
  // It threw. What it had reserved and written is free, unless it was about to be recorded.
  MutexLock lock(&state_->mutex);
  compaction->family->picker().Release(*compaction);
  ++state_->work.compactions_ended;
  state_->work.compaction_error = status;
  state_->changed.SignalAll();
  return status;
}

Status CompactionRunner::TryCompaction(Compaction* compaction, bool* released) {
  const uint64_t start = context_.clock->NowNanos();
  FamilyEdit change_of_family{.family = compaction->family, .edit = {}};
  VersionEdit& edit = change_of_family.edit;
  Status status;
  UnseenTables outputs;
  const bool move = compaction->IsTrivialMove();
  if (move) {
    for (const auto& table : compaction->inputs) {
      edit.added.push_back({compaction->output_level, table});
    }
    context_.events.CompactionBegins(*compaction, change_of_family.job, move);
  } else {
    const std::vector<std::string> cuts = ranges_.Cut(*compaction);
    const TableLineage lineage = LineageOf(*compaction, cuts.size() + 1);
    change_of_family.job = lineage.job;
    context_.events.CompactionBegins(*compaction, lineage.job, move);
    outputs.lists()->resize(cuts.size() + 1);
    std::vector<Status> statuses(cuts.size() + 1);
    RunTogether("nacre-compact", cuts.size() + 1, [&](size_t i) {
      std::optional<std::string> begin;
      std::optional<std::string> end;
      if (i > 0) begin = cuts[i - 1];
      if (i < cuts.size()) end = cuts[i];
      TableLineage of_range = lineage;
      of_range.range = static_cast<uint32_t>(i);
      statuses[i] = CatchAll(
          [&] { return ranges_.Run(*compaction, of_range, begin, end, &(*outputs.lists())[i]); });
    });
    for (size_t i = 0; i <= cuts.size(); ++i) {
      if (status.ok()) status = statuses[i];
      for (const auto& table : (*outputs.lists())[i]) {
        edit.added.push_back({compaction->output_level, table});
      }
    }
  }
  edit.removed = compaction->inputs;
  edit.removed.insert(edit.removed.end(), compaction->overlap.begin(), compaction->overlap.end());

  NACRE_POINT("compaction.tables-written");
  if (status.ok()) {
    ManifestEdit change;
    outputs.Keep();
    status = committer_->Commit({&change_of_family, 1}, &change, [&]() REQUIRES(state_->mutex) {
      // A moved table is removed from one level and added to another; Apply does both.
      state_->Install(change_of_family);
      context_.events.CompactionCompleted(*compaction, change_of_family, move, Status::OK(),
                                          context_.clock->NowNanos() - start);
    });
    if (!status.ok() && !move) committer_->GiveUp({&change_of_family, 1}, status);
  } else {
    outputs.Drop();
  }
  // One that was cancelled needs no explanation, for which the nodes would be asked.
  const bool cancelled = status.IsAborted() && state_->closing.load(std::memory_order_relaxed);
  if (!cancelled) status = context_.ExplainFailure(std::move(status));
  NACRE_POINT("compaction.committed");
  if (status.ok() && edit.added.empty()) committer_->RecordState();  // Before the inputs are free.
  {
    MutexLock lock(&state_->mutex);
    compaction->family->picker().Release(*compaction);
    ++state_->work.compactions_ended;
    *released = true;
    state_->work.compaction_error = status;
    if (status.ok()) {
      if (!move) {
        for (const auto& table : edit.removed) {
          if (NACRE_PLANTED_BUG("table.freed-while-a-reader-pins-it")) {
            context_.space.Free(table->meta().placement);
          } else {
            table->MarkDropped();
          }
        }
      }
      (move ? context_.counters.trivial_moves : context_.counters.compactions)
          .fetch_add(1, std::memory_order_relaxed);
      controller_->Update();
      state_->MaybeSchedule();
    }
    state_->changed.SignalAll();
  }
  if (!status.ok()) {
    context_.events.CompactionCompleted(*compaction, change_of_family, move, status,
                                        context_.clock->NowNanos() - start);
  }
  if (status.ok() && !move) {
    context_.point_tiers.Rebalance();
    if (context_.options.statistics != nullptr) {
      context_.options.statistics->reportTimeToHistogram(
          COMPACTION_TIME, (context_.clock->NowNanos() - start) / 1000);
      context_.options.statistics->recordInHistogram(
          NUM_FILES_IN_SINGLE_COMPACTION, compaction->inputs.size() + compaction->overlap.size());
    }
  }
  Log(context_.options.info_log, status.ok() ? LogLevel::kInfo : LogLevel::kError,
      "{}: compacted level {} to {} of column family {}: {}+{} tables to {} in {} ms: {}",
      context_.name, compaction->level, compaction->output_level, compaction->family->name(),
      compaction->inputs.size(), compaction->overlap.size(), edit.added.size(),
      (context_.clock->NowNanos() - start) / 1'000'000, status.ToString());
  return status;
}

TableLineage CompactionRunner::LineageOf(const Compaction& compaction, size_t ranges) {
  TableLineage lineage;
  VersionList versions;
  {
    MutexLock lock(&state_->mutex);
    lineage = state_->BeginLineage(TableLineage::Kind::kCompaction);
    versions = state_->CurrentVersions();
  }
  AddTables(versions, &lineage);
  lineage.ranges = static_cast<uint32_t>(ranges);
  for (const TableList* inputs : {&compaction.inputs, &compaction.overlap}) {
    for (const auto& table : *inputs) lineage.inputs.push_back(table->id());
  }
  return lineage;
}

void CompactionRunner::MakeRoom() {
  bool snapshots_changed = false;
  bool pool_full = false;
  std::shared_ptr<const ColumnFamilySet> families;
  {
    MutexLock lock(&state_->mutex);
    if (state_->work.manual_compactions > 0 || state_->closing.load(std::memory_order_relaxed))
      return;
    ++state_->work.manual_compactions;
    ++state_->work.compactions_held;
    // Those that wait to be tried again end.
    state_->changed.SignalAll();
    while (state_->work.compactions_running > 0) state_->changed.Wait();
    std::vector<SequenceNumber> snapshots = state_->snapshots.Sequences();
    snapshots_changed = snapshots != snapshots_at_last_rewrite_;
    snapshots_at_last_rewrite_ = std::move(snapshots);
    families = state_->families;
    pool_full = state_->work.pool_full;
  }
  for (const auto& [id, family] : families->by_id) {
    if (family->options().disable_auto_compactions) continue;
    int depth = 0;
    {
      MutexLock lock(&state_->mutex);
      depth = family->version().depth();
    }
    ManualCompaction compaction(this, family.get(), nullptr, nullptr);
    // What they answer is in the LOG.
    CatchAll([&] { return compaction.CompactLevel(0); }).IgnoreError();
    for (int level = 1; level + 1 < depth; ++level) {
      CatchAll([&] { return compaction.SinkTombstones(level); }).IgnoreError();
    }
    // Level 0 is merged with level 1, in the less room the less there is of it.
    if (pool_full && depth > 2) CatchAll([&] { return compaction.CompactLevel(1); }).IgnoreError();
    // Versions that snapshots held are garbage once these are released; while they are not,
    // writing the tables anew would free nothing.
    for (int level = 1; snapshots_changed && level < std::max(depth, 2); ++level) {
      CatchAll([&] { return compaction.RewriteGarbage(level); }).IgnoreError();
    }
  }
  context_.epochs.Collect();
  MutexLock lock(&state_->mutex);
  --state_->work.manual_compactions;
  --state_->work.compactions_held;
  state_->MaybeSchedule();
  state_->changed.SignalAll();
}

}  // namespace nacre
