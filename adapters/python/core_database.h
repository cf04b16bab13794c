#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "adapters/python/core_bytes.h"
#include "adapters/python/core_error.h"
#include "nacre/column_family.h"
#include "nacre/db.h"
#include "nacre/options.h"
#include "nacre/utilities/sharded_db.h"

// A database, its snapshots and its iterators for Python: any thread may use them, and close them
// at any moment, while others are in the middle of a call or hold iterators.
//
// Each call gives up the interpreter's lock first, then takes the database's shared lock. Closing
// takes that lock alone, ends what depends on the database, and then the database. A thread that
// waits for the database's lock never has the interpreter's, so the two cannot deadlock.

namespace nacre::python {

class Database;

/// Something of an open database that has to end before it.
class Dependent {
 public:
  virtual ~Dependent() = default;
  /// Called once, with the database's lock held alone.
  virtual void End(DB* db) = 0;
};

/// A snapshot, which is released with its last reference.
class Snapshot final : public Dependent {
 public:
  explicit Snapshot(std::shared_ptr<Database> database);
  ~Snapshot() override;
  void End(DB* db) override;
  /// Requires the database's lock. Throws if the database is closed.
  const nacre::Snapshot* Get() const;
  uint64_t sequence_number() const { return sequence_number_; }

 private:
  const std::shared_ptr<Database> database_;
  const nacre::Snapshot* snapshot_ = nullptr;
  uint64_t sequence_number_ = 0;
};

/// A column family's handle, which is released with its last reference.
class Family final : public Dependent {
 public:
  /// Requires the database's lock, unless no other thread knows the database yet.
  Family(std::shared_ptr<Database> database, ColumnFamilyHandle* handle);
  ~Family() override;
  void End(DB* db) override;
  /// Requires the lock of `database`. Throws if the family is another database's.
  ColumnFamilyHandle* Get(const Database* database) const;
  const std::string& name() const { return name_; }
  uint32_t id() const { return id_; }

 private:
  const std::shared_ptr<Database> database_;
  ColumnFamilyHandle* handle_;
  const std::string name_;
  const uint32_t id_;
};
using FamilyPtr = std::shared_ptr<Family>;

/// How a read is to be done. Null: the latest state, the default family.
struct ReadFrom {
  std::shared_ptr<Snapshot> snapshot;
  bool linearizable = false;
  FamilyPtr family;
};

/// An open database, or a closed one, whose calls throw.
class Database : public std::enable_shared_from_this<Database> {
 public:
  /// The last two are of owners, with transactions.
  enum class Kind { kOwner, kReadOnly, kSecondary, kOptimistic, kLocking };
  using Families = std::vector<ColumnFamilyDescriptor>;

  /// Opens the default family and `others`; answers handles of these.
  /// `sharded`: it is a keyspace, which owners open.
  static std::pair<std::shared_ptr<Database>, std::vector<FamilyPtr>> Open(
      const Options& options, const std::optional<ShardedOptions>& sharded, const std::string& name,
      Kind kind, const Families& others);
  Database(std::unique_ptr<DB> db, const Options& options, Kind kind)
      : options_(options), kind_(kind), db_(std::move(db)) {}
  /// Closes.
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Waits for calls that are under way. Idempotent.
  void Close();
  bool closed() const { return closing_.load(std::memory_order_acquire); }

  /// Calls `work` with the database, without the interpreter's lock. Throws if it is closed.
  template <typename Work>
  auto With(const Work& work) {
    pybind11::gil_scoped_release release;
    std::shared_lock<std::shared_mutex> lock = Enter();
    return work(db_.get());
  }
  /// The same without an answer but success.
  template <typename Work>
  void CheckWith(const Work& work) {
    With([&](DB* db) { Check(work(db)); });
  }

  /// None if it is not there.
  pybind11::object Get(const pybind11::handle& key, const ReadFrom& from);
  pybind11::list MultiGet(const pybind11::sequence& keys, const ReadFrom& from);
  bool Contains(const pybind11::handle& key, const ReadFrom& from);
  pybind11::object Property(const std::string& name, const FamilyPtr& family);
  std::optional<uint64_t> IntProperty(const std::string& name, const FamilyPtr& family);
  FamilyPtr CreateFamily(const ColumnFamilyOptions& options, const std::string& name);

  /// Requires the database's lock. Null, for the default family, stays null.
  ColumnFamilyHandle* HandleOf(const FamilyPtr& family) const {
    return family == nullptr ? nullptr : family->Get(this);
  }
  /// The options that it was opened with.
  const Options& options() const { return options_; }
  Kind kind() const { return kind_; }

  /// Takes the lock for calls that hold it longer than With does. The caller must not hold the
  /// interpreter's lock. Throws if it is closed.
  std::shared_lock<std::shared_mutex> Enter();
  void Add(Dependent* dependent);
  void Remove(Dependent* dependent);
  /// Serves destructors of dependents: calls `work` if the database is still open.
  template <typename Work>
  void IfOpen(const Work& work) {
    pybind11::gil_scoped_release release;
    std::shared_lock<std::shared_mutex> lock(mutex_);
    if (db_ != nullptr) work(db_.get());
  }

 private:
  const Options options_;
  const Kind kind_;
  std::atomic<bool> closing_{false};  ///< Keeps new calls from making Close wait for ever.
  std::mutex close_mutex_;            ///< Held by the thread that closes it; taken before `mutex_`.
  std::shared_mutex mutex_;
  std::unique_ptr<DB> db_;  ///< Null when it is closed. Changed under `mutex_` alone.
  std::mutex dependents_mutex_;
  std::set<Dependent*> dependents_;
};

}  // namespace nacre::python
