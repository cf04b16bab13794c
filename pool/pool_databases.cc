#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "pool/pool_client.h"
#include "pool/pool_client_rep.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/root_register.h"
#include "util/draw_id.h"
#include "util/named_point.h"

namespace nacre::pool {
namespace {

Status CheckName(const std::string& name) {
  if (!name.empty() && name.size() <= kMaxDatabaseNameBytes) return Status::OK();
  return Status::InvalidArgument(fmt::format("a database name has 1 to {} bytes, this one {}",
                                             kMaxDatabaseNameBytes, name.size()));
}

Status OpenElsewhere(const std::string& name) {
  return Status::Busy(fmt::format("database '{}' is open elsewhere", name));
}

}  // namespace

std::shared_ptr<PoolClient::Rep::OwnedDatabase> PoolClient::Rep::Owned(uint64_t database_id) {
  MutexLock lock(&mutex);
  const auto it = databases.find(database_id);
  return it == databases.end() ? nullptr : it->second;
}

Status PoolClient::Rep::Heed(uint64_t database_id, Status answer) {
  if (!answer.IsFenced()) return answer;
  if (const auto database = Owned(database_id); database != nullptr) {
    database->fenced.store(true, std::memory_order_release);
    any_fenced.store(true, std::memory_order_release);
  }
  return answer;
}

Status PoolClient::Rep::CheckNotOpenHere(const std::string& name) {
  MutexLock lock(&mutex);
  for (const auto& [id, database] : databases) {
    if (database->name != name) continue;
    return Status::Busy(fmt::format("database '{}' is open here already", name));
  }
  return Status::OK();
}

bool PoolClient::Fenced(uint64_t database_id) const {
  if (!rep_->any_fenced.load(std::memory_order_relaxed)) return false;
  const auto database = rep_->Owned(database_id);
  return database != nullptr && database->fenced.load(std::memory_order_acquire);
}

Status PoolClient::FindDatabase(const std::string& name, DatabaseRoot* root) {
  *root = DatabaseRoot();
  NACRE_RETURN_IF_ERROR(CheckName(name));
  Rep::RootsSeen seen;
  NACRE_RETURN_IF_ERROR(rep_->ReadRoots(name, &seen));
  root->owned = seen.owned || !rep_->CheckNotOpenHere(name).ok();
  if (!seen.exists) return Status::NotFound(fmt::format("database '{}' does not exist", name));
  root->exists = true;
  root->database_id = seen.database_id;
  root->epoch = seen.root.epoch();
  root->version = seen.root.version();
  root->members.assign(seen.root.members().begin(), seen.root.members().end());
  root->members_change = seen.root.old_members_size() > 0;
  root->value = seen.root.value();
  return Status::OK();
}

Status PoolClient::OpenDatabase(const std::string& name, const OpenDatabaseOptions& options,
                                DatabaseLease* lease) {
  *lease = DatabaseLease();
  NACRE_RETURN_IF_ERROR(CheckName(name));
  const MutexLock membership(&rep_->membership);
  NACRE_RETURN_IF_ERROR(rep_->CheckNotOpenHere(name));
  Rep::RootsSeen seen;
  NACRE_RETURN_IF_ERROR(rep_->ReadRoots(name, &seen));
  NACRE_POINT("claim.roots-read");
  if (seen.owned && !options.take_over) return OpenElsewhere(name);
  if (!seen.exists && !options.create_if_missing) {
    return Status::InvalidArgument(
        fmt::format("database '{}' does not exist (create_if_missing is false)", name));
  }
  if (seen.exists && options.error_if_exists) {
    return Status::InvalidArgument(
        fmt::format("database '{}' exists (error_if_exists is true)", name));
  }
  if (seen.remains) {
    NACRE_RETURN_IF_ERROR(rep_->Destroy(name, seen, options.take_over));
    seen = Rep::RootsSeen();
    NACRE_RETURN_IF_ERROR(rep_->ReadRoots(name, &seen));
    if (seen.exists || seen.remains) return OpenElsewhere(name);
  }
  control::ClaimDatabase claim;
  if (!seen.exists) NACRE_RETURN_IF_ERROR(DrawId(&seen.database_id));
  claim.set_name(name);
  claim.set_database_id(seen.database_id);
  claim.set_epoch(seen.epoch + 1);
  claim.set_take_over(options.take_over);
  NACRE_RETURN_IF_ERROR(rep_->Open(claim, seen, lease));
  // Before the membership is let go, so before any node comes back.
  if (options.keep_lost_nodes) SetNeedsLostNodes(lease->database_id, [] { return true; });
  return Status::OK();
}

Status PoolClient::Rep::Open(const control::ClaimDatabase& claim, const RootsSeen& seen,
                             DatabaseLease* lease) {
  // From here on a node whose lifeline ends has lost what this client has there.
  fabric.monitor->AddDatabase();
  auto database = std::make_shared<OwnedDatabase>(claim.name(), claim.database_id(), claim.epoch());
  Claims claims;
  Status s = Claim(claim, seen, &claims);
  if (s.ok()) {
    // Whatever the last owner still writes is refused from here on.
    NACRE_POINT("claim.granted");
    s = Settle(claims, database.get());
    NACRE_POINT("claim.root-settled");
    for (const RootAnswer& granted : claims.granted) {
      if (s.ok()) s = fabric.link(granted.node)->SetWriteKeys(granted.state.slabs());
    }
    if (!s.ok()) Release(claim, /*abandoned=*/false).IgnoreError();
  }
  if (!s.ok()) {
    fabric.monitor->RemoveDatabase();
    return s.IsFenced() ? OpenElsewhere(claim.name()) : s;
  }

  for (const RootAnswer& granted : claims.granted) {
    const auto& offsets = granted.state.slabs().offsets();
    lease->slabs[granted.node].assign(offsets.begin(), offsets.end());
  }
  // A node that is not this client's now comes back as another one that is.
  for (int i = 0; i < fabric.node_count(); ++i) {
    NodeLink* link = fabric.link(static_cast<NodeId>(i));
    if (link->is_self() || link->state() == NodeLink::State::kLost) continue;
    if (lease->slabs.contains(link->id()) && link->alive()) continue;
    const Status why = link->CheckUp();
    fabric.monitor->Lose(
        link, why.ok() ? Status::Unavailable(link->address() + ": did not answer a claim") : why);
    lease->slabs.erase(link->id());
  }
  lease->database_id = database->id;
  lease->epoch = database->epoch;
  if (const RootAnswer* newest = NewestRoot(claims.granted); newest != nullptr) {
    lease->root = newest->state.root().value();
    lease->existed = !lease->root.empty();
  }
  MutexLock lock(&mutex);
  databases[database->id] = std::move(database);
  return Status::OK();
}

void PoolClient::SetNeedsLostNodes(uint64_t database_id, std::function<bool()> needs) {
  const auto database = rep_->Owned(database_id);
  if (database == nullptr) return;
  MutexLock lock(&database->voting);
  database->needs_lost_nodes = std::move(needs);
}

bool PoolClient::Rep::OwnedDatabase::NeedsLostNodes() {
  std::function<bool()> needs;
  {
    MutexLock lock(&voting);
    needs = needs_lost_nodes;
  }
  return needs != nullptr && needs();
}

Status PoolClient::Rep::OwnedDatabase::NextRoot(control::Root* next) {
  // Who publishes may be waiting for the monitor, which asks.
  if (!publishing.TryLock()) return Status::Busy("the root is being written");
  *next = root;
  if (next->epoch() != 0) {
    next->set_epoch(epoch);
    // Not that of a root that failed: some nodes may have it.
    next->set_version(++version);
  }
  publishing.Unlock();
  return Status::OK();
}

Status PoolClient::ConfirmOwner(uint64_t database_id, std::chrono::nanoseconds timeout) {
  const auto database = rep_->Owned(database_id);
  if (database == nullptr) {
    return Status::InvalidArgument(fmt::format("database {:x} is not open here", database_id));
  }
  return rep_->Confirm(database.get(), Deadline::After(clock(), timeout));
}

Status PoolClient::Rep::Confirm(OwnedDatabase* database, Deadline deadline) {
  const std::vector<NodeAnswer> answers = CallAll(
      LiveNodes(),
      [&](NodeId, control::Request* request) {
        request->mutable_confirm_owner()->set_database_id(database->id);
      },
      deadline);
  std::vector<RootAnswer> confirmed;
  std::set<uint64_t> instances;
  for (const NodeAnswer& answer : answers) {
    if (answer.status.IsFenced()) return Heed(database->id, answer.status);
    if (!answer.status.ok()) continue;
    confirmed.push_back(
        {.node = answer.node, .instance_id = fabric.link(answer.node)->instance_id(), .state = {}});
    instances.insert(confirmed.back().instance_id);
  }
  // A claim takes more than half of the members; so half of them vouch for it that there is none.
  MutexLock lock(&database->voting);
  for (const std::vector<uint64_t>* voters : {&database->voters, &database->next_voters}) {
    const auto vouch =
        static_cast<size_t>(std::count_if(voters->begin(), voters->end(), [&](uint64_t member) {
          return instances.contains(member);
        }));
    if (2 * vouch >= voters->size()) continue;
    return Status::Unavailable(fmt::format(
        "database '{}': {} of {} nodes that keep the root say that nobody has taken it over, at "
        "least half must ({})",
        database->name, vouch, voters->size(), WhyMissing(confirmed)));
  }
  return Status::OK();
}

Status PoolClient::PublishRoot(uint64_t database_id, const std::string& value) {
  const auto database = rep_->Owned(database_id);
  if (database == nullptr) {
    return Status::InvalidArgument(fmt::format("database {:x} is not open here", database_id));
  }
  return rep_->Publish(database.get(), value);
}

Status PoolClient::LeaveDatabase(uint64_t database_id) {
  const MutexLock membership(&rep_->membership);
  const auto database = rep_->Owned(database_id);
  if (database == nullptr) {
    return Status::InvalidArgument(fmt::format("database {:x} is not open here", database_id));
  }
  control::ClaimDatabase claim;
  claim.set_name(database->name);
  claim.set_database_id(database->id);
  claim.set_epoch(database->epoch);
  const Status status = rep_->Release(claim, /*abandoned=*/false);
  {
    MutexLock lock(&rep_->mutex);
    rep_->databases.erase(database_id);
  }
  rep_->fabric.monitor->RemoveDatabase();
  return status;
}

Status PoolClient::DestroyDatabase(const std::string& name) {
  NACRE_RETURN_IF_ERROR(CheckName(name));
  const MutexLock membership(&rep_->membership);
  NACRE_RETURN_IF_ERROR(rep_->CheckNotOpenHere(name));
  Rep::RootsSeen seen;
  NACRE_RETURN_IF_ERROR(rep_->ReadRoots(name, &seen));
  if (seen.database_id == 0) {
    return Status::NotFound(fmt::format("database '{}' does not exist", name));
  }
  if (seen.owned) return OpenElsewhere(name);
  return rep_->Destroy(name, seen, /*take_over=*/false);
}

Status PoolClient::Rep::Destroy(const std::string& name, const RootsSeen& seen, bool take_over) {
  control::ClaimDatabase claim;
  claim.set_name(name);
  claim.set_database_id(seen.database_id);
  claim.set_epoch(seen.epoch + 1);
  claim.set_take_over(take_over);
  Claims claims;
  NACRE_RETURN_IF_ERROR(Claim(claim, seen, &claims));
  NACRE_POINT("destroy.claimed");
  const RootAnswer* newest = NewestRoot(claims.granted);
  if (newest != nullptr) {
    // That it is no more is decided before the first node gives anything up: what some nodes still
    // have is then nothing that anybody could take for the database.
    OwnedDatabase database(name, claim.database_id(), claim.epoch());
    MutexLock lock(&database.publishing);
    control::Root end = newest->state.root();
    end.clear_value();
    if (Status s = WriteRoot(&database, std::move(end)); !s.ok()) {
      Release(claim, /*abandoned=*/false).IgnoreError();
      return s.IsFenced() ? OpenElsewhere(name) : s;
    }
    NACRE_POINT("destroy.root-cleared");
  }
  std::vector<NodeId> nodes;
  for (const RootAnswer& granted : claims.granted) nodes.push_back(granted.node);
  const auto answers = CallUntilDone(nodes, [&](NodeId, control::Request* request) {
    NACRE_POINT("destroy.next-node");
    request->mutable_destroy_database()->set_database_id(claim.database_id());
    request->mutable_destroy_database()->set_epoch(claim.epoch());
  });
  NACRE_POINT("destroy.done");
  std::vector<RootAnswer> gone;
  Status failure;
  for (const NodeAnswer& answer : answers) {
    if (answer.status.ok()) {
      gone.push_back({.node = answer.node,
                      .instance_id = fabric.link(answer.node)->instance_id(),
                      .state = {}});
    } else {
      failure = answer.status;
    }
  }
  const Status quorum =
      CheckReadQuorum(newest == nullptr ? nullptr : &newest->state.root(), gone, PoolSize());
  if (quorum.ok()) return quorum;
  Release(claim, /*abandoned=*/false).IgnoreError();
  return failure.ok() ? quorum : failure;
}

Status PoolClient::Rep::BringDatabases(NodeLink* link, bool returns, Deadline deadline) {
  // Who opens a database meanwhile may wait for the monitor.
  if (!membership.TryLock()) return Status::Busy("databases are being opened or closed");
  const Status status = BringAll(link, returns, deadline);
  membership.Unlock();
  return status;
}

Status PoolClient::Rep::BringAll(NodeLink* link, bool returns, Deadline deadline) {
  std::map<uint64_t, std::shared_ptr<OwnedDatabase>> open;
  {
    MutexLock lock(&mutex);
    open = databases;
  }
  if (open.empty()) return Status::OK();
  std::unique_ptr<RequestChannel> channel;
  NACRE_RETURN_IF_ERROR(RequestChannel::Open(&fabric.context, link, deadline, &channel));
  const auto call = [&](control::Request request, control::Reply* reply) -> Status {
    NACRE_RETURN_IF_ERROR(channel->Call(&request, deadline, reply));
    return GetStatus(*reply).WithContext(link->address());
  };
  for (const auto& [id, database] : open) {
    if (database->fenced.load(std::memory_order_acquire)) continue;
    control::Request request;
    control::Reply reply;
    request.mutable_read_root()->set_name(database->name);
    request.mutable_read_root()->set_database_id(id);
    NACRE_RETURN_IF_ERROR(call(request, &reply));
    if (reply.database().destroyed()) {
      return Heed(id, Status::Fenced(fmt::format("{}: database '{}' was destroyed", link->address(),
                                                 database->name)));
    }
    const bool known = reply.database().exists() && reply.database().database_id() == id;
    // Who wrote a root was granted the database by more than half. He may have left it again, and
    // none of the nodes has seen this client since: nobody else would tell it.
    if (known && reply.database().root().epoch() > database->epoch) {
      return Heed(id, Status::Fenced(fmt::format("{}: database '{}' was taken over",
                                                 link->address(), database->name)));
    }
    if (returns && !known) {
      return Status::NotFound(link->address() + ": has dropped what it held");
    }
    if (!known && reply.database().root().epoch() != 0) {
      // Whether that one was destroyed the next opening finds out.
      return Status::Busy(
          fmt::format("{}: has another database '{}'", link->address(), database->name));
    }
    request.mutable_claim_database()->set_name(database->name);
    request.mutable_claim_database()->set_database_id(id);
    request.mutable_claim_database()->set_epoch(database->epoch);
    // Whoever has it open there was superseded by this client.
    request.mutable_claim_database()->set_take_over(true);
    request.mutable_claim_database()->set_granted(true);
    NACRE_RETURN_IF_ERROR(call(request, &reply));
    NACRE_POINT("membership.node-claimed");
    const control::Slabs slabs = reply.database().slabs();
    // A node without a root would drop what this client puts there as soon as it is gone.
    NACRE_RETURN_IF_ERROR(database->NextRoot(request.mutable_write_root()->mutable_root()));
    request.mutable_write_root()->set_database_id(id);
    if (request.write_root().root().epoch() != 0) NACRE_RETURN_IF_ERROR(call(request, &reply));
    NACRE_POINT("membership.root-brought");
    if (returns) {
      // Nobody has had the database since: its slabs are as they were, under new keys.
      NACRE_RETURN_IF_ERROR(link->SetWriteKeys(slabs));
      continue;
    }
    // Of a time when the node was in the pool: what is in them is out of date, as a rule.
    if (slabs.offsets().empty()) continue;
    if (database->NeedsLostNodes()) {
      return Status::Busy(link->address() +
                          ": has the only copy of something, for whoever opens '" + database->name +
                          "' next");
    }
    request.mutable_return_slabs()->set_database_id(id);
    *request.mutable_return_slabs()->mutable_offsets() = slabs.offsets();
    *request.mutable_return_slabs()->mutable_write_keys() = slabs.write_keys();
    NACRE_RETURN_IF_ERROR(call(request, &reply));
  }
  return Status::OK();
}

}  // namespace nacre::pool
