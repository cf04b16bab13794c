#include "db/salvage/salvage.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "db/manifest/manifest_log.h"
#include "db/manifest/manifest_recovery.h"
#include "pool/databases.h"
#include "pool/read/pool_reader.h"
#include "pool/read/slab_map.h"
#include "pool/space/space_allocator.h"

namespace nacre {
namespace {

/// The space of a database that has nothing but what a plan says.
class PlannedSpace final : public ManifestSpace {
 public:
  PlannedSpace(pool::PoolClient* client, uint64_t database_id, const SalvagePlan& plan)
      : client_(client),
        database_id_(database_id),
        copies_(plan.parity + 1),
        space_(client, database_id, plan.state.slab_bytes, plan.chunk_size) {}

  /// `Corruption` if two things that count lie in the same memory.
  Status Restore(const SlabsByNode& slabs, const SalvagePlan& plan) {
    for (const auto& [id, table] : plan.state.tables) {
      for (const ExtentAddr& extent : table.second.placement.fragments) Use(extent);
    }
    for (const auto& [number, segment] : plan.state.segments) {
      for (const ExtentAddr& extent : segment.copies) Use(extent);
    }
    for (const ExtentAddr& extent : plan.found) {
      if (IsFree(extent)) {
        Use(extent);
        dead_.push_back(extent);
      }
    }
    for (const auto& [node, offsets] : slabs) {
      NACRE_RETURN_IF_ERROR(space_.Restore(node, offsets, extents_[node]));
    }
    return Status::OK();
  }

  Status ReserveReplicas(uint64_t bytes, std::vector<ExtentAddr>* copies) override {
    const int most = std::max(1, client_->domain_count());
    Placement placement;
    NACRE_RETURN_IF_ERROR(
        space_.Reserve(Redundancy::Copies(std::min(copies_, most)), bytes, kNoNode, &placement));
    *copies = std::move(placement.fragments);
    return Status::OK();
  }
  void FreeReplicas(const std::vector<ExtentAddr>& copies) override {
    for (const ExtentAddr& copy : copies) space_.Free(copy);
  }
  Status PublishRoot(const std::string& value) override {
    return client_->databases()->PublishRoot(database_id_, value);
  }

  /// The new manifest counts: what is in none is free.
  Status ReturnRest() {
    for (const ExtentAddr& extent : dead_) space_.Free(extent);
    return space_.ReturnFreeSlabs();
  }

 private:
  void Use(const ExtentAddr& extent) {
    if (extent.start.node == kLostNode) return;
    const auto node = static_cast<NodeId>(extent.start.node);
    extents_[node].push_back(extent);
    used_[node][extent.start.offset] = extent.start.offset + extent.length;
  }
  bool IsFree(const ExtentAddr& extent) {
    const Stretches& used = used_[static_cast<NodeId>(extent.start.node)];
    const auto next = used.lower_bound(extent.start.offset);
    if (next != used.end() && next->first < extent.start.offset + extent.length) return false;
    return next == used.begin() || std::prev(next)->second <= extent.start.offset;
  }

