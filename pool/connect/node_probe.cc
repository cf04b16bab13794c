#include "pool/connect/node_probe.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "pool/connect/node_sampler.h"
#include "util/exceptions.h"

namespace nacre::pool {
namespace {

constexpr int kReads = 4;
constexpr int kRequests = 2;

}  // namespace

NodeProbe::NodeProbe(const ClientContext& context, NodeLink* link,
                     std::chrono::nanoseconds patience, std::function<void()> wake)
    : context_(context), link_(link), patience_(patience) {
  thread_ = Thread("nacre-probe", [this, wake = std::move(wake)] {
    const Deadline deadline = Deadline::After(context_.clock, patience_);
    status_ = CatchAll([&] { return Ask(deadline); });
    // What came later counts: transports answer `Unavailable` for silence, too.
    if (!status_.ok() && answered_ && deadline.Expired()) {
      status_ = Status::TimedOut(link_->address() + ": slow to answer a probe");
    }
    done_.store(true, std::memory_order_release);
    wake();
  });
}

NodeProbe::~NodeProbe() { thread_.Join(); }

Status NodeProbe::Ask(Deadline deadline) {
  std::unique_ptr<NodeSampler> sampler;
  NACRE_RETURN_IF_ERROR(NodeSampler::Open(&context_, link_, deadline, &sampler));
  answered_ = true;
  std::chrono::nanoseconds took{0};
  for (int i = 0; i < kReads; ++i) {
    NACRE_RETURN_IF_ERROR(sampler->Read(deadline, &took));
    longest_read_ = std::max(longest_read_, took);
  }
  for (int i = 0; i < kRequests; ++i) {
    NACRE_RETURN_IF_ERROR(sampler->Ping(deadline, &took));
    longest_request_ = std::max(longest_request_, took);
  }
  return Status::OK();
}

}  // namespace nacre::pool
