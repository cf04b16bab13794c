#pragma once

#include <string>

#include "db/manifest/manifest_recovery.h"

namespace nacre {

// What `nacre-ctl manifest` shows of a manifest: where it lies, what the image says, which edits
// are on top of it. Bounds of tables are user keys in hexadecimal.

std::string ManifestText(const ManifestRecovered& manifest);
/// One object, with the same figures.
std::string ManifestJson(const ManifestRecovered& manifest);

}  // namespace nacre
