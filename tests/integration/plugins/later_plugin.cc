// A plug-in of a version of the interface that is yet to come: a node must not call it.

#include <cstdlib>

#include "nacre/plugin.h"

namespace {

nacre::Status EndTheProcess(nacre::PluginRegistrar* /*registrar*/) { std::abort(); }

}  // namespace

extern "C" {
__attribute__((visibility("default"))) extern const nacre::Plugin nacre_plugin;
const nacre::Plugin nacre_plugin = {nacre::kPluginVersion + 1, EndTheProcess};
}
