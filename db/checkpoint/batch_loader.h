#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "db/database_parts.h"
#include "db/memtable/memtable.h"
#include "db/write/write_sequencer.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/format/internal_key.h"

namespace nacre {

/// Puts batches that another database had into the MemTables of one that is being restored, with
/// the sequence numbers that they had there. Several batches share a ticket, so several threads can
/// insert them in any order, and a flush has all of them or none.
///
/// Thread safety: none; it works with threads of its own. Nothing else writes to the database.
class BatchLoader {
 public:
  /// `parts` outlive this. At most `threads` threads insert, of which the caller is one.
  BatchLoader(DatabaseParts* parts, size_t threads) : parts_(*parts), threads_(threads) {}

  /// See LoadBatches (nacre/checkpoint.h).
  Status Load(std::span<const Slice> batches);

 private:
  struct Update {
    ColumnFamily* family;
    SequenceNumber sequence;
    uint64_t hash;
    Slice key;
    Slice value;
    ValueType type;
  };
  using Updates = std::vector<Update>;

  /// Batches of about so many bytes share a ticket: much less than a MemTable holds, and enough
  /// work for all threads.
  size_t GroupBytes() const;
  Status LoadGroup(std::span<const Slice> batches, size_t bytes);
  /// Takes the batches apart and checks them; their sequences are right already.
  Status Parse(std::span<const Slice> batches, const ColumnFamilySet& families,
               Updates* updates) const;
  void Insert(const WriteSequencer::Ticket& ticket, const Updates& updates);
  /// What the MemTables of the ticket ask for.
  WrittenMemory MemoryOf(const ColumnFamilySet& families,
                         const WriteSequencer::Ticket& ticket) const;

  DatabaseParts& parts_;
  const size_t threads_;
};

}  // namespace nacre
