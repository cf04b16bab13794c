#pragma once

namespace nacre {

/// What the library was made from, such as "commit 1a2b3c4d5e, release". The function is defined in
/// a source that each build writes anew (cmake/NacreVersion.cmake); tests get one that does not
/// know the commit, so that a commit does not link all of them anew.
const char* BuildVersion();

}  // namespace nacre
