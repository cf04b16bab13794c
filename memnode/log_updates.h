#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "memnode/copy_reader.h"
#include "memnode/flush_job.h"
#include "memnode/table_store.h"
#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "table/internal_iterator.h"
#include "table/log_format.h"
#include "table/update_order.h"

namespace nacre::memnode {

/// The updates that a flush takes from the log, sorted. Records with any of them are copied before
/// they are checked: the log's memory is its owner's, who may write there at any time.
///
/// Thread safety: none.
class LogUpdates {
 public:
  /// Both outlive this.
  LogUpdates(const FlushJob& job, const Comparator* comparator);

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
  };

  Status LoadPart(const LogPart& part, TableStore* store);
  Status ReadPart(const LogPart& part, const Source& source);
  /// The record at `offset`, copied to memory that is kept if it is used. `*bytes`: it takes.
  Status TakeRecord(const LogPart& part, const Source& source, uint64_t offset, uint32_t stamp,
                    uint64_t* bytes);
  /// Whether any update of the record is wanted.
  Status TakeUpdates(const LogRecord& record, bool* wanted);
  bool InRange(const Slice& key) const;
  /// Room for `n` bytes that Keep keeps.
  char* Room(size_t n);
  void Keep(size_t n) { chunk_used_ += n; }

  static constexpr size_t kChunkBytes = 1 << 20;

  const FlushJob& job_;
  const Comparator* const comparator_;
  const UpdateOrder order_;
  const std::atomic<bool>* cancelled_ = nullptr;
  std::unique_ptr<CopyReader> reader_;  ///< Made when a copy has to be read from another node.
  std::vector<std::unique_ptr<char[]>> chunks_;
  size_t chunk_bytes_ = 0;  ///< Of the last one.
  size_t chunk_used_ = 0;
  std::vector<UpdateRef> updates_;
  std::vector<UpdateItem> sorted_;
};

}  // namespace nacre::memnode
