// Goal: a keyspace whose shards several processes own is one database to all of them, whatever
// happens to its members, its coordinator and its nodes.
// Method: some simulated processes over a simulated coordinator, each of which writes and reads
// (SharedKeyspace), while shards move, are split and merged, and members die, freeze, are drained,
// leave and join.
// For several seeds each.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_group.h"
#include "tests/support/sim/sim_keyspace.h"
#include "tests/support/sim/sim_run.h"

namespace nacre::sim {
namespace {

using std::chrono::milliseconds;
using Member = SharedKeyspace::Member;

constexpr ClusterOptions kCluster{.nodes = 4, .region_bytes = 64 << 20};
constexpr uint64_t kKeyspaceSeeds = 3;
/// Where seconds pass in each.
constexpr uint64_t kSlowSeeds = 2;

SharedKeyspace* NewKeyspace(Scheduler* scheduler, Case* c) {
  return std::make_unique<SharedKeyspace>(scheduler, c, /*shards=*/4, /*groups=*/3).release();
}

/// Moves a shard to one of the members that serve, by another one.
void MoveOne(Scheduler* scheduler, Case* c, SharedKeyspace* keyspace) {
  const std::vector<Member*> open = keyspace->Open();
  Member* const asks = open[scheduler->Uniform(open.size())];
  const int64_t to = keyspace->IdOf(open[scheduler->Uniform(open.size())]);
  c->In(asks->process, [&] {
    const std::vector<ShardInfo> shards = asks->db->GetShards();
    const Status status = asks->db->MoveShard(shards[scheduler->Uniform(shards.size())].id, to);
    c->Expect(status.ok() || status.IsBusy() || status.IsAborted() || status.IsTimedOut(),
              "MoveShard: " + status.ToString());
  });
}

/// Splits a shard, or merges two, by a member.
void ReshapeOne(Scheduler* scheduler, Case* c, Member* asks) {
  c->In(asks->process, [&] {
    const std::vector<ShardInfo> shards = asks->db->GetShards();
    const size_t chosen = scheduler->Uniform(shards.size());
    Status status;
    if (scheduler->OneIn(2) && chosen + 1 < shards.size()) {
      status = asks->db->MergeShards(shards[chosen].id, shards[chosen + 1].id);
    } else {
      const std::string key = KeyOfGroup(scheduler->Uniform(9), scheduler->Uniform(4));
      status = asks->db->SplitShard(shards[chosen].id, scheduler->OneIn(3) ? "" : key);
    }
    // The key may be another shard's, the shards two members', or an order may come twice.
    const bool refused = status.IsInvalidArgument() || status.IsBusy() || status.IsNotFound();
    const bool given_up = status.IsAborted() || status.IsTimedOut() || status.IsFenced() ||
                          status.IsUnavailable() || status.IsShutdownInProgress();
    c->Expect(status.ok() || refused || given_up, "reshaping: " + status.ToString());
  });
}

/// Kills a member at the `left`th point from now on that begins so, of any member. Answers it.
Member* KillAt(Scheduler* scheduler, SharedKeyspace* keyspace, const char* prefix, uint64_t* left) {
  const std::vector<Member*> open = keyspace->Open();
  Member* const dies = open[scheduler->Uniform(open.size())];
  const bool told = scheduler->OneIn(2);
  SetPointVisitor([keyspace, dies, told, prefix, left](const char* name) {
    if (*left == 0 || !std::string_view(name).starts_with(prefix) || --*left > 0) return;
    keyspace->Kill(dies, told);
  });
  return dies;
}

/// Kills a member between two steps of a batch, of whichever member.
void KillOne(Scheduler* scheduler, Case* c, SharedKeyspace* keyspace) {
  uint64_t left = 1 + scheduler->Uniform(100);
  KillAt(scheduler, keyspace, "batch.", &left);
  c->Await("a step of a batch", [&] { return left == 0; });
  SetPointVisitor(nullptr);
}

TEST(KeyspaceCaseTest, AllMembersReadAndWriteAllShardsWhileTheseMove) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewKeyspace(scheduler, c);
        for (int i = 0; i < 3; ++i) keyspace->Join();
        keyspace->Spread();
        keyspace->Begin();
        for (int move = 0; move < 4; ++move) {
          keyspace->Sleep(milliseconds(20 + scheduler->Uniform(50)));
          MoveOne(scheduler, c, keyspace);
        }
        keyspace->Rest();
        keyspace->Check();
        c->Expect(keyspace->written() > 0, "nothing was written");
        return std::to_string(keyspace->written());
      },
      kCluster, kKeyspaceSeeds);
}

