#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "ctl/top/pool_sample.h"

namespace nacre::ctl {

/// Something that has changed in a pool.
struct PoolEvent {
  enum class Kind : uint8_t {
    kGood,     ///< Something is well again.
    kNote,     ///< Something is other than it was.
    kStrange,  ///< Something is not as it should be.
    kBad,      ///< Something does not work.
  };
  int64_t milliseconds = 0;  ///< Since 1970.
  Kind kind = Kind::kNote;
  std::string text;
};

/// What has changed from one sample of a pool to the next. The first sample of a node or a database
/// is none, save where it is not well.
///
/// Thread safety: none.
class PoolEvents {
 public:
  /// `capacity`: so many of the latest events are kept.
  explicit PoolEvents(size_t capacity) : capacity_(capacity) {}

  void Compare(const PoolSample& sample, int64_t milliseconds);
  /// `epoch`: of the database's owner, as its root has it.
  void CompareEpoch(const std::string& database, uint64_t database_id, uint64_t epoch,
                    int64_t milliseconds);
  /// The latest last.
  const std::deque<PoolEvent>& events() const { return events_; }
  /// The same as a list of JSON.
  std::string Json() const;

 private:
  struct Node {
    std::string state;
    uint64_t instance_id = 0;
    uint64_t uptime_nanos = 0;
  };
  struct Database {
    bool open = false;
    uint64_t database_id = 0;
    std::string repair;
    std::string notice;
    uint64_t slow_operations = 0;
  };
  struct Owner {
    uint64_t database_id = 0;
    uint64_t epoch = 0;
  };

  void CompareNode(const NodeReport& node, bool draining, int64_t milliseconds);
  void CompareDatabase(const pool::KnownDatabase& database, int64_t milliseconds);
  void Add(int64_t milliseconds, PoolEvent::Kind kind, std::string text);

  const size_t capacity_;
  std::deque<PoolEvent> events_;
  std::map<std::string, Node> nodes_;          ///< By address.
  std::map<std::string, Database> databases_;  ///< By name.
  std::map<std::string, Owner> owners_;        ///< By name of the database.
};

}  // namespace nacre::ctl
