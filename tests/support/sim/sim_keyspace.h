#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nacre/utilities/optimistic_transaction_db.h"
#include "nacre/utilities/sharded_db.h"
#include "nacre/utilities/transaction_db.h"
#include "tests/support/sim/sim_case.h"
#include "tests/support/sim/sim_coordinator.h"
#include "tests/support/sim/sim_group.h"
#include "tests/support/sim/sim_scheduler.h"

namespace nacre::sim {

/// A keyspace that several processes own, over a simulated coordinator. Threads of each process
/// write and read what can be told to be right or wrong, whatever happens to the processes:
///   - A group is a key of each shard, all of which always have the same number. One thread at a
///     time writes a group, in a batch, so that its numbers only grow.
///   - A plain key has one writer at a time, too.
///   - To a list, which is a key of merges, each number is appended once.
///   - A counter is a key of each of two shards, which always have the same number. Transactions of
///     all members count it up at once, optimistic ones or with locks.
///
/// Lives until the simulation's process ends.
class SharedKeyspace {
 public:
  struct Member {
    ProcessId process = 0;
    std::string name;
    // One of them.
    std::unique_ptr<OptimisticTransactionDB> optimistic;
    std::unique_ptr<TransactionDB> locked;
    ShardedDB* db = nullptr;  ///< What is below it.
    bool serves = false;      ///< It owns shards, too.
    bool open = false;        ///< It has the keyspace open, and lives.
    bool faulty = false;      ///< What it does may fail: it was frozen, or is cut off.
    int running = 0;          ///< Its threads.
  };

  /// How counters are counted up.
  enum class Transactions : uint8_t { kOptimistic, kLocked };

  SharedKeyspace(Scheduler* scheduler, Case* c, size_t shards, size_t groups,
                 Transactions transactions = Transactions::kOptimistic);

  /// A process that opens the keyspace, and returns when it has. `serves`: it owns shards, too.
  Member* Join(bool serves = true);
  /// Has each open member write and read until Rest.
  void Begin();
  /// Ends the threads of those that live, once they have got so far.
  void Rest();
  /// Begins, waits, and rests.
  void UseFor(std::chrono::milliseconds time);

  void Kill(Member* member, bool told);
  void Close(Member* member);
  /// Stops the process for so long, as SIGSTOP does.
  void Freeze(Member* member, std::chrono::milliseconds time);
  /// Its calls fail as they may from now on, until they are expected to succeed again.
  void SetFaulty(Member* member, bool faulty) { member->faulty = faulty; }

  /// All members read what was acknowledged, and all groups are whole.
  void Check();
  void Sleep(std::chrono::milliseconds time);
  /// Gives the members that serve about as many shards each.
  void Spread();

  SimStore& store() { return store_; }
  const std::vector<std::unique_ptr<Member>>& members() const { return members_; }
  std::vector<Member*> Open() const;
  /// Its id at present, as it sees itself; 0 if it cannot say.
  int64_t IdOf(Member* member);
  /// Acknowledged writes of groups and of plain keys.
  uint64_t written() const;
  /// Transactions that were acknowledged, and those that were refused as others had been there.
  uint64_t counted() const;
  uint64_t conflicts() const { return conflicts_; }
  /// The key of a shard that nothing here uses.
  std::string FreeKey(size_t shard) const { return KeyOfGroup(4 * groups_.size(), shard); }
  size_t shards() const { return shards_; }

 private:
  /// What is known of a group, or of a plain key.
  struct Known {
    uint64_t begun = 0;              ///< The latest number that a write was begun with.
    uint64_t acknowledged = 0;       ///< The latest one that was acknowledged.
    const Member* writer = nullptr;  ///< The one that writes it now; null: none.
    /// Writes whose end is unknown: one of them may come to be seen late (plain keys).
    std::set<uint64_t> open{};
  };

  /// What is known of a counter.
  struct Counted {
    uint64_t acknowledged = 0;  ///< Transactions that were.
    uint64_t open = 0;          ///< Those that may have taken place, or may yet.
  };

  /// What the member uses the keyspace through, opened or not.
  Status OpenOn(Member* member, const ShardedOptions& options) const;
  std::unique_ptr<Transaction> NewTransaction(Member* member) const;
  void Write(Member* member);
  void Count(Member* member, size_t counter);
  void CheckCounter(Member* member, size_t counter);
  void Append(Member* member, size_t list);
  void CheckList(Member* member, size_t list);
  void WriteGroup(Member* member, Known* known, size_t group);
  void WritePlain(Member* member, Known* known, size_t key);
  void Read(Member* member);
  /// The number of the group, seen at one moment in one of the ways. False: it could not be read.
  bool ReadWhole(Member* member, size_t group, uint64_t* number);
  std::string PlainKey(size_t key) const { return KeyOfGroup(groups_.size() + key, key % shards_); }
  std::string ListKey(size_t list) const {
    return KeyOfGroup(2 * groups_.size() + list, (list + 1) % shards_);
  }
  std::string CounterKey(size_t counter, size_t part) const {
    return KeyOfGroup(3 * groups_.size() + counter, (counter + part) % shards_);
  }
  bool ReadKey(Member* member, const ReadOptions& options, const std::string& key,
               uint64_t* number);
  void CheckRead(Member* member, const Status& status, bool at_snapshot);

  Scheduler* const scheduler_;
  Case* const case_;
  const size_t shards_;
  const Transactions transactions_;
  SimStore store_;
  std::vector<std::unique_ptr<Member>> members_;
  std::vector<Known> groups_;
  std::vector<Known> plain_;
  std::vector<Counted> counted_;
  std::vector<std::set<uint64_t>> appended_;  ///< What was acknowledged, by list.
  uint64_t last_appended_ = 0;
  uint64_t conflicts_ = 0;
  bool rests_ = false;
};

}  // namespace nacre::sim
