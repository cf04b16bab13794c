#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "db/context/database_context.h"
#include "db/family/column_family.h"
#include "db/read/lookup_batch.h"
#include "db/version/index_loader.h"
#include "db/write/write_sequencer.h"
#include "nacre/db.h"
#include "nacre/iterator.h"
#include "nacre/options.h"
#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// What the owner of a database reads it by: a view of a family that stays while it is looked
/// through, and a sequence up to which the view has everything. A read answers only while this
/// process owns the database.
///
/// Thread safety: all methods may be called from many threads at once. Reads take no lock: they pin
/// the epoch.
class ReadPath {
 public:
  ReadPath(DatabaseContext* context, const WriteSequencer* sequencer, IndexLoader* indexes)
      : context_(*context), sequencer_(sequencer), indexes_(indexes) {}
  ReadPath(const ReadPath&) = delete;
  ReadPath& operator=(const ReadPath&) = delete;

  /// `value` is empty.
  Status Get(const ReadOptions& options, const ColumnFamily& family, const Slice& key,
             PinnableSlice* value);
  Status GetMergeOperands(const ReadOptions& options, const ColumnFamily& family, const Slice& key,
                          PinnableSlice* merge_operands,
                          GetMergeOperandsOptions* get_merge_operands_options,
                          int* number_of_operands);
  /// `values` are empty.
  void MultiGet(const ReadOptions& options, const ColumnFamily& family, size_t num_keys,
                const Slice* keys, PinnableSlice* values, Status* statuses);
  bool KeyMayExist(const ReadOptions& options, const ColumnFamily& family, const Slice& key,
                   std::string* value, bool* value_found);
  std::unique_ptr<Iterator> NewIterator(const ReadOptions& options, const ColumnFamily& family);

  // ---- For reads that take other steps ----

  /// Calls `work(context)` for lookups of keys of the family, which end before it returns. Those of
  /// several databases may go on together (KeyContexts).
  template <typename Work>
  Status WithContext(const ReadOptions& options, const ColumnFamily& family, const Work& work);

  /// The view and a sequence that it covers. Under a guard of the epoch.
  const ReadView* PinConsistent(const ColumnFamily& family, const ReadOptions& options,
                                SequenceNumber* snapshot) const;
  /// The same, held.
  std::shared_ptr<const ReadView> HoldConsistent(const ColumnFamily& family,
                                                 const ReadOptions& options,
                                                 SequenceNumber* snapshot) const;
  /// A Get in a view that is held otherwise.
  Status GetFrom(const ReadView& view, const ReadOptions& options, const Slice& key,
                 SequenceNumber snapshot, PinnableSlice* value);
  const LookupSource& source() const { return source_; }
  /// Counts a MultiGet that took other steps. Its start, if that matters.
  uint64_t StartOfMultiGet() const {
    return context_.options.statistics == nullptr ? 0 : context_.clock->NowNanos();
  }
  void CountMultiGetSince(uint64_t start, std::span<const Status> statuses,
                          std::span<const PinnableSlice> values) const;

 private:
  Status GetAt(const ReadView& view, const ReadOptions& options, const Slice& key,
               SequenceNumber snapshot, PinnableSlice* value) const;
  /// GetAt, for statistics and the thread's PerfContext.
  Status GetCounted(const ReadView& view, const ReadOptions& options, const Slice& key,
                    SequenceNumber snapshot, PinnableSlice* value) const;

  DatabaseContext& context_;
  const WriteSequencer* const sequencer_;
  IndexLoader* const indexes_;
  const LookupSource source_{
      .client = context_.client,
      .store = &context_.store,
      .prepare = [this](const TableHandle& table) { return indexes_->PrepareLookups(table); },
      .record_cache = context_.record_cache.get()};
};

template <typename Work>
Status ReadPath::WithContext(const ReadOptions& options, const ColumnFamily& family,
                             const Work& work) {
  NACRE_RETURN_IF_ERROR(context_.CheckLease());
  EpochDomain::Guard guard(&context_.epochs);
  SequenceNumber snapshot = 0;
  const ReadView& view = *PinConsistent(family, options, &snapshot);
  return work(LookupContext{source_, view, options, snapshot});
}

}  // namespace nacre
