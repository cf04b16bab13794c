#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "nacre/status.h"
#include "sharding/remote/member_links.h"
#include "sharding/remote/member_messages.h"
#include "sharding/shard_owner.h"
#include "util/clock.h"

namespace nacre {

/// Another member, as an owner of shards.
///
/// Thread safety: as ShardOwner.
class RemoteOwner final : public ShardOwner {
 public:
  /// What a call becomes that was sent and not answered.
  enum class Unanswered : uint8_t {
    kRetry,  ///< `Fenced`: it may be asked again, here or elsewhere.
    kOpen,   ///< `TimedOut`: it may have taken effect.
  };

  RemoteOwner(int64_t id, std::shared_ptr<MemberLinks> links, Clock* clock,
              std::chrono::milliseconds operation_timeout);

  int64_t id() const override { return id_; }
  Status CloseGate(Deadline deadline, Token* token) override;
  Status StopOperations(Token token) override;
  Status TakeSnapshots(Token token, const std::vector<Shard*>& shards,
                       std::vector<const Snapshot*>* snapshots) override;
  void OpenGate(Token token) override;

  /// That of an operation which may `wait` for so long for something besides.
  Deadline OperationDeadline(std::chrono::milliseconds wait = {}) const {
    return Deadline::After(clock_, operation_timeout_ + wait);
  }
  /// What the member may wait for something: a little less than is left, so that its answer comes
  /// before the caller gives up.
  static uint64_t PatienceMicros(Deadline deadline);
  /// What the member answers. `Fenced` if the shard has moved, or the member cannot be reached.
  /// `*answered`: the status is the member's own, and not that the shard has moved.
  Status Call(sharding::MemberRequest* request, Deadline deadline, Unanswered unanswered,
              sharding::MemberReply* reply, bool* answered = nullptr);
  /// The same for what takes as long as it takes.
  Status CallAndSleep(sharding::MemberRequest* request, Unanswered unanswered,
                      sharding::MemberReply* reply);
  /// Releases a snapshot that the member gave for `shard`. One of which that fails goes when this
  /// process's connection ends.
  void ReleaseSnapshot(uint32_t shard, uint64_t snapshot);

 private:
  const int64_t id_;
  const std::shared_ptr<MemberLinks> links_;
  Clock* const clock_;
  const std::chrono::milliseconds operation_timeout_;
};

}  // namespace nacre
