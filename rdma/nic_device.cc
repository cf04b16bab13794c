#include "rdma/nic_device.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include "rdma/interposed_device.h"

namespace nacre::rdma {

namespace {

/// One direction of the link. Thread safety: all.
class HalfLink {
 public:
  explicit HalfLink(double nanos_per_byte) : nanos_per_byte_(nanos_per_byte) {}

  /// Queues `bytes` behind what is on the way; returns when the last of them has left.
  uint64_t Occupy(uint64_t now, uint64_t bytes) {
    if (nanos_per_byte_ == 0) return now;
    const auto duration =
        static_cast<uint64_t>(std::ceil(static_cast<double>(bytes) * nanos_per_byte_));
    uint64_t free_at = free_at_.load(std::memory_order_relaxed);
    uint64_t end;
    do {
      end = std::max(now, free_at) + duration;
    } while (!free_at_.compare_exchange_weak(free_at, end, std::memory_order_relaxed));
    return end;
  }

 private:
  const double nanos_per_byte_;
  std::atomic<uint64_t> free_at_{0};
};

class NicInterposer final : public Interposer {
 public:
  NicInterposer(const NicModel& model, Clock* clock)
      : clock_(clock),
        rtt_nanos_(static_cast<uint64_t>(model.rtt_us * 1000)),
        incoming_(model.gbps > 0 ? 8 / model.gbps : 0),
        outgoing_(model.gbps > 0 ? 8 / model.gbps : 0) {}

  Verdict BeforePost(const std::string& /*peer*/) override { return {}; }
  uint64_t AfterPost(Opcode opcode, uint64_t bytes) override {
    HalfLink& link = opcode == Opcode::kRead ? incoming_ : outgoing_;
    return link.Occupy(clock_->NowNanos(), bytes) + rtt_nanos_;
  }
  uint64_t OnArrival() override { return clock_->NowNanos() + rtt_nanos_ / 2; }
  bool Blocks(const std::string& /*peer*/) override { return false; }

 private:
  Clock* const clock_;
  const uint64_t rtt_nanos_;
  HalfLink incoming_;
  HalfLink outgoing_;
};

}  // namespace

Status WrapWithNic(std::unique_ptr<Device> inner, const NicModel& model, Clock* clock,
                   std::unique_ptr<Device>* device) {
  if (!(model.rtt_us >= 0) || !(model.gbps >= 0) || !std::isfinite(model.rtt_us) ||
      !std::isfinite(model.gbps)) {
    return Status::InvalidArgument("rtt_us and gbps must not be negative");
  }
  auto interposer = std::make_shared<NicInterposer>(model, clock);
  *device = std::make_unique<InterposedDevice>(std::move(inner), std::move(interposer), clock);
  return Status::OK();
}

}  // namespace nacre::rdma
