// Goal: transactions with locks of all members of a keyspace exclude one another, and one that has
// lost a lock changes nothing, whatever happens to members and shards.
// Method: simulated processes as in keyspace_case_test.cc, whose transactions count up counters of
// two shards each; and single transactions that meet.
// For several seeds each.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_keyspace.h"
#include "tests/support/sim/sim_run.h"
#include "util/clock.h"

namespace nacre::sim {
namespace {

using std::chrono::milliseconds;
using Member = SharedKeyspace::Member;

constexpr ClusterOptions kLockedCluster{.nodes = 4, .region_bytes = 64 << 20};
constexpr uint64_t kLockedSeeds = 4;

SharedKeyspace* NewLockedKeyspace(Scheduler* scheduler, Case* c) {
  auto keyspace = std::make_unique<SharedKeyspace>(scheduler, c, /*shards=*/4, /*groups=*/2,
                                                   SharedKeyspace::Transactions::kLocked);
  for (int i = 0; i < 3; ++i) keyspace->Join();
  keyspace->Spread();
  return keyspace.release();
}

/// Has one of the members move a shard to some member that serves.
void MoveAnyShard(Scheduler* scheduler, Case* c, SharedKeyspace* keyspace) {
  const auto open = keyspace->Open();
  Member* const asks = open[scheduler->Uniform(open.size())];
  const int64_t to = keyspace->IdOf(open[scheduler->Uniform(open.size())]);
  c->In(asks->process, [&] {
    const auto shards = asks->db->GetShards();
    asks->db->MoveShard(shards[scheduler->Uniform(shards.size())].id, to).IgnoreError();
  });
}

struct OwnedKey {
  std::string key;
  uint32_t shard = 0;
};

/// A key whose shard `owner` has.
OwnedKey KeyOwnedBy(Case* c, SharedKeyspace* keyspace, Member* owner) {
  const int64_t id = keyspace->IdOf(owner);
  OwnedKey found;
  c->In(owner->process, [&] {
    const auto shards = owner->db->GetShards();
    for (size_t i = 0; i < shards.size(); ++i) {
      if (shards[i].owner == id) found = {keyspace->FreeKey(i), shards[i].id};
    }
  });
  c->Expect(!found.key.empty(), "the member owns no shard");
  return found;
}

TEST(LockedKeyspaceCaseTest, TransactionsOfAllMembersExcludeOneAnother) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewLockedKeyspace(scheduler, c);
        keyspace->UseFor(milliseconds(200));
        keyspace->Check();
        c->Expect(keyspace->counted() > 10, "nothing was counted");
        c->Expect(keyspace->conflicts() == 0, "a lock did not keep others from writing");
        return std::to_string(keyspace->counted());
      },
      kLockedCluster, kLockedSeeds);
}

TEST(LockedKeyspaceCaseTest, WhatHasLostALockChangesNothing) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewLockedKeyspace(scheduler, c);
        keyspace->Begin();
        for (int move = 0; move < 6; ++move) {
          keyspace->Sleep(milliseconds(10 + scheduler->Uniform(40)));
          MoveAnyShard(scheduler, c, keyspace);
        }
        keyspace->Rest();
        keyspace->Check();
        c->Expect(keyspace->counted() > 0, "nothing was counted");
        return std::to_string(keyspace->counted());
      },
      kLockedCluster, kLockedSeeds);
}

TEST(LockedKeyspaceCaseTest, AShardThatHasMovedToAndFroHasNoLocks) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewLockedKeyspace(scheduler, c);
        Member* const owner = keyspace->members()[0].get();
        Member* const other = keyspace->members()[1].get();
        const OwnedKey owned = KeyOwnedBy(c, keyspace, owner);
        const std::string& key = owned.key;
        const int64_t here = keyspace->IdOf(owner);
        const int64_t there = keyspace->IdOf(other);
        const bool exclusive = scheduler->OneIn(2);
        std::unique_ptr<Transaction> first;
        std::string value;
        c->In(other->process, [&] {
          first = other->locked->BeginTransaction({});
          c->Expect(first->GetForUpdate({}, key, &value, exclusive).IsNotFound(), "there is one");
        });
        c->In(owner->process, [&] {
          for (const int64_t to : {there, here}) {
            c->Await("a move", [&] { return owner->db->MoveShard(owned.shard, to).ok(); });
          }
          c->Await("a Put", [&] { return owner->locked->Put({}, key, "another").ok(); });
        });
        c->In(other->process, [&] {
          // One that was shared is missed when it is to be made exclusive.
          const Status put = first->Put(key, "lost");
          c->Expect(exclusive ? put.ok() : put.IsBusy(), "a Put: " + put.ToString());
          const Status status = first->Commit();
          c->Expect(status.IsBusy(), "a lock was not missed: " + status.ToString());
          first.reset();
          c->Expect(other->db->Get({}, key, &value));
          c->Expect(value == "another", "what had lost its lock was written");
        });
        return value;
      },
      kLockedCluster, kLockedSeeds);
}

