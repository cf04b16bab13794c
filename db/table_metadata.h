#pragma once

#include <string>
#include <vector>

#include "db/version.h"
#include "memnode/pool_client.h"
#include "nacre/metadata.h"

namespace nacre {

/// What is known of the tables of one family. Whether they are being compacted is known where that
/// is guarded: by an owner, under its mutex.
ColumnFamilyMetaData MetaDataOf(const std::string& family, const Version& version,
                                const memnode::PoolClient& client, bool with_marks);

/// Adds all tables of `metadata`.
void AppendTables(const ColumnFamilyMetaData& metadata, std::vector<LiveTableMetaData>* tables);

}  // namespace nacre