TEST(KeyspaceCaseTest, ShardsOfMembersThatDieGoToOthers) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewKeyspace(scheduler, c);
        for (int i = 0; i < 3; ++i) keyspace->Join();
        keyspace->Spread();
        for (int life = 0; life < 3; ++life) {
          keyspace->Begin();
          keyspace->Sleep(milliseconds(20));
          KillOne(scheduler, c, keyspace);
          keyspace->Sleep(milliseconds(scheduler->Uniform(3000)));
          keyspace->Rest();
          keyspace->Check();
          keyspace->Join();
          keyspace->Spread();
        }
        return std::to_string(keyspace->written());
      },
      kCluster, kKeyspaceSeeds);
}

TEST(KeyspaceCaseTest, WhatIsFrozenOrCutOffAnswersNothingWrong) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewKeyspace(scheduler, c);
        for (int i = 0; i < 3; ++i) keyspace->Join();
        keyspace->Spread();
        keyspace->Join(/*serves=*/false);
        for (int round = 0; round < 2; ++round) {
          keyspace->Begin();
          keyspace->Sleep(milliseconds(20 + scheduler->Uniform(60)));
          const std::vector<Member*> open = keyspace->Open();
          Member* const member = open[scheduler->Uniform(open.size())];
          const milliseconds time(500 + scheduler->Uniform(3000));
          switch (scheduler->Uniform(3)) {
            case 0:
              keyspace->Freeze(member, time);
              break;
            case 1:  // From the coordinator.
              keyspace->store().CutOff(member->process);
              keyspace->Sleep(time);
              break;
            default:  // From the nodes: it gives up what it has.
              keyspace->SetFaulty(member, true);
              c->CutOffFromAll(member->process);
              keyspace->Sleep(time);
              c->Heal();
          }
          keyspace->store().Heal();
          keyspace->Sleep(milliseconds(500));
          keyspace->Rest();
          keyspace->Check();
          keyspace->SetFaulty(member, false);
        }
        return std::to_string(keyspace->written());
      },
      kCluster, kSlowSeeds);
}

TEST(KeyspaceCaseTest, MembersAreDrainedLeaveAndJoin) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewKeyspace(scheduler, c);
        for (int i = 0; i < 2; ++i) keyspace->Join();
        for (int round = 0; round < 2; ++round) {
          keyspace->Begin();
          Member* const leaves = keyspace->Open()[scheduler->Uniform(2)];
          Member* const joins = keyspace->Join();
          const int64_t id = keyspace->IdOf(leaves);
          c->In(joins->process, [&] { c->Expect(joins->db->DrainMember(id, true)); });
          c->Await("the member to be empty", [&] {
            std::vector<ShardMember> members;
            c->In(joins->process, [&] { c->Expect(joins->db->GetMembers(&members)); });
            for (const ShardMember& member : members) {
              if (member.id == id) return member.shards == 0;
            }
            return false;
          });
          keyspace->Rest();
          keyspace->Close(leaves);
          keyspace->Check();
        }
        return std::to_string(keyspace->written());
      },
      kCluster, kKeyspaceSeeds);
}

TEST(KeyspaceCaseTest, ShardsAreSplitAndMergedWhileTheyAreUsed) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewKeyspace(scheduler, c);
        for (int i = 0; i < 2; ++i) keyspace->Join();
        keyspace->Begin();
        for (int i = 0; i < 5; ++i) {
          keyspace->Sleep(milliseconds(20 + scheduler->Uniform(50)));
          ReshapeOne(scheduler, c, keyspace->Open()[scheduler->Uniform(2)]);
          if (scheduler->OneIn(3)) MoveOne(scheduler, c, keyspace);
        }
        keyspace->Rest();
        keyspace->Check();
        c->Expect(keyspace->written() > 0, "nothing was written");
        return std::to_string(keyspace->written());
      },
      kCluster, kKeyspaceSeeds);
}

