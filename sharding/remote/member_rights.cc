#include "sharding/remote/member_rights.h"

#include <fmt/format.h>

#include "sharding/shard_map.h"

namespace nacre {
namespace {

using sharding::ControlRequest;
using sharding::DatabaseRequest;
using sharding::MemberRequest;

bool ChangesNothing(const DatabaseRequest& request) {
  switch (request.kind()) {
    case DatabaseRequest::WAIT_FOR_COMPACT:
    case DatabaseRequest::VERIFY_CHECKSUM:
    case DatabaseRequest::PROPERTY:
    case DatabaseRequest::INT_PROPERTY:
    case DatabaseRequest::MAP_PROPERTY:
    case DatabaseRequest::AGGREGATED_INT_PROPERTY:
    case DatabaseRequest::APPROXIMATE_SIZES:
    case DatabaseRequest::LATEST_SEQUENCE_NUMBER:
    case DatabaseRequest::NUMBER_LEVELS:
      return true;
    default:
      return false;
  }
}

/// A kind that is new changes something, until it is named here.
bool ChangesNothing(const MemberRequest& request) {
  switch (request.body_case()) {
    case MemberRequest::kRead:
    case MemberRequest::kScan:
    case MemberRequest::kGetSnapshot:
    case MemberRequest::kReleaseSnapshots:
    // It serves snapshots over several shards, and holds back writes for half a second at most.
    case MemberRequest::kGate:
      return true;
    case MemberRequest::kDatabase:
      return ChangesNothing(request.database());
    case MemberRequest::kControl:
      return request.control().kind() == ControlRequest::LOADS ||
             request.control().kind() == ControlRequest::FIND_SPLIT_KEY;
    default:
      return false;
  }
}

}  // namespace

Status CheckMemberRight(const MemberRequest& request, const pool::ServerConnection& connection,
                        const std::string& keyspace) {
  const pool::Rights& rights = connection.rights;
  if (rights.may_administer() || ChangesNothing(request)) return Status::OK();
  const std::string database = ShardMap::DatabaseOfMap(keyspace);
  if (rights.MayWriteTo(database)) return Status::OK();
  return rights.Denied(connection.credential->name(),
                       fmt::format("'write' to database '{}'", database));
}

}  // namespace nacre
