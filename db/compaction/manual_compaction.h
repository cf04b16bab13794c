#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "db/compaction/compaction_runner.h"
#include "db/family/family_edit.h"
#include "db/version/compaction_picker.h"
#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

class ColumnFamily;

/// Compaction of a range of keys that a caller has asked for. Each level goes piece by piece: a
/// piece is a compaction of its own, which takes little space, is tried again by itself, and stays
/// done if a later one fails. Automatic compactions go on beside it, elsewhere; where one is at
/// work a piece waits for it to end.
///
/// Thread safety: none.
class ManualCompaction {
 public:
  /// All of this outlives it. `begin` and `end`: user keys; null: open. `max_subcompactions` is 0
  /// for that of the options.
  ManualCompaction(CompactionRunner* runner, ColumnFamily* family, const Slice* begin,
                   const Slice* end, uint32_t max_subcompactions = 0)
      : runner_(runner),
        context_(*runner->context()),
        state_(runner->state()),
        committer_(runner->committer()),
        controller_(runner->controller()),
        family_(family),
        begin_(begin),
        end_(end),
        max_subcompactions_(max_subcompactions) {}
  ManualCompaction(const ManualCompaction&) = delete;
  ManualCompaction& operator=(const ManualCompaction&) = delete;

  /// Merges all levels of the range into the deepest, once others that were asked for have ended.
  Status CompactLevels();
  /// Then: moves all tables of the deepest level, if any of them is in the range, to the level
  /// `target` or, if that is negative, to the least level that has room for them and only empty
  /// ones between. No table is written. `NotSupported` if a level on the way is not empty or the
  /// target is level 0, `InvalidArgument` if there is no such level.
  Status MoveDeepestLevel(int target);

  // The caller ensures that nothing else is asked for meanwhile.

  /// Merges `level` into the next one.
  Status CompactLevel(int level) { return Compact(level, level + 1, begin_, end_); }
  /// Writes those tables of `level` anew that hold what no reader may see any more: tombstones, and
  /// versions that a snapshot held once.
  Status RewriteGarbage(int level);
  /// Takes the tombstones of `level` to the next one, where they meet what they delete. A table
  /// that overlaps more there than there is room for at once is cut in pieces first.
  Status SinkTombstones(int level);

 private:
  Status CompactAllLevels();
  /// MoveDeepestLevel, while other background work is paused.
  Status ChangeLevel(int target);
  /// `change` gets the move, whose tables are marked then, or stays empty.
  Status PickMove(int target, FamilyEdit* change);
  /// Writes a table of `level` anew, cut where some of `below`, which it overlaps, begin.
  Status Split(int level, const TableHandle& table, const TableList& below);
  Status Compact(int level, int output_level, const Slice* begin, const Slice* end);
  /// Compacts the first piece of `*range`, and has the range begin behind it. `*ended`: there is
  /// none.
  Status CompactPiece(CompactionPicker::Range* range, bool* ended);
  /// Null: there is nothing in the range. `*room`: BackgroundWork::room_made at that time.
  Status Pick(const CompactionPicker::Range& range, std::unique_ptr<Compaction>* compaction,
              uint64_t* room);
  /// Whether it may go on, when the database's mutex is held.
  Status Check() const;
  /// Whether a piece that failed like this may succeed later, when the database's mutex is held.
  bool MayPass(const Status& status) const;
  std::shared_ptr<const Version> HoldVersion() const;

  CompactionRunner* const runner_;
  DatabaseContext& context_;
  DatabaseState* const state_;
  StateCommitter* const committer_;
  WriteController* const controller_;
  ColumnFamily* const family_;
  const Slice* const begin_;
  const Slice* const end_;
  const uint32_t max_subcompactions_;
  /// The last key of the piece before, of which Range::begin is a view.
  std::string after_;
  Slice after_slice_;
};

}  // namespace nacre
