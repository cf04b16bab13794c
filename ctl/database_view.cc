#include "ctl/database_view.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "pool/databases.h"

namespace nacre::ctl {
namespace {

constexpr int kReadAttempts = 6;
/// A renewal of the manifest is over by then.
constexpr std::chrono::milliseconds kPause{20};

Status ViewOnce(pool::PoolClient* client, DatabaseView* view) {
  NACRE_RETURN_IF_ERROR(client->databases()->Find(view->name, &view->root));
  NACRE_RETURN_IF_ERROR(client->databases()->ReadRootCopies(view->name, &view->root_copies));
  view->manifest = ManifestRecovered();
  return RecoverManifest(client, view->root.value, view->root.database_id, &view->manifest);
}

}  // namespace

NodeId FindInstance(const pool::PoolClient& client, uint64_t instance_id) {
  for (int i = 0; i < client.node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (client.alive(node) && client.instance_id(node) == instance_id) return node;
  }
  return kLostNode;
}

std::string NameOfInstance(const pool::PoolClient& client, uint64_t instance_id) {
  for (int i = 0; i < client.node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (client.instance_id(node) == instance_id) return client.node_address(node);
  }
  return fmt::format("the node with instance {:016x}", instance_id);
}

Status ViewDatabase(pool::PoolClient* client, const std::string& name, DatabaseView* view) {
  *view = DatabaseView();
  view->name = name;
  Status status;
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    if (attempt > 0) client->clock()->SleepFor(kPause);
    status = ViewOnce(client, view);
    if (status.ok() || !view->root.owned || status.IsNotFound()) break;
  }
  if (!status.ok()) {
    if (!status.IsCorruption() || !view->root.owned) return status;
    return Status::Corruption(
        fmt::format("{} (read {} times: damaged, or its owner changes it "
                    "faster than it can be read)",
                    status.message(), kReadAttempts));
  }
  std::map<NodeId, NodeId> numbers;
  for (const auto& [number, instance_id] : view->manifest.state.nodes) {
    const NodeId present = FindInstance(*client, instance_id);
    if (present != kLostNode) numbers[number] = present;
  }
  view->state = view->manifest.state;
  view->state.Renumber(numbers);
  return Status::OK();
}

}  // namespace nacre::ctl
