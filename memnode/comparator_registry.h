#pragma once

#include <map>
#include <string>

#include "nacre/comparator.h"
#include "nacre/status.h"

namespace nacre::memnode {

/// The comparators that a memory node can run compactions with, by name: the built-in ones, and
/// what plugins add before the node starts.
/// Thread safety: as a std::map; the node only reads it.
class ComparatorRegistry {
 public:
  ComparatorRegistry();

  /// `comparator` outlives the registry. `InvalidArgument` if another one has its name.
  Status Register(const Comparator* comparator);
  /// `NotSupported` naming it if it is not known.
  Status Find(const std::string& name, const Comparator** comparator) const;

 private:
  std::map<std::string, const Comparator*> comparators_;
};

}  // namespace nacre::memnode
