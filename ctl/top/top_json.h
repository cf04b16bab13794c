#pragma once

#include <cstddef>
#include <string>

#include "ctl/top/pool_sample.h"
#include "pool/wire/database_report.h"

namespace nacre::ctl {

/// The node of that number as `nacre-ctl nodes` has it, with its rates, and a database as
/// `nacre-ctl status` has it, with the readers of its log. `more`: further members (", \"a\": 1").
std::string TopNodeJson(const PoolSample& sample, size_t number, const std::string& more = "");
std::string TopDatabaseJson(const pool::KnownDatabase& database);

/// A sample as JSON: nodes as `nacre-ctl nodes` has them, with their rates; databases as
/// `nacre-ctl status` has them, with the readers of their logs.
std::string TopJson(const PoolSample& sample);

}  // namespace nacre::ctl
