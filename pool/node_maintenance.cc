#include "pool/node_maintenance.h"

#include <algorithm>

#include "pool/connect/fabric.h"
#include "pool/reports.h"
#include "util/clock.h"

namespace nacre::pool {

void NodeMaintenance::Hear(const Directions& told) {
  const uint64_t now = client_->clock()->NowNanos();
  MutexLock lock(&mutex_);
  if (told.version < version_) return;
  if (told.version > version_) {
    version_ = told.version;
    orders_.clear();
    for (const Maintenance& each : told.maintenance) {
      orders_.push_back({each.instance_id, each.start_id, now + each.left_nanos});
    }
    return;
  }
  for (const Maintenance& each : told.maintenance) {
    for (Order& order : orders_) {
      if (order.instance_id != each.instance_id) continue;
      order.until_nanos = std::min(order.until_nanos, now + each.left_nanos);
    }
  }
}

bool NodeMaintenance::Holds(NodeId node) const {
  const NodeLink* const link = client_->fabric()->link(node);
  if (link == nullptr || link->state() == NodeLink::State::kLost) return false;
  const uint64_t instance_id = link->instance_id();
  const uint32_t start_id = link->start_id();
  MutexLock lock(&mutex_);
  const uint64_t now = client_->clock()->NowNanos();
  const auto order = std::find_if(orders_.begin(), orders_.end(), [&](const Order& each) {
    return each.instance_id == instance_id;
  });
  if (order == orders_.end() || now >= order->until_nanos) return false;
  if (order->start_id == start_id) {
    returned_.erase(instance_id);
    return true;
  }
  returned_.try_emplace(instance_id, now);
  return false;
}

bool NodeMaintenance::Returned(NodeId node) const {
  const NodeLink* const link = client_->fabric()->link(node);
  if (link == nullptr || link->state() == NodeLink::State::kLost) return false;
  MutexLock lock(&mutex_);
  const auto seen = returned_.find(link->instance_id());
  if (seen == returned_.end()) return false;
  const auto for_now = std::chrono::nanoseconds(client_->clock()->NowNanos() - seen->second);
  return for_now < kSettles;
}

void KeepClearOf(const NodeMaintenance& maintenance, PoolClient* client) {
  Fabric* const fabric = client->fabric();
  for (int i = 0; i < fabric->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    fabric->pace.SetLeaves(fabric->link(node), maintenance.Holds(node));
  }
}

void MaintenanceWatch::Start() {
  task_.Start(client_->PeriodicOn(&Background::looks), "nacre-orders", kPeriod,
              PeriodicTask::Begin::kWithWork, [this] { Look(); });
}

void MaintenanceWatch::Look() {
  const std::vector<NodeId> nodes = LiveNodes(*client_);
  if (!nodes.empty()) {
    Directions directions;
    const NodeId asked = nodes[next_++ % nodes.size()];
    // One that does not answer is the monitor's business; the next one is asked in a second.
    if (GetDirections(client_, asked, &directions).ok()) {
      maintenance_.Hear(directions);
      client_->HearFeatures(directions.features_on);
    }
  }
  KeepClearOf(maintenance_, client_);
}

}  // namespace nacre::pool
