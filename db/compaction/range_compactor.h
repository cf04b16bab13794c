#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "db/context/database_context.h"
#include "db/context/database_state.h"
#include "db/manifest/table_lineage.h"
#include "db/version/compaction_picker.h"
#include "jobs/compaction_job.h"
#include "nacre/status.h"

namespace nacre {

/// What is copied from another database of the pool.
struct TableCopy {
  const ColumnFamily* family;        ///< The one that it gets.
  std::vector<TableList> runs;       ///< As CompactionJob::runs, of the other database.
  SequenceWindow window;             ///< The entries of them that are copied.
  std::optional<std::string> begin;  ///< User keys in [begin, end); nothing: open.
  std::optional<std::string> end;
  int level = 0;             ///< That of the outputs.
  bool covers_more = false;  ///< The family has older versions of what is copied.
};

/// Runs the job of a compaction, or of one of the key ranges that it is divided into: on the node
/// that has most of the input, on another one, or in this process. It reserves the space of the
/// outputs and opens them; nothing of them is durable before their change is committed.
///
/// Thread safety: all methods may be called from many threads at once.
class RangeCompactor {
 public:
  RangeCompactor(DatabaseContext* context, DatabaseState* state)
      : context_(*context), state_(state) {}

  /// The first keys of the second and later key ranges that the compaction is run in.
  std::vector<std::string> Cut(const Compaction& compaction) const;
  /// Merges what lies between `begin` and `end` into `*outputs`.
  Status Run(const Compaction& compaction, const TableLineage& lineage,
             const std::optional<std::string>& begin, const std::optional<std::string>& end,
             TableList* outputs) EXCLUDES(state_->mutex);
  /// Merges the newest versions of what `copy` names into `*outputs`, in this process.
  Status Copy(const TableCopy& copy, TableList* outputs) EXCLUDES(state_->mutex);

 private:
  /// A key of an input, and the bytes of that input from there up to its next key here.
  struct KeyWeight {
    std::string user_key;
    uint64_t bytes;
  };

  /// How many key ranges there are to be at most.
  uint64_t PiecesOf(const Compaction& compaction) const;
  /// Keys of all inputs in their order, about `part_bytes` of a table from one to the next.
  static std::vector<KeyWeight> WeighKeys(const Compaction& compaction, uint64_t part_bytes);
  /// Bytes of the tables that lie between two keys, in whole chunks.
  Status BytesBetween(const TableList& tables, const std::optional<std::string>& begin,
                      const std::optional<std::string>& end, uint64_t* bytes) const;
  /// Runs the job on the best node that can, with space reserved for its outputs; opens these.
  Status Execute(const ColumnFamily& family, pool::CompactionJob* job, const TableList& inputs,
                 uint64_t input_bytes, TableList* outputs);
  /// `doublings`: tries before this one, whose outputs did not fit into what was reserved.
  Status ReserveOutputs(uint64_t output_bytes, int doublings, uint64_t target, NodeId preferred,
                        pool::CompactionJob* job);

  DatabaseContext& context_;
  DatabaseState* const state_;
};

}  // namespace nacre
