#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "nacre/status.h"
#include "pool/connect/fabric.h"
#include "pool/connect/node_requests.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/root_register.h"
#include "table/format/placement.h"

namespace nacre::pool {

/// What the nodes know of the name of a database.
struct RootsSeen {
  std::vector<RootAnswer> answers;
  bool exists = false;       ///< It has a root with a value, `root`, that was acknowledged.
  bool remains = false;      ///< It does not exist: its creation, or its end, was cut short.
  uint64_t database_id = 0;  ///< 0: no node knows the name.
  uint64_t epoch = 0;        ///< The highest that was claimed.
  bool owned = false;        ///< By another client that lives.
  control::Root root;
};

/// The instances of the nodes whose answers are OK.
std::set<uint64_t> InstancesThatAgree(const Fabric& fabric,
                                      const std::vector<const NodeRequests::Answer*>& answers);

/// What came of a claim so far.
struct Claims {
  std::vector<RootAnswer> granted;
  std::vector<NodeId> draining;  ///< Granted, but something still writes for the former owner.
  std::vector<NodeId> refused;
  Status refusal;
};

}  // namespace nacre::pool
