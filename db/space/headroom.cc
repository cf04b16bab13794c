#include "db/space/headroom.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "db/wal/log_segments.h"
#include "util/uri.h"

namespace nacre {

HeadroomSize Headroom::SizeFor(const ColumnFamily& family, uint64_t flush_bytes) {
  HeadroomSize size;
  uint64_t largest = flush_bytes;
  uint64_t buffers = 0;
  uint64_t target = 0;
  std::shared_ptr<const Version> version;
  {
    MutexLock lock(&state_->mutex);
    for (const auto& [id, each] : state_->families->by_id) {
      largest = std::max<uint64_t>(largest, each->options().write_buffer_size);
    }
    buffers = largest * state_->MemTablesMax();
    version = family.current_view()->version;
    target = family.picker().TargetTableBytes(std::max(version->depth() - 1, 1));
  }
  const Redundancy copies =
      context_.Allowed(Redundancy::Copies(context_.redundancy.MostParity() + 1));
  const Redundancy flushed = context_.Allowed(context_.redundancy.For(0));
  const Redundancy compacted = context_.Allowed(context_.redundancy.For(1));
  size.buffers = flushed.StoredBytes(buffers);
  // What is in use of the image may have doubled when it is made anew.
  const uint64_t manifest = 2 * committer_->manifest()->place().root.bytes();
  uint64_t segment = 0;
  if (!context_.pool->embedded()) {
    // A flush gives the log of its MemTables back.
    const uint64_t log = copies.StoredBytes(buffers) + flushed.StoredBytes(largest);
    size.buffers = std::max(size.buffers, log);
    segment = LogSegmentBytes(state_->default_family->options().write_buffer_size);
  }
  size.buffers += compacted.StoredBytes(buffers);
  // One segment to write to, and one ahead.
  size.opening = copies.StoredBytes(manifest + 2 * segment);
  const StepRoom step = RoomOfStep(LargestRecord(*version), target, context_.options.chunk_size);
  size.step = step.bytes;
  const uint64_t output = compacted.StoredBytes(step.output) / compacted.fragments();
  size.piece = std::min<uint64_t>(context_.slab_bytes, std::max({manifest, segment, output}));
  return size;
}

Status Headroom::CheckFlush(const ColumnFamily& family, uint64_t bytes, uint64_t earlier,
                            bool pool_full) {
  HeadroomSize size = SizeFor(family, bytes + earlier);
  uint64_t merged = 0;
  {
    MutexLock lock(&state_->mutex);
    // Once level 0 is due its compaction writes these levels anew before it frees them.
    merged = family.version().LevelBytes(0) + bytes + family.version().LevelBytes(1);
  }
  const Redundancy flushed = context_.Allowed(context_.redundancy.For(0));
  const Redundancy compacted = context_.Allowed(context_.redundancy.For(1));
  const int fragments = std::max(flushed.fragments(), compacted.fragments());
  // Tables may have been dropped while a reader looked at them that has gone on since.
  context_.epochs.Collect();
  // What a full pool can be emptied with is what there is, in whatever pieces.
  const uint64_t piece = pool_full ? 1 : size.piece;
  PoolRoom room;
  Status unknown = MeasureRoom(*context_.client, &context_.space, fragments, piece, &room);
  // It is not room that lacks: the reservation says so.
  if (room.domains < flushed.fragments()) return Status::OK();
  const uint64_t flush = flushed.StoredBytes(bytes + earlier);
  size.buffers += compacted.StoredBytes(size.step - std::min(size.step, merged));
  const uint64_t all =
      flush + compacted.StoredBytes(merged) + (pool_full ? size.opening : size.Of(room.total));
  if (room.free >= all) return Status::OK();
  NACRE_RETURN_IF_ERROR(std::move(unknown));
  return Status::NoSpace("pool " + context_.pool->uri() + " is full: " + FormatBytes(room.free) +
                         " free; a flush of " + FormatBytes(flush) +
                         ", the compaction after it, and the headroom need " + FormatBytes(all));
}

Status Headroom::CheckRestore(const std::vector<std::pair<uint32_t, TableMeta>>& tables,
                              const std::set<uint64_t>& there) {
  uint64_t stored = 0;
  std::map<uint32_t, uint64_t> merged;  // Levels 0 and 1, by family.
  for (const auto& [level, meta] : tables) {
    if (level < 2) merged[meta.family] += meta.size;
    if (there.contains(meta.id)) continue;
    const Redundancy redundancy =
        context_.Allowed(context_.redundancy.For(static_cast<int>(level)));
    // Whole chunks, with their checksums.
    stored += redundancy.StoredBytes(meta.size + redundancy.data * meta.chunk_size);
  }
  uint64_t most_merged = 0;
  for (const auto& [family, bytes] : merged) most_merged = std::max(most_merged, bytes);
  const Redundancy compacted = context_.Allowed(context_.redundancy.For(1));
  context_.epochs.Collect();
  PoolRoom room;
  Status unknown =
      MeasureRoom(*context_.client, &context_.space, compacted.fragments(), /*piece=*/1, &room);
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

}  // namespace nacre
