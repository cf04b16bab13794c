#include "ctl/node_timing.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>

#include "pool/connect/fabric.h"
#include "pool/connect/node_pace.h"
#include "pool/connect/node_requests.h"
#include "pool/connect/node_sampler.h"

namespace nacre::ctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr size_t kOperations = 100;
/// For those of one kind.
constexpr nanoseconds kTime = milliseconds(250);

}  // namespace

nanoseconds Within(const std::vector<nanoseconds>& sorted, double share) {
  const auto ended = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(ended, 1) - 1];
}

Status TimeNode(pool::PoolClient* client, NodeId node, NodeTiming* timing) {
  Clock* const clock = client->clock();
  const pool::ClientContext& context = client->fabric()->context;
  const Deadline deadline = context.OperationDeadline();
  pool::NodeLink* link = nullptr;
  NACRE_RETURN_IF_ERROR(client->requests()->UpLink(node, &link));
  std::unique_ptr<pool::NodeSampler> sampler;
  NACRE_RETURN_IF_ERROR(pool::NodeSampler::Open(&context, link, deadline, &sampler));
  const auto sample = [&](auto operate, pool::NodeOperation kind, std::vector<nanoseconds>* times) {
    const Deadline enough = Deadline::After(clock, kTime);
    while (times->empty() || (times->size() < kOperations && !enough.Expired())) {
      nanoseconds took{0};
      NACRE_RETURN_IF_ERROR((sampler.get()->*operate)(deadline, &took));
      times->push_back(took);
      link->mutable_pace()->Note(kind, took);
    }
    std::sort(times->begin(), times->end());
    return Status::OK();
  };
  NACRE_RETURN_IF_ERROR(
      sample(&pool::NodeSampler::Read, pool::NodeOperation::kRead, &timing->reads));
  return sample(&pool::NodeSampler::Ping, pool::NodeOperation::kRequest, &timing->pings);
}

bool IsSlow(pool::PoolClient* client, const NodeTiming& timing) {
  if (timing.empty()) return false;
  pool::PoolPace* const pace = &client->fabric()->pace;
  return Within(timing.reads, 0.5) > pace->Patience(pool::NodeOperation::kRead) ||
         Within(timing.pings, 0.5) > pace->Patience(pool::NodeOperation::kRequest);
}

}  // namespace nacre::ctl
