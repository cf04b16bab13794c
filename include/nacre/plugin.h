#pragma once

#include <cstdint>
#include <memory>

#include "nacre/compaction_filter.h"
#include "nacre/comparator.h"
#include "nacre/merge_operator.h"
#include "nacre/status.h"

namespace nacre {

// Plug-ins of memory nodes: shared libraries with an application's own comparators, merge operators
// and compaction filters, so that nodes can flush and compact its tables. `nacre-memnode
// --plugin=PATH` loads one at the start. A plug-in is a function that adds what there is to a
// PluginRegistrar, and `NACRE_PLUGIN(function)`; examples/counters is one.
//
// C++ objects cross the border: a plug-in is built with the same compiler and the same standard
// library as the nodes, and against headers of the same kPluginVersion. Nothing in it may throw.

/// The version of everything a plug-in and a node know of one another. A node loads no plug-in of
/// another version.
inline constexpr uint32_t kPluginVersion = 1;

/// What a plug-in adds to a node, under the names that the options of databases have them by. Used
/// by one thread, before the node starts; what was added is called by many threads at once.
class PluginRegistrar {
 public:
  /// `comparator` lives as long as the process. `InvalidArgument` if it is null, or another one has
  /// its name.
  virtual Status AddComparator(const Comparator* comparator) = 0;
  /// Registers the operator under its id. `InvalidArgument` if it is null, or another one has its
  /// id.
  virtual Status AddMergeOperator(std::shared_ptr<const MergeOperator> merge_operator) = 0;
  /// Registers a filter for databases whose filter or factory has this name. `InvalidArgument` if
  /// it is null, or another one has its name.
  virtual Status AddCompactionFilter(std::shared_ptr<CompactionFilterFactory> factory) = 0;

 protected:
  ~PluginRegistrar() = default;
};

/// What a plug-in exports as `nacre_plugin`. The version comes first in all versions.
struct Plugin {
  uint32_t version;
  /// Called once. A failure ends the node, which says why.
  Status (*add)(PluginRegistrar* registrar);
};

}  // namespace nacre

/// Makes a shared library a plug-in; once in the library, outside of all namespaces.
#define NACRE_PLUGIN(add)                                                           \
  extern "C" {                                                                      \
  __attribute__((visibility("default"))) extern const ::nacre::Plugin nacre_plugin; \
  const ::nacre::Plugin nacre_plugin = {::nacre::kPluginVersion, add};              \
  }
