#pragma once

#include <map>
#include <memory>
#include <string>

#include "nacre/compaction_filter.h"
#include "nacre/comparator.h"
#include "nacre/merge_operator.h"
#include "nacre/status.h"

namespace nacre::pool {

/// What a memory node can run jobs with: comparators by name, merge operators by id, factories of
/// compaction filters by name, the built-in ones and what plugins add before the node starts.
/// Thread safety: as a std::map; the node only reads it.
class PluginRegistry {
 public:
  PluginRegistry();

  /// `comparator` outlives the registry. `InvalidArgument` if another one has its name.
  Status Register(const Comparator* comparator);
  /// `NotSupported` naming it if it is not known.
  Status Find(const std::string& name, const Comparator** comparator) const;

  /// `InvalidArgument` if another one has its id, or one that is built in.
  Status Register(std::shared_ptr<const MergeOperator> merge_operator);
  /// `NotSupported` naming it if it is not known.
  Status FindMergeOperator(const std::string& id,
                           std::shared_ptr<const MergeOperator>* merge_operator) const;

  /// For filters that are of this name, and for those of factories of this name. `InvalidArgument`
  /// if another one has its name.
  Status Register(std::shared_ptr<CompactionFilterFactory> factory);
  /// The filter may be null: nothing is filtered. `NotSupported` naming it if it is not known.
  Status MakeCompactionFilter(const std::string& name, const CompactionFilter::Context& context,
                              std::shared_ptr<const CompactionFilter>* filter) const;

 private:
  std::map<std::string, const Comparator*> comparators_;
  std::map<std::string, std::shared_ptr<const MergeOperator>> merge_operators_;
  std::map<std::string, std::shared_ptr<CompactionFilterFactory>> filter_factories_;
};

}  // namespace nacre::pool
