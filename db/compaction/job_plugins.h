#pragma once

#include <string>

#include "jobs/compaction_job.h"
#include "nacre/options.h"

namespace nacre {

/// What jobs of a column family are run with in this process.
pool::JobPlugins LocalPlugins(const ColumnFamilyOptions& options, const pool::CompactionJob& job);
/// Name of the compaction filter or of its factory; empty if there is none.
std::string CompactionFilterName(const ColumnFamilyOptions& options);

}  // namespace nacre
