#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "db/version/table_handle.h"
#include "db/version/version.h"
#include "nacre/logger.h"
#include "nacre/status.h"
#include "util/mutex.h"

namespace nacre {

/// Loads the indexes of tables that were opened unread, with several threads: first of those tables
/// that reads have met, then of upper levels before deeper ones.
///
/// Thread safety: PrepareLookups from many threads at once; LoadAll from one.
class IndexLoader {
 public:
  struct Needs {
    std::string name;        ///< Name of the database, for the LOG.
    Logger* log = nullptr;   ///< May be null.
    PointTier::Kind tier{};  ///< Tier of a table when it is loaded first.
    size_t threads = 1;
    const std::atomic<bool>* closing = nullptr;  ///< Once set, LoadAll ends early.
    std::function<VersionList()> tables;         ///< Returns the present versions.
  };
  enum class Result : uint8_t { kNothingToDo, kAllLoaded, kSomeFailed };

  explicit IndexLoader(Needs needs) : needs_(std::move(needs)) {}

  /// Serves a lookup that met a table which is not loaded: reads the little that it lacks (see
  /// TableHandle), and has the rest loaded before that of other tables.
  Status PrepareLookups(const TableHandle& table) EXCLUDES(mutex_);
  /// Goes through the tables once. What fails is told of in the LOG the first time.
  Result LoadAll() EXCLUDES(mutex_);

 private:
  /// Bounds the tables that wait to be loaded first; the others have their turn in any case.
  static constexpr size_t kMostWanted = 4096;

  /// Those that a LoadAll goes through.
  struct Tables {
    std::vector<std::weak_ptr<const TableHandle>> in_order;
    std::unordered_map<uint64_t, size_t> places;  ///< Keyed by id.
  };

  Tables UnloadedTables() const;
  /// One thread of LoadAll.
  void Work(const Tables& tables) EXCLUDES(mutex_);
  /// The place of the next one; past the end: none is left.
  size_t Next(const Tables& tables) EXCLUDES(mutex_);

  const Needs needs_;
  Mutex mutex_;
  std::deque<uint64_t> wanted_ GUARDED_BY(mutex_);  ///< Ids.
  size_t next_ GUARDED_BY(mutex_) = 0;              ///< Index into the tables of LoadAll.
  bool all_ GUARDED_BY(mutex_) = true;
  std::set<uint64_t> failed_ GUARDED_BY(mutex_);  ///< Told of already.
};

}  // namespace nacre
