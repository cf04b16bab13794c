#pragma once

#include <pybind11/pybind11.h>

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "adapters/python/core_database.h"
#include "nacre/iterator.h"

namespace nacre::python {

class Iterator;

/// What takes turns with other things of a transaction, or an iterator with itself alone.
struct Turn {
  /// Taken after the database's. Recursive: a merge operator in Python that is called by its holder
  /// may have the interpreter collect another iterator.
  std::recursive_mutex mutex;
  std::set<Iterator*> iterators;  ///< Those that are open.

  /// Ends the iterators; later calls to them raise ClosedError. Requires the mutex.
  void CutIterators();
};

/// Goes over the keys of a range in one direction. Entries are fetched many at a time, so that the
/// interpreter's lock is not given up and taken for each one.
/// Thread safety: any number of threads, which take turns.
class Iterator final : public Dependent {
 public:
  struct Range {
    std::optional<std::string> start;  ///< Inclusive.
    std::optional<std::string> stop;   ///< Exclusive.
    bool reverse = false;
  };
  /// Which parts of an entry are wanted.
  enum class Part { kKeys, kValues, kItems };

  /// Makes the iterator, with the database's lock and the turn's.
  using Maker = std::function<std::unique_ptr<nacre::Iterator>(DB* db, const ReadOptions& options)>;
  /// Goes over what `make` answers; takes turns with what has the same `turn`.
  Iterator(std::shared_ptr<Database> database, const ReadFrom& from, Range range,
           std::shared_ptr<Turn> turn, const Maker& make);
  ~Iterator() override;
  void End(DB* db) override;

  /// Up to `count` further entries; none at the end. Throws why there are none, if not so.
  pybind11::list Fetch(size_t count, Part part);
  /// Moves to the first entry that is not before `key` in the direction of travel.
  void Seek(const pybind11::handle& key);
  void Close();

 private:
  /// Calls `work` with the iterator, while other users wait. Throws if it is closed.
  template <typename Work>
  void With(const Work& work);

  const std::shared_ptr<Database> database_;
  const Range range_;
  Slice start_;
  Slice stop_;
  const std::shared_ptr<Turn> turn_;
  std::unique_ptr<nacre::Iterator> iterator_;  ///< Guarded by the turn's mutex.

  friend struct Turn;
};

}  // namespace nacre::python
