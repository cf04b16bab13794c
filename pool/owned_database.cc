#include "pool/owned_database.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "pool/wire/control.pb.h"

namespace nacre::pool {

OwnedDatabase::OwnedDatabase(std::string database_name, uint64_t database_id, uint64_t owner_epoch)
    : name(std::move(database_name)),
      id(database_id),
      epoch(owner_epoch),
      root(std::make_unique<control::Root>()) {}

OwnedDatabase::~OwnedDatabase() = default;

bool OwnedDatabase::NeedsLostNodes() {
  std::function<bool()> needs;
  {
    MutexLock lock(&voting);
    needs = needs_lost_nodes;
  }
  return needs != nullptr && needs();
}

Status OwnedDatabase::CheckVouched(const std::set<uint64_t>& instances) {
  MutexLock lock(&voting);
  // A claim takes more than half of the members; so half of them vouch for it that there is none.
  for (const std::vector<uint64_t>* all : {&voters, &next_voters}) {
    const auto vouch = static_cast<size_t>(std::count_if(
        all->begin(), all->end(), [&](uint64_t member) { return instances.contains(member); }));
    if (2 * vouch >= all->size()) continue;
    return Status::Unavailable(fmt::format(
        "database '{}': {} of {} nodes that keep the root say that nobody has taken it over, at "
        "least half must",
        name, vouch, all->size()));
  }
  return Status::OK();
}

Status OwnedDatabase::NextRoot(control::Root* next) {
  // A publishing thread may be waiting for the monitor, which asks.
  if (!publishing.TryLock()) return Status::Busy("the root is being written");
  *next = *root;
  if (next->epoch() != 0) {
    next->set_epoch(epoch);
    // Not that of a root that failed: some nodes may have it.
    next->set_version(++version);
  }
  publishing.Unlock();
  return Status::OK();
}

}  // namespace nacre::pool
