#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "db/context/database_state.h"
#include "db/read/async_driver.h"
#include "db/read/loads_under_way.h"
#include "db/read/lookup_batch.h"
#include "db/read/read_path.h"
#include "db/write/write_path.h"
#include "nacre/async.h"
#include "pool/read/async_reader.h"
#include "util/threads/executor.h"

namespace nacre {

/// AsyncDB of an owner. Each time the driver is resumed it takes the reads that have arrived, looks
/// up what was asked for since, and posts all reads that follow with one doorbell a node. So reads
/// are batched by themselves, as many as there are coroutines that read.
///
/// Writes are begun by the driver as well, all that were asked for since its last turn, and go out
/// as one write to the log. Where the nodes' memory can be stored to they have ended by then, with
/// all writes before them or soon after; else a thread waits for them.
///
/// A read takes four steps at different times, with the memory that each needs on its way from the
/// step before: call (filters of MemTables, buckets), first turn of the driver (lookup, post), the
/// turn when the record has arrived (check, copy), resumption.
class AsyncDBImpl final : public AsyncDB, private AsyncDriver {
 public:
  /// What it stands on, which outlives it.
  struct Owners {
    DatabaseContext* context;
    DatabaseState* state;
    ReadPath* reads;
    WritePath* writes;
  };

  static Status Create(const Owners& owners, AsyncExecutor* executor,
                       std::unique_ptr<AsyncDB>* async);
  ~AsyncDBImpl() override;

  using AsyncDB::GetAsync;
  using AsyncDB::MultiGetAsync;
  AsyncStatus GetAsync(const ReadOptions& options, ColumnFamilyHandle* family, const Slice& key,
                       PinnableSlice* value) override;
  AsyncStatus MultiGetAsync(const ReadOptions& options, ColumnFamilyHandle* family, size_t num_keys,
                            const Slice* keys, PinnableSlice* values, Status* statuses) override;
  AsyncStatus WriteAsync(const WriteOptions& options, WriteBatch* updates) override;
  size_t under_way() const override { return operations(); }

 private:
  /// What reads that began with it look through. Kept by them and, while it is the latest of its
  /// family and anything is under way, by this.
  struct PinnedView {
    std::shared_ptr<const ReadView> view;
    size_t users = 0;
  };
  struct Operation;
  struct Read;
  struct MultiRead;
  struct Write;

  AsyncDBImpl(const Owners& owners, AsyncExecutor* executor,
              std::unique_ptr<pool::AsyncReader> reader);

  /// Now, if operations are counted.
  uint64_t StartOfCount() const;
  /// A call that has ended before it began.
  AsyncStatus Refuse(Status status);
  /// The view that is current, and the newest sequence that it covers, or that of the snapshot.
  PinnedView* Pin(const ColumnFamily& family, const ReadOptions& options, SequenceNumber* snapshot);
  void Unpin(PinnedView* pinned);
  void UnpinLatest();
  /// Begins a read that is part of `all` and answers into `*answer`, unless these are null.
  Read* Begin(const ReadOptions& options, const Slice& key, PinnableSlice* value,
              PinnedView* pinned, SequenceNumber snapshot, MultiRead* all, Status* answer);
  Read* NewRead();

  void Turn() override;
  /// The next call may be far off: what is not current any more had better go.
  void Rest() override { UnpinLatest(); }
  void LookUp(Read* read);
  /// The lookup's next read goes into the reader, or to those that wait for room in it; what it can
  /// load, to what is on its way into the cache.
  void GoOn(Read* read, KeyLookup::State state);
  /// Takes what was asked of the processor before all that it was asked for since.
  void EndFirstLoad();
  void TakeArrived();
  /// The rest is done by a thread that may wait.
  void LeaveToThread(Read* read);
  void EndRead(Read* read);
  /// Begins the writes that were asked for since the last turn.
  void BeginWrites();
  /// Ends what the log has of those that have begun. After a few turns a thread waits for the rest.
  void EndBegunWrites();
  void EndWrite(Write* write);

  const Owners db_;
  const std::unique_ptr<pool::AsyncReader> reader_;
  std::vector<PinnedView*> latest_;  ///< By id of the family; null if there is none.
  std::vector<Read*> fresh_;         ///< Begun since the last turn.
  std::vector<Read*> waiting_;       ///< For room in the reader, in order.
  std::vector<Read*> turn_;          ///< The reads of the turn that runs.
  LoadsUnderWay<Read*> loads_;       ///< They are empty between turns.
  std::vector<Read*> free_reads_;
  std::vector<std::unique_ptr<Read>> reads_;  ///< All that were ever made.
  std::vector<Write*> fresh_writes_;          ///< They were asked for since the last turn.
  std::vector<Write*> begun_writes_;          ///< They may end without a wait.
  size_t whole_writes_ = 0;                   ///< Left to the thread as they are.
  std::unique_ptr<Executor> read_thread_;     ///< Made when it is needed first.
  std::unique_ptr<Executor> write_thread_;    ///< In the order of the calls.
};

}  // namespace nacre
