#include "pool/databases.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "pool/connect/node_requests.h"
#include "pool/connect/request_channel.h"
#include "pool/root_claims.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/extent_codec.h"
#include "pool/wire/manifest_image.h"
#include "pool/wire/protocol.h"
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

void TakeRoot(const control::Root& message, DatabaseRoot* root) {
  root->epoch = message.epoch();
  root->version = message.version();
  root->members.assign(message.members().begin(), message.members().end());
  root->members_change = message.old_members_size() > 0;
  root->value = message.value();
}

}  // namespace

std::shared_ptr<OwnedDatabase> Databases::Owned(uint64_t database_id) const {
  MutexLock lock(&mutex_);
  const auto it = owned_.find(database_id);
  return it == owned_.end() ? nullptr : it->second;
}

uint64_t Databases::EpochOf(uint64_t database_id) const {
  const auto database = Owned(database_id);
  return database == nullptr ? 0 : database->epoch;
}

Status Databases::Heed(uint64_t database_id, Status answer) {
  if (!answer.IsFenced()) return answer;
  if (const auto database = Owned(database_id); database != nullptr) {
    database->fenced.store(true, std::memory_order_release);
    any_fenced_.store(true, std::memory_order_relaxed);
  }
  return answer;
}

Status Databases::CheckNotOpenHere(const std::string& name) {
  MutexLock lock(&mutex_);
  for (const auto& [id, database] : owned_) {
    if (database->name != name) continue;
    return Status::Busy(fmt::format("database '{}' is open here already", name));
  }
  return Status::OK();
}

bool Databases::Fenced(uint64_t database_id) const {
  if (!any_fenced_.load(std::memory_order_relaxed)) return false;
  const auto database = Owned(database_id);
  return database != nullptr && database->fenced.load(std::memory_order_acquire);
}

Status Databases::Find(const std::string& name, DatabaseRoot* root) {
  *root = DatabaseRoot();
  NACRE_RETURN_IF_ERROR(CheckName(name));
  RootsSeen seen;
  NACRE_RETURN_IF_ERROR(ReadRoots(name, &seen));
  root->owned = seen.owned || !CheckNotOpenHere(name).ok();
  if (!seen.exists) return Status::NotFound(fmt::format("database '{}' does not exist", name));
  root->exists = true;
  root->database_id = seen.database_id;
  TakeRoot(seen.root, root);
  return Status::OK();
}

Status Databases::ReadRootCopies(const std::string& name, std::vector<RootCopy>* copies) {
  copies->clear();
  RootsSeen seen;
  NACRE_RETURN_IF_ERROR(ReadRoots(name, &seen));
  for (const RootAnswer& answer : seen.answers) {
    RootCopy& copy = copies->emplace_back();
    copy.node = answer.node;
    copy.instance_id = answer.instance_id;
    copy.root.exists = answer.state.exists();
    copy.root.database_id = answer.state.database_id();
    copy.root.owned = answer.state.owner() != 0;
    TakeRoot(answer.state.root(), &copy.root);
  }
  return Status::OK();
}

Status Databases::Open(const std::string& name, const OpenDatabaseOptions& options,
                       DatabaseLease* lease) {
  *lease = DatabaseLease();
  NACRE_RETURN_IF_ERROR(CheckName(name));
  const MutexLock membership(&membership_);
  NACRE_RETURN_IF_ERROR(CheckNotOpenHere(name));
  RootsSeen seen;
  NACRE_RETURN_IF_ERROR(ReadRoots(name, &seen));
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
    NACRE_RETURN_IF_ERROR(Remove(name, seen, options.take_over));
    seen = RootsSeen();
    NACRE_RETURN_IF_ERROR(ReadRoots(name, &seen));
    if (seen.exists || seen.remains) return OpenElsewhere(name);
  }
  control::ClaimDatabase claim;
  if (!seen.exists) NACRE_RETURN_IF_ERROR(DrawId(&seen.database_id));
  claim.set_name(name);
  claim.set_database_id(seen.database_id);
  claim.set_epoch(seen.epoch + 1);
  claim.set_take_over(options.take_over);
  NACRE_RETURN_IF_ERROR(OpenClaimed(claim, seen, lease));
  // Before the membership is let go, so before any node comes back.
  if (options.keep_lost_nodes) SetNeedsLostNodes(lease->database_id, [] { return true; });
  return Status::OK();
}

