// Goal: batches over several shards of a keyspace take place as a whole or not at all, whenever its
// owner dies, and whatever reads them sees them so; what was acknowledged is there.
// Method: a small simulated cluster. Threads write the same number to a key of each shard, another
// one writes single keys, and readers compare what they see in all ways; the owner is killed at any
// step, most often between two steps of a batch, and another one goes on.
// For several seeds each.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "nacre/utilities/sharded_db.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_group.h"
#include "tests/support/sim/sim_run.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr size_t kShards = 3;
constexpr size_t kGroups = 3;

/// What is known of a group: all of its keys have the same number.
struct Group {
  uint64_t begun = 0;         ///< The latest number that a batch was begun with.
  uint64_t acknowledged = 0;  ///< The latest one that was acknowledged.
};

/// A keyspace whose owners die. The groups' numbers only grow: each has one writer at a time.
class DyingKeyspace {
 public:
  DyingKeyspace(Scheduler* scheduler, Case* c) : scheduler_(scheduler), case_(c) {}

  /// From here on shards are split and merged while they are used.
  void BeginToReshape() { reshapes_ = true; }

  /// A new owner, whose predecessor is gone.
  void Open() {
    process_ = case_->NewProcess("owner" + std::to_string(++owners_));
    db_ = std::make_unique<std::unique_ptr<ShardedDB>>().release();  // Ends with its process.
    case_->In(process_, [&] {
      ShardedOptions options(case_->DatabaseOptions());
      options.redundancy = "rep(2)";
      for (size_t shard = 1; shard < kShards; ++shard) {
        options.boundaries.emplace_back(1, static_cast<char>('a' + shard));
      }
      case_->Await("opening", [&] { return ShardedDB::Open(options, "keys", db_).ok(); });
    });
  }

  /// Writes and reads until the owner dies, or for a while.
  void Use(bool killed) {
    const ProcessId process = process_;
    if (killed) {
      // Most of a batch's life lies between its points.
      int left = 1 + static_cast<int>(scheduler_->Uniform(reshapes_ ? 20 : 60));
      SetPointVisitor([this, process, left](const char* name) mutable {
        if (scheduler_->process() != process) return;
        const std::string_view point(name);
        const bool counts = point.starts_with(reshapes_ ? "reshaping." : "batch.");
        if (!counts || --left != 0) return;
        case_->cluster().KillProcess(process, scheduler_->OneIn(2));
      });
    }
    for (size_t group = 0; group < kGroups; ++group) {
      case_->cluster().Run(process, "write", [this, group] { Write(db_->get(), group); });
    }
    case_->cluster().Run(process, "plain", [this] { WritePlainly(db_->get()); });
    for (int i = 0; i < 2; ++i) {
      case_->cluster().Run(process, "read", [this] { Read(db_->get()); });
    }
    if (reshapes_) {
      case_->cluster().Run(process, "reshape", [this] { Reshape(db_->get()); });
    }
    scheduler_->SleepFor(milliseconds(20 + scheduler_->Uniform(60)));
    rests_ = true;
    if (!killed) {
      case_->Await("the threads", [this] { return running_ == 0; });
    } else if (scheduler_->alive(process)) {
      case_->cluster().KillProcess(process, scheduler_->OneIn(2));
    }
    SetPointVisitor(nullptr);
    rests_ = false;
    running_ = 0;
  }

  /// What is there is what batches wrote as a whole, and has what was acknowledged.
  void Check() {
    case_->In(process_, [&] {
      for (size_t group = 0; group < kGroups; ++group) {
        const uint64_t number = CheckTogether(db_->get(), group);
        const Group& known = groups_[group];
        case_->Expect(number >= known.acknowledged,
                      "group " + std::to_string(group) + " is at " + std::to_string(number) +
                          ", though " + std::to_string(known.acknowledged) + " was acknowledged");
        case_->Expect(number <= known.begun, "a number that was never written");
      }
    });
  }

  uint64_t written() const {
    uint64_t sum = 0;
    for (const Group& group : groups_) sum += group.acknowledged;
    return sum;
  }

 private:
  void Write(ShardedDB* db, size_t group) {
    ++running_;
    while (!rests_) {
      const uint64_t number = ++groups_[group].begun;
      WriteBatch batch;
      for (size_t shard = 0; shard < kShards; ++shard) {
        case_->Expect(batch.Put(KeyOfGroup(group, shard), std::to_string(number)));
      }
      case_->Expect(db->Write({}, &batch));
      groups_[group].acknowledged = number;
      if (scheduler_->OneIn(4)) Clock::System()->SleepFor(microseconds(scheduler_->Uniform(300)));
    }
    --running_;
  }

