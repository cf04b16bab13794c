#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <memory>
#include <mutex>

#include "adapters/python/core_database.h"
#include "adapters/python/core_iterator.h"
#include "nacre/utilities/transaction.h"

namespace nacre::python {

/// A transaction of a database that was opened with transactions. It ends with the first commit or
/// rollback that succeeds; what is called then throws. Reads see its snapshot, if it has one, and
/// its own updates. The database rolls it back when it is
/// closed.
///
/// Thread safety: any number of threads, which take turns, with its iterators too.
class Transaction final : public Dependent {
 public:
  /// Times are milliseconds; -1: as the database has it, or never. Optimistic ones have no locks,
  /// and none of these.
  struct How {
    bool set_snapshot = false;
    bool deadlock_detect = false;
    int64_t lock_timeout = -1;
    int64_t expiration = -1;
  };

  /// `NotSupported` if the database has no transactions.
  Transaction(std::shared_ptr<Database> database, const WriteOptions& options, const How& how);
  ~Transaction() override;
  void End(DB* db) override;

  /// Calls `work` with the transaction, while other users wait; throws what that answers.
  template <typename Work>
  void CheckWith(const Work& work) {
    database_->With([&](DB*) {
      const std::lock_guard<std::recursive_mutex> lock(turn_->mutex);
      Check(work(Open()));
    });
  }

  /// Returns None if it is not there. With `update` no other transaction may change it until this
  /// one has ended; with `exclusive`, nor get it for update.
  pybind11::object Get(const pybind11::handle& key, const FamilyPtr& family, bool update,
                       bool exclusive);
  pybind11::list MultiGet(const pybind11::sequence& keys, const FamilyPtr& family);
  std::shared_ptr<Iterator> Iterate(const FamilyPtr& family, Iterator::Range range);
  void Commit();
  void Rollback();
  void RollbackToSavePoint();
  void SetSnapshot();
  bool ended() const;
  /// Requires the database's lock.
  ColumnFamilyHandle* HandleOf(const FamilyPtr& family) const {
    return database_->HandleOf(family);
  }

 private:
  /// Requires both locks. Throws if it has ended.
  nacre::Transaction* Open() const;
  /// Requires both locks. Uses the transaction's snapshot, if it has one.
  ReadOptions Reads() const;

  const std::shared_ptr<Database> database_;
  const std::shared_ptr<Turn> turn_ = std::make_shared<Turn>();
  std::unique_ptr<nacre::Transaction> transaction_;  ///< Null when it has ended.
};

/// Binds it, as Transaction.
void BindTransactions(pybind11::module_* module);

}  // namespace nacre::python
