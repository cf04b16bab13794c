#pragma once

#include "nacre/status.h"

namespace nacre {

/// Whether `status` is OK; if not, its text is put in the place of `*errptr`.
bool Succeeded(const Status& status, char** errptr);

}  // namespace nacre