  void Reshape(ShardedDB* db) {
    ++running_;
    while (!rests_) {
      const std::vector<ShardInfo> shards = db->GetShards();
      const size_t chosen = scheduler_->Uniform(shards.size());
      if (scheduler_->OneIn(2) && chosen + 1 < shards.size()) {
        case_->Expect(db->MergeShards(shards[chosen].id, shards[chosen + 1].id));
      } else {
        const std::string key =
            KeyOfGroup(scheduler_->Uniform(kGroups), scheduler_->Uniform(kShards));
        const Status status = db->SplitShard(shards[chosen].id, key);
        case_->Expect(status.ok() || status.IsInvalidArgument(), "split: " + status.ToString());
      }
    }
    --running_;
  }

  /// Single keys next to those of the groups, which are flushed now and then.
  void WritePlainly(ShardedDB* db) {
    ++running_;
    uint64_t number = ++plain_;
    while (!rests_) {
      const std::string key = KeyOfGroup(kGroups, scheduler_->Uniform(kShards));
      case_->Expect(db->Put({}, key, std::to_string(number++)));
      if (scheduler_->OneIn(8)) case_->Expect(db->Flush({}));
    }
    --running_;
  }

  /// The number of the group, seen at one moment in one of the ways.
  uint64_t CheckTogether(ShardedDB* db, size_t group) {
    std::vector<uint64_t> seen;
    Status status;
    do {  // A shard that is split or merged ends the snapshots of it.
      status = ReadGroup(scheduler_, db, group, kShards, &seen);
    } while (reshapes_ && status.IsAborted());
    case_->Expect(status);
    const std::string difference = DifferenceIn(group, seen);
    case_->Expect(difference.empty(), difference);
    return seen[0];
  }

  uint64_t Get(ShardedDB* db, const ReadOptions& options, const std::string& key) {
    std::string value;
    const Status status = db->Get(options, key, &value);
    case_->Expect(status.ok() || status.IsNotFound(), status.ToString());
    return NumberOf(value);
  }

  void Read(ShardedDB* db) {
    ++running_;
    while (!rests_) {
      const size_t group = scheduler_->Uniform(kGroups);
      const uint64_t acknowledged = groups_[group].acknowledged;
      const uint64_t together = CheckTogether(db, group);
      case_->Expect(together >= acknowledged, "a read misses what was acknowledged before");
      // One after the other, each sees no earlier state than the one before.
      uint64_t last = together;
      for (int i = 0; i < 4; ++i) {
        const uint64_t number = Get(db, {}, KeyOfGroup(group, scheduler_->Uniform(kShards)));
        case_->Expect(number >= last, "a read goes back from " + std::to_string(last) + " to " +
                                          std::to_string(number));
        last = number;
      }
    }
    --running_;
  }

  Scheduler* const scheduler_;
  Case* const case_;
  ProcessId process_ = 0;
  std::unique_ptr<ShardedDB>* db_ = nullptr;
  int owners_ = 0;
  std::array<Group, kGroups> groups_;
  uint64_t plain_ = 0;
  bool rests_ = false;
  bool reshapes_ = false;
  int running_ = 0;
};

TEST(ShardedCaseTest, BatchesOverShardsAreWholeWheneverTheOwnerDies) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        auto* const keyspace = std::make_unique<DyingKeyspace>(scheduler, c).release();
        keyspace->Open();
        for (int life = 0; life < 4; ++life) {
          keyspace->Use(/*killed=*/true);
          keyspace->Open();
          keyspace->Check();
        }
        keyspace->Use(/*killed=*/false);
        keyspace->Check();
        c->Expect(keyspace->written() > 0, "nothing was written");
        return std::to_string(keyspace->written());
      },
      {.nodes = 4, .region_bytes = 64 << 20}, 10);
}

TEST(ShardedCaseTest, ShardsAreSplitAndMergedWheneverTheOwnerDies) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        auto* const keyspace = std::make_unique<DyingKeyspace>(scheduler, c).release();
        keyspace->Open();
        keyspace->BeginToReshape();
        for (int life = 0; life < 4; ++life) {
          keyspace->Use(/*killed=*/true);
          keyspace->Open();
          keyspace->Check();
        }
        keyspace->Use(/*killed=*/false);
        keyspace->Check();
        c->Expect(keyspace->written() > 0, "nothing was written");
        return std::to_string(keyspace->written());
      },
      {.nodes = 4, .region_bytes = 64 << 20}, 6);
}

