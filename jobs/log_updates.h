#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "jobs/flush_job.h"
#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/read/replica_read.h"
#include "pool/store/table_store.h"
#include "table/format/log_format.h"
#include "table/iterator/internal_iterator.h"
#include "table/merge/update_order.h"
#include "util/memory/arena.h"

namespace nacre::pool {

/// The updates that a flush takes from the log, sorted. Records are copied before they are checked,
/// and keys, which are compared, are kept in the copy: the log's memory is its owner's, which may
/// write there at any time. Values of some length stay where they are if that is in local memory:
/// an owner that waits for a job writes no record a second time, and one that has given it up does
/// not look at what it made. So a flush needs no fresh memory of the size of what it writes, whose
/// pages the kernel would have to clear.
///
/// Thread safety: none.
class LogUpdates {
 public:
  /// Job and comparator outlive this. `blocks`: as for an arena.
  LogUpdates(const FlushJob& job, const Comparator* comparator,
             std::shared_ptr<ArenaBlockSource> blocks);

  /// Reads the log and sorts. Errors as RunFlush.
  Status Load(TableStore* store, const std::atomic<bool>* cancelled);
  /// Views this object. After Load.
  std::unique_ptr<InternalIterator> NewIterator() const;

 private:
  /// The bytes of one copy; `await(n)` has the first `n` there.
  struct Source {
    const char* bytes = nullptr;
    std::function<Status(uint64_t)> await;
    NodeId node = kNoNode;
    bool stays = false;  ///< The bytes are there as long as the job runs.
  };

  Status LoadPart(const LogPart& part, TableStore* store);
  Status ReadPart(const LogPart& part, const Source& source);
  /// The record at `offset`. `*bytes`: it takes.
  Status TakeRecord(const LogPart& part, const Source& source, uint64_t offset, uint32_t stamp,
                    uint64_t* bytes);
  /// Whether the record, which is not checked, is by its looks one value with a key outside of the
  /// job's range. Another job has it then, and checks it; if it is damaged so that none has it, the
  /// owner misses an entry when it compares.
  bool LooksOutside(const char* record, uint64_t bytes, uint32_t stamp) const;
  /// Keeps those updates of the record that are wanted. `lasting`: the bytes that its payload is a
  /// copy of, if they stay; else null.
  Status TakeUpdates(const LogRecord& record, const char* lasting);
  void Keep(const UpdateRef& update, const char* lasting_value);
  bool InRange(const UpdateRef& update) const;

  const FlushJob& job_;
  const Comparator* const comparator_;
  const UpdateOrder order_;
  const uint64_t begin_prefix_;  ///< Prefix of the range's begin, as UpdateRef has it; 0: open.
  const uint64_t end_prefix_;
  const std::atomic<bool>* cancelled_ = nullptr;
  std::unique_ptr<PoolReader> reader_;  ///< Made when a copy has to be read from another node.
  std::vector<char> record_;            ///< A copy of that at hand.
  ConcurrentArena arena_;  ///< Updates, each with the key behind it, and the value unless it stays.
  std::vector<UpdateItem> sorted_;
};

}  // namespace nacre::pool
