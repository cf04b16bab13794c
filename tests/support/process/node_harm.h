#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "nacre/logger.h"
#include "tests/support/process/memnode_process.h"
#include "util/mutex.h"
#include "util/random.h"

namespace nacre {

/// Kills the nodes of a pool, starts them again, and, on a thread of its own, stops one or two of
/// them for a while: never more at a time than the redundancy takes.
///
/// Thread safety: none; one thread uses it beside its own.
class NodeHarm {
 public:
  struct Limits {
    size_t spare = 0;  ///< Nodes that may be away at once.
    size_t least = 0;  ///< So many have to be there, of those that the owner knows.
    bool stops = false;
    std::shared_ptr<Logger> log{};  ///< Told what is done; may be null.
  };

  NodeHarm(MemnodeProcesses* nodes, const Limits& limits, uint64_t seed);
  /// All that were stopped go on.
  ~NodeHarm();
  NodeHarm(const NodeHarm&) = delete;
  NodeHarm& operator=(const NodeHarm&) = delete;

  /// Kills one that runs if there may be one less.
  void MaybeKill(Random* random) EXCLUDES(mutex_);
  /// Starts a dead one, with nothing in it.
  void Start(size_t node) EXCLUDES(mutex_);
  std::vector<size_t> Running(bool running) const EXCLUDES(mutex_);
  /// The owner has taken in all nodes that run, and nothing is lost.
  void Whole() EXCLUDES(mutex_);

  /// While it lives, an owner opens the database. It takes nodes that are silent then for lost, and
  /// they join with nothing when they are back.
  class Opening {
   public:
    explicit Opening(NodeHarm* harm) : harm_(harm) { harm->SetOpening(true); }
    ~Opening() { harm_->SetOpening(false); }
    Opening(const Opening&) = delete;
    Opening& operator=(const Opening&) = delete;

   private:
    NodeHarm* const harm_;
  };
  /// While it lives, no node is stopped.
  class Calm {
   public:
    explicit Calm(NodeHarm* harm) : harm_(harm) { harm->SetCalm(true); }
    ~Calm() { harm_->SetCalm(false); }
    Calm(const Calm&) = delete;
    Calm& operator=(const Calm&) = delete;

   private:
    NodeHarm* const harm_;
  };

  uint64_t kills() const { return kills_; }
  uint64_t starts() const { return starts_; }
  uint64_t stops() const { return stops_.load(); }

 private:
  /// What is done to `node`, and how many are away by then.
  void Note(const char* what, size_t node) const REQUIRES(mutex_);
  void SetOpening(bool opening) EXCLUDES(mutex_);
  void SetCalm(bool calm) EXCLUDES(mutex_);
  /// Lets all that are stopped go on.
  void Resume() REQUIRES(mutex_);
  void Run(Random* random) EXCLUDES(mutex_);
  std::vector<size_t> RunningLocked(bool running) const REQUIRES(mutex_);
  /// Whether one more may go.
  bool Spares() const REQUIRES(mutex_);
  size_t Away() const REQUIRES(mutex_) { return lost_ + stopped_.size() - stopped_lost_; }

  MemnodeProcesses* const nodes_;
  const Limits limits_;
  uint64_t kills_ = 0;
  uint64_t starts_ = 0;
  std::atomic<uint64_t> stops_{0};

  mutable Mutex mutex_;
  CondVar changed_{&mutex_};
  size_t counted_ GUARDED_BY(mutex_);   ///< Nodes that the owner had when all was whole.
  size_t lost_ GUARDED_BY(mutex_) = 0;  ///< Those that lost what they had since then.
  /// At the moment, or so shortly before that the owner may not have noticed that they are back.
  std::set<size_t> stopped_ GUARDED_BY(mutex_);
  bool paused_ GUARDED_BY(mutex_) = false;  ///< They are stopped at the moment.
  /// How many of them are among the lost, since an owner opened the database meanwhile.
  size_t stopped_lost_ GUARDED_BY(mutex_) = 0;
  bool opening_ GUARDED_BY(mutex_) = false;
  int calm_ GUARDED_BY(mutex_) = 0;
  bool quit_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace nacre
