#pragma once

#include <cstdint>
#include <memory>

#include "db/context/database_state.h"
#include "db/memtable/memtable_blocks.h"
#include "db/memtable/write_buffer_share.h"
#include "db/write/write_controller.h"
#include "db/write/write_sequencer.h"
#include "db/write/written_memory.h"

namespace nacre {

/// Makes the MemTables that writers write to, and ends a generation of them when one is full: from
/// then on the generation waits in BackgroundWork::ended_generations for its flush. It owns the
/// sequencer, since a writer's sequence number and generation are one ticket.
///
/// Thread safety: all methods may be called from many threads at once, with the mutex of the state
/// where the class says so.
class MemTableGenerations {
 public:
  /// `blocks` is what MemTables take their memory from.
  MemTableGenerations(DatabaseState* state, WriteController* controller,
                      std::shared_ptr<MemTableBlocks> blocks, SequenceNumber last_published);
  /// Writers of other databases do not ask it for anything any more.
  ~MemTableGenerations();
  MemTableGenerations(const MemTableGenerations&) = delete;
  MemTableGenerations& operator=(const MemTableGenerations&) = delete;

  /// From here on other databases may have this one flush (EndForShare).
  void JoinShare() {
    if (share_ != nullptr) share_->Join();
  }

  WriteSequencer* sequencer() { return &sequencer_; }
  const WriteSequencer* sequencer() const { return &sequencer_; }

  /// Where what the ticket is for goes.
  MemTable* MemTableOf(ColumnFamily* family, const WriteSequencer::Ticket& ticket) {
    MemTable* memtable = family->FindMemTable(ticket.generation);
    return memtable != nullptr ? memtable : MakeMemTable(family, ticket.generation);
  }
  MemTable* MakeMemTable(ColumnFamily* family, uint16_t generation) EXCLUDES(state_->mutex);
  /// After a write has taken a chunk of memory, and before it ends: afterwards the MemTable may be
  /// gone.
  static WrittenMemory MemoryOf(const ColumnFamily& family, const MemTable& memtable);
  /// What `memory`, unless there is enough, asks for after a write of `generation`: begins a new
  /// one, or stalls writers until there is room; or has the database flush that takes most of what
  /// several share. `waits`: where those are to, this writer waits until they have.
  void MakeRoom(WrittenMemory memory, uint16_t generation, bool waits) EXCLUDES(state_->mutex);

  // ---- With the mutex of the state held ----

  /// Ends the generation that takes writes, and has it flushed.
  void Switch();
  /// The options allow more MemTables now, perhaps.
  void SwitchIfThereIsRoom();
  /// Whether MemTables that take writes have entries: of `only` or, if that is null, of any family.
  bool HasEntries(const ColumnFamily* only) const;
  /// The family has just been dropped. The log is needed until its entries count as flushed.
  void NoteDropped(const ColumnFamily& family);

  /// Memory of flushed MemTables that is kept for those to come.
  uint64_t SpareBytes() const { return blocks_->FreeBytes(); }

 private:
  MemTable* MemTableFor(ColumnFamily* family, uint16_t generation) REQUIRES(state_->mutex);
  void HandleFull(uint16_t generation) EXCLUDES(state_->mutex);
  /// Ends the generation that takes writes. False: it is empty, or as many wait as may.
  bool EndForShare() EXCLUDES(state_->mutex);

  DatabaseState* const state_;
  WriteController* const controller_;
  const std::shared_ptr<MemTableBlocks> blocks_;
  const std::shared_ptr<WriteBufferShare> share_;  ///< Null: there is none.
  WriteSequencer sequencer_;
  /// The generation that takes writes has some of a family that was dropped since.
  bool dropped_entries_ GUARDED_BY(state_->mutex) = false;
};

}  // namespace nacre
