#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "db/compaction/manual_compaction.h"
#include "db/db_impl.h"
#include "util/exceptions.h"
#include "util/log.h"
#include "util/uri.h"

// Room in the pool for flushes, and for the compactions after them.

namespace nacre {

KeptBack DBImpl::KeepBack(const ColumnFamily& family, uint64_t flush_bytes) {
  KeptBack kept;
  uint64_t largest = flush_bytes;
  uint64_t buffers = 0;
  uint64_t target = 0;
  std::shared_ptr<const Version> version;
  {
    MutexLock lock(&state_.mutex);
    for (const auto& [id, each] : state_.families->by_id) {
      largest = std::max<uint64_t>(largest, each->options().write_buffer_size);
    }
    buffers = largest * state_.MemTablesMax();
    version = family.current_view()->version;
    target = family.picker().TargetTableBytes(std::max(version->depth() - 1, 1));
  }
  const Redundancy copies = Allowed(Redundancy::Copies(redundancy_.MostParity() + 1));
  const Redundancy flushed = Allowed(redundancy_.For(0));
  const Redundancy compacted = Allowed(redundancy_.For(1));
  kept.buffers = flushed.StoredBytes(buffers);
  // What is in use of the image may have doubled when it is made anew.
  const uint64_t manifest = 2 * manifest_->place().root.bytes();
  uint64_t segment = 0;
  if (write_path_.log() != nullptr) {
    // A flush gives the log of its MemTables back.
    const uint64_t log = copies.StoredBytes(buffers) + flushed.StoredBytes(largest);
    kept.buffers = std::max(kept.buffers, log);
    segment = LogSegmentBytes(default_family_->options().write_buffer_size);
  }
  kept.buffers += compacted.StoredBytes(buffers);
  // One segment to write to, and one ahead.
  kept.opening = copies.StoredBytes(manifest + 2 * segment);
  const StepRoom step = RoomOfStep(LargestRecord(*version), target, options_.chunk_size);
  kept.step = step.bytes;
  const uint64_t output = compacted.StoredBytes(step.output) / compacted.fragments();
  kept.piece = std::min<uint64_t>(context_.slab_bytes, std::max({manifest, segment, output}));
  return kept;
}

Status DBImpl::CheckHeadroom(const ColumnFamily& family, uint64_t bytes, uint64_t earlier,
                             bool leave) {
  KeptBack kept = KeepBack(family, bytes + earlier);
  uint64_t merged = 0;
  bool pool_full = false;
  {
    MutexLock lock(&state_.mutex);
    // Once level 0 is due its compaction writes these levels anew before it frees them.
    merged = family.version().LevelBytes(0) + bytes + family.version().LevelBytes(1);
    pool_full = state_.work.pool_full && !leave;
  }
  const Redundancy flushed = Allowed(redundancy_.For(0));
  const Redundancy compacted = Allowed(redundancy_.For(1));
  const int fragments = std::max(flushed.fragments(), compacted.fragments());
  // Tables may have been dropped while a reader looked at them that has gone on since.
  epochs_.Collect();
  // What a full pool can be emptied with is what there is, in whatever pieces.
  const uint64_t piece = pool_full ? 1 : kept.piece;
  PoolRoom room;
  Status unknown = MeasureRoom(*client_, space_, fragments, piece, &room);
  // It is not room that lacks: the reservation says so.
  if (room.domains < flushed.fragments()) return Status::OK();
  const uint64_t flush = flushed.StoredBytes(bytes + earlier);
  kept.buffers += compacted.StoredBytes(kept.step - std::min(kept.step, merged));
  const uint64_t all =
      flush + compacted.StoredBytes(merged) + (pool_full ? kept.opening : kept.Of(room.total));
  if (room.free >= all) return Status::OK();
  NACRE_RETURN_IF_ERROR(std::move(unknown));
  return Status::NoSpace("pool " + context_.pool->uri() + " is full: " + FormatBytes(room.free) +
                         " free; a flush of " + FormatBytes(flush) +
                         ", the compaction after it, and what is kept back need " +
                         FormatBytes(all));
}

bool DBImpl::EnterFullPool() {
  MutexLock lock(&state_.mutex);
  if (state_.work.pool_full) return false;
  state_.work.pool_full = true;
  write_controller_.Update();
  Log(options_.info_log, LogLevel::kWarn, "{}: the pool is full: only deletions are written",
      name_);
  return true;
}

void DBImpl::WatchFullPool(uint64_t room, int* failures) {
  const std::shared_ptr<const ColumnFamilySet> families = state_.Families();
  const Status status = CatchAll([&] {
    for (const auto& [id, family] : families->by_id) {
      NACRE_RETURN_IF_ERROR(CheckHeadroom(*family, /*bytes=*/0, /*earlier=*/0, /*leave=*/true));
    }
    return Status::OK();
  });
  if (status.IsNoSpace() && AwaitRoom(room)) return;
  MutexLock lock(&state_.mutex);
  state_.work.flush_error = status;
  changed_.SignalAll();
  if (status.ok()) {
    *failures = 0;
    state_.work.pool_full = false;
    write_controller_.Update();
    Log(options_.info_log, LogLevel::kInfo, "{}: the pool has room again", name_);
    return;
  }
  if (state_.work.immutables.empty())
    state_.BackOff(DatabaseState::Work::kFlush, ++*failures, room);
  // Deletions make no room before they are in tables, however few they are.
  const bool closing = closing_.load(std::memory_order_relaxed);
  if (state_.work.immutables.empty() && !closing && generations_.HasEntries(/*only=*/nullptr))
    generations_.Switch();
}

Status DBImpl::CheckRoomToRestore(const std::vector<std::pair<uint32_t, TableMeta>>& tables,
                                  const std::set<uint64_t>& there) {
  uint64_t stored = 0;
  std::map<uint32_t, uint64_t> merged;  // Levels 0 and 1, by family.
  for (const auto& [level, meta] : tables) {
    if (level < 2) merged[meta.family] += meta.size;
    if (there.contains(meta.id)) continue;
    const Redundancy redundancy = Allowed(redundancy_.For(static_cast<int>(level)));
    // Whole chunks, with their checksums.
    stored += redundancy.StoredBytes(meta.size + redundancy.data * meta.chunk_size);
  }
  uint64_t most_merged = 0;
  for (const auto& [family, bytes] : merged) most_merged = std::max(most_merged, bytes);
  const Redundancy compacted = Allowed(redundancy_.For(1));
  epochs_.Collect();
  PoolRoom room;
  Status unknown = MeasureRoom(*client_, space_, compacted.fragments(), /*piece=*/1, &room);
  const uint64_t free = room.free;
  // It is not room that lacks where there are too few nodes: reservations say so.
  if (room.domains < compacted.fragments()) return Status::OK();
  const uint64_t headroom = compacted.StoredBytes(most_merged);
  if (free >= stored + headroom) return Status::OK();
  NACRE_RETURN_IF_ERROR(std::move(unknown));
  return Status::NoSpace("pool " + context_.pool->uri() + " has " + FormatBytes(free) +
                         " free, the tables to restore take " + FormatBytes(stored) +
                         ", and a compaction of them needs " + FormatBytes(headroom));
}

void DBImpl::CompactForSpace() {
  bool snapshots_changed = false;
  bool pool_full = false;
  std::shared_ptr<const ColumnFamilySet> families;
  {
    MutexLock lock(&state_.mutex);
    if (state_.work.manual_compactions > 0 || closing_.load(std::memory_order_relaxed)) return;
    ++state_.work.manual_compactions;
    ++state_.work.compactions_held;
    // Those that wait to be tried again end.
    changed_.SignalAll();
    while (state_.work.compactions_running > 0) changed_.Wait();
    std::vector<SequenceNumber> snapshots = state_.snapshots.Sequences();
    snapshots_changed = snapshots != snapshots_at_last_rewrite_;
    snapshots_at_last_rewrite_ = std::move(snapshots);
    families = state_.families;
    pool_full = state_.work.pool_full;
  }
  for (const auto& [id, family] : families->by_id) {
    if (family->options().disable_auto_compactions) continue;
    int depth = 0;
    {
      MutexLock lock(&state_.mutex);
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
  epochs_.Collect();
  MutexLock lock(&state_.mutex);
  --state_.work.manual_compactions;
  --state_.work.compactions_held;
  MaybeSchedule();
  changed_.SignalAll();
}

}  // namespace nacre
