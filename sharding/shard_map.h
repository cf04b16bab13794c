#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/comparator.h"
#include "nacre/slice.h"
#include "nacre/status.h"

namespace nacre {

/// The options of families of a keyspace as texts, by the families' names.
using FamilyOptions = std::map<std::string, std::string>;

/// Which shard has which keys and which member should own it, and the families that all shards
/// have. A value.
class ShardMap {
 public:
  struct Shard {
    uint32_t id = 0;
    std::string begin{};
    int64_t owner = 0;           ///< The member that should own it (Coordinator::Lease); 0: none.
    uint64_t epoch = 0;          ///< How often the owner was set.
    int64_t previous_owner = 0;  ///< The owner before, which may still have it; 0: none.
    /// What it is made of: shards that the map has no more. Until its database is whole, theirs
    /// have what is its own. Empty: it is whole.
    std::vector<uint32_t> sources{};
    /// Shards before it: it has the records of what they decided.
    std::vector<uint32_t> heir_of{};
  };
  /// A split or a merge that is being prepared: databases of new shards are copied from those of
  /// others.
  struct Reshaping {
    std::vector<uint32_t> sources{};  ///< One, or two neighbours, in the order of their keys.
    std::vector<uint32_t> targets{};  ///< Ids of two shards to be, or of one, likewise.
    std::string split_key{};          ///< Where the second target begins, if there are two.

    bool operator==(const Reshaping&) const = default;
  };
  /// The family in which transactions are that the application has prepared, if it ever has. It is
  /// the keyspace's, of no application's name, need not be named at its opening, and is not listed.
  static constexpr std::string_view kPreparedFamily = "@prepared";
  struct Family {
    uint32_t id = 0;
    std::string name{};
    /// Members made it: its name in the shards' databases has its id, so that one of the same name
    /// that was dropped before is not taken for it.
    bool named_by_id = false;
    /// What a member that was not told of it opens it with, over the options of the default family
    /// (GetColumnFamilyOptionsFromString).
    std::string options{};

    /// Its name in the shards' databases.
    std::string NameInShards() const;
  };
  /// Which families there are of all that a keyspace ever had: ids ascend, and a family that was
  /// dropped does not come back.
  struct FamilySet {
    uint32_t next_id = 0;
    size_t count = 0;

    bool IsLaterThan(const FamilySet& other) const {
      return next_id > other.next_id || (next_id == other.next_id && count < other.count);
    }
  };

  /// How the leader spreads the shards over the members. A number that is 0 is a default
  /// (sharding/balance/balancer.h).
  struct Balance {
    /// Nothing is moved, split or merged by itself, save that failover and draining go on.
    bool paused = false;
    /// Loads of two members may differ by so many percent of what each had if all had the same.
    uint32_t imbalance_percent = 0;
    uint64_t split_bytes = 0;                  ///< A larger shard is split.
    uint64_t split_operations_per_second = 0;  ///< A hotter shard is split.
    /// Neighbours that are smaller together, and cold, are merged.
    uint64_t merge_bytes = 0;
  };

  /// The map of a keyspace that is being made. `InvalidArgument`: the boundaries do not ascend.
  static Status Make(const Comparator* comparator, const std::vector<std::string>& boundaries,
                     ShardMap* map);
  /// `Corruption`, saying what is wrong; `NotSupported` for a later format; `InvalidArgument` for
  /// another comparator.
  static Status Parse(const Slice& bytes, const Comparator* comparator, ShardMap* map);
  std::string Serialize() const;
  /// The names of the families, the default one first. Fails as Parse does.
  static Status ParseFamilies(const Slice& bytes, std::vector<std::string>* families);

  /// The map's key in the database that holds it.
  static constexpr char kKey[] = "map";

  /// The database that holds shard `id`, and the one that holds the map.
  static std::string DatabaseOf(const std::string& keyspace, uint32_t id);
  static std::string DatabaseOfMap(const std::string& keyspace);
  static bool IsShardOf(const std::string& database, const std::string& keyspace);

  /// Index of the shard that has `key`.
  size_t Find(const Slice& key) const;
  /// Whether `key` is before the keys of shard `index` + 1.
  bool IsBeforeEnd(size_t index, const Slice& key) const {
    return index + 1 == shards_.size() || comparator_->Compare(key, shards_[index + 1].begin) < 0;
  }
  /// The shard has `key`.
  bool Has(size_t index, const Slice& key) const {
    return (index == 0 || comparator_->Compare(key, shards_[index].begin) >= 0) &&
           IsBeforeEnd(index, key);
  }

