#include "memnode/server_databases.h"

#include <fmt/format.h>

#include <utility>

namespace nacre::memnode {
namespace {

/// Of what the node keeps for others without looking at it.
constexpr size_t kMaxKeptBytes = 64 << 10;

template <typename Message>
Status CheckSize(const char* what, const Message& message) {
  if (message.ByteSizeLong() <= kMaxKeptBytes) return Status::OK();
  return Status::InvalidArgument(fmt::format("{} of {} bytes", what, message.ByteSizeLong()));
}

}  // namespace

Status ServerDatabases::Acquire(uint64_t client, const std::string& name,
                                control::DatabaseState* state) {
  const auto [it, is_new] = databases_.try_emplace(name);
  Database& database = it->second;
  if (database.dropping) {
    return Status::Busy(fmt::format("database '{}' is being dropped, its owner is gone", name));
  }
  if (database.owner != 0) {
    return Status::Busy(fmt::format("database '{}' is open elsewhere", name));
  }
  database.owner = client;
  database.reported_nanos = 0;
  database.committed = false;
  database.created_by_owner = is_new;
  state->set_exists(!is_new);
  state->set_database_id(database.id);
  state->set_manifest_version(database.manifest_version);
  state->set_manifest(database.manifest);
  count_.store(databases_.size(), std::memory_order_relaxed);
  return Status::OK();
}

Status ServerDatabases::Owned(uint64_t client, const std::string& name, Map::iterator* database) {
  *database = databases_.find(name);
  if (*database != databases_.end() && (*database)->second.owner == client &&
      !(*database)->second.dropping) {
    return Status::OK();
  }
  return Status::InvalidArgument(fmt::format("database '{}' is not open here", name));
}

Status ServerDatabases::Commit(uint64_t client, const std::string& name, uint64_t database_id) {
  Map::iterator it;
  NACRE_RETURN_IF_ERROR(Owned(client, name, &it));
  Database& database = it->second;
  if (database_id == 0) return Status::InvalidArgument("database id 0");
  for (const auto& [other_name, other] : databases_) {
    if (other.id == database_id && other_name != name) {
      return Status::InvalidArgument(
          fmt::format("database id {:x} is that of '{}'", database_id, other_name));
    }
  }
  if (database.id != database_id) {
    // What this node holds under the name is not what the rest of the pool does.
    if (pins_.contains(database.id)) {
      return Status::Busy(fmt::format("database '{}' is still written to", name));
    }
    region_->ReturnAll(database.id);
    database.id = database_id;
    database.manifest.clear();
    database.manifest_version = 0;
  }
  database.committed = true;
  return Status::OK();
}

Status ServerDatabases::Release(uint64_t client, const std::string& name) {
  Map::iterator it;
  NACRE_RETURN_IF_ERROR(Owned(client, name, &it));
  if (it->second.created_by_owner) {
    Drop(it);
  } else {
    it->second.owner = 0;
    region_->RevokeAll(it->second.id);
  }
  return Status::OK();
}

Status ServerDatabases::Close(uint64_t client, const std::string& name, uint64_t manifest_version,
                              const std::string& manifest) {
  Map::iterator it;
  NACRE_RETURN_IF_ERROR(Owned(client, name, &it));
  Database& database = it->second;
  if (!database.committed) {
    return Status::InvalidArgument(fmt::format("database '{}' was not opened", name));
  }
  if (pins_.contains(database.id)) {
    return Status::Busy(fmt::format("database '{}' is still written to", name));
  }
  database.owner = 0;
  region_->RevokeAll(database.id);
  database.manifest_version = manifest_version;
  database.manifest = manifest;
  return Status::OK();
}

Status ServerDatabases::CheckOwner(uint64_t client, uint64_t database_id) const {
  for (const auto& [name, database] : databases_) {
    if (database.id == database_id && database.owner == client && database.committed &&
        !database.dropping) {
      return Status::OK();
    }
  }
  return Status::InvalidArgument(
      fmt::format("database {:x} is not open at this client", database_id));
}

bool ServerDatabases::IsOpen(uint64_t database_id) const {
  for (const auto& [name, database] : databases_) {
    if (database.id == database_id) {
      return database.owner != 0 && database.committed && !database.dropping;
    }
  }
  return false;
}

Status ServerDatabases::Report(uint64_t client, const control::ReportDatabase& report,
                               uint64_t now_nanos, control::Directions* directions) {
  NACRE_RETURN_IF_ERROR(CheckOwner(client, report.database_id()));
  NACRE_RETURN_IF_ERROR(CheckSize("a report", report));
  for (auto& [name, database] : databases_) {
    if (database.id != report.database_id()) continue;
    database.report = report;
    database.reported_nanos = now_nanos;
  }
  *directions = directions_;
  return Status::OK();
}

Status ServerDatabases::Direct(const control::Directions& wanted, control::Directions* directions) {
  NACRE_RETURN_IF_ERROR(CheckSize("directions", wanted));
  if (wanted.version() > directions_.version()) directions_ = wanted;
  *directions = directions_;
  return Status::OK();
}

void ServerDatabases::List(uint64_t now_nanos, control::DatabaseList* list) const {
  *list->mutable_directions() = directions_;
  for (const auto& [name, database] : databases_) {
    control::KnownDatabase* known = list->add_databases();
    known->set_name(name);
    known->set_database_id(database.id);
    known->set_open(database.owner != 0 && database.committed && !database.dropping);
    known->set_leased_bytes(region_->SlabsOf(database.id).size() * region_->slab_bytes());
    if (!known->open() || database.reported_nanos == 0) continue;
    *known->mutable_report() = database.report;
    known->set_report_age_nanos(now_nanos - database.reported_nanos);
  }
}

void ServerDatabases::Pin(uint64_t database_id) { ++pins_[database_id]; }

void ServerDatabases::Unpin(uint64_t database_id) {
  const auto pin = pins_.find(database_id);
  if (pin == pins_.end() || --pin->second > 0) return;
  pins_.erase(pin);
  for (auto it = databases_.begin(); it != databases_.end(); ++it) {
    if (it->second.id == database_id && it->second.dropping) {
      FinishDrop(it);
      return;
    }
  }
}

std::vector<uint64_t> ServerDatabases::OwnerGone(uint64_t client) {
  std::vector<uint64_t> dropped;
  for (auto it = databases_.begin(); it != databases_.end();) {
    const auto current = it++;
    Database& database = current->second;
    if (database.owner != client || database.dropping) continue;
    if (database.committed || database.created_by_owner) {
      if (database.id != 0) dropped.push_back(database.id);
      Drop(current);
    } else {
      // It was about to be opened and is as it was.
      database.owner = 0;
    }
  }
  return dropped;
}

void ServerDatabases::Drop(Map::iterator database) {
  database->second.dropping = true;
  if (!pins_.contains(database->second.id)) FinishDrop(database);
}

void ServerDatabases::FinishDrop(Map::iterator database) {
  region_->ReturnAll(database->second.id);
  databases_.erase(database);
  count_.store(databases_.size(), std::memory_order_relaxed);
}

}  // namespace nacre::memnode