Status Databases::OpenClaimed(const control::ClaimDatabase& claim, const RootsSeen& seen,
                              DatabaseLease* lease) {
  // From here on a node whose lifeline ends has lost what this client has there.
  fabric_->monitor->AddDatabase();
  auto database = std::make_shared<OwnedDatabase>(claim.name(), claim.database_id(), claim.epoch());
  Claims claims;
  Status s = Claim(claim, seen, &claims);
  if (s.ok()) {
    // Whatever the last owner still writes is refused from here on.
    NACRE_POINT("claim.granted");
    s = Settle(claims, database.get());
    NACRE_POINT("claim.root-settled");
    for (const RootAnswer& granted : claims.granted) {
      if (s.ok()) s = fabric_->link(granted.node)->SetWriteKeys(granted.state.slabs());
    }
    if (!s.ok()) Release(claim, /*abandoned=*/false).IgnoreError();
  }
  if (!s.ok()) {
    fabric_->monitor->RemoveDatabase();
    return s.IsFenced() ? OpenElsewhere(claim.name()) : s;
  }

  for (const RootAnswer& granted : claims.granted) {
    const auto& offsets = granted.state.slabs().offsets();
    lease->slabs[granted.node].assign(offsets.begin(), offsets.end());
  }
  // A node that is not this client's now comes back as another one that is.
  for (int i = 0; i < fabric_->node_count(); ++i) {
    NodeLink* link = fabric_->link(static_cast<NodeId>(i));
    if (link->is_self() || link->state() == NodeLink::State::kLost) continue;
    if (lease->slabs.contains(link->id()) && link->alive()) continue;
    const Status why = link->CheckUp();
    fabric_->monitor->Lose(
        link, why.ok() ? Status::Unavailable(link->address() + ": did not answer a claim") : why);
    lease->slabs.erase(link->id());
  }
  lease->database_id = database->id;
  lease->epoch = database->epoch;
  if (const RootAnswer* newest = NewestRoot(claims.granted); newest != nullptr) {
    lease->root = newest->state.root().value();
    lease->existed = !lease->root.empty();
  }
  MutexLock lock(&mutex_);
  owned_[database->id] = std::move(database);
  return Status::OK();
}

void Databases::SetNeedsLostNodes(uint64_t database_id, std::function<bool()> needs) {
  const auto database = Owned(database_id);
  if (database == nullptr) return;
  MutexLock lock(&database->voting);
  database->needs_lost_nodes = std::move(needs);
}

Status Databases::ConfirmOwner(uint64_t database_id, std::chrono::nanoseconds timeout) {
  const auto database = Owned(database_id);
  if (database == nullptr) {
    return Status::InvalidArgument(fmt::format("database {:x} is not open here", database_id));
  }
  return Confirm(database.get(), Deadline::After(fabric_->context.clock, timeout));
}

Status Databases::Confirm(OwnedDatabase* database, Deadline deadline) {
  const auto enough = [&](const std::vector<const NodeRequests::Answer*>& so_far) {
    const auto is_fenced = [](const NodeRequests::Answer* answer) {
      return answer->status.IsFenced();
    };
    return std::any_of(so_far.begin(), so_far.end(), is_fenced) ||
           database->CheckVouched(InstancesThatAgree(*fabric_, so_far)).ok();
  };
  const std::vector<NodeRequests::Answer> answers = requests_->CallAll(
      fabric_->LiveNodes(),
      [&](NodeId, control::Request* request) {
        request->mutable_confirm_owner()->set_database_id(database->id);
      },
      deadline, NodeRequests::Late::kLeft, enough);
  std::vector<RootAnswer> confirmed;
  std::set<uint64_t> instances;
  for (const NodeRequests::Answer& answer : answers) {
    if (answer.status.IsFenced()) return Heed(database->id, answer.status);
    if (!answer.status.ok()) continue;
    confirmed.push_back({.node = answer.node,
                         .instance_id = fabric_->link(answer.node)->instance_id(),
                         .state = {}});
    instances.insert(confirmed.back().instance_id);
  }
  const Status vouched = database->CheckVouched(instances);
  if (vouched.ok()) return vouched;
  return Status::Unavailable(fmt::format("{} ({})", vouched.message(), WhyMissing(confirmed)));
}

Status Databases::PublishRoot(uint64_t database_id, const std::string& value) {
  const auto database = Owned(database_id);
  if (database == nullptr) {
    return Status::InvalidArgument(fmt::format("database {:x} is not open here", database_id));
  }
  return Publish(database.get(), value);
}

