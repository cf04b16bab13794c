#pragma once

#include <cstddef>
#include <iterator>
#include <list>
#include <vector>

#include "nacre/db.h"
#include "table/format/internal_key.h"

namespace nacre {

/// The snapshots that are held, by rising sequence. What one costs to take and to give back does
/// not depend on how many there are.
///
/// Thread safety: none; guarded by the database's mutex.
class SnapshotList {
 public:
  /// Sequences come in rising order as a rule; one that does not takes as long as there are later
  /// ones.
  const Snapshot* Add(SequenceNumber sequence) {
    auto next = snapshots_.end();
    while (next != snapshots_.begin() && std::prev(next)->GetSequenceNumber() > sequence) --next;
    const auto added = snapshots_.emplace(next, sequence);
    added->place_ = added;
    return &*added;
  }
  /// `snapshot` came from Add.
  void Remove(const Snapshot* snapshot) {
    snapshots_.erase(static_cast<const Held*>(snapshot)->place_);
  }
  size_t size() const { return snapshots_.size(); }
  /// The oldest one's sequence; 0 if there is none.
  SequenceNumber Oldest() const {
    return snapshots_.empty() ? 0 : snapshots_.front().GetSequenceNumber();
  }
  /// Ascending, without repetition.
  std::vector<SequenceNumber> Sequences() const {
    std::vector<SequenceNumber> sequences;
    for (const Held& held : snapshots_) {
      if (sequences.empty() || sequences.back() != held.GetSequenceNumber()) {
        sequences.push_back(held.GetSequenceNumber());
      }
    }
    return sequences;
  }

 private:
  class Held final : public Snapshot {
   public:
    explicit Held(SequenceNumber sequence) : sequence_(sequence) {}
    ~Held() override = default;
    uint64_t GetSequenceNumber() const override { return sequence_; }

   private:
    friend class SnapshotList;

    const SequenceNumber sequence_;
    std::list<Held>::iterator place_;  ///< Its own.
  };

  std::list<Held> snapshots_;
};

}  // namespace nacre
