#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "pool/connect/peer_device.h"
#include "rdma/diagnosis.h"
#include "util/clock.h"

namespace nacre::ctl {

/// What is wrong with a coordinator and the keyspaces that it knows, in the order in which to mend
/// it: whether each of its endpoints answers, which takes a leader of the cluster; then for each
/// keyspace whether a member leads it, whether each member answers, and whether each shard is
/// served by an owner that lives. Changes nothing. `security` is that of the keyspaces' pool;
/// `timeout`: for each endpoint and each member.
std::vector<rdma::Finding> ExamineCoordinator(const std::string& coordinator,
                                              const pool::PeerSecurity& security,
                                              std::chrono::milliseconds timeout, Clock* clock);

}  // namespace nacre::ctl
