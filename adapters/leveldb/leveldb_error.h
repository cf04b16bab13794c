#pragma once

#include <string>

#include "nacre/status.h"

// LevelDB's statuses as text, which is all that its C API lets a program see of them. Programs
// compare these texts, so they are LevelDB's own where it has one for the case.

namespace nacre {

/// Whether `status` is OK; if not, its text in LevelDB's words is put in the place of `*errptr`.
bool Succeeded(const Status& status, char** errptr);

/// What LevelDB says when opening, repairing or destroying the database at `path` fails so.
std::string OpenFailureText(const Status& status, const std::string& path);

/// What it says of a database that this process has open.
std::string HeldHereText(const std::string& path);

/// The name that LevelDB gives to the order of bytes; Nacre has another one.
extern const char* const kLevelDBBytewiseName;

}  // namespace nacre
