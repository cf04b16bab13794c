#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nacre/column_family.h"
#include "nacre/db.h"
#include "tests/support/sim/sim_scheduler.h"

namespace nacre::sim {

/// The last reference gives it back to the database.
using FamilyHandle = std::shared_ptr<ColumnFamilyHandle>;

/// Families of a database that is open, with the numbers of a FamilyModel.
using Extras = std::vector<std::pair<uint32_t, FamilyHandle>>;

/// A database as a client has it open. Two families are there from the first opening on: the
/// default one and `other`. The rest come and go. The database outlives this.
struct OpenDatabase {
  DB* db = nullptr;
  FamilyHandle other;
  Extras extras;
};

/// The families that come and go. Each has a number of its own, also where it has the name of one
/// that was dropped. What was acknowledged is so when the next owner opens the database; what was
/// not may be so, and stays as that owner finds it.
///
/// Thread safety: as Simulation.
class FamilyModel {
 public:
  static constexpr const char* kOther = "other";

  explicit FamilyModel(Scheduler* scheduler) : scheduler_(scheduler) {}

  /// A family is to be made, under a name that is free; false: none is. One that this owner has
  /// failed to make is tried again, and is the same.
  bool BeginCreate(uint32_t owner, uint32_t* number, std::string* name);
  void EndCreate(uint32_t number);  ///< It is acknowledged.
  void BeginDrop(uint32_t owner, uint32_t number);
  void EndDrop(uint32_t number);
  /// Whether an owner has begun to drop it: what it shows may lag behind from then on.
  bool dropped(uint32_t number) const { return families_[number].drop_begun; }

  /// Between two events.
  uint64_t moment() const { return moment_; }
  /// The number of the latest family with each name, without those that always exist. Fails the
  /// simulation for a name that was never given.
  std::vector<uint32_t> NumbersOf(const std::vector<std::string>& names);
  /// An owner has opened the database with these, for which it had looked from `begun` on.
  /// `quiescent(owner)`: nothing takes place any more that this owner has under way.
  void Opened(const std::vector<uint32_t>& numbers, uint64_t begun,
              const std::function<bool(uint32_t)>& quiescent);
  size_t made() const { return families_.size(); }

 private:
  struct Family {
    std::string name;
    uint32_t owner = 0;       ///< The owner that made it, or has begun to drop it.
    uint64_t there_from = 0;  ///< The moment; 0: it need not be there.
    bool drop_begun = false;
    uint64_t gone_from = 0;  ///< The moment; 0: it may be there.
  };

  void Judge(bool there, uint64_t begun, bool quiescent, Family* family);

  Scheduler* const scheduler_;
  std::vector<Family> families_;  ///< By number.
  uint64_t moment_ = 1;
};

/// The names of those that come and go; failures of DB::ListColumnFamilies.
Status ListExtraFamilies(const Options& options, const std::string& name,
                         std::vector<std::string>* names);
/// To open these, with options for all, and the two that there are always.
std::vector<ColumnFamilyDescriptor> DescriptorsOf(const std::vector<std::string>& names,
                                                  const Options& options);
/// `numbers`: of the families that come and go, which were named first; then comes the one that is
/// always there.
OpenDatabase TakeHandles(DB* db, const std::vector<uint32_t>& numbers,
                         const std::vector<ColumnFamilyHandle*>& handles);
FamilyHandle TakeHandle(DB* db, ColumnFamilyHandle* handle);

}  // namespace nacre::sim
