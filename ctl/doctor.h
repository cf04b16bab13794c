#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "rdma/diagnosis.h"
#include "rdma/transport.h"
#include "util/clock.h"
#include "util/uri.h"

namespace nacre::ctl {

/// What stands between this machine and a pool that works, in the order in which to mend it: what
/// the machine lacks for the pool's transport, then each node: whether it answers, whether it knows
/// the secret, how long a small request takes, whether its slabs are as large as the others'. A
/// pool without addresses ("verbs:") gets the part about the machine only. Changes nothing.
/// `timeout`: for each node. `options.parameters` are the pool's.
std::vector<rdma::Finding> Examine(const Uri& pool, const rdma::DeviceOptions& options,
                                   std::chrono::milliseconds timeout, Clock* clock);

/// "ok", "warning", "failure".
const char* ToString(rdma::Finding::Verdict verdict);
/// {"findings": [...]}.
std::string FindingsJson(const std::vector<rdma::Finding>& findings);

}  // namespace nacre::ctl
