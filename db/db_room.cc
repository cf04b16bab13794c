#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "db/db_impl.h"
#include "db/manual_compaction.h"
#include "util/exceptions.h"
#include "util/uri.h"

// Room in the pool for flushes, and for the compactions after them.

namespace nacre {

Status DBImpl::MeasureFree(uint64_t* free, int* nodes) {
  // Tables may have been dropped while a reader looked at them that has gone on since.
  epochs_.Collect();
  *free = 0;
  *nodes = 0;
  Status unknown;
  for (int i = 0; i < client_->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!client_->alive(node)) continue;
    uint64_t there = 0;
    if (Status status = space_->FreeBytes(node, &there); !status.ok()) {
      if (client_->alive(node)) unknown = std::move(status);
      continue;
    }
    *free += there;
    ++*nodes;
  }
  return unknown;
}

Status DBImpl::CheckHeadroom(const Version& version, uint64_t bytes, uint64_t earlier) {
  // Once level 0 is due its compaction writes these levels anew before it frees them.
  const uint64_t level0 = version.LevelBytes(0) + bytes;
  const uint64_t compaction = level0 + version.LevelBytes(1);
  uint64_t free = 0;
  int nodes = 0;
  Status unknown = MeasureFree(&free, &nodes);
  const Redundancy flushed = Allowed(redundancy_.For(0));
  const Redundancy compacted = Allowed(redundancy_.For(1));
  // It is not room that lacks: the reservation says so.
  if (nodes < flushed.fragments()) return Status::OK();
  const uint64_t flush = flushed.StoredBytes(bytes + earlier);
  const uint64_t both = flush + compacted.StoredBytes(compaction);
  if (free >= both) return Status::OK();
  NACRE_RETURN_IF_ERROR(std::move(unknown));
  return Status::NoSpace("pool " + pool_->uri() + " is full: " + FormatBytes(free) +
                         " free, a flush of " + FormatBytes(flush) +
                         " and the compaction after it need " + FormatBytes(both));
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
  uint64_t free = 0;
  int nodes = 0;
  Status unknown = MeasureFree(&free, &nodes);
  const Redundancy compacted = Allowed(redundancy_.For(1));
  // It is not room that lacks where there are too few nodes: reservations say so.
  if (nodes < compacted.fragments()) return Status::OK();
  const uint64_t headroom = compacted.StoredBytes(most_merged);
  if (free >= stored + headroom) return Status::OK();
  NACRE_RETURN_IF_ERROR(std::move(unknown));
  return Status::NoSpace("pool " + pool_->uri() + " has " + FormatBytes(free) +
                         " free, the tables to restore take " + FormatBytes(stored) +
                         ", and a compaction of them needs " + FormatBytes(headroom));
}

void DBImpl::CompactForSpace() {
  bool snapshots_changed = false;
  std::shared_ptr<const ColumnFamilySet> families;
  {
    MutexLock lock(&mutex_);
    if (background_.compactions_running > 0 || background_.manual_compactions > 0 ||
        closing_.load(std::memory_order_relaxed)) {
      return;
    }
    ++background_.manual_compactions;
    ++background_.compactions_held;
    std::vector<SequenceNumber> snapshots = snapshots_.Sequences();
    snapshots_changed = snapshots != snapshots_at_last_rewrite_;
    snapshots_at_last_rewrite_ = std::move(snapshots);
    families = families_;
  }
  for (const auto& [id, family] : families->by_id) {
    if (family->options().disable_auto_compactions) continue;
    int depth = 0;
    {
      MutexLock lock(&mutex_);
      depth = family->version().depth();
    }
    ManualCompaction compaction(this, family.get(), nullptr, nullptr);
    // What they answer is in the LOG.
    CatchAll([&] { return compaction.CompactLevel(0); }).IgnoreError();
    // Versions that snapshots held are garbage once these are released; while they are not,
    // writing the tables anew would free nothing.
    for (int level = 1; snapshots_changed && level < std::max(depth, 2); ++level) {
      CatchAll([&] { return compaction.RewriteGarbage(level); }).IgnoreError();
    }
  }
  epochs_.Collect();
  MutexLock lock(&mutex_);
  --background_.manual_compactions;
  --background_.compactions_held;
  MaybeSchedule();
  changed_.SignalAll();
}

}  // namespace nacre
