#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "nacre/status.h"
#include "pool/wire/messages.h"
#include "util/mutex.h"

namespace nacre::pool {

/// A database that this client has claimed.
///
/// Thread safety: the fields say which mutex they are under; the methods take it themselves.
struct OwnedDatabase {
  OwnedDatabase(std::string database_name, uint64_t database_id, uint64_t owner_epoch);
  ~OwnedDatabase();

  bool NeedsLostNodes() EXCLUDES(voting);
  /// Whether those of `instances` can vouch for it that there is no other owner: `Unavailable` if
  /// they are too few.
  Status CheckVouched(const std::set<uint64_t>& instances) EXCLUDES(voting);
  /// What was acknowledged last, under a version of its own, for a node that lacks it; epoch 0 if
  /// nothing was. `Busy` while another is written.
  Status NextRoot(control::Root* next) EXCLUDES(publishing);

  const std::string name;
  const uint64_t id;
  const uint64_t epoch;
  std::atomic<bool> fenced{false};              ///< A node said so. Release by Heed.
  Mutex publishing;                             ///< One root is written at a time.
  uint64_t version GUARDED_BY(publishing) = 0;  ///< Version of the root that was written last.
  /// What was acknowledged last.
  const std::unique_ptr<control::Root> root PT_GUARDED_BY(publishing);
  /// Members of the root that was acknowledged last; empty for a new database.
  std::vector<uint64_t> members GUARDED_BY(publishing);
  uint32_t founding_nodes GUARDED_BY(publishing) = 0;  ///< Until a first root is acknowledged.
  Mutex voting;                                        ///< Never held across a wait.
  /// Half of these, and while members change half of the next ones, have to say that there is no
  /// other owner.
  std::vector<uint64_t> voters GUARDED_BY(voting);
  std::vector<uint64_t> next_voters GUARDED_BY(voting);
  /// See Databases::SetNeedsLostNodes.
  std::function<bool()> needs_lost_nodes GUARDED_BY(voting);
};

}  // namespace nacre::pool
