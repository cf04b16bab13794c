#include "jobs/plugin_registry.h"

#include <fmt/format.h>

#include <utility>

namespace nacre::pool {

PluginRegistry::PluginRegistry() {
  for (const Comparator* built_in : {BytewiseComparator(), ReverseBytewiseComparator()}) {
    comparators_.emplace(built_in->Name(), built_in);
  }
}

Status PluginRegistry::Register(const Comparator* comparator) {
  const auto [it, is_new] = comparators_.emplace(comparator->Name(), comparator);
  if (is_new || it->second == comparator) return Status::OK();
  return Status::InvalidArgument(
      fmt::format("there are two comparators named '{}'", comparator->Name()));
}

Status PluginRegistry::Find(const std::string& name, const Comparator** comparator) const {
  const auto it = comparators_.find(name);
  if (it == comparators_.end()) {
    return Status::NotSupported(fmt::format("comparator '{}' is not known here", name));
  }
  *comparator = it->second;
  return Status::OK();
}

Status PluginRegistry::Register(std::shared_ptr<const MergeOperator> merge_operator) {
  const std::string id = merge_operator->Id();
  std::shared_ptr<MergeOperator> built_in;
  if (MergeOperator::CreateFromString(id, &built_in).ok()) {
    return Status::InvalidArgument(fmt::format("merge operator '{}' is built in", id));
  }
  const auto [it, is_new] = merge_operators_.try_emplace(id, merge_operator);
  if (is_new || it->second == merge_operator) return Status::OK();
  return Status::InvalidArgument(fmt::format("there are two merge operators '{}'", id));
}

Status PluginRegistry::FindMergeOperator(
    const std::string& id, std::shared_ptr<const MergeOperator>* merge_operator) const {
  if (const auto it = merge_operators_.find(id); it != merge_operators_.end()) {
    *merge_operator = it->second;
    return Status::OK();
  }
  std::shared_ptr<MergeOperator> built_in;
  if (!MergeOperator::CreateFromString(id, &built_in).ok()) {
    return Status::NotSupported(fmt::format("merge operator '{}' is not known here", id));
  }
  *merge_operator = std::move(built_in);
  return Status::OK();
}

Status PluginRegistry::Register(std::shared_ptr<CompactionFilterFactory> factory) {
  const std::string name = factory->Name();
  const auto [it, is_new] = filter_factories_.try_emplace(name, factory);
  if (is_new || it->second == factory) return Status::OK();
  return Status::InvalidArgument(fmt::format("there are two compaction filters '{}'", name));
}

Status PluginRegistry::MakeCompactionFilter(const std::string& name,
                                            const CompactionFilter::Context& context,
                                            std::shared_ptr<const CompactionFilter>* filter) const {
  const auto it = filter_factories_.find(name);
  if (it == filter_factories_.end()) {
    return Status::NotSupported(fmt::format("compaction filter '{}' is not known here", name));
  }
  *filter = it->second->CreateCompactionFilter(context);
  return Status::OK();
}

}  // namespace nacre::pool