TEST(LockedKeyspaceCaseTest, LocksOfAMemberThatDiesAreGivenUp) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewLockedKeyspace(scheduler, c);
        Member* const owner = keyspace->members()[0].get();
        Member* const dies = keyspace->members()[1].get();
        Member* const waits = keyspace->members()[2].get();
        const std::string key = KeyOwnedBy(c, keyspace, owner).key;
        std::string value;
        c->In(dies->process, [&] {
          Transaction* const locks = dies->locked->BeginTransaction({}).release();
          c->Expect(locks->GetForUpdate({}, key, &value).IsNotFound(), "there is such a key");
          c->Expect(locks->SetName("locks"));
          // It would have to keep its lock.
          c->Expect(locks->Prepare().IsNotSupported(), "it could be prepared");
        });
        c->In(waits->process, [&] {
          const Status status = waits->locked->Put({}, key, "early");
          c->Expect(status.IsTimedOut(), "a locked key was written: " + status.ToString());
        });
        keyspace->Kill(dies, scheduler->OneIn(2));
        c->In(waits->process, [&] {
          c->Await("a Put", [&] { return waits->locked->Put({}, key, "late").ok(); });
          c->Expect(waits->db->Get({}, key, &value));
        });
        c->Expect(value == "late", "a Put was lost");
        return value;
      },
      kLockedCluster, kLockedSeeds);
}

TEST(LockedKeyspaceCaseTest, AMemberThatDiesWhileItWaitsGetsNoLock) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewLockedKeyspace(scheduler, c);
        Member* const owner = keyspace->members()[0].get();
        Member* const dies = keyspace->members()[1].get();
        const std::string key = KeyOwnedBy(c, keyspace, owner).key;
        std::string value;
        std::unique_ptr<Transaction> holds;
        c->In(owner->process, [&] {
          holds = owner->locked->BeginTransaction({});
          c->Expect(holds->Put(key, "first"));
        });
        bool waits = false;
        c->cluster().Run(dies->process, "waits", [&] {
          Transaction* const waiting = dies->locked->BeginTransaction({}).release();
          waits = true;
          waiting->Put(key, "dead").IgnoreError();
        });
        c->Await("the wait", [&] { return waits; });
        keyspace->Sleep(milliseconds(20));
        keyspace->Kill(dies, /*told=*/true);
        keyspace->Sleep(milliseconds(20 + scheduler->Uniform(200)));
        c->In(owner->process, [&] {
          c->Expect(holds->Commit());
          holds.reset();
          // Now it is the dead member's turn, and nothing would give up what it got.
          Clock::System()->SleepFor(milliseconds(20));
          c->Expect(owner->locked->Put({}, key, "last"));
          c->Expect(owner->db->Get({}, key, &value));
        });
        c->Expect(value == "last", "a Put was lost");
        return value;
      },
      kLockedCluster, kLockedSeeds);
}

TEST(LockedKeyspaceCaseTest, DoesWhatTransactionsWithLocksDo) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewLockedKeyspace(scheduler, c);
        Member* const member = keyspace->members()[scheduler->Uniform(3)].get();
        TransactionDB* const db = member->locked.get();
        c->In(member->process, [&] {
          for (size_t shard = 0; shard < keyspace->shards(); ++shard) {
            const std::string key = keyspace->FreeKey(shard);
            const std::string value = "of shard " + std::to_string(shard);
            std::string found;
            // Shared locks are shared, and one of several is not made exclusive.
            auto first = db->BeginTransaction({}, {.lock_timeout = 50});
            auto second = db->BeginTransaction({}, {.lock_timeout = 50});
            c->Expect(first->GetForUpdate({}, key, &found, /*exclusive=*/false).IsNotFound(), "1");
            c->Expect(second->GetForUpdate({}, key, &found, /*exclusive=*/false).IsNotFound(), "2");
            c->Expect(first->Put(key, "x").IsTimedOut(), "a shared lock was made exclusive");
            c->Expect(second->Rollback());
            c->Expect(first->Put(key, value));
            c->Expect(second->Put(key, "y").IsTimedOut(), "an exclusive lock was taken");
            // A save point gives up what was locked since.
            first->SetSavePoint();
            c->Expect(first->Put(key + "+", "z"));
            c->Expect(first->RollbackToSavePoint());
            c->Expect(second->Put(key + "+", value));
            c->Expect(first->Commit());
            c->Expect(second->Commit());
            c->Expect(db->Get({}, key, &found));
            c->Expect(found == value, "found " + found);
            // What was written since the snapshot is refused at once.
            auto late = db->BeginTransaction({}, {.set_snapshot = true});
            c->Expect(db->Put({}, key, "since"));
            const Status status = late->Put(key, "late");
            c->Expect(status.IsBusy(), "written since the snapshot: " + status.ToString());
          }
          // One that reads only holds others off until it ends.
          auto reads = db->BeginTransaction({});
          std::string found;
          c->Expect(reads->GetForUpdate({}, keyspace->FreeKey(0), &found));
          c->Expect(reads->GetForUpdate({}, keyspace->FreeKey(1), &found));
          auto writes = db->BeginTransaction({}, {.lock_timeout = 0});
          c->Expect(writes->Put(keyspace->FreeKey(1), "w").IsTimedOut(), "a lock was not kept");
          c->Expect(reads->Commit());
          c->Expect(writes->Put(keyspace->FreeKey(1), "w"));
          c->Expect(writes->Commit());
        });
        return std::string("done");
      },
      kLockedCluster, kLockedSeeds);
}

}  // namespace
}  // namespace nacre::sim
