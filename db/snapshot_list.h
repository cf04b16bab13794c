#pragma once

#include <memory>
#include <set>
#include <vector>

#include "nacre/db.h"
#include "table/internal_key.h"

namespace nacre {

class SnapshotImpl final : public Snapshot {
 public:
  explicit SnapshotImpl(SequenceNumber sequence) : sequence_(sequence) {}
  ~SnapshotImpl() override = default;
  uint64_t GetSequenceNumber() const override { return sequence_; }

 private:
  const SequenceNumber sequence_;
};

/// The snapshots that are held. Thread safety: none; guarded by the database's mutex.
class SnapshotList {
 public:
  const Snapshot* Add(SequenceNumber sequence) {
    auto snapshot = std::make_unique<SnapshotImpl>(sequence);
    const Snapshot* result = snapshot.get();
    snapshots_.insert(std::move(snapshot));
    return result;
  }
  /// `snapshot` came from Add.
  void Remove(const Snapshot* snapshot) {
    for (auto it = snapshots_.begin(); it != snapshots_.end(); ++it) {
      if (it->get() == snapshot) {
        snapshots_.erase(it);
        return;
      }
    }
    assert(false && "not a snapshot of this database");
  }
  size_t size() const { return snapshots_.size(); }
  /// Ascending, without repetition.
  std::vector<SequenceNumber> Sequences() const {
    std::vector<SequenceNumber> sequences;
    for (const auto& snapshot : snapshots_) {
      if (sequences.empty() || sequences.back() != snapshot->GetSequenceNumber()) {
        sequences.push_back(snapshot->GetSequenceNumber());
      }
    }
    return sequences;
  }

 private:
  struct BySequence {
    bool operator()(const std::unique_ptr<SnapshotImpl>& a,
                    const std::unique_ptr<SnapshotImpl>& b) const {
      return a->GetSequenceNumber() < b->GetSequenceNumber();
    }
  };
  std::multiset<std::unique_ptr<SnapshotImpl>, BySequence> snapshots_;
};

}  // namespace nacre