  const Comparator* comparator() const { return comparator_; }
  const std::vector<Shard>& shards() const { return shards_; }
  size_t size() const { return shards_.size(); }
  /// Index of the shard that has this id; `size()` if there is none.
  size_t IndexOf(uint32_t id) const;
  /// Index of the shard that knows what shard `id`, which there is or was, has decided.
  size_t IndexOfDecider(uint32_t id) const;
  /// The key that the keys of shard `index` come before; null: there is none.
  const std::string* EndOf(size_t index) const {
    return index + 1 == shards_.size() ? nullptr : &shards_[index + 1].begin;
  }
  const std::vector<Reshaping>& reshapings() const { return reshapings_; }
  /// The one that uses or makes shard `id`; null: none does.
  const Reshaping* ReshapingOf(uint32_t id) const;
  /// Ids whose databases are to be destroyed.
  const std::vector<uint32_t>& retired() const { return retired_; }
  const std::vector<Family>& families() const { return families_; }
  /// Beside the default one.
  bool HasFamily(uint32_t id) const {
    return std::ranges::find(families_, id, &Family::id) != families_.end();
  }
  bool HasFamily(const std::string& name) const {
    return name == kDefaultColumnFamilyName ||
           std::ranges::find(families_, name, &Family::name) != families_.end();
  }
  FamilySet family_set() const { return {.next_id = next_family_, .count = families_.size()}; }
  /// A family of a shard's database is one that the keyspace has no more, or that an attempt to
  /// make it has left; and none that a later map has.
  bool IsLeftover(const std::string& name_in_shard) const;
  bool being_made() const { return being_made_; }
  uint64_t version() const { return version_; }
  /// The members that should own no shards, ascending. Some may be members no more.
  const std::vector<int64_t>& draining() const { return draining_; }
  bool IsDraining(int64_t member) const;
  /// How many shards should be the member's own.
  size_t CountOf(int64_t member) const;
  const Balance& balance() const { return balance_; }
  /// The shards belong to members, which agree by a coordinator.
  bool shared() const { return shared_; }

  /// Some shards were split or merged, or are to be.
  bool was_reshaped() const;
  /// What tells which database has which keys and families: equal unless that, or what is to be
  /// done about it, has changed.
  std::string Shape() const;

  // ---- Changes. Each makes another version. ----
  void SetMade();
  void SetShared();
  /// Another owner of the shard that has this index.
  void SetOwner(size_t index, int64_t owner);
  void SetDraining(int64_t member, bool draining);
  void SetBalance(const Balance& balance);
  /// Begins to split a shard at `key`, or to merge two, under new ids. `InvalidArgument` if there
  /// are no such shards, no neighbours, or if the key is none between those of the shard; `Busy`
  /// while one of them is being reshaped, or is not whole.
  Status BeginSplit(uint32_t shard, const std::string& key, Reshaping* reshaping);
  Status BeginMerge(uint32_t low, uint32_t high, Reshaping* reshaping);
  /// The targets take the place of the sources, which `owner` has. `Aborted` if it was cancelled,
  /// or another one has them.
  Status CommitReshaping(const Reshaping& reshaping, int64_t owner);
  /// Nothing, if there is no such one any more.
  void CancelReshaping(const Reshaping& reshaping);
  /// The shard that has this index is whole. What it was made of is retired with the last one that
  /// was made of it.
  void SetWhole(size_t index);
  /// Its database is gone.
  void RemoveRetired(uint32_t id);
  /// A family whose name is new. Its id.
  uint32_t AddFamily(const std::string& name);
  /// The same, by members.
  uint32_t AddSharedFamily(const std::string& name, const std::string& options);
  void RemoveFamily(const std::string& name);

 private:
  /// The default family has 0, and each shard has another one for what is prepared.
  static constexpr uint32_t kFirstFamily = 2;

  void Prepare();
  /// Those that nothing is made of, or into.
  Status CheckFree(const std::vector<uint32_t>& shards) const;

  const Comparator* comparator_ = nullptr;
  uint64_t version_ = 1;
  bool being_made_ = true;
  uint32_t next_shard_ = 0;
  uint32_t next_family_ = 0;
  std::vector<Shard> shards_;
  std::vector<Family> families_;
  std::vector<int64_t> draining_;
  Balance balance_;
  bool shared_ = false;
  std::vector<Reshaping> reshapings_;
  std::vector<uint32_t> retired_;
  /// The first eight bytes of where each shard begins, as a number; empty unless keys are in the
  /// order of their bytes.
  std::vector<uint64_t> prefixes_;
};

}  // namespace nacre
