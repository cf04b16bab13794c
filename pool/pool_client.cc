#include "pool/pool_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "pool/connect/fabric.h"
#include "pool/connect/node_requests.h"
#include "pool/connect/pool_device.h"
#include "pool/databases.h"
#include "pool/node_maintenance.h"
#include "pool/read/point_sessions.h"
#include "pool/wire/database_report.h"
#include "util/draw_id.h"
#include "util/never_destroyed.h"

namespace nacre::pool {

PoolClient::PoolClient(std::string scheme)
    : scheme_(std::move(scheme)),
      fabric_(std::make_unique<Fabric>()),
      requests_(std::make_unique<NodeRequests>(fabric_.get())),
      databases_(std::make_unique<Databases>(fabric_.get(), requests_.get())) {}

PoolClient::~PoolClient() {
  watch_.reset();
  // What a node that joins is welcomed with goes before the fabric does.
  if (fabric_->monitor != nullptr) fabric_->monitor->Stop();
}

namespace {

/// The slab size of all nodes that were reached; 0 if they differ, or none was. No thread
/// reconnects yet.
uint64_t CommonSlabBytes(const Fabric& fabric) {
  uint64_t common = 0;
  for (const auto& link : fabric.links) {
    if (link == nullptr || !link->alive()) continue;
    if (common != 0 && link->slab_bytes() != common) return 0;
    common = link->slab_bytes();
  }
  return common;
}

}  // namespace

Status PoolClient::Connect(const Uri& pool, const PoolClientOptions& options, rdma::Device* device,
                           Clock* clock, std::unique_ptr<PoolClient>* client) {
  if (pool.addresses.empty()) {
    return Status::InvalidArgument(fmt::format("pool '{}' has no nodes", pool.ToString()));
  }
  // Nodes that are known to be lost have a number, and nothing else.
  const size_t lost = static_cast<size_t>(
      std::count(options.instance_ids.begin(), options.instance_ids.end(), kLostInstance));
  const size_t reached = pool.addresses.size() - std::min(lost, pool.addresses.size());
  if (reached > kMaxLifelines || pool.addresses.size() > kMaxSlots) {
    return Status::InvalidArgument(fmt::format("the pool of '{}' has {} nodes, more than {}",
                                               NodeAddress(pool, 0), reached, kMaxLifelines));
  }
  std::unique_ptr<PoolClient> result(new PoolClient(pool.scheme));
  Fabric& fabric = *result->fabric_;
  ClientContext& context = fabric.context;
  context.device = device;
  context.clock = clock;
  context.options = options;
  // Two clients that met by chance would inherit each other's databases.
  NACRE_RETURN_IF_ERROR(DrawId(&context.client_id));
  fabric.links.resize(
      std::max(pool.addresses.size(), options.nodes_join ? std::min(options.slots, kMaxSlots) : 0));
  for (size_t i = 0; i < pool.addresses.size(); ++i) {
    const std::string address = NodeAddress(pool, i);
    auto link = std::make_unique<NodeLink>(&context, static_cast<NodeId>(i), address);
    const uint64_t instance = i < options.instance_ids.size() ? options.instance_ids[i] : 0;
    if (instance == kLostInstance) {
      link->SetLost(Status::Unavailable(address + ": lost"));
    } else {
      link->ExpectInstance(instance);
    }
    fabric.links[i] = std::move(link);
  }
  fabric.taken.store(static_cast<int>(pool.addresses.size()), std::memory_order_release);
  const auto welcome = [databases = result->databases()](NodeLink* link, bool returns,
                                                         Deadline deadline) {
    return databases->BringTo(link, returns, deadline);
  };
  NACRE_RETURN_IF_ERROR(NodeMonitor::Create(&fabric, welcome, &fabric.monitor));
  if (options.connect_all) NACRE_RETURN_IF_ERROR(fabric.monitor->ConnectAll());
  if (options.slab_bytes == 0) context.options.slab_bytes = CommonSlabBytes(fabric);
  fabric.monitor->Start();
  result->sessions_ = std::make_unique<PointSessions>(&fabric, options.max_queue_pairs_per_node);
  *client = std::move(result);
  return Status::OK();
}

FeatureSet PoolClient::features_on() const { return fabric_->features_on(); }
void PoolClient::HearFeatures(FeatureSet on) { fabric_->HearFeatures(on); }
int PoolClient::node_count() const { return fabric_->node_count(); }
const std::atomic<uint64_t>& PoolClient::hang_ups() const { return fabric_->hang_ups; }

uint64_t PoolClient::membership_changes() const {
  return fabric_->membership_changes.load(std::memory_order_acquire);
}
const std::string& PoolClient::node_address(NodeId node) const {
  static const NeverDestroyed<std::string> kGone("a node of earlier days");
  const NodeLink* link = fabric_->link(node);
  return link == nullptr ? *kGone : link->address();
}
void PoolClient::AddNode(const std::string& address) { fabric_->monitor->AddNode(address); }
Status PoolClient::JoinRefusal() const { return fabric_->monitor->JoinRefusal(); }
bool PoolClient::alive(NodeId node) const {
  const NodeLink* link = fabric_->link(node);
  return link != nullptr && link->alive();
}
bool PoolClient::prompt(NodeId node) const {
  const NodeLink* link = fabric_->link(node);
  return link != nullptr && link->prompt();
}
uint64_t PoolClient::pace_changes() const { return fabric_->pace.changes(); }
uint64_t PoolClient::hedged_reads() const { return fabric_->pace.hedges(); }
uint64_t PoolClient::jobs_left() const { return fabric_->pace.jobs_left(); }
int PoolClient::alive_count() const {
  int count = 0;
  for (int node = 0; node < node_count(); ++node) count += alive(static_cast<NodeId>(node));
  return count;
}
std::vector<NodeId> PoolClient::Domains() const {
  std::vector<NodeId> first;
  std::map<std::string, NodeId> by_label;
  for (int i = 0; i < node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    const std::string label = fabric_->links[node]->domain();
    first.push_back(label.empty() ? node : by_label.try_emplace(label, node).first->second);
  }
  return first;
}
int PoolClient::domain_count(bool of_all) const {
  return CountDomains([&](NodeId node) { return of_all || alive(node); });
}
int PoolClient::prompt_domain_count() const {
  return CountDomains([&](NodeId node) { return prompt(node); });
}
int PoolClient::CountDomains(const std::function<bool(NodeId)>& counts) const {
  const std::vector<NodeId> domains = Domains();
  std::set<NodeId> counted;
  for (size_t i = 0; i < domains.size(); ++i) {
    if (counts(static_cast<NodeId>(i))) counted.insert(domains[i]);
  }
  return static_cast<int>(counted.size());
}
uint64_t PoolClient::region_bytes(NodeId node) const {
  const NodeLink* link = fabric_->link(node);
  return link == nullptr ? 0 : link->region_bytes();
}
uint64_t PoolClient::instance_id(NodeId node) const {
  const NodeLink* link = fabric_->link(node);
  return link == nullptr ? 0 : link->instance_id();
}
uint32_t PoolClient::start_id(NodeId node) const {
  const NodeLink* link = fabric_->link(node);
  return link == nullptr ? 0 : link->start_id();
}

Status PoolClient::Ping(NodeId node) {
  control::Request request;
  control::Reply reply;
  request.mutable_ping();
  return requests_->Call(node, &request, &reply);
}

void PoolClient::WatchMaintenance() {
  MutexLock lock(&watch_mutex_);
  if (watch_ != nullptr) return;
  watch_ = std::make_unique<MaintenanceWatch>(this);
  watch_->Start();
}

void PoolClient::JoinAddedNodes() {
  constexpr std::chrono::seconds kPatience{1};
  const Deadline deadline = Deadline::After(clock(), kPatience);
  Directions newest;
  for (const NodeRequests::Answer& answer : requests_->CallAll(
           fabric_->LiveNodes(),
           [](NodeId, control::Request* request) { request->mutable_list_databases(); },
           deadline)) {
    if (!answer.status.ok()) continue;
    Directions directions;
    DecodeDirections(answer.reply.databases().directions(), &directions);
    if (directions.version > newest.version) newest = std::move(directions);
  }
  for (const std::string& address : newest.added_addresses) {
    fabric_->monitor->AwaitNode(address, deadline);
  }
}

rdma::Device* PoolClient::device() const { return fabric_->context.device; }
Clock* PoolClient::clock() const { return fabric_->context.clock; }
const PoolClientOptions& PoolClient::options() const { return fabric_->context.options; }

}  // namespace nacre::pool
