#pragma once

#include <atomic>

#include "db/write/unsettled_writes.h"
#include "db/write/write_fault.h"
#include "table/format/internal_key.h"
#include "util/mutex.h"

namespace nacre {

/// What a database knows of the writes that did not go well.
struct TroubledWrites {
  WriteFault fault;
  /// A change is durable that could not be made current: none may follow it.
  WriteFault install;
  UnsettledWrites unsettled;
  Mutex settling;  ///< One settling at a time.
  /// The last sequence that is in no log since that did not take it, if followers have not been
  /// told; else 0. Release by GiveUpTicket: pairs with EndWrite.
  std::atomic<SequenceNumber> untold{0};
};

}  // namespace nacre
