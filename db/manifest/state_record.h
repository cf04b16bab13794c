#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "db/manifest/table_lineage.h"
#include "nacre/slice.h"
#include "nacre/status.h"
#include "pool/pool_client.h"

namespace nacre {

// What tables tell of a state that no table was made in: a compaction that leaves nothing has no
// outputs to say that its inputs are dead (db/salvage/table_choice.h). It lies on as many nodes as
// the manifest, which has it as segment kStateRecordNumber. Layout in docs/formats.md.

/// No segment of the log has this number.
inline constexpr uint64_t kStateRecordNumber = 0;

std::string EncodeStateRecord(uint64_t database_id, const TableLineage& state);
/// How long the record is that begins with these (at least a page of) bytes; 0: none of the
/// database does. Safe on any bytes.
uint64_t StateRecordBytes(const Slice& beginning, uint64_t database_id);
/// `Corruption` saying what is wrong, `NotSupported` for another format. Safe on any bytes.
Status DecodeStateRecord(const Slice& bytes, uint64_t database_id, TableLineage* state);

/// Writes `record` to the beginning of each replica. `Unavailable`, `TimedOut` naming nodes.
Status WriteStateRecord(pool::PoolClient* client, const std::vector<ExtentAddr>& copies,
                        const std::string& record);

}  // namespace nacre
