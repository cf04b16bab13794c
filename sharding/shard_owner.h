#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "nacre/db.h"
#include "nacre/status.h"
#include "util/clock.h"

namespace nacre {

class Shard;

/// A process that serves shards: what snapshots over several shards ask of it (SnapshotGate). They
/// close the gates of all owners, one after the other in the order of their ids; then they have all
/// owners stop operations; then they take the snapshots, after which each gate opens.
///
/// Thread safety: all methods may be called from many threads at once.
class ShardOwner {
 public:
  /// A snapshot that is being taken.
  using Token = uint64_t;
  /// A gate of another process opens by itself after so long.
  static constexpr std::chrono::milliseconds kClosedAtMost{500};

  virtual ~ShardOwner() = default;

  /// As a member of the keyspace; 0 if this process has it to itself.
  virtual int64_t id() const = 0;

  /// Returns when no batch over several shards is being committed there, and none begins to be.
  /// `TimedOut`: it stays open.
  virtual Status CloseGate(Deadline deadline, Token* token) = 0;
  /// From here on no read of the latest state and no write begins there. `Aborted` if the gate was
  /// closed for so long that it was opened by the owner.
  virtual Status StopOperations(Token token) = 0;
  /// A snapshot of each of `shards`, which are all this owner's, and opens the gate. A failure, as
  /// above, leaves none.
  virtual Status TakeSnapshots(Token token, const std::vector<Shard*>& shards,
                               std::vector<const Snapshot*>* snapshots) = 0;
  /// Does nothing if it is open.
  virtual void OpenGate(Token token) = 0;
};

}  // namespace nacre
