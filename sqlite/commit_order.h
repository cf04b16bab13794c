#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <vector>

namespace nacre::sqlite {

/// Tells whether a transaction may commit under snapshot isolation: only if no other has committed
/// a write of one of its keys since its snapshot (the first committer wins; Berenson et al., "A
/// Critique of ANSI SQL Isolation Levels", section 4.2). Commits are numbered; keys are compared by
/// 64-bit hashes, so that two different ones may, very rarely, count as the same.
///
/// Thread safety: none; the database's mutex protects it.
class CommitOrder {
 public:
  /// The number for a snapshot that is taken now: it has all commits up to this number.
  uint64_t BeginNumber() const { return in_flight_.empty() ? last_ : *in_flight_.begin() - 1; }
  void AddSnapshot(uint64_t number) { snapshots_.insert(number); }
  void RemoveSnapshot(uint64_t number) { snapshots_.erase(snapshots_.find(number)); }

  /// Begins a commit and returns its number, which `End` must be given; 0 if it conflicts. It
  /// writes `key_hashes`; no commit since the snapshot may have written those, nor
  /// `watched_hashes`.
  uint64_t Begin(uint64_t snapshot_number, std::vector<uint64_t> key_hashes,
                 const std::vector<uint64_t>& watched_hashes);
  /// Ends the commit, whether or not it was written.
  void End(uint64_t number);

 private:
  struct Commit {
    uint64_t number;
    std::vector<uint64_t> key_hashes;
  };

  uint64_t last_ = 0;
  std::set<uint64_t> in_flight_;
  std::multiset<uint64_t> snapshots_;
  /// All that a snapshot in use may lack, in order.
  std::deque<Commit> commits_;
};

}  // namespace nacre::sqlite
