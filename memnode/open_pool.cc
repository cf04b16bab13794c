#include <fmt/format.h>

#include <utility>
#include <vector>

#include "memnode/memory_node.h"
#include "memnode/secret_watch.h"
#include "pool/connect/pool_device.h"
#include "pool/connect/pool_secret.h"
#include "pool/pool_file.h"
#include "pool/pool_impl.h"
#include "rdma/secret_ring.h"
#include "util/threads/periodic_task.h"
#include "util/uri.h"

namespace nacre::pool {
namespace {

constexpr uint64_t kMaxEmbeddedNodes = 64;
constexpr uint64_t kDefaultEmbeddedNodes = 4;
constexpr uint64_t kDefaultEmbeddedBytes = uint64_t{1} << 30;

/// How often a client looks whether the file with its secret was changed.
constexpr std::chrono::milliseconds kLookPeriod{500};

/// A node inside this process, with an adapter of its own, so that its traffic is counted apart.
struct EmbeddedNode {
  std::unique_ptr<rdma::Device> device;
  std::unique_ptr<MemoryNode> node;
};

/// As Options::slab_size has them.
Status ParseSlabSize(const std::string& text, uint64_t* bytes) {
  constexpr uint64_t kMiB = 1 << 20;
  NACRE_RETURN_IF_ERROR(ParseSize(text, bytes));
  if (*bytes >= kMiB && *bytes <= 64 * 1024 * kMiB && *bytes % kMiB == 0) return Status::OK();
  return Status::InvalidArgument(fmt::format("'{}': whole MiB, 1MiB to 64GiB", text));
}

class OpenedPool : public PoolImpl {
 public:
  OpenedPool(std::string uri, Clock* clock) : uri_(std::move(uri)), clock_(clock) {}
  ~OpenedPool() override {
    look_at_file_.Stop();
    // Nodes outlive what may still wait for them.
    client_.reset();
    for (EmbeddedNode& node : nodes_) node.node.reset();
  }

  Status Open(const Uri& uri, const PoolOpenOptions& options);

  const std::string& uri() const override { return uri_; }
  int node_count() const override { return client_->node_count(); }
  PoolClient* client() override { return client_.get(); }
  Clock* clock() override { return clock_; }
  bool embedded() const override { return embedded_; }
  const PeerSecurity& peer_security() const override { return security_; }
  void KillEmbeddedNode(NodeId node) override {
    if (node < nodes_.size()) nodes_[node].node->Kill();
  }

 private:
  Status AddEmbeddedNode() override;
  /// Takes "nodes", "size" and "slab_size" out of the URI, starts the nodes, and names them in
  /// `*uri`.
  Status StartNodes(const PoolOpenOptions& options, const std::shared_ptr<rdma::SecretRing>& ring,
                    Uri* uri);
  Status StartNode(std::string* address);