/// Two keys of two shards, each counted up by a writer of its own, so that all states are in one
/// order by each of them. Two observations of both contradict each other if each has more of
/// another key than the other one has.
class CountedPair {
 public:
  CountedPair(Scheduler* scheduler, Case* c) : scheduler_(scheduler), case_(c) {
    process_ = case_->NewProcess("owner");
    case_->In(process_, [&] {
      ShardedOptions options(case_->DatabaseOptions());
      options.boundaries = {"m"};
      case_->Await("opening", [&] { return ShardedDB::Open(options, "keys", db_).ok(); });
    });
  }

  void Use() {
    SetPointVisitor([this](const char* name) {
      if (name == std::string_view("keyspace.shard-in-snapshot")) Pause();
    });
    for (const char* key : {"a", "z"}) {
      Run("write", [this, key] {
        for (uint64_t number = 1; !rests_; ++number) {
          case_->Expect((*db_)->Put({}, key, std::to_string(number)));
          Pause();
        }
      });
    }
    for (const bool forward : {true, false}) {
      Run("read", [this, forward] {
        while (!rests_) {
          // What is read first is no newer than what is read then.
          Seen seen;
          (forward ? seen.a : seen.z) = Get({}, forward ? "a" : "z");
          if (scheduler_->OneIn(2)) Pause();
          (forward ? seen.z : seen.a) = Get({}, forward ? "z" : "a");
          (forward ? a_first_ : z_first_).push_back(seen);
          Pause();
        }
      });
    }
    for (int i = 0; i < 2; ++i) {
      Run("snapshot", [this] {
        while (!rests_) {
          ReadOptions at;
          at.snapshot = (*db_)->GetSnapshot();
          snapshots_.push_back({.a = Get(at, "a"), .z = Get(at, "z")});
          (*db_)->ReleaseSnapshot(at.snapshot);
          Pause();
        }
      });
    }
    scheduler_->SleepFor(milliseconds(2));
    rests_ = true;
    case_->Await("the threads", [this] { return running_ == 0; });
    SetPointVisitor(nullptr);
  }

  void Check() const {
    for (const Seen& snapshot : snapshots_) {
      for (const Seen& seen : a_first_) {
        case_->Expect(seen.a <= snapshot.a || seen.z >= snapshot.z, Contradiction(snapshot, seen));
      }
      for (const Seen& seen : z_first_) {
        case_->Expect(seen.z <= snapshot.z || seen.a >= snapshot.a, Contradiction(snapshot, seen));
      }
      for (const Seen& other : snapshots_) {
        case_->Expect(other.a <= snapshot.a || other.z >= snapshot.z,
                      Contradiction(snapshot, other));
      }
    }
    case_->Expect(!snapshots_.empty() && !a_first_.empty() && !z_first_.empty(),
                  "seen were " + std::to_string(snapshots_.size()) + " snapshots, " +
                      std::to_string(a_first_.size()) + " and " + std::to_string(z_first_.size()) +
                      " pairs");
  }

  size_t snapshots() const { return snapshots_.size(); }

 private:
  struct Seen {
    uint64_t a = 0;
    uint64_t z = 0;
  };

  static std::string Contradiction(const Seen& snapshot, const Seen& seen) {
    return "a snapshot has " + std::to_string(snapshot.a) + " and " + std::to_string(snapshot.z) +
           ", though " + std::to_string(seen.a) + " and " + std::to_string(seen.z) + " were seen";
  }
  template <typename Work>
  void Run(const char* name, const Work& work) {
    case_->cluster().Run(process_, name, [this, work] {
      ++running_;
      work();
      --running_;
    });
  }
  /// Lets others go on.
  void Pause() { Clock::System()->SleepFor(microseconds(1 + scheduler_->Uniform(20))); }
  uint64_t Get(const ReadOptions& options, const char* key) {
    std::string value;
    const Status status = (*db_)->Get(options, key, &value);
    case_->Expect(status.ok() || status.IsNotFound(), status.ToString());
    return NumberOf(value);
  }

  Scheduler* const scheduler_;
  Case* const case_;
  ProcessId process_ = 0;
  /// Ends with its process.
  std::unique_ptr<ShardedDB>* const db_ = std::make_unique<std::unique_ptr<ShardedDB>>().release();
  std::vector<Seen> snapshots_;
  std::vector<Seen> a_first_;
  std::vector<Seen> z_first_;
  bool rests_ = false;
  int running_ = 0;
};

TEST(ShardedCaseTest, SnapshotsContradictNothingThatWasSeen) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        auto* const pair = std::make_unique<CountedPair>(scheduler, c).release();
        pair->Use();
        pair->Check();
        return std::to_string(pair->snapshots());
      },
      {.nodes = 3, .region_bytes = 64 << 20}, 10);
}

}  // namespace
}  // namespace nacre::sim
