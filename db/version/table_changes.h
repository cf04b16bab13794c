#pragma once

#include "db/manifest/manifest_edit.h"
#include "db/manifest/table_lineage.h"
#include "db/version/version.h"

namespace nacre {

/// What `change` does to the tables, for the manifest.
void DescribeTables(const VersionEdit& change, ManifestEdit* edit);

/// The tables that there are, for a lineage that begins with them.
void AddTables(const VersionList& versions, TableLineage* lineage);

}  // namespace nacre
