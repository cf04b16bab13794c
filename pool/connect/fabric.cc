#include "pool/connect/fabric.h"

#include <fmt/format.h>

namespace nacre::pool {

std::vector<NodeId> Fabric::LiveNodes() const {
  std::vector<NodeId> nodes;
  for (int i = 0; i < node_count(); ++i) {
    const NodeLink* each = link(static_cast<NodeId>(i));
    if (each->alive() && !each->is_self()) nodes.push_back(each->id());
  }
  return nodes;
}

Status Fabric::FindLink(NodeId node, NodeLink** found) const {
  *found = link(node);
  if (*found != nullptr) return Status::OK();
  return Status::Unavailable(fmt::format("the pool has no node {}", node));
}

void Fabric::HearFeatures(FeatureSet on) {
  // What this release does not know means nothing here; nodes refuse it then.
  on &= context.options.protocol.features;
  const FeatureSet before = features_on_.fetch_or(on, std::memory_order_acq_rel);
  if ((on & ~before) != 0 && monitor != nullptr) monitor->Wake();
}

Status Fabric::CheckFeatures(const NodeLink& link) const {
  const FeatureSet missing = features_on() & ~link.features();
  if (missing == 0) return Status::OK();
  return Status::Unavailable(
      fmt::format("{}: is of an older release, which does not know what is on in this pool ({})",
                  link.address(), ToString(missing)));
}

Status Fabric::CheckRange(const NodeLink* link, uint64_t offset, uint64_t length) {
  const uint64_t region = link->region_bytes();
  if (offset <= region && length <= region - offset) return Status::OK();
  return Status::InvalidArgument(fmt::format("{}: bytes {} to {} lie outside of its {} bytes",
                                             link->address(), offset, offset + length, region));
}

}  // namespace nacre::pool
