#include "db/compaction/manual_compaction.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "db/compaction/compaction_runner.h"
#include "db/compaction/job_plugins.h"
#include "db/space/pool_room.h"
#include "util/exceptions.h"

namespace nacre {
namespace {

/// The size of a piece, with what it overlaps: as many bytes as so many tables that it may make.
/// RocksDB's `max_compaction_bytes` is as much.
constexpr uint64_t kPieceTables = 25;
/// Times that a piece is tried again.
constexpr int kRetriesMax = 5;

/// The least level that tables of `level` may move to: all levels from there on are empty, and each
/// is meant to have as many bytes.
int LeastFitting(const Version& version, const CompactionPicker& picker, int level) {
  int least = level;
  while (least > 1 && version.CountTables(least - 1) == 0 &&
         picker.MaxLevelBytes(least - 1) >= version.LevelBytes(level)) {
    --least;
  }
  return least;
}

/// Whether levels between the two, and `to` itself, are empty.
bool WayIsEmpty(const Version& version, int from, int to) {
  const int step = to > from ? 1 : -1;
  for (int level = from; level != to;) {
    level += step;
    if (version.CountTables(level) > 0) return false;
  }
  return true;
}

}  // namespace

Status ManualCompaction::Check() const {
  state_->mutex.AssertHeld();
  if (state_->closing.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
  return state_->work.manual_running == 0 ? Status::OK() : state_->work.CheckManual();
}

bool ManualCompaction::MayPass(const Status& status) const {
  state_->mutex.AssertHeld();
  if (!Check().ok()) return false;
  if (status.IsNoSpace()) {
    return state_->work.compactions_running > state_->work.compactions_stuck;
  }
  return status.IsUnavailable() || status.IsTimedOut() || status.IsBusy();
}

std::shared_ptr<const Version> ManualCompaction::HoldVersion() const {
  MutexLock lock(&state_->mutex);
  return family_->current_view()->version;
}

Status ManualCompaction::CompactLevels() {
  {
    MutexLock lock(&state_->mutex);
    while ((state_->work.manual_compactions > 0 || state_->work.pauses > 0) &&
           state_->work.manual_bans == 0 && !state_->closing.load(std::memory_order_relaxed)) {
      state_->changed.Wait();
    }
    if (state_->closing.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
    NACRE_RETURN_IF_ERROR(state_->work.CheckManual());
    ++state_->work.manual_compactions;
    ++state_->work.manual_running;
  }
  const Status status = CatchAll([this] { return CompactAllLevels(); });
  context_.epochs.Collect();
  MutexLock lock(&state_->mutex);
  --state_->work.manual_compactions;
  --state_->work.manual_running;
  state_->MaybeSchedule();
  state_->changed.SignalAll();
  return status;
}

Status ManualCompaction::CompactAllLevels() {
  // Other compactions may make it deeper meanwhile.
  for (int level = 0; level + 1 < std::max(HoldVersion()->depth(), 2); ++level) {
    NACRE_RETURN_IF_ERROR(CompactLevel(level));
  }
  const int depth = HoldVersion()->depth();
  return depth > 1 ? RewriteGarbage(depth - 1) : Status::OK();
}

Status ManualCompaction::MoveDeepestLevel(int target) {
  NACRE_RETURN_IF_ERROR(state_->PauseWork());
  const Status status = CatchAll([&] { return ChangeLevel(target); });
  state_->ContinueWork().IgnoreError();  // It is paused.
  return status;
}

Status ManualCompaction::ChangeLevel(int target) {
  FamilyEdit change;
  {
    MutexLock commit(&committer_->mutex);  // What is being changed is not picked.
    MutexLock lock(&state_->mutex);
    if (state_->closing.load(std::memory_order_relaxed)) return Status::ShutdownInProgress();
    NACRE_RETURN_IF_ERROR(PickMove(target, &change));
    if (change.edit.removed.empty()) return Status::OK();
    ++state_->work.manual_compactions;
    ++state_->work.manual_running;
  }
  const TableList moved = change.edit.removed;  // No tables of a dropped family are left there.
  ManifestEdit edit;
  Status status = CatchAll([&] {
    return committer_->Commit({&change, 1}, &edit,
                              [&]() REQUIRES(state_->mutex) { state_->Install(change); });
  });
  state_->RetireUnlinkedViews();
  MutexLock lock(&state_->mutex);
  for (const auto& table : moved) table->being_compacted = false;
  --state_->work.manual_compactions;
  --state_->work.manual_running;
  controller_->Update();
  state_->changed.SignalAll();
  return status;
}

Status ManualCompaction::PickMove(int target, FamilyEdit* change) {
  state_->mutex.AssertHeld();
  const auto held = state_->families->by_id.find(family_->id());
  if (held == state_->families->by_id.end()) return Status::OK();
  const Version& version = *family_->current_view()->version;
  if (target >= version.num_levels()) {
    return Status::InvalidArgument("CompactRangeOptions::target_level is " +
                                   std::to_string(target) + ", and there are " +
                                   std::to_string(version.num_levels()) + " levels");
  }
  const int level = version.depth() - 1;
  if (level < 1 || version.sorted_level(level).Overlapping(begin_, end_).empty()) {
    return Status::OK();
  }
  const int to = target < 0 ? LeastFitting(version, family_->picker(), level) : target;
  if (to == 0 || !WayIsEmpty(version, level, to)) {
    return Status::NotSupported("CompactRangeOptions::change_level from level " +
                                std::to_string(level) + " to " + std::to_string(to) +
                                (to == 0 ? "" : ": the levels on the way are not empty"));
  }
  if (to == level) return Status::OK();
  VersionEdit edit;
  for (const auto& table : version.sorted_level(level).tables()) {
    if (table->being_compacted) return Status::Busy("a table of the level is being compacted");
    edit.removed.push_back(table);
    edit.added.push_back({to, table});
  }
  for (const auto& table : edit.removed) table->being_compacted = true;
  *change = {.family = held->second, .edit = std::move(edit)};
  return Status::OK();
}

Status ManualCompaction::Compact(int level, int output_level, const Slice* begin,
                                 const Slice* end) {
  CompactionPicker::Range range{
      .level = level, .output_level = output_level, .begin = begin, .end = end};
  {
    MutexLock lock(&state_->mutex);
    range.bytes_max = kPieceTables * family_->picker().TargetTableBytes(output_level);
  }
  bool ended = false;
  while (!ended) {
    NACRE_RETURN_IF_ERROR(CompactPiece(&range, &ended));
    // What is flushed to level 0 from now on was not asked for.
    if (level == 0) return Status::OK();
  }
  return Status::OK();
}

Status ManualCompaction::CompactPiece(CompactionPicker::Range* range, bool* ended) {
  uint64_t least_bytes = UINT64_MAX;
  bool uncut = false;
  for (int failures = 0;;) {
    std::unique_ptr<Compaction> compaction;
    uint64_t room = 0;
    NACRE_RETURN_IF_ERROR(Pick(*range, &compaction, &room));
    if (compaction == nullptr) {
      *ended = true;
      return Status::OK();
    }
    compaction->max_subcompactions = uncut ? 1 : max_subcompactions_;
    compaction->manual = true;
    const size_t tables = compaction->inputs.size();
    const uint64_t bytes = compaction->InputBytes();
    Status status = runner_->RunAndCommit(compaction.get());
    std::string last = UserKeyRange(family_->comparator(), compaction->inputs).second.ToString();
    compaction.reset();
    state_->RetireUnlinkedViews();
    MutexLock lock(&state_->mutex);
    if (status.ok()) {
      state_->MadeRoom();
      after_ = std::move(last);
      after_slice_ = after_;
      range->begin = &after_slice_;
      range->after_begin = true;
      return Status::OK();
    }
    // Each key range reserves room for its worst case, and no number of them was asked for.
    if (status.IsNoSpace() && !uncut && max_subcompactions_ == 0) {
      uncut = true;
      continue;
    }
    // There may be room for less, unless tables that share a key cannot be parted.
    if (status.IsNoSpace() && range->level > 0 && tables > 1 && bytes < least_bytes) {
      least_bytes = bytes;
      range->bytes_max = bytes / 2;
      continue;
    }
    if (failures++ == kRetriesMax || !MayPass(status)) return status;
    state_->BackOff(DatabaseState::Work::kCompaction, failures, room);
  }
}

Status ManualCompaction::Pick(const CompactionPicker::Range& range,
                              std::unique_ptr<Compaction>* compaction, uint64_t* room) {
  // While it waits for some to end, no automatic compaction begins, or it might wait for ever.
  bool holds = false;
  for (;;) {
    uint64_t ended = 0;
    {
      MutexLock commit(&committer_->mutex);  // What is being changed is not picked.
      MutexLock lock(&state_->mutex);
      BackgroundWork& background = state_->work;
      Status status = Check();
      auto found = CompactionPicker::Found::kNothing;
      const auto held = state_->families->by_id.find(family_->id());
      if (status.ok() && held != state_->families->by_id.end()) {
        try {
          found = family_->picker().PickRange(family_->current_view()->version, range, compaction);
        } catch (...) {
          status = StatusOfException();
        }
      }
      if (found != CompactionPicker::Found::kMarked) {
        if (found == CompactionPicker::Found::kPicked) (*compaction)->family = held->second;
        *room = background.room_made;
        if (holds) --background.compactions_held;
        if (holds) state_->MaybeSchedule();
        return status;
      }
      if (!holds) ++background.compactions_held;
      holds = true;
      ended = background.compactions_ended;
    }
    MutexLock lock(&state_->mutex);
    while (state_->work.compactions_ended == ended && Check().ok()) state_->changed.Wait();
  }
}

Status ManualCompaction::SinkTombstones(int level) {
  const auto has_tombstones = [](const std::shared_ptr<TableHandle>& table) {
    return table->meta().tombstones > 0 || table->meta().has_range_deletions();
  };
  uint64_t most = 0;
  {
    MutexLock lock(&state_->mutex);
    most = kSunkTables * family_->picker().TargetTableBytes(level + 1);
  }
  std::optional<std::string> after;
  for (;;) {
    const std::shared_ptr<const Version> version = HoldVersion();
    const Slice after_slice = after.has_value() ? Slice(*after) : Slice();
    const TableRange tables = version->sorted_level(level).Overlapping(
        after.has_value() ? &after_slice : nullptr, nullptr, after.has_value());
    const LevelIterator next = std::find_if(tables.begin(), tables.end(), has_tombstones);
    if (next == tables.end()) return Status::OK();
    const std::shared_ptr<TableHandle> table = *next;
    const Slice first = table->meta().smallest_user_key();
    const Slice last = table->meta().largest_user_key();
    const SortedLevel& next_level = version->sorted_level(level + 1);
    const TableRange below = next_level.Overlapping(&first, &last);
    const bool divisible = below.size() > 1;
    Status status;
    if (!divisible || table->size() + next_level.BytesOf(below) <= most) {
      status = Compact(level, level + 1, &first, &last);
      if (status.ok()) after = last.ToString();
      if (!status.IsNoSpace() || !divisible) {
        NACRE_RETURN_IF_ERROR(std::move(status));
        continue;
      }
    }
    NACRE_RETURN_IF_ERROR(Split(level, *table, below.ToList()));
  }
}

Status ManualCompaction::Split(int level, const TableHandle& table, const TableList& below) {
  // Each piece is a table, and room is reserved for all at once.
  constexpr size_t kPieces = 4;
  const Slice first = table.meta().smallest_user_key();
  const Slice last = table.meta().largest_user_key();
  const CompactionPicker::Range range{
      .level = level, .output_level = level, .begin = &first, .end = &last};
  std::unique_ptr<Compaction> compaction;
  uint64_t room = 0;
  NACRE_RETURN_IF_ERROR(Pick(range, &compaction, &room));
  if (compaction == nullptr) return Status::OK();
  const size_t pieces = std::min(kPieces, below.size());
  for (size_t i = 1; i < pieces; ++i) {
    const size_t at = below.size() * i / pieces;
    compaction->cuts.push_back(below[at]->meta().smallest_user_key().ToString());
  }
  const Status status = runner_->RunAndCommit(compaction.get());
  compaction.reset();
  state_->RetireUnlinkedViews();
  return status;
}

Status ManualCompaction::RewriteGarbage(int level) {
  // A filter is asked for what came here by moves, too.
  const bool all = !CompactionFilterName(family_->options()).empty();
  const TableKeys* const keys = context_.keys.get();
  const auto has_garbage = [&](const std::shared_ptr<TableHandle>& table) {
    const TableMeta& meta = table->meta();
    const bool of_another_key = keys != nullptr && !keys->IsFirst(meta);
    return all || of_another_key || meta.tombstones > 0 || meta.entries != meta.user_keys ||
           meta.has_operands || meta.has_range_deletions();
  };
  std::optional<std::string> after;
  for (;;) {
    std::string first;
    std::string last;
    {
      const std::shared_ptr<const Version> version = HoldVersion();
      const Slice after_slice = after.has_value() ? Slice(*after) : Slice();
      const TableRange tables = version->sorted_level(level).Overlapping(
          after.has_value() ? &after_slice : begin_, end_, after.has_value());
      const LevelIterator next = std::find_if(tables.begin(), tables.end(), has_garbage);
      if (next == tables.end()) return Status::OK();
      first = (*next)->meta().smallest_user_key().ToString();
      last = (*next)->meta().largest_user_key().ToString();
    }
    const Slice first_slice(first);
    const Slice last_slice(last);
    NACRE_RETURN_IF_ERROR(Compact(level, level, &first_slice, &last_slice));
    after = std::move(last);
  }
}

}  // namespace nacre
