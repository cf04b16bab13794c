#pragma once

#include <cstdint>
#include <string>

#include "nacre/db.h"
#include "nacre/status.h"

namespace nacre {

/// A snapshot that another member keeps of a shard, for as long as the connection stands by which
/// it was taken.
class RemoteSnapshot final : public Snapshot {
 public:
  RemoteSnapshot(uint64_t id, uint64_t sequence) : id_(id), sequence_(sequence) {}
  ~RemoteSnapshot() override = default;
  RemoteSnapshot(const RemoteSnapshot&) = delete;
  RemoteSnapshot& operator=(const RemoteSnapshot&) = delete;

  uint64_t GetSequenceNumber() const override { return sequence_; }
  /// By which the member knows it; never 0.
  uint64_t id() const { return id_; }

 private:
  const uint64_t id_;
  const uint64_t sequence_;
};

/// What a read with a snapshot comes to. A newer view would not help it.
inline Status AtSnapshot(const Status& status) {
  if (!status.IsFenced()) [[likely]]
    return status;
  return Status::Aborted("a shard has moved since the snapshot was taken: " +
                         std::string(status.message()));
}

}  // namespace nacre
