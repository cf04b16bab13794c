#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/status.h"
#include "tests/support/sim/sim_scheduler.h"

namespace nacre::sim {

// A group is a key of each shard of a keyspace, all of which are always written together, with the
// same number.

/// The key of a group in a shard; shards begin at "b", "c", ....
std::string KeyOfGroup(size_t group, size_t shard);
/// 0 for an empty one.
uint64_t NumberOf(const std::string& value);

/// The numbers of a group, as of one moment, read in one of the ways that there are: a MultiGet, a
/// snapshot, or an iterator. 0 for a key that is not there. A failure is that of the first read
/// that fails; `Aborted` if there is no snapshot.
Status ReadGroup(Scheduler* scheduler, DB* db, size_t group, size_t shards,
                 std::vector<uint64_t>* numbers);
/// Empty if all are the same; else what differs.
std::string DifferenceIn(size_t group, const std::vector<uint64_t>& numbers);

}  // namespace nacre::sim
