#pragma once

#include "sqlite/session.h"

namespace nacre::sqlite {

/// Registers the table-valued function nacre_integrity_check('table'), or ('table', findings at
/// most; 100 else): "ok", or a row for each finding (sqlite/query/integrity_check.h), as of
/// SQLite's PRAGMA integrity_check. An SQLite error code.
int RegisterIntegrityModule(Session* session);

}  // namespace nacre::sqlite
