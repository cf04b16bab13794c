#include "memnode/plugin_loader.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "nacre/plugin.h"

namespace nacre::pool {
namespace {

/// Puts into a registry what a plug-in adds, and writes down its names.
class Registrar final : public PluginRegistrar {
 public:
  explicit Registrar(PluginRegistry* registry) : registry_(registry) {}

  Status AddComparator(const Comparator* comparator) override {
    if (comparator == nullptr) return Null("comparator");
    Note("comparator", comparator->Name());
    return registry_->Register(comparator);
  }
  Status AddMergeOperator(std::shared_ptr<const MergeOperator> merge_operator) override {
    if (merge_operator == nullptr) return Null("merge operator");
    Note("merge operator", merge_operator->Id());
    return registry_->Register(std::move(merge_operator));
  }
  Status AddCompactionFilter(std::shared_ptr<CompactionFilterFactory> factory) override {
    if (factory == nullptr) return Null("compaction filter");
    Note("compaction filter", factory->Name());
    return registry_->Register(std::move(factory));
  }

  const std::string& added() const { return added_; }

 private:
  static Status Null(const char* kind) {
    return Status::InvalidArgument(fmt::format("it adds a null {}", kind));
  }
  void Note(const char* kind, const std::string& name) {
    added_ += fmt::format("{}{} '{}'", added_.empty() ? "" : ", ", kind, name);
  }

  PluginRegistry* const registry_;
  std::string added_;
};

Status Load(const std::string& path, PluginRegistry* registry, std::string* added) {
  // A bare name would be looked for among the system's libraries.
  std::error_code unknown;
  const std::filesystem::path file = std::filesystem::absolute(path, unknown);
  if (path.empty() || unknown) return Status::InvalidArgument("no such file");
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status::InvalidArgument(::dlerror());
  const void* const symbol = ::dlsym(library, "nacre_plugin");
  if (symbol == nullptr) {
    ::dlclose(library);
    return Status::InvalidArgument("it is no plug-in of Nacre: it exports no 'nacre_plugin'");
  }
  const auto* const plugin = static_cast<const Plugin*>(symbol);
  if (plugin->version != kPluginVersion) {
    Status status = Status::NotSupported(
        fmt::format("it was built for version {} of the interface, and this node has version {}",
                    plugin->version, kPluginVersion));
    ::dlclose(library);
    return status;
  }
  if (plugin->add == nullptr) return Status::InvalidArgument("its 'nacre_plugin' adds nothing");
  Registrar registrar(registry);
  NACRE_RETURN_IF_ERROR(plugin->add(&registrar));
  *added = fmt::format("plug-in '{}': {}", path,
                       registrar.added().empty() ? "nothing" : registrar.added());
  return Status::OK();
}

}  // namespace

Status LoadPlugin(const std::string& path, PluginRegistry* registry, std::string* added) {
  return Load(path, registry, added).WithContext(fmt::format("plug-in '{}'", path));
}

}  // namespace nacre::pool
