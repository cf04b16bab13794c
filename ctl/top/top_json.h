#pragma once

#include <string>

#include "ctl/top/pool_sample.h"

namespace nacre::ctl {

/// A sample as JSON: nodes as `nacre-ctl nodes` has them, with their rates; databases as
/// `nacre-ctl status` has them, with the readers of their logs.
std::string TopJson(const PoolSample& sample);

}  // namespace nacre::ctl
