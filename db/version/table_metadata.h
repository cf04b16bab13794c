#pragma once

#include <string>
#include <vector>

#include "db/version/version.h"
#include "nacre/metadata.h"
#include "pool/pool_client.h"

namespace nacre {

/// What is known of the tables of one family. Takes a while where there are many: without a mutex.
ColumnFamilyMetaData MetaDataOf(const std::string& family, const Version& version,
                                const pool::PoolClient& client);

/// Adds all tables of `metadata`.
void AppendTables(const ColumnFamilyMetaData& metadata, std::vector<LiveTableMetaData>* tables);

}  // namespace nacre
