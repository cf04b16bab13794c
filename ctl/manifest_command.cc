#include "ctl/manifest_command.h"

#include <fmt/format.h>

#include "ctl/database_view.h"
#include "db/manifest/manifest_report.h"
#include "util/json_text.h"

namespace nacre::ctl {
namespace {

std::string RootJson(const pool::PoolClient& client, const DatabaseView& view) {
  std::string members;
  for (const uint64_t instance_id : view.root.members) {
    members +=
        fmt::format("{}{{\"instance_id\": \"{:016x}\", \"node\": {}}}", members.empty() ? "" : ", ",
                    instance_id, JsonString(NameOfInstance(client, instance_id)));
  }
  return fmt::format(
      "{{\"name\": {}, \"open\": {}, \"epoch\": {}, \"version\": {}, \"members\": [{}]}}",
      JsonString(view.name), view.root.owned, view.root.epoch, view.root.version, members);
}

void PrintRoot(const pool::PoolClient& client, const DatabaseView& view) {
  fmt::print("root of {}: {}, epoch {}, version {}\n", view.name,
             view.root.owned ? "open" : "closed", view.root.epoch, view.root.version);
  for (const uint64_t instance_id : view.root.members) {
    fmt::print("  member {:016x} {}\n", instance_id, NameOfInstance(client, instance_id));
  }
}

}  // namespace

Status PrintManifest(pool::PoolClient* client, const std::string& name, bool json) {
  DatabaseView view;
  NACRE_RETURN_IF_ERROR(ViewDatabase(client, name, &view));
  if (json) {
    fmt::print("{{\"root\": {},\n \"manifest\": {}}}\n", RootJson(*client, view),
               ManifestJson(view.manifest));
  } else {
    PrintRoot(*client, view);
    fmt::print("{}", ManifestText(view.manifest));
  }
  return Status::OK();
}

}  // namespace nacre::ctl
