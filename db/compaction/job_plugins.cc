#include "db/compaction/job_plugins.h"

#include "nacre/compaction_filter.h"

namespace nacre {

pool::JobPlugins LocalPlugins(const ColumnFamilyOptions& options, const pool::CompactionJob& job) {
  pool::JobPlugins plugins;
  plugins.comparator = options.comparator;
  plugins.merge_operator = options.merge_operator;
  if (options.compaction_filter != nullptr) {
    const auto keep = [](const CompactionFilter*) {};  // The application's.
    plugins.compaction_filter = {options.compaction_filter, keep};
  } else if (options.compaction_filter_factory != nullptr) {
    plugins.compaction_filter =
        options.compaction_filter_factory->CreateCompactionFilter(job.filter_context);
  }
  return plugins;
}

std::string CompactionFilterName(const ColumnFamilyOptions& options) {
  if (options.compaction_filter != nullptr) return options.compaction_filter->Name();
  if (options.compaction_filter_factory != nullptr) {
    return options.compaction_filter_factory->Name();
  }
  return {};
}

}  // namespace nacre
