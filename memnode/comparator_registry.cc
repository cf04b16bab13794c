#include "memnode/comparator_registry.h"

#include <fmt/format.h>

namespace nacre::memnode {

ComparatorRegistry::ComparatorRegistry() {
  for (const Comparator* built_in : {BytewiseComparator(), ReverseBytewiseComparator()}) {
    comparators_.emplace(built_in->Name(), built_in);
  }
}

Status ComparatorRegistry::Register(const Comparator* comparator) {
  const auto [it, is_new] = comparators_.emplace(comparator->Name(), comparator);
  if (is_new || it->second == comparator) return Status::OK();
  return Status::InvalidArgument(
      fmt::format("there are two comparators named '{}'", comparator->Name()));
}

Status ComparatorRegistry::Find(const std::string& name, const Comparator** comparator) const {
  const auto it = comparators_.find(name);
  if (it == comparators_.end()) {
    return Status::NotSupported(fmt::format("comparator '{}' is not known here", name));
  }
  *comparator = it->second;
  return Status::OK();
}

}  // namespace nacre::memnode
