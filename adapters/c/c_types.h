#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/c.h"
#include "nacre/checkpoint.h"
#include "nacre/column_family.h"
#include "nacre/compaction_filter.h"
#include "nacre/comparator.h"
#include "nacre/db.h"
#include "nacre/logger.h"
#include "nacre/merge_operator.h"
#include "nacre/options.h"
#include "nacre/pool.h"
#include "nacre/slice_transform.h"
#include "nacre/statistics.h"
#include "nacre/status.h"
#include "nacre/write_buffer_manager.h"

// What stands behind the opaque types of nacre/c.h. Each owns what it holds, unless something else
// is said.

struct nacre_t {
  std::unique_ptr<nacre::DB> rep;
};

struct nacre_pool_t {
  std::shared_ptr<nacre::Pool> rep;
};

struct nacre_options_t {
  nacre::Options rep;
  nacre::Status invalid;  ///< What a setter could not take; said when the options are used.
};

struct nacre_readoptions_t {
  nacre::ReadOptions rep;  ///< The options except bounds.
  std::unique_ptr<std::string> lower;
  std::unique_ptr<std::string> upper;
};

struct nacre_writeoptions_t {
  nacre::WriteOptions rep;
};

struct nacre_flushoptions_t {
  nacre::FlushOptions rep;
};

struct nacre_compactoptions_t {
  nacre::CompactRangeOptions rep;
};

struct nacre_checkpointoptions_t {
  nacre::CheckpointOptions rep;
};

struct nacre_checkpointinfo_t {
  std::vector<nacre::CheckpointInfo> all;
};

struct nacre_writebatch_t {
  nacre::WriteBatch rep;
  nacre::Status failure;  ///< The failure of the first update that did not fit.
};

/// The bounds of iterators, in memory that stays where it is.
struct IteratorBounds {
  std::string lower;
  std::string upper;
  nacre::Slice lower_bound;
  nacre::Slice upper_bound;
};

struct nacre_iterator_t {
  std::shared_ptr<const IteratorBounds> bounds;  // Outlives the iterator.
  std::unique_ptr<nacre::Iterator> rep;
};

struct nacre_snapshot_t {
  const nacre::Snapshot* rep;  ///< The database's.
};

struct nacre_pinnableslice_t {
  nacre::PinnableSlice rep;
};

struct nacre_column_family_handle_t {
  nacre::DB* db;
  nacre::ColumnFamilyHandle* rep;  ///< Given back to `db`.
};

struct nacre_statistics_t {
  std::shared_ptr<nacre::Statistics> rep;
};

struct nacre_write_buffer_manager_t {
  std::shared_ptr<nacre::WriteBufferManager> rep;
};

struct nacre_comparator_t {
  const nacre::Comparator* rep;
  std::unique_ptr<nacre::Comparator> owned;  ///< Null for the two that live for ever.
};

struct nacre_logger_t {
  std::shared_ptr<nacre::Logger> rep;
};

struct nacre_mergeoperator_t {
  std::shared_ptr<nacre::MergeOperator> rep;
};

struct nacre_compactionfilter_t {
  std::unique_ptr<nacre::CompactionFilter> rep;
};

struct nacre_compactionfiltercontext_t {
  nacre::CompactionFilter::Context rep;
};

struct nacre_compactionfilterfactory_t {
  std::shared_ptr<nacre::CompactionFilterFactory> rep;
};

struct nacre_slicetransform_t {
  std::shared_ptr<const nacre::SliceTransform> rep;
};

namespace nacre {

/// Null stays null, which is the default family.
inline ColumnFamilyHandle* FamilyOf(const nacre_column_family_handle_t* family) {
  return family == nullptr ? nullptr : family->rep;
}

/// Has `destroy` functions end in one place: frees what `create` has made.
template <typename T>
void Destroy(T* object) {
  std::unique_ptr<T> destroyed(object);
}

/// Names for C; `*count` is set, and each is freed with `FreeNames`.
char** CopyNames(const std::vector<std::string>& names, size_t* count);
void FreeNames(char** names, size_t count);

}  // namespace nacre
