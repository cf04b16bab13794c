#pragma once

#include <cstdint>

#include "db/write/write_sequencer.h"
#include "db/write/written_memory.h"
#include "nacre/status.h"

namespace nacre {

/// A batch whose updates are in the MemTable and on their way to the log, or will be with the next
/// WritePath::SendStarted. No reader sees them, nor what is written later, until Finish.
struct StartedWrite {
  WriteSequencer::Ticket ticket{};  ///< Without sequence numbers: there is nothing to finish.
  uint64_t position = 0;            ///< In the log; 0: it is not there.
  bool unsent = false;              ///< The log has the record for SendStarted.
  bool finished = false;            ///< What is left is to wait for the writes before it.
  WrittenMemory memory = WrittenMemory::kEnough;
  Status status;  ///< A failure: nothing was begun.
  Status inserted;
};

}  // namespace nacre