  pool::PoolClient* const client_;
  const uint64_t database_id_;
  const int copies_;
  std::map<NodeId, std::vector<ExtentAddr>> extents_;
  std::map<NodeId, Stretches> used_;
  std::vector<ExtentAddr> dead_;
  pool::SpaceAllocator space_;
};

/// A live owner renews its manifest every now and then.
Status ReadManifest(pool::PoolClient* client, const std::string& name, pool::DatabaseRoot* root) {
  constexpr int kAttempts = 6;
  constexpr std::chrono::milliseconds kPause{20};
  for (int attempt = 1;; ++attempt) {
    NACRE_RETURN_IF_ERROR(client->databases()->Find(name, root));
    ManifestRecovered recovered;
    Status status = RecoverManifest(client, root->value, root->database_id, &recovered);
    if (status.ok() || !root->owned || attempt == kAttempts) return status;
    client->clock()->SleepFor(kPause);
  }
}

/// As the nodes' tables say.
Status ReadSlabs(pool::PoolClient* client, uint64_t database_id, SlabsByNode* slabs) {
  std::unique_ptr<pool::PoolReader> reader;
  NACRE_RETURN_IF_ERROR(pool::PoolReader::Open(client->fabric(), &reader));
  for (int i = 0; i < client->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    pool::SlabMap map;
    if (!client->alive(node) || !pool::ReadSlabMap(reader.get(), node, &map).ok()) continue;
    for (size_t slab = 0; slab < map.owners.size(); ++slab) {
      if (map.owners[slab] == database_id) (*slabs)[node].push_back(map.OffsetOf(slab));
    }
  }
  return Status::OK();
}

/// Checks whether all that existed can have been found.
Status CheckPlan(const pool::PoolClient& client, const pool::DatabaseRoot& root,
                 const SalvagePlan& plan) {
  int absent = 0;
  for (const uint64_t member : root.members) {
    bool there = false;
    for (int i = 0; i < client.node_count() && !there; ++i) {
      const auto node = static_cast<NodeId>(i);
      there = client.alive(node) && client.instance_id(node) == member;
    }
    if (!there) ++absent;
  }
  if (absent > plan.parity) {
    return Status::Unavailable(
        fmt::format("{} of the {} nodes that the database was on are not there, {} may be missing",
                    absent, root.members.size(), plan.parity));
  }
  if (plan.lost.empty()) return Status::OK();
  return Status::Corruption(fmt::format("tables {} cannot be found", fmt::join(plan.lost, ", ")));
}

Status WriteManifest(pool::PoolClient* client, const pool::DatabaseLease& lease,
                     const SalvageOptions& options, const SalvagePlan& plan) {
  PlannedSpace space(client, lease.database_id, plan);
  NACRE_RETURN_IF_ERROR(space.Restore(lease.slabs, plan));
  ManifestLogOptions log_options;
  log_options.client = client;
  log_options.clock = client->clock();
  log_options.database_id = lease.database_id;
  log_options.epoch = lease.epoch;
  log_options.log = options.log;
  std::unique_ptr<ManifestLog> manifest;
  NACRE_RETURN_IF_ERROR(ManifestLog::Create(log_options, plan.state, &space, &manifest));
  manifest->Close();
  manifest.reset();
  space.ReturnRest().IgnoreError();  // What stays is found by the next opening.
  return Status::OK();
}

}  // namespace

Status SalvageDatabase(pool::PoolClient* client, const std::string& name,
                       const SalvageOptions& options, SalvageReport* report) {
  *report = SalvageReport();
  pool::DatabaseRoot root;
  const Status manifest = ReadManifest(client, name, &root);
  if (!root.exists) return manifest;
  report->database_id = root.database_id;
  report->manifest = manifest.ToString();
  if (manifest.ok()) report->manifest.clear();
  const bool wanted = options.force || options.dry_run;
  if (manifest.ok() && !wanted) {
    return Status::InvalidArgument(
        fmt::format("the manifest of '{}' can be read: there is nothing to repair", name));
  }
  if (!manifest.ok() && !manifest.IsCorruption() && !wanted) {
    return manifest.WithContext("its manifest may come back");
  }
  if (options.dry_run) {
    SlabsByNode slabs;
    NACRE_RETURN_IF_ERROR(ReadSlabs(client, root.database_id, &slabs));
    return MakeSalvagePlan(client, root.database_id, slabs, options.defaults, &report->plan);
  }
  pool::DatabaseLease lease;
  NACRE_RETURN_IF_ERROR(client->databases()->Open(name, {.take_over = true}, &lease));
  Status status =
      MakeSalvagePlan(client, lease.database_id, lease.slabs, options.defaults, &report->plan);
  if (status.ok() && !options.force) status = CheckPlan(*client, root, report->plan);
  if (status.ok()) {
    status = WriteManifest(client, lease, options, report->plan);
    report->salvaged = status.ok();
  }
  const Status left = client->databases()->Leave(lease.database_id);
  return status.ok() ? left : status;
}

}  // namespace nacre
