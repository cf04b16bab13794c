#pragma once

#include <string>

#include "nacre/options.h"
#include "nacre/status.h"

namespace nacre {

/// `options` with an info_log, if they say where that of the database `name` is and have none yet.
/// `IOError` naming the file that cannot be made.
Status OpenLogOf(const std::string& name, DBOptions* options);

}  // namespace nacre