/// A family that a member has made.
struct MadeFamily {
  uint32_t id = 0;
  uint64_t number = 0;  ///< What FillFamily puts, also into the keys.
};

constexpr char kFamily[] = "f";

/// In the member's process, once it knows of the family, and of no earlier one of the name.
std::unique_ptr<ColumnFamilyHandle> OpenFamily(Case* c, Member* member, uint32_t id) {
  std::unique_ptr<ColumnFamilyHandle> family;
  c->Await("the family", [&] {
    ColumnFamilyHandle* opened = nullptr;
    const Status status = member->db->OpenColumnFamily(kFamily, &opened);
    family.reset(opened);
    return status.ok() && family->GetID() == id;
  });
  return family;
}

MadeFamily MakeFamily(Case* c, Member* member, uint64_t number) {
  MadeFamily made{.number = number};
  c->In(member->process, [&] {
    ColumnFamilyHandle* handle = nullptr;
    const Options options = member->db->GetOptions(member->db->DefaultColumnFamily());
    c->Expect(member->db->CreateColumnFamily(options, kFamily, &handle));
    made.id = handle->GetID();
    delete handle;
  });
  return made;
}

/// Puts a key of each shard, in a batch and alone.
void FillFamily(Case* c, Member* member, const MadeFamily& made, size_t shards) {
  c->In(member->process, [&] {
    const auto family = OpenFamily(c, member, made.id);
    const std::string value = std::to_string(made.number);
    WriteBatch batch;
    for (size_t shard = 0; shard < shards; ++shard) {
      const std::string key = KeyOfGroup(made.number, shard);
      c->Expect(shard % 2 == 0 ? batch.Put(family.get(), key, value)
                               : member->db->Put({}, family.get(), key, value));
    }
    c->Expect(member->db->Write({}, &batch));
  });
}

/// It has these keys, and no others.
void CheckFamily(Case* c, Member* member, const MadeFamily& made, size_t shards) {
  c->In(member->process, [&] {
    const auto family = OpenFamily(c, member, made.id);
    for (size_t shard = 0; shard < shards; ++shard) {
      std::string value;
      c->Expect(member->db->Get({}, family.get(), KeyOfGroup(made.number, shard), &value));
      c->Expect(value == std::to_string(made.number), "a key of a family has " + value);
    }
    c->Await("an iterator", [&] {
      size_t seen = 0;
      const std::unique_ptr<Iterator> it(member->db->NewIterator({}, family.get()));
      for (it->SeekToFirst(); it->Valid(); it->Next()) ++seen;
      // A shard that has been opened anew for the family ends it.
      c->Expect(it->status().ok() || it->status().IsAborted(), it->status().ToString());
      if (!it->status().ok()) return false;
      c->Expect(seen == shards, "a family has " + std::to_string(seen) + " keys");
      return true;
    });
  });
}

void DropFamily(Case* c, Member* member, const MadeFamily& made) {
  c->In(member->process, [&] {
    const auto family = OpenFamily(c, member, made.id);
    c->Expect(member->db->DropColumnFamily(family.get()));
    const Status status = member->db->Put({}, family.get(), "a", "late");
    c->Expect(status.IsInvalidArgument(), "of a dropped family: " + status.ToString());
  });
}

bool Leads(Case* c, Member* member) {
  std::vector<ShardMember> members;
  c->In(member->process, [&] { c->Expect(member->db->GetMembers(&members)); });
  return std::ranges::any_of(members, [](const auto& each) { return each.self && each.leads; });
}

