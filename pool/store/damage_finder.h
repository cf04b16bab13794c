#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "pool/store/remote_table.h"

namespace nacre::pool {

/// Looks for what is damaged in the rows that have bytes [offset, offset + n) of a table: fetches
/// their chunks from all fragments, and the fragments' tails, and adds the chunks that do not match
/// to `table->damage`. Returns the addresses of nodes with chunks there that are damaged, those
/// that were known before among them, or whose tails are; empty if there are none. Blocks for about
/// as long as it takes to read those rows.
///
/// Unless `again`, what is known of these rows already is answer enough.
std::string FindDamage(RemoteTable* table, uint64_t offset, size_t n, bool again);

}  // namespace nacre::pool
