#pragma once

#include <pybind11/pybind11.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "adapters/python/core_database.h"
#include "nacre/iterator.h"

namespace nacre::python {

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

  Iterator(std::shared_ptr<Database> database, const ReadFrom& from, Range range);
  ~Iterator() override;
  void End(DB* db) override;

  /// Up to `count` further entries; none at the end. Throws why there are none, if not so.
  pybind11::list Fetch(size_t count, Part part);
  /// To the first entry that is not before `key` in the direction of travel.
  void Seek(const pybind11::handle& key);
  void Close();

 private:
  /// Calls `work` with the iterator, whoever else uses it waiting. Throws if it is closed.
  template <typename Work>
  void With(const Work& work);

  const std::shared_ptr<Database> database_;
  const Range range_;
  Slice start_;
  Slice stop_;
  std::mutex mutex_;  ///< Taken after the database's.
  std::unique_ptr<nacre::Iterator> iterator_;
};

}  // namespace nacre::python