  const std::string uri_;
  Clock* const clock_;
  bool embedded_ = false;  ///< Constant once the pool is open.
  std::vector<EmbeddedNode> nodes_;
  MemoryNodeOptions node_options_;  ///< Options of embedded nodes.
  std::unique_ptr<rdma::Device> device_;
  std::unique_ptr<PoolClient> client_;
  PeerSecurity security_;
  std::unique_ptr<SecretWatch> watch_;  ///< Null: the secret is in no file.
  PeriodicTask look_at_file_;
};

Status OpenedPool::StartNodes(const PoolOpenOptions& options,
                              const std::shared_ptr<rdma::SecretRing>& ring, Uri* uri) {
  if (!uri->addresses.empty()) {
    return Status::InvalidArgument(
        fmt::format("an embedded pool has no addresses such as '{}'", uri->addresses[0]));
  }
  embedded_ = true;
  uint64_t count = kDefaultEmbeddedNodes;
  uint64_t bytes = kDefaultEmbeddedBytes;
  if (const auto nodes = uri->parameters.extract("nodes"); !nodes.empty()) {
    NACRE_RETURN_IF_ERROR(
        ParseNumber(nodes.mapped(), 1, kMaxEmbeddedNodes, &count).WithContext("parameter 'nodes'"));
  }
  if (const auto size = uri->parameters.extract("size"); !size.empty()) {
    NACRE_RETURN_IF_ERROR(ParseSize(size.mapped(), &bytes).WithContext("parameter 'size'"));
  }
  node_options_.listen = uri->scheme + ":@";  // The system chooses a name.
  node_options_.region_bytes = bytes;
  if (options.slab_bytes != 0) node_options_.slab_bytes = options.slab_bytes;
  if (const auto slab = uri->parameters.extract("slab_size"); !slab.empty()) {
    NACRE_RETURN_IF_ERROR(ParseSlabSize(slab.mapped(), &node_options_.slab_bytes)
                              .WithContext("parameter 'slab_size'"));
  }
  node_options_.workers = options.node_workers;
  node_options_.device = {
      .parameters = uri->parameters, .logger = options.pool.info_log, .ring = ring};
  for (uint64_t i = 0; i < count; ++i) {
    node_options_.domain = i < options.node_domains.size() ? options.node_domains[i] : "";
    std::string started;
    NACRE_RETURN_IF_ERROR(StartNode(&started));
    Uri address;
    NACRE_RETURN_IF_ERROR(ParseUri(started, &address));
    uri->addresses.push_back(address.addresses.at(0));
  }
  return Status::OK();
}

Status OpenedPool::StartNode(std::string* address) {
  EmbeddedNode& node = nodes_.emplace_back();
  NACRE_RETURN_IF_ERROR(rdma::OpenDevice("embedded", node_options_.device, clock_, &node.device));
  NACRE_RETURN_IF_ERROR(MemoryNode::Start(node_options_, node.device.get(), clock_, &node.node)
                            .WithContext(fmt::format("embedded node {}", nodes_.size() - 1)));
  *address = node.node->address();
  return Status::OK();
}

Status OpenedPool::AddEmbeddedNode() {
  if (!embedded_) return Status::InvalidArgument(uri_ + " is no embedded pool");
  std::string address;
  NACRE_RETURN_IF_ERROR(StartNode(&address));
  client_->AddNode(address);
  return Status::OK();
}

Status OpenedPool::Open(const Uri& uri, const PoolOpenOptions& options) {
  Uri pool = uri;
  SecretSource source;
  std::shared_ptr<rdma::SecretRing> ring;
  if (options.pool.secret.empty()) {
    NACRE_RETURN_IF_ERROR(TakeSecrets(&pool, options.pool.info_log, &source));
    if (!source.file.lines.empty()) {
      NACRE_RETURN_IF_ERROR(rdma::SecretRing::Create(source.file.Terms(), &ring));
    }
  } else {
    NACRE_RETURN_IF_ERROR(rdma::SecretRing::OfOne(options.pool.secret, &ring));
  }
  if (uri.scheme == "embedded") {
    NACRE_RETURN_IF_ERROR(StartNodes(options, ring, &pool).WithContext(uri_));
  } else if (uri.addresses.empty()) {
    return Status::InvalidArgument(fmt::format("pool '{}' names no nodes", uri_));
  }
  MakePathsAbsolute(&pool);
  const rdma::DeviceOptions device_options{
      .parameters = pool.parameters, .logger = options.pool.info_log, .ring = ring};
  NACRE_RETURN_IF_ERROR(OpenPoolDevice(pool, device_options, clock_, &device_).WithContext(uri_));
  NACRE_RETURN_IF_ERROR(PeerSecurity::Of(device_options, &security_));
  PoolClientOptions client_options;
  client_options.operation_timeout = options.operation_timeout;
  client_options.protocol = options.protocol;
  client_options.slab_bytes = embedded() ? node_options_.slab_bytes : options.slab_bytes;
  client_options.max_queue_pairs_per_node = options.pool.max_queue_pairs_per_node;
  client_options.slow_node_patience_min = options.pool.slow_node_patience_min;
  client_options.slow_node_patience_max = options.pool.slow_node_patience_max;
  client_options.hedged_reads_percent = options.pool.hedged_reads_percent;
  NACRE_RETURN_IF_ERROR(PoolClient::Connect(pool, client_options, device_.get(), clock_, &client_));
  if (source.path.empty()) return Status::OK();
  watch_ = std::make_unique<SecretWatch>(
      source, ring, [](const std::vector<SecretFile::Quota>&) {}, options.pool.info_log);
  look_at_file_.Start(client_->PeriodicOn(&Background::looks), "nacre-secrets", kLookPeriod,
                      PeriodicTask::Begin::kWithRest, [this] { watch_->Look(); });
  return Status::OK();
}

}  // namespace

Status OpenPool(const std::string& uri, const PoolOpenOptions& options, Clock* clock,
                std::shared_ptr<PoolImpl>* pool) {
  Uri parsed;
  NACRE_RETURN_IF_ERROR(ParseUri(uri, &parsed));
  NACRE_RETURN_IF_ERROR(ResolvePoolFile(&parsed));
  if (options.operation_timeout.count() <= 0) {
    return Status::InvalidArgument(
        fmt::format("operation timeout of {} ms", options.operation_timeout.count()));
  }
  const int queue_pairs = options.pool.max_queue_pairs_per_node;
  if (queue_pairs != 0 && (queue_pairs < 2 || queue_pairs > 4096)) {
    return Status::InvalidArgument(
        fmt::format("max_queue_pairs_per_node {}: 0, or 2 to 4096", queue_pairs));
  }
  const auto least = options.pool.slow_node_patience_min;
  const auto most = options.pool.slow_node_patience_max;
  if (least.count() < 0 || most.count() < 0 || (most.count() > 0 && most < least)) {
    return Status::InvalidArgument(fmt::format(
        "slow_node_patience_min {} ms and slow_node_patience_max {} ms: the second is 0 "
        "or not less than the first",
        least.count(), most.count()));
  }
  if (options.pool.hedged_reads_percent > 100) {
    return Status::InvalidArgument(
        fmt::format("hedged_reads_percent {}, 100 at most", options.pool.hedged_reads_percent));
  }
  auto opened = std::make_shared<OpenedPool>(uri, clock);
  NACRE_RETURN_IF_ERROR(opened->Open(parsed, options));
  *pool = std::move(opened);
  return Status::OK();
}

}  // namespace nacre::pool

namespace nacre {

Status Pool::Open(const std::string& uri, const PoolOptions& options, std::shared_ptr<Pool>* pool) {
  pool::PoolOpenOptions open_options;
  open_options.pool = options;
  open_options.slab_bytes = 0;  // As the nodes have it; embedded ones have their default.
  std::shared_ptr<pool::PoolImpl> opened;
  NACRE_RETURN_IF_ERROR(pool::OpenPool(uri, open_options, Clock::System(), &opened));
  if (opened->client()->options().slab_bytes == 0) {
    return Status::InvalidArgument("pool '" + uri + "' has nodes with slabs of different sizes");
  }
  *pool = std::move(opened);
  return Status::OK();
}

}  // namespace nacre
