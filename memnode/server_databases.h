#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "memnode/control.pb.h"
#include "memnode/server_region.h"
#include "nacre/status.h"

namespace nacre::memnode {

/// The databases that one node knows: who owns each, and the manifest that the last owner left.
///
/// A database whose owner is gone without closing it is dropped: its slabs are freed as soon as
/// nobody writes into them any more, that is when no pin is left. Until then its name is Busy.
///
/// Thread safety: none (the node's I/O thread); `count` from any thread.
class ServerDatabases {
 public:
  explicit ServerDatabases(ServerRegion* region) : region_(region) {}

  Status Acquire(uint64_t client, const std::string& name, control::DatabaseState* state);
  Status Commit(uint64_t client, const std::string& name, uint64_t database_id);
  Status Release(uint64_t client, const std::string& name);
  Status Close(uint64_t client, const std::string& name, uint64_t manifest_version,
               const std::string& manifest);

  /// OK if `client` has the database open; else `InvalidArgument`.
  Status CheckOwner(uint64_t client, uint64_t database_id) const;
  /// Whether somebody has it open.
  bool IsOpen(uint64_t database_id) const;

  /// Keeps the report of the database's owner, and fills in what is wanted of it.
  Status Report(uint64_t client, const control::ReportDatabase& report, uint64_t now_nanos,
                control::Directions* directions);
  /// Takes `wanted` over if it is later than what there is, and fills in what there is then.
  Status Direct(const control::Directions& wanted, control::Directions* directions);
  void List(uint64_t now_nanos, control::DatabaseList* list) const;

  /// While pinned, a database keeps its slabs.
  void Pin(uint64_t database_id);
  void Unpin(uint64_t database_id);

  /// The ids of the databases that `client` had open; they are being dropped.
  std::vector<uint64_t> OwnerGone(uint64_t client);

  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Database {
    uint64_t id = 0;     ///< 0: acquired for the first time, not committed.
    uint64_t owner = 0;  ///< Client; 0: closed.
    bool committed = false;
    bool created_by_owner = false;
    bool dropping = false;
    uint64_t manifest_version = 0;
    std::string manifest;
    control::ReportDatabase report;  ///< Of the present owner.
    uint64_t reported_nanos = 0;     ///< 0: none yet.
  };
  using Map = std::map<std::string, Database>;

  Status Owned(uint64_t client, const std::string& name, Map::iterator* database);
  void Drop(Map::iterator database);
  void FinishDrop(Map::iterator database);

  ServerRegion* const region_;
  Map databases_;
  std::map<uint64_t, int> pins_;  ///< By database id.
  control::Directions directions_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace nacre::memnode
