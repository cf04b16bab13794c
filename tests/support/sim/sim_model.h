#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/write_batch.h"
#include "tests/support/sim/sim_families.h"
#include "tests/support/sim/sim_scheduler.h"

namespace nacre::sim {

/// What a database may answer, however its owners and nodes fare.
///
/// Keys come in groups that are only ever written together: each write gives all keys of a group
/// the number of the attempt, or deletes them all. So a group is one register, and a batch that is
/// seen in half shows. A group has one writer at a time in each owner. A write that was not
/// acknowledged may take place or not; one that was acknowledged, or seen, stays until the next.
///
/// The keys of a group are in both families that are always there:
/// - two whose values begin with the attempt's number;
/// - a list, to which attempts merge their numbers, or begin it anew: so its last one is the
///   group's, and none that was acknowledged since the first is missing, or there twice;
/// - one for each attempt, which the next attempt deletes by SingleDelete;
/// - where compactions filter (SimFilter), one that has the attempt's number, which they may remove
///   if the number says so; and one of the values may be cut to its number;
/// - and a copy of the number in each family that comes and goes which the writer has open: what
///   that shows is the last attempt that wrote to it, unless an owner has begun to drop it.
///
/// Thread safety: as Simulation (no method is a scheduling point but those that read, meanwhile).
class Model {
 public:
  /// What a reader saw of a group.
  struct Sight {
    size_t group = 0;
    bool found = false;
    uint64_t attempt = 0;  ///< If it was found.
  };

  static constexpr size_t kValuesPerGroup = 2;
  static constexpr size_t kKeysPerGroup = kValuesPerGroup + 1;  ///< The last one is the list.
  static constexpr size_t kMostKeysPerGroup = 2 * (kKeysPerGroup + 1);  ///< As a rule.
  static constexpr size_t kMaxOwners = 64;

  enum class Kind : uint8_t { kPut, kMerge, kDelete, kDeleteRange };

  Model(Scheduler* scheduler, size_t groups)
      : scheduler_(scheduler), families_(scheduler), groups_(groups) {}

  /// Before anything is written: all keys are in the default family.
  void KeepToOneFamily() { one_family_ = true; }
  /// Before anything is written: databases have SimFilter.
  void ExpectFilter() { filtered_ = true; }
  size_t size() const { return groups_.size(); }
  FamilyModel& families() { return families_; }

  /// The next write of the group by this owner; its number goes to EndWrite. What a range deletes
  /// is for DeleteGroups to add.
  uint64_t BeginWrite(size_t group, uint32_t owner, Kind kind, size_t value_bytes,
                      const OpenDatabase& opened, WriteBatch* batch);
  /// The keys of `count` groups, by a range in each family.
  static void DeleteGroups(size_t first, size_t count, const OpenDatabase& opened,
                           WriteBatch* batch);
  void EndWrite(size_t group, uint64_t attempt, bool acknowledged);

  /// Looks at the group, or at all by an iterator that pauses after so many keys, through any
  /// database; fails the simulation for bytes that were never written, and half batches. False if
  /// it answers a failure, which `*status` gets.
  bool Look(const OpenDatabase& opened, const ReadOptions& options, size_t group, Sight* sight,
            Status* status);
  /// `at_first` is called once the iterator has its moment.
  bool LookAtAll(const OpenDatabase& opened, const ReadOptions& options, uint64_t pauses_at,
                 const std::function<void()>& at_first, std::vector<Sight>* sights, Status* status);

  /// Looks at the group through the owner's database, and at what it answers. False if it answers a
  /// failure, which `*status` gets; never kCorruption: that fails the simulation.
  bool Read(uint32_t owner, const OpenDatabase& opened, size_t group, Status* status);
  /// The same for a snapshot that has been read before: `*seen` is what it showed, 0 at first.
  bool ReadSnapshot(uint32_t owner, const OpenDatabase& opened, const Snapshot* snapshot,
                    size_t group, uint64_t* seen, Status* status);
  /// All groups by an iterator, which pauses after so many keys.
  bool Scan(uint32_t owner, const OpenDatabase& opened, uint64_t pauses_at, Status* status);

  /// This process is to open the database, as this owner.
  void OwnerStarts(uint32_t owner, ProcessId process) {
    owners_[owner].process = process;
    owners_[owner].opening = true;
  }
  /// Records that this owner has the database, by an opening that began at `begun_nanos` of the
  /// true time. Earlier owners are replaced: they acknowledge and answer nothing that they begin
  /// from now on, and no reader sees it.
  void OwnerOpened(uint32_t owner, uint64_t begun_nanos);
  bool replaced(uint32_t owner) const { return owners_[owner].replaced_nanos != 0; }
  /// Whether another owner has had the database since, by an opening that may have begun before
  /// this owner's own. What this one reads may be another table's memory by now, which its
  /// checksums tell.
  bool overtaken(uint32_t owner) const;

  // ---- What a history is judged by (sim_follower_model.h) ---------------------------------------

