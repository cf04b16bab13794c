#include "memnode/memory_node.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "memnode/server.h"
#include "pool/wire/node_stats.h"

namespace nacre::pool {
namespace {

constexpr int kMaxWorkers = 1024;
constexpr size_t kMaxDomainBytes = 255;

Status Validate(const MemoryNodeOptions& options) {
  if (options.listen.empty()) return Status::InvalidArgument("no address to listen at");
  if (options.workers < 1 || options.workers > kMaxWorkers) {
    return Status::InvalidArgument(
        fmt::format("{} workers: expected 1 to {}", options.workers, kMaxWorkers));
  }
  if (options.domain.size() > kMaxDomainBytes) {
    return Status::InvalidArgument(fmt::format("a failure domain of {} bytes: at most {}",
                                               options.domain.size(), kMaxDomainBytes));
  }
  if (options.piece_bytes != 0 &&
      (!std::has_single_bit(options.piece_bytes) || options.piece_bytes < 4096)) {
    return Status::InvalidArgument(fmt::format("pieces of {} bytes", options.piece_bytes));
  }
  return Status::OK();
}

}  // namespace

class MemoryNode::Rep {
 public:
  Rep(const MemoryNodeOptions& options, rdma::Device* device, Clock* clock)
      : server(options, device, clock) {}
  Server server;
};

MemoryNode::MemoryNode() = default;
MemoryNode::~MemoryNode() { Stop(); }

Status MemoryNode::Start(const MemoryNodeOptions& options, rdma::Device* device, Clock* clock,
                         std::unique_ptr<MemoryNode>* node) {
  NACRE_RETURN_IF_ERROR(Validate(options));
  std::unique_ptr<MemoryNode> result(new MemoryNode());
  result->rep_ = std::make_unique<Rep>(options, device, clock);
  NACRE_RETURN_IF_ERROR(result->rep_->server.Start());
  *node = std::move(result);
  return Status::OK();
}

void MemoryNode::Stop() {
  if (rep_ != nullptr) rep_->server.Stop(/*silently=*/false);
}
void MemoryNode::Kill() { rep_->server.Stop(/*silently=*/true); }

const std::string& MemoryNode::address() const { return rep_->server.address(); }
NodeStats MemoryNode::stats() const { return rep_->server.stats(); }
void MemoryNode::SetQuotas(std::vector<SecretFile::Quota> quotas) {
  rep_->server.SetQuotas(std::move(quotas));
}

}  // namespace nacre::pool