Status Databases::Leave(uint64_t database_id) {
  const MutexLock membership(&membership_);
  const auto database = Owned(database_id);
  if (database == nullptr) {
    return Status::InvalidArgument(fmt::format("database {:x} is not open here", database_id));
  }
  control::ClaimDatabase claim;
  claim.set_name(database->name);
  claim.set_database_id(database->id);
  claim.set_epoch(database->epoch);
  const Status status = Release(claim, /*abandoned=*/false);
  {
    MutexLock lock(&mutex_);
    owned_.erase(database_id);
  }
  fabric_->monitor->RemoveDatabase();
  return status;
}

Status Databases::Destroy(const std::string& name) {
  NACRE_RETURN_IF_ERROR(CheckName(name));
  const MutexLock membership(&membership_);
  NACRE_RETURN_IF_ERROR(CheckNotOpenHere(name));
  RootsSeen seen;
  NACRE_RETURN_IF_ERROR(ReadRoots(name, &seen));
  if (seen.database_id == 0) {
    return Status::NotFound(fmt::format("database '{}' does not exist", name));
  }
  if (seen.owned) return OpenElsewhere(name);
  return Remove(name, seen, /*take_over=*/false);
}

Status Databases::Remove(const std::string& name, const RootsSeen& seen, bool take_over) {
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
    // That it is destroyed is decided before the first node gives anything up: what some nodes
    // still have then cannot be taken for the database.
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
  const auto answers = requests_->CallUntilDone(nodes, [&](NodeId, control::Request* request) {
    NACRE_POINT("destroy.next-node");
    request->mutable_destroy_database()->set_database_id(claim.database_id());
    request->mutable_destroy_database()->set_epoch(claim.epoch());
  });
  NACRE_POINT("destroy.done");
  std::vector<RootAnswer> gone;
  Status failure;
  for (const NodeRequests::Answer& answer : answers) {
    if (answer.status.ok()) {
      gone.push_back({.node = answer.node,
                      .instance_id = fabric_->link(answer.node)->instance_id(),
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

Status Databases::ApplyImageUpdate(const ExtentAddr& copy, const ImageDelta& delta) {
  control::Request request;
  control::Reply reply;
  control::ApplyImageUpdate* const message = request.mutable_apply_image_update();
  EncodeExtent(copy, message->mutable_copy());
  message->set_database_id(delta.identity.database_id);
  message->set_epoch(delta.identity.epoch);
  message->set_generation(delta.identity.generation);
  message->set_base_version(delta.base_version);
  message->set_version(delta.version);
  message->set_slots_used(delta.slots_used);
  message->set_raw_bytes(delta.raw_bytes);
  message->set_crc(delta.crc);
  message->set_compressed(delta.compressed);
  return requests_->Call(static_cast<NodeId>(copy.start.node), &request, &reply);
}

Status Databases::BringTo(NodeLink* link, bool returns, Deadline deadline) {
  // A thread that opens a database meanwhile may wait for the monitor.
  if (!membership_.TryLock()) return Status::Busy("databases are being opened or closed");
  const Status status = BringAll(link, returns, deadline);
  membership_.Unlock();
  return status;
}

Status Databases::BringAll(NodeLink* link, bool returns, Deadline deadline) {
  std::map<uint64_t, std::shared_ptr<OwnedDatabase>> open;
  {
    MutexLock lock(&mutex_);
    open = owned_;
  }
  if (open.empty()) return Status::OK();
  std::unique_ptr<RequestChannel> channel;
  NACRE_RETURN_IF_ERROR(RequestChannel::Open(&fabric_->context, link, deadline, &channel));
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
    // The writer of a root was granted the database by more than half. It may have left it again,
    // and none of the nodes has seen this client since: nothing else would tell it.
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
    // A client that has it open there was superseded by this one.
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
      // No other client has had the database since: its slabs are as they were, under new keys.
      NACRE_RETURN_IF_ERROR(link->SetWriteKeys(slabs));
      continue;
    }
    // They are from a time when the node was in the pool: as a rule, what is in them is out of
    // date.
    if (slabs.offsets().empty()) continue;
    if (database->NeedsLostNodes()) {
      return Status::Busy(link->address() +
                          ": has the only copy of something, for the next owner of '" +
                          database->name + "'");
    }
    request.mutable_return_slabs()->set_database_id(id);
    *request.mutable_return_slabs()->mutable_offsets() = slabs.offsets();
    *request.mutable_return_slabs()->mutable_write_keys() = slabs.write_keys();
    NACRE_RETURN_IF_ERROR(call(request, &reply));
  }
  return Status::OK();
}

}  // namespace nacre::pool
