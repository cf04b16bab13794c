#pragma once

#include <cstddef>

#include "ctl/top/pool_sample.h"
#include "ctl/top/top_line.h"

namespace nacre::ctl {

/// The databases: owner, redundancy, space, repair; below each what its owner has an operator know,
/// and the readers of its log. Narrow ones give up amplification, leased bytes, redundancy, user
/// bytes and stored bytes, in this order. Name, owner and repair stay.
TopSection DatabaseSection(const PoolSample& sample, size_t width, TopOrder order);

}  // namespace nacre::ctl