TEST(KeyspaceCaseTest, MembersMakeAndDropFamilies) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewKeyspace(scheduler, c);
        for (int i = 0; i < 3; ++i) keyspace->Join();
        keyspace->Spread();
        keyspace->Begin();
        const std::vector<Member*> open = keyspace->Open();
        const auto any = [&] { return open[scheduler->Uniform(3)]; };
        const size_t shards = keyspace->shards();
        for (uint64_t round = 0; round < 2; ++round) {
          MadeFamily family = MakeFamily(c, any(), 2 * round);
          FillFamily(c, any(), family, shards);
          CheckFamily(c, any(), family, shards);
          scheduler->OneIn(2) ? MoveOne(scheduler, c, keyspace) : ReshapeOne(scheduler, c, any());
          CheckFamily(c, any(), family, shards);
          // One that is frozen sees that it was dropped and made again at once.
          size_t frozen = scheduler->Uniform(3);
          if (Leads(c, open[frozen])) frozen = (frozen + 1) % 3;
          const auto other = [&] { return open[(frozen + 1 + scheduler->Uniform(2)) % 3]; };
          keyspace->SetFaulty(open[frozen], true);
          scheduler->Stop(open[frozen]->process);
          DropFamily(c, other(), family);
          family = MakeFamily(c, other(), 2 * round + 1);
          scheduler->Continue(open[frozen]->process);
          FillFamily(c, any(), family, shards);
          CheckFamily(c, any(), family, shards);
          keyspace->SetFaulty(open[frozen], false);
          DropFamily(c, any(), family);
        }
        keyspace->Rest();
        keyspace->Check();
        return std::to_string(keyspace->written());
      },
      kCluster, kSlowSeeds);
}

TEST(KeyspaceCaseTest, NodesDieWhileShardsMoveAndAreSplit) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewKeyspace(scheduler, c);
        for (int i = 0; i < 3; ++i) keyspace->Join();
        keyspace->Spread();
        for (int round = 0; round < 2; ++round) {
          keyspace->Begin();
          const size_t dies = scheduler->Uniform(c->cluster().size());
          const bool told = scheduler->OneIn(2);
          uint64_t left = 1 + scheduler->Uniform(20);
          SetPointVisitor([&, c](const char* point) {
            const std::string_view name(point);
            const bool counts = name.starts_with("reshaping.") || name.starts_with("shard.");
            if (left > 0 && counts && --left == 0) c->cluster().KillNode(dies, told);
          });
          for (int i = 0; i < 3; ++i) {
            Member* const asks = keyspace->Open()[scheduler->Uniform(3)];
            scheduler->OneIn(2) ? MoveOne(scheduler, c, keyspace) : ReshapeOne(scheduler, c, asks);
          }
          SetPointVisitor(nullptr);
          if (left > 0) c->cluster().KillNode(dies, told);
          keyspace->Sleep(milliseconds(scheduler->Uniform(500)));
          keyspace->Rest();
          keyspace->Check();
          // It comes back with nothing, and everything is to have two copies again.
          c->cluster().StartNode(dies);
          c->AwaitSpare(1);
        }
        keyspace->Check();
        return std::to_string(keyspace->written());
      },
      kCluster, kSlowSeeds);
}

TEST(KeyspaceCaseTest, MembersDieWhileShardsAreSplitAndMerged) {
  Tell(
      [](Scheduler* scheduler, Case* c) {
        SharedKeyspace* const keyspace = NewKeyspace(scheduler, c);
        for (int i = 0; i < 3; ++i) keyspace->Join();
        keyspace->Spread();
        uint64_t left = 0;
        for (int life = 0; life < 2; ++life) {
          keyspace->Begin();
          left = 1 + scheduler->Uniform(12);
          const Member* const dies = KillAt(scheduler, keyspace, "reshaping.", &left);
          // It does not ask for them, but may be the one that does them.
          Member* const asks = keyspace->Open()[dies == keyspace->Open()[0] ? 1 : 0];
          for (int i = 0; i < 8 && left > 0; ++i) ReshapeOne(scheduler, c, asks);
          SetPointVisitor(nullptr);
          keyspace->Sleep(milliseconds(scheduler->Uniform(2000)));
          keyspace->Rest();
          keyspace->Check();
          keyspace->Join();
        }
        return std::to_string(keyspace->written());
      },
      kCluster, kSlowSeeds);
}

}  // namespace
}  // namespace nacre::sim
