#include "ctl/database_check.h"

#include <fmt/format.h>

#include <limits>
#include <set>
#include <utility>

#include "db/manifest/family_record.h"
#include "db/manifest/manifest_edit.h"
#include "db/manifest/manifest_root.h"
#include "pool/databases.h"

namespace nacre::ctl {
namespace {

/// Equal for equal states.
std::string Fingerprint(const ManifestState& state) {
  std::string text = fmt::format("{}/{}/{}/{}/{}", state.comparator, state.num_levels,
                                 state.version, state.next_table_id, state.last_sequence);
  for (const auto& [node, instance_id] : state.nodes) {
    text += fmt::format("/{}={:x}", node, instance_id);
  }
  EncodeFamilies(state.families, state.next_family, &text);
  for (const auto& [id, table] : state.tables) {
    EncodeLevelAndTable(table.first, table.second, &text);
  }
  for (const auto& [number, segment] : state.segments) EncodeLogSegment(segment, &text);
  return text;
}

}  // namespace

Finding* DatabaseCheck::Add(Problem problem, const std::string& text) {
  findings_.push_back({.problem = problem, .database = view_.name, .text = text});
  return &findings_.back();
}

Finding* DatabaseCheck::AddAt(Problem problem, NodeId node, const std::string& text) {
  Finding* finding = Add(problem, text);
  finding->node = client_->node_address(node);
  return finding;
}

std::string DatabaseCheck::NameOf(const Use& use) const {
  if (use.table != 0) return fmt::format("table {}", use.table);
  if (use.segment != 0) return fmt::format("log segment {}", use.segment);
  return "the manifest";
}

std::string DatabaseCheck::OwnersNode(NodeId node) const {
  const auto& nodes = view_.manifest.state.nodes;
  const auto it = nodes.find(node);
  return it == nodes.end() ? "a node that was lost" : NameOfInstance(*client_, it->second);
}

void DatabaseCheck::Run(const std::map<NodeId, SlabMap>& slabs) {
  health_.name = view_.name;
  health_.id = view_.root.database_id;
  health_.open = view_.root.owned;
  health_.manifest_version = view_.state.version;
  health_.spare_nodes = std::numeric_limits<int>::max();
  CheckRoot();
  CheckManifest();
  CheckTables();
  CheckSegments();
  if (full_ && !health_.open) CheckLog();
  CheckSpace(slabs);
}

void DatabaseCheck::CheckRoot() {
  const pool::DatabaseRoot& newest = view_.root;
  const int members = static_cast<int>(newest.members.size());
  int whole = 0;
  for (const uint64_t instance_id : newest.members) {
    const pool::RootCopy* copy = nullptr;
    for (const pool::RootCopy& each : view_.root_copies) {
      if (each.instance_id == instance_id) copy = &each;
    }
    if (copy == nullptr) {
      Add(Problem::kDegraded, fmt::format("{} has a copy of the root and does not answer",
                                          NameOfInstance(*client_, instance_id)));
      continue;
    }
    ++whole;
    if (!copy->root.exists || copy->root.database_id != newest.database_id) {
      AddAt(Problem::kRoot, copy->node, "it has no root of this database");
    } else if (std::pair(copy->root.epoch, copy->root.version) <
               std::pair(newest.epoch, newest.version)) {
      AddAt(Problem::kRoot, copy->node,
            fmt::format("its root lags: epoch {} version {}, the others have epoch {} version {}",
                        copy->root.epoch, copy->root.version, newest.epoch, newest.version));
    } else if (copy->root.epoch == newest.epoch && copy->root.version == newest.version &&
               copy->root.value != newest.value) {
      AddAt(Problem::kRoot, copy->node, "its root of the same version is another one");
    }
  }
  // Opening takes more than half of them.
  Spare(whole - (members / 2 + 1));
}

void DatabaseCheck::CheckManifest() {
  const ManifestRoot& root = view_.manifest.root;
  health_.manifest_copies = root.replicas.size();
  const std::string whole = Fingerprint(view_.manifest.state);
  int present = 0;
  for (const ManifestRoot::Replica& replica : root.replicas) {
    const NodeId node = FindInstance(*client_, replica.instance_id);
    if (node == kLostNode) {
      Add(Problem::kDegraded, fmt::format("the copy of the manifest on {} is lost",
                                          NameOfInstance(*client_, replica.instance_id)));
      continue;
    }
    ManifestRoot alone = root;
    alone.replicas = {replica};
    ManifestRecovered recovered;
    const Status status =
        RecoverManifest(client_, EncodeManifestRoot(alone), health_.id, &recovered);
    if (!status.ok()) {
      AddAt(Problem::kManifest, node,
            "its copy of the manifest cannot be used: " + std::string(status.message()));
      continue;
    }
    ++present;
    const uint64_t version = recovered.state.version;
    if (version == view_.state.version && Fingerprint(recovered.state) != whole) {
      AddAt(Problem::kManifest, node,
            fmt::format("its copy of the manifest, version {}, differs from the others", version));
    } else if (version + 1 == view_.state.version && !health_.open) {
      health_.remarks.push_back(
          fmt::format("{} has not got the last edit, which was therefore never acknowledged",
                      client_->node_address(node)));
    } else if (version < view_.state.version) {
      AddAt(Problem::kManifest, node,
            fmt::format("its copy of the manifest has version {}, the others have {}", version,
                        view_.state.version));
    }
  }
  Spare(present - 1);
}

void DatabaseCheck::CheckSpace(const std::map<NodeId, SlabMap>& slabs) {
  std::map<NodeId, std::vector<Use>> uses;
  for (const auto& [id, table] : view_.state.tables) {
    for (const ExtentAddr& extent : table.second.placement.fragments) {
      uses[extent.start.node].push_back({.extent = extent, .table = id});
    }
  }
  for (const auto& [number, segment] : view_.state.segments) {
    for (const ExtentAddr& extent : segment.copies) {
      uses[extent.start.node].push_back({.extent = extent, .segment = number});
    }
  }
  for (const ExtentAddr& copy : view_.manifest.copies) {
    uses[copy.start.node].push_back({.extent = copy});
  }
  for (const auto& [node, map] : slabs) {
    std::vector<Use>& here = uses[node];
    for (const Use& use : here) {
      if (map.Owns(health_.id, use.extent)) continue;
      Finding* finding =
          AddAt(Problem::kDangling, node,
                fmt::format("{}{} bytes at {} are not leased to the database",
                            use.table == 0 && use.segment == 0 ? "the manifest: " : "",
                            use.extent.length, static_cast<uint64_t>(use.extent.start.offset)));
      finding->table = use.table;
      finding->segment = use.segment;
    }
    CheckOverlaps(node, &here);
    if (!health_.open) CountLeaks(map, here);
  }
}

void DatabaseCheck::CheckOverlaps(NodeId node, std::vector<Use>* uses) {
  std::sort(uses->begin(), uses->end(), [](const Use& a, const Use& b) {
    return a.extent.start.offset < b.extent.start.offset;
  });
  const Use* reaching = nullptr;  // The one that ends last so far.
  uint64_t end = 0;
  for (const Use& use : *uses) {
    const uint64_t start = use.extent.start.offset;
    if (reaching != nullptr && start < end) {
      Finding* finding =
          AddAt(Problem::kOverlap, node,
                fmt::format("{} and {} both lie at {}", NameOf(*reaching), NameOf(use), start));
      finding->table = use.table;
      finding->segment = use.segment;
    }
    if (start + use.extent.length > end) {
      end = start + use.extent.length;
      reaching = &use;
    }
  }
}

void DatabaseCheck::CountLeaks(const SlabMap& map, const std::vector<Use>& uses) {
  std::set<uint64_t> used;  // Slabs.
  uint64_t used_bytes = 0;
  for (const Use& use : uses) {
    const uint64_t start = use.extent.start.offset;
    if (start < map.slab_area) continue;
    used_bytes += use.extent.length;
    for (uint64_t slab = (start - map.slab_area) / map.slab_bytes;
         slab < map.owners.size() && map.OffsetOf(slab) < start + use.extent.length; ++slab) {
      used.insert(slab);
    }
  }
  uint64_t leaked = 0;
  for (size_t slab = 0; slab < map.owners.size(); ++slab) {
    if (map.owners[slab] == health_.id && !used.contains(slab)) ++leaked;
  }
  const uint64_t room = used.size() * map.slab_bytes;
  health_.unreferenced_bytes += room > used_bytes ? room - used_bytes : 0;
  if (leaked == 0) return;
  AddAt(Problem::kLeak, map.node,
        fmt::format("{} bytes in {} slabs are leased to the database, and nothing refers to them; "
                    "opening it gives them back",
                    leaked * map.slab_bytes, leaked));
}

}  // namespace nacre::ctl
