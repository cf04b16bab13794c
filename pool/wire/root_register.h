#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "pool/wire/control.pb.h"
#include "table/format/placement.h"

namespace nacre::pool {

// The root of a database: one register, replicated over nodes of the pool, that tells the
// database's owner and what the owner wrote last (the ballot register of SWARM, sections 3 and 4;
// Paxos with the owner's epoch as the ballot, so that an owner writes in one round trip).
//
// Each node keeps the highest epoch that was claimed there, and the root that was written last,
// ordered by epoch and version. A claim with a later epoch is a promise: from then on the node
// takes no write of an earlier one. A root carries the members, the instances of nodes that count.
//
//   open      Read all nodes; claim an epoch above all that were seen. The newest root among the
//             answers decides: the claim holds if more than half of its members granted it.
//   publish   Write to all nodes. The root is acknowledged if at least half of its members took it.
//
// Why that is linearizable. More than half and at least half of a set have a node in common. At
// that node the write came first, and the claim's answer shows it, or the claim did, and the write
// was refused. So an owner starts from the last acknowledged root or a later one, and from its
// claim on no earlier owner has a root acknowledged. What it finds on fewer than half of the
// members may or may not have been acknowledged; it writes that again, with its own epoch, before
// it opens, so that the next owner does not see an older one. Two claims never hold with one epoch:
// a node grants an epoch to one client, and both would need more than half.
//
// Members change in two steps, like joint consensus: a root that names the old ones, too, and
// needs both halves to be read and acknowledged, then one that names the new ones alone. Any reader
// finds the first of the two in more than half of the old members, and is led to the second.
// A database that is being created has no old members; in their place stand all nodes of the pool,
// of which more than half must be reached to find that it does not exist, and at least half must
// take its first root.
//
// A node forgets a root only when the database is destroyed, which more than half of the members
// must do. So if more than half of the members of a root know of none, it was destroyed: had a root
// been acknowledged, at least half would know one. A node that was not there then has its leftovers
// removed with the next claim of the name.

inline constexpr size_t kMaxDatabaseNameBytes = 1024;
inline constexpr size_t kMaxRootBytes = 16 << 20;

/// What one node knows of a database.
struct RootAnswer {
  NodeId node = kNoNode;
  uint64_t instance_id = 0;
  control::DatabaseState state;
};

/// The newest root among the answers; null if no node has one.
const RootAnswer* NewestRoot(const std::vector<RootAnswer>& answers);

/// Checks whether the nodes that answered may decide: more than half of the members of `root`, or,
/// if it is null or of a database that is being created, of the pool's nodes. `Unavailable` says
/// how many are missing.
Status CheckReadQuorum(const control::Root* root, const std::vector<RootAnswer>& answers,
                       int pool_nodes);
/// Nodes that were away while a database was destroyed, and another made under its name, still have
/// the first. Leaves in `answers` those about the one that exists. The root of one that was
/// destroyed (more than half of its members do not have it any more, or have another) is taken out:
/// the next claim removes it. If it may still exist elsewhere, the node is left out, so that it is
/// not claimed. `Corruption` if two exist.
Status LeaveOneDatabase(int pool_nodes, std::vector<RootAnswer>* answers);
/// Whether `root`, the newest, belongs to a database that was destroyed.
bool IsDestroyed(const control::Root& root, const std::vector<RootAnswer>& answers);
/// Whether the nodes with `acknowledged` instances suffice to have written `root`.
bool IsWritten(const control::Root& root, const std::set<uint64_t>& acknowledged);

}  // namespace nacre::pool
