#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "rdma/transport.h"
#include "util/clock.h"

namespace nacre::rdma {

/// What goes wrong with a request.
struct Fault {
  enum class Kind : uint8_t {
    kFail,          ///< The request is not carried out and completes with `code`.
    kDelay,         ///< Completes `delay` later.
    kLose,          ///< Lost on the way there: ends as kPeerGone after FaultPlan::give_up.
    kLoseResponse,  ///< Carried out, but lost on the way back: ends as kLose does.
  };
  uint64_t post = 0;  ///< Number of the request among all that the device posts, from 1.
  Kind kind = Kind::kFail;
  CompletionCode code = CompletionCode::kPeerGone;
  std::chrono::nanoseconds delay{0};
};

/// Faults by schedule and by chance. Chance depends on the seed and the request's number only, so
/// a run of one thread replays exactly.
struct FaultPlan {
  std::vector<Fault> schedule{};  ///< Each request takes at most one of these.
  uint64_t seed = 0;
  double fail_probability = 0;
  double delay_probability = 0;
  double lose_probability = 0;  ///< Half of these lose the response only.
  std::chrono::nanoseconds delay_max{0};
  /// How long a lost request stays outstanding, as a card retransmits before it gives up.
  std::chrono::nanoseconds give_up{std::chrono::seconds(1)};
};

/// Steers the faults of one device while it runs. Lives as long as anyone holds it.
/// Thread safety: all methods may be called from many threads.
class FaultControl {
 public:
  virtual ~FaultControl() = default;
  /// Cuts the peer off from now on: requests are lost, messages wait for the end of the partition,
  /// connecting meets silence. `peer` is what QueuePair::peer answers; empty: all peers. Cuts this
  /// device off only: a partition has two sides.
  virtual void Partition(const std::string& peer) = 0;
  /// Ends the partition. Requests that were posted meanwhile stay lost.
  virtual void Heal(const std::string& peer) = 0;
  /// Requests posted so far.
  virtual uint64_t posts() const = 0;
};

/// Wraps `inner`. `clock` outlives the device. `control` may be null.
std::unique_ptr<Device> WrapWithFaults(std::unique_ptr<Device> inner, FaultPlan plan, Clock* clock,
                                       std::shared_ptr<FaultControl>* control);

}  // namespace nacre::rdma
