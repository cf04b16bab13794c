#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "nacre/db.h"
#include "pool/pool_impl.h"
#include "table/format/table_meta.h"

namespace nacre {

/// The live tables of a database on an embedded pool, as they lie on its nodes. Whatever fails
/// fails the test.
std::vector<TableMeta> StoredTables(DB* db, pool::PoolImpl* pool);

/// The byte at `offset` of a fragment, head not counted (so a head is at -kFragmentHeadBytes), in
/// the memory of its node: for tests that damage it.
char* StoredByte(pool::PoolImpl* pool, const TableMeta& table, size_t fragment, int64_t offset);

}  // namespace nacre
