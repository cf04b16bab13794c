#include "rdma/nic_device.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "rdma/interposed_device.h"
#include "rdma/nic_ports.h"

namespace nacre::rdma {

namespace {

double NanosPerByte(double gbps) { return gbps > 0 ? 8 / gbps : 0; }

class NicInterposer final : public Interposer {
 public:
  NicInterposer(const NicModel& model, std::unique_ptr<NicPorts> ports, Clock* clock)
      : clock_(clock),
        rtt_nanos_(static_cast<uint64_t>(model.rtt_us * 1000)),
        link_nanos_per_byte_(NanosPerByte(model.gbps)),
        port_nanos_per_byte_(NanosPerByte(model.port_gbps)),
        ports_(std::move(ports)) {}

  Verdict BeforePost(const std::string& /*peer*/) override { return {}; }
  uint64_t AfterPost(const std::string& peer, Opcode opcode, uint64_t bytes) override {
    const uint64_t now = clock_->NowNanos();
    const auto half = [&](Link* link) {
      return opcode == Opcode::kRead ? &link->incoming : &link->outgoing;
    };
    uint64_t end = half(&link_)->Occupy(now, bytes, link_nanos_per_byte_);
    if (port_nanos_per_byte_ != 0) {
      end = std::max(end, half(ports_->Of(peer))->Occupy(now, bytes, port_nanos_per_byte_));
    }
    return end + rtt_nanos_;
  }
  uint64_t OnArrival() override { return clock_->NowNanos() + rtt_nanos_ / 2; }
  bool Blocks(const std::string& /*peer*/) override { return false; }

 private:
  Clock* const clock_;
  const uint64_t rtt_nanos_;
  const double link_nanos_per_byte_;
  const double port_nanos_per_byte_;
  Link link_;
  const std::unique_ptr<NicPorts> ports_;
};

}  // namespace

Status WrapWithNic(std::unique_ptr<Device> inner, const NicModel& model, Clock* clock,
                   std::unique_ptr<Device>* device) {
  for (const double each : {model.rtt_us, model.gbps, model.port_gbps}) {
    if (!(each >= 0) || !std::isfinite(each)) {
      return Status::InvalidArgument("rtt_us, gbps and port_gbps must not be negative");
    }
  }
  std::unique_ptr<NicPorts> ports;
  NACRE_RETURN_IF_ERROR(NicPorts::Open(model.ports, &ports));
  auto interposer = std::make_shared<NicInterposer>(model, std::move(ports), clock);
  *device = std::make_unique<InterposedDevice>(std::move(inner), std::move(interposer), clock);
  return Status::OK();
}

}  // namespace nacre::rdma
