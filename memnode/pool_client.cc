#include "memnode/pool_client.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <map>
#include <set>
#include <utility>

#include "memnode/pool_client_rep.h"
#include "memnode/pool_device.h"

namespace nacre::memnode {
namespace {

/// Bounds of the tables by node; also what the bit masks of a session hold.
constexpr size_t kMaxNodes = 64;

/// Tells clients apart on the nodes; two that met by chance would inherit each other's databases.
Status NewClientId(uint64_t* id) {
  do {
    if (::getrandom(id, sizeof(*id), 0) != static_cast<ssize_t>(sizeof(*id))) {
      return Status::IOError("the system gives no random numbers");
    }
  } while (*id == 0);
  return Status::OK();
}

}  // namespace

PoolClient::PoolClient() : rep_(std::make_unique<Rep>()) {}
PoolClient::~PoolClient() = default;

PoolClient::Rep::~Rep() {
  sessions.ForEach([](const SessionSlot& slot) { delete slot.session; });
}

void PoolClient::Rep::SetReaders(int max_queue_pairs_per_node) {
  if (max_queue_pairs_per_node == 0) return;
  const int readers = std::max(1, max_queue_pairs_per_node - StreamLimit(max_queue_pairs_per_node));
  for (int i = 0; i < readers; ++i) turns.push_back(std::make_unique<PointReader::Turn>());
}

Status PoolClient::Connect(const Uri& pool, const PoolClientOptions& options, rdma::Device* device,
                           Clock* clock, std::unique_ptr<PoolClient>* client) {
  if (pool.addresses.empty()) {
    return Status::InvalidArgument(fmt::format("pool '{}' has no nodes", pool.ToString()));
  }
  if (pool.addresses.size() > kMaxNodes) {
    return Status::InvalidArgument(fmt::format("pool '{}' has {} nodes, more than {}",
                                               pool.ToString(), pool.addresses.size(), kMaxNodes));
  }
  std::unique_ptr<PoolClient> result(new PoolClient());
  Rep* rep = result->rep_.get();
  rep->uri = pool;
  ClientContext& context = rep->fabric.context;
  context.device = device;
  context.clock = clock;
  context.options = options;
  NACRE_RETURN_IF_ERROR(NewClientId(&context.client_id));

  std::vector<NodeLink*> links;
  for (size_t i = 0; i < pool.addresses.size(); ++i) {
    rep->fabric.links.push_back(
        std::make_unique<NodeLink>(&context, static_cast<NodeId>(i), NodeAddress(pool, i)));
    links.push_back(rep->fabric.links.back().get());
    if (i < options.instance_ids.size()) links.back()->ExpectInstance(options.instance_ids[i]);
  }
  NACRE_RETURN_IF_ERROR(NodeMonitor::Create(&context, links, &rep->fabric.monitor));
  if (options.connect_all) NACRE_RETURN_IF_ERROR(rep->fabric.monitor->ConnectAll());
  rep->fabric.monitor->Start();
  rep->SetReaders(options.max_queue_pairs_per_node);
  *client = std::move(result);
  return Status::OK();
}

int PoolClient::node_count() const { return rep_->fabric.node_count(); }
const std::string& PoolClient::node_address(NodeId node) const {
  return rep_->fabric.links[node]->address();
}
bool PoolClient::alive(NodeId node) const {
  const NodeLink* link = rep_->fabric.link(node);
  return link != nullptr && link->alive();
}
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
    const std::string label = rep_->fabric.links[node]->domain();
    first.push_back(label.empty() ? node : by_label.try_emplace(label, node).first->second);
  }
  return first;
}
int PoolClient::domain_count(bool of_all) const {
  const std::vector<NodeId> domains = Domains();
  std::set<NodeId> counted;
  for (size_t i = 0; i < domains.size(); ++i) {
    if (of_all || alive(static_cast<NodeId>(i))) counted.insert(domains[i]);
  }
  return static_cast<int>(counted.size());
}
uint64_t PoolClient::region_bytes(NodeId node) const {
  const NodeLink* link = rep_->fabric.link(node);
  return link == nullptr ? 0 : link->region_bytes();
}
uint64_t PoolClient::instance_id(NodeId node) const {
  const NodeLink* link = rep_->fabric.link(node);
  return link == nullptr ? 0 : link->instance_id();
}
rdma::Device* PoolClient::device() const { return rep_->fabric.context.device; }
Clock* PoolClient::clock() const { return rep_->fabric.context.clock; }
const PoolClientOptions& PoolClient::options() const { return rep_->fabric.context.options; }
Fabric* PoolClient::fabric() const { return &rep_->fabric; }

}  // namespace nacre::memnode
