#pragma once

#include <memory>

#include "sqlite/session.h"

namespace nacre::sqlite {

/// Registers the module `nacre`, whose tables are in Nacre databases. The connection then owns the
/// session. An SQLite error code.
int RegisterTableModule(std::unique_ptr<Session> session);

}  // namespace nacre::sqlite
