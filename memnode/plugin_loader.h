#pragma once

#include <string>

#include "jobs/plugin_registry.h"
#include "nacre/status.h"

namespace nacre::pool {

/// Loads the plug-in (nacre/plugin.h) in the file `path` and adds what it has to `registry`.
/// `*added` gets one line that names it. The library stays loaded until the process ends. After a
/// failure the registry may have a part of it.
///
/// `InvalidArgument` if there is no such file, it is no shared library or no plug-in, or what it
/// adds is there already; `NotSupported` if it is of another version; else what the plug-in
/// answered. Each names the file.
Status LoadPlugin(const std::string& path, PluginRegistry* registry, std::string* added);

}  // namespace nacre::pool