  /// Between two events, of which each write has two.
  uint64_t moment() const { return moment_; }
  /// The newest attempt that is known to have taken place, as an owner acknowledged or showed it.
  uint64_t floor(size_t group) const { return groups_[group].floor; }
  /// When the attempt began; 0 for attempt 0.
  uint64_t BegunAt(size_t group, uint64_t attempt) const;
  /// The newest attempt that was acknowledged before then.
  uint64_t AcknowledgedBefore(size_t group, uint64_t moment) const;
  /// The first deletion from this attempt on; `*found` false: there is none.
  uint64_t DeletionFrom(size_t group, uint64_t attempt, bool* found) const;
  /// Whether its owner had been replaced when the attempt began.
  bool forbidden(size_t group, uint64_t attempt) const;
  /// The newest attempt up to this one, which a reader saw, that has to stay until the next. One
  /// need not whose owner may have a successor, if no owner acknowledged or showed it, nor a later
  /// one of that owner.
  uint64_t KeptOf(size_t group, uint64_t attempt) const;
  /// Fails the simulation.
  void Fail(size_t group, const std::string& why);

  uint64_t acknowledged() const { return acknowledged_; }
  uint64_t unresolved() const { return unresolved_; }
  uint64_t reads() const { return reads_; }

 private:
  struct OwnerState {
    ProcessId process = 0;
    bool opening = false;         ///< It may have taken the database over; dead or alive.
    uint64_t opened_nanos = 0;    ///< 0: it has not.
    uint64_t replaced_nanos = 0;  ///< 0: it has not been.
  };
  struct Attempt {
    uint32_t owner = 0;
    Kind kind = Kind::kPut;
    bool forbidden = false;  ///< Begun by an owner that had been replaced.
    bool proved = false;     ///< An owner acknowledged or showed it.
    uint32_t value_bytes = 0;
    uint64_t begun = 0;
    uint64_t acknowledged = 0;         ///< 0: it was not.
    std::vector<uint32_t> families{};  ///< Those that come and go to which it writes.

    bool deletes() const { return kind == Kind::kDelete || kind == Kind::kDeleteRange; }
  };
  struct Group {
    /// By number - 1. What was there at first, nothing, is attempt 0.
    std::vector<Attempt> attempts;
    /// The newest that is known to have taken place.
    uint64_t floor = 0;
  };

  /// The keys of a group.
  struct Values {
    std::vector<bool> found = std::vector<bool>(kKeysPerGroup);
    std::vector<std::string> values = std::vector<std::string>(kKeysPerGroup);
    std::vector<bool> looked = std::vector<bool>(kKeysPerGroup, true);
    std::map<uint32_t, std::string> copies{};  ///< By family; empty: there is none.
    bool all = false;                          ///< `single` has been looked for.
    std::set<uint64_t> single{};               ///< Attempts whose own keys are there.
    std::string passing{};                     ///< Value of the key that a filter may remove.
  };

  static std::string KeyOf(size_t group, size_t i);
  static std::string SingleKeyOf(size_t group, uint64_t attempt);
  static std::string PassingKeyOf(size_t group);
  /// The number of the family that has this key of the group.
  size_t StandingFamilyOf(size_t group, size_t i) const;
  ColumnFamilyHandle* FamilyOf(const OpenDatabase& opened, size_t group, size_t i) const;
  static std::string ValueOf(size_t group, size_t i, uint64_t attempt, size_t bytes);
  /// What is to be read of the families that come and go.
  Extras ExtrasOf(const OpenDatabase& opened) const;
  /// Now and then a look is at one family only, as it is now: several are read by a snapshot.
  bool IsNarrow() { return ++looks_ % 2 == 0; }
  Status Fetch(const OpenDatabase& opened, const ReadOptions& options, size_t group,
               Values* values);
  Status FetchAll(const OpenDatabase& opened, const ReadOptions& options, uint64_t pauses_at,
                  const std::function<void()>& at_first, std::vector<Values>* values);
  /// What an iterator has shown of one of the families that are always there, or another one.
  void TakeKey(const std::string& key, const std::string& value, size_t family,
               std::vector<Values>* values);
  void TakeCopy(const std::string& key, const std::string& value, uint32_t family,
                std::vector<Values>* values);
  /// What `values` show, or a failure of the simulation.
  Sight Decode(size_t group, const Values& values);
  void DecodeList(size_t group, uint64_t attempt, const std::string& list);
  void DecodeCopies(const Sight& sight, const Values& values);
  /// Whether a family may have this copy (0: none) in a state in which the group is at `attempt`.
  bool CopyFits(size_t group, uint64_t attempt, uint32_t family, uint64_t copy) const;
  void DecodeSingles(const Sight& sight, const std::set<uint64_t>& single);
  void DecodePassing(const Sight& sight, const std::string& passing);
  void Check(const Sight& sight, uint64_t floor);
  bool Load(uint32_t owner, const OpenDatabase& opened, const ReadOptions& options, size_t group,
            Sight* sight, Status* status);
  /// The owner has answered a read that began at this time: perhaps it had been replaced by then.
  void JudgeReplaced(uint32_t owner, uint64_t begun_nanos);

  /// Whether another owner has had the database since, or may be about to.
  bool HasSuccessor(uint32_t owner) const;

  Scheduler* const scheduler_;
  bool one_family_ = false;
  bool filtered_ = false;
  FamilyModel families_;
  std::vector<Group> groups_;
  std::vector<OwnerState> owners_ = std::vector<OwnerState>(kMaxOwners);  ///< By number.
  uint64_t moment_ = 1;
  uint64_t looks_ = 0;
  uint64_t acknowledged_ = 0;
  uint64_t unresolved_ = 0;
  uint64_t reads_ = 0;
};

}  // namespace nacre::sim
