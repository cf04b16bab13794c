#include "memnode/server_databases.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "pool/wire/control.pb.h"
#include "pool/wire/database_report.h"
#include "pool/wire/manifest_image.h"
#include "pool/wire/protocol.h"
#include "pool/wire/rights.h"
#include "pool/wire/root_register.h"
#include "pool/wire/versions.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre::pool {
namespace {

/// Bounds what the node keeps for others without looking at it.
constexpr size_t kMaxKeptBytes = 64 << 10;
/// Bounds the destroyed databases that are remembered. Only owners that were cut off since ask for
/// one.
constexpr size_t kMaxDestroyed = 256;
/// Readers of one database's log; more are refused, so that none of those that there are is lost.
constexpr size_t kMaxLogReaders = 64;

uint64_t LeaseNanos() {
  return static_cast<uint64_t>(std::chrono::nanoseconds(kOwnerLease).count());
}

template <typename Message>
Status CheckSize(const char* what, const Message& message) {
  if (message.ByteSizeLong() <= kMaxKeptBytes) return Status::OK();
  return Status::InvalidArgument(fmt::format("{} of {} bytes", what, message.ByteSizeLong()));
}

}  // namespace

Status ServerDatabases::Keep(bool clean, const control::KeptRedo* redo) {
  if (file_ == nullptr) return Status::OK();
  control::KeptState state;
  for (const auto& [name, database] : databases_) {
    if (database.root.epoch() == 0 || database.dropping) continue;
    control::KeptDatabase* kept = state.add_databases();
    kept->set_name(name);
    kept->set_database_id(database.id);
    kept->set_epoch(database.epoch);
    kept->set_epoch_before(database.epoch_before);
    kept->set_claimant(database.claimant);
    kept->set_ready(database.ready);
    *kept->mutable_root() = database.root;
  }
  for (const auto& [id, epoch] : destroyed_) {
    control::DestroyedDatabase* destroyed = state.add_destroyed();
    destroyed->set_database_id(id);
    destroyed->set_epoch(epoch);
  }
  *state.mutable_directions() = directions_;
  state.set_clean(clean);
  if (redo != nullptr) *state.mutable_redo() = *redo;
  return file_->Save(state.SerializeAsString());
}

Status ServerDatabases::TakeKept(uint64_t now_nanos, bool* clean) {
  const Slice bytes = file_->state();
  control::KeptState state;
  if (!state.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Status::Corruption("the state in the region file is none of a node");
  }
  *clean = state.clean();
  std::set<uint64_t> ids;
  for (const control::KeptDatabase& kept : state.databases()) {
    const auto it = databases_.try_emplace(kept.name()).first;
    SetId(it, kept.database_id());
    Database& database = it->second;
    database.epoch = kept.epoch();
    database.epoch_before = kept.epoch_before();
    database.claimant = kept.claimant();
    database.root = kept.root();
    // If it is ready, the claimant is the client that was confirmed last; otherwise that is
    // unknown.
    if (kept.ready()) database.leaseholder = kept.claimant();
    if (kept.claimant() != 0) database.lease_until_nanos = now_nanos + LeaseNanos();
    ids.insert(kept.database_id());
  }
  for (const control::DestroyedDatabase& destroyed : state.destroyed()) {
    destroyed_.emplace_back(destroyed.database_id(), destroyed.epoch());
  }
  const FeatureSet unknown = state.directions().features_on() & ~features_;
  if (unknown != 0) {
    return Status::NotSupported(fmt::format(
        "it is of a pool in which {} is on, which this release does not know", ToString(unknown)));
  }
  directions_ = state.directions();
  directed_nanos_ = now_nanos;
  features_on_.store(directions_.features_on(), std::memory_order_relaxed);
  count_.store(databases_.size(), std::memory_order_relaxed);
  region_->ReturnAllBut(ids);
  if (state.has_redo()) NACRE_RETURN_IF_ERROR(Redo(state.redo()));
  return Keep();
}

Status ServerDatabases::KeepRedo(uint64_t database_id, const ExtentAddr& copy, std::string redo) {
  control::KeptRedo kept;
  kept.set_database_id(database_id);
  kept.set_offset(copy.start.offset);
  kept.set_length(copy.length);
  kept.set_redo(std::move(redo));
  return Keep(/*clean=*/false, &kept);
}

Status ServerDatabases::RedoDone() { return Keep(); }

Status ServerDatabases::Redo(const control::KeptRedo& redo) const {
  if (!region_->Owns(redo.database_id(), redo.offset(), redo.length())) return Status::OK();
  return RedoImageUpdate(redo.redo(), region_->data() + redo.offset(), redo.length());
}

void ServerDatabases::Read(const std::string& name, control::DatabaseState* state) const {
  const auto it = databases_.find(name);
  if (it == databases_.end()) return;
  const Database& database = it->second;
  state->set_exists(true);
  state->set_database_id(database.id);
  state->set_epoch(database.epoch);
  if (database.alive) state->set_owner(database.claimant);
  *state->mutable_root() = database.root;
}

const std::string* ServerDatabases::NameOf(uint64_t database_id) const {
  const auto it = Find(database_id);
  return it == databases_.end() ? nullptr : &it->first;
}

std::set<uint64_t> ServerDatabases::IdsLike(const std::string& pattern) const {
  std::set<uint64_t> ids;
  for (const auto& [name, database] : databases_) {
    if (MatchesDatabase(pattern, name)) ids.insert(database.id);
  }
  return ids;
}

uint64_t ServerDatabases::OwnerOf(const std::string& name) const {
  const auto it = databases_.find(name);
  return it == databases_.end() || !it->second.alive ? 0 : it->second.claimant;
}

Status ServerDatabases::CheckClaim(uint64_t client, const control::ClaimDatabase& request) const {
  const std::string& name = request.name();
  if (name.empty() || name.size() > kMaxDatabaseNameBytes || request.database_id() == 0 ||
      request.epoch() == 0) {
    return Status::InvalidArgument("a claim without name, id or epoch");
  }
  if (request.epoch() <= DestroyedIn(request.database_id())) {
    return Status::Fenced(fmt::format("database '{}' was destroyed", name));
  }
  const auto same_id = Find(request.database_id());
  if (same_id != databases_.end() && same_id->first != name) {
    return Status::InvalidArgument(
        fmt::format("database id {:x} is that of '{}'", request.database_id(), same_id->first));
  }
  const auto it = databases_.find(name);
  if (it == databases_.end()) return Status::OK();
  const Database& database = it->second;
  if (database.dropping) {
    return Status::Busy(fmt::format("database '{}' is being dropped, its owner is gone", name));
  }
  if (database.alive && database.claimant != client && !request.take_over()) {
    return Status::Busy(fmt::format("database '{}' is open elsewhere", name));
  }
  // Another claim of the epoch that more than half have granted to this client was in vain, and
  // came here late. Its client has never written a root.
  const bool over_one_in_vain =
      request.granted() && database.root.epoch() < request.epoch() && database.claimant != client;
  const bool again =
      database.epoch == request.epoch() && (database.claimant == client || over_one_in_vain);
  if (!again && request.epoch() <= database.epoch &&
      !NACRE_PLANTED_BUG("fence.claim-of-an-old-epoch-granted")) {
    return Status::Busy(fmt::format("database '{}' was just opened elsewhere, with epoch {}", name,
                                    database.epoch));
  }
  return Status::OK();
}

Status ServerDatabases::Claim(uint64_t client, const control::ClaimDatabase& request,
                              uint64_t now_nanos, control::DatabaseState* state) {
  NACRE_RETURN_IF_ERROR(CheckClaim(client, request));
  Status claimed = MakeClaim(client, request, now_nanos, state);
  // This holds even if the claim is to be repeated: the owner before is fenced from here on.
  NACRE_RETURN_IF_ERROR(Keep());
  NACRE_POINT("node.claim-granted");
  return claimed;
}

Status ServerDatabases::MakeClaim(uint64_t client, const control::ClaimDatabase& request,
                                  uint64_t now_nanos, control::DatabaseState* state) {
  const auto [it, is_new] = databases_.try_emplace(request.name());
  Database& database = it->second;
  NACRE_POINT("node.claim");
  if (is_new) {
    SetId(it, request.database_id());
    count_.store(databases_.size(), std::memory_order_relaxed);
  }
  if (database.epoch != request.epoch() || database.claimant != client) {
    if (database.alive && database.claimant != client) {
      fenced_.emplace(database.claimant, database.id);
    }
    if (database.epoch != request.epoch()) database.epoch_before = database.epoch;
    database.epoch = request.epoch();
    database.ready = false;
  }
  database.claimant = client;
  database.alive = true;
  if (!database.ready) {
    Fence(&database);
    NACRE_POINT("node.keys-revoked");
    if (pins_.contains(database.id)) {
      return Status::TryAgain(fmt::format("database '{}' is still written to", request.name()));
    }
    const bool may_be_read =
        database.leaseholder != client && now_nanos < database.lease_until_nanos;
    if (may_be_read && !NACRE_PLANTED_BUG("fence.lease-ignored")) {
      return Status::TryAgain(fmt::format("database '{}' may still be read", request.name()));
    }
    if (database.id != request.database_id()) {
      // What this node holds under the name is not what the rest of the pool does.
      region_->ReturnAll(database.id);
      SetId(it, request.database_id());
      database.root.Clear();
    }
    database.ready = true;
  }
  fenced_.erase({client, database.id});
  NACRE_RETURN_IF_ERROR(region_->GrantAll(database.id));
  Read(request.name(), state);
  return Status::OK();
}

void ServerDatabases::Fence(Database* database) {
  database->reported_nanos = 0;
  if (!NACRE_PLANTED_BUG("fence.keys-not-revoked")) region_->RevokeAll(database->id);
  abort_jobs_(database->id);
}

Status ServerDatabases::Claimed(uint64_t client, uint64_t database_id, uint64_t epoch,
                                Map::iterator* database) {
  *database = Find(database_id);
  if (*database == databases_.end() || (*database)->second.claimant != client) {
    return CheckOwner(client, database_id);
  }
  if ((*database)->second.alive && (*database)->second.epoch == epoch) return Status::OK();
  return Status::Fenced(fmt::format("database {:x} has another owner", database_id));
}

Status ServerDatabases::Write(uint64_t client, const control::WriteRoot& request) {
  if (request.root().value().size() > kMaxRootBytes) {
    return Status::InvalidArgument(
        fmt::format("a root of {} bytes", request.root().value().size()));
  }
  Map::iterator it;
  NACRE_RETURN_IF_ERROR(Claimed(client, request.database_id(), request.root().epoch(), &it));
  Database& database = it->second;
  const control::Root& root = request.root();
  if (!database.ready || root.epoch() < database.root.epoch() ||
      (root.epoch() == database.root.epoch() && root.version() <= database.root.version())) {
    return Status::Fenced(fmt::format("database {:x} has a later root", request.database_id()));
  }
  NACRE_POINT("node.root-accepted");
  control::Root before = std::exchange(database.root, root);
  Status kept = Keep();
  if (!kept.ok()) database.root = std::move(before);
  NACRE_POINT("node.root-stored");
  return kept;
}

Status ServerDatabases::Release(uint64_t client, const control::ReleaseDatabase& request) {
  Map::iterator it;
  NACRE_RETURN_IF_ERROR(Claimed(client, request.database_id(), request.epoch(), &it));
  Database& database = it->second;
  if (!request.abandoned() && pins_.contains(database.id)) {
    return Status::TryAgain(fmt::format("database '{}' is still written to", it->first));
  }
  Fence(&database);
  database.claimant = 0;
  database.alive = false;
  // A former owner's lease stays; a claim in vain does not end it.
  if (database.leaseholder == client) database.lease_until_nanos = 0;
  database.ready = false;
  if (request.abandoned()) database.epoch = database.epoch_before;
  if (database.root.epoch() == 0) Drop(it);
  Status kept = Keep();
  NACRE_POINT("node.released");
  return kept;
}

Status ServerDatabases::Destroy(uint64_t client, const control::DestroyDatabase& request) {
  // A client that asks again has not heard that it was done.
  const uint64_t destroyed_in = DestroyedIn(request.database_id());
  if (destroyed_in != 0 && destroyed_in == request.epoch()) return Status::OK();
  Map::iterator it;
  NACRE_RETURN_IF_ERROR(Claimed(client, request.database_id(), request.epoch(), &it));
  Fence(&it->second);
  if (pins_.contains(it->second.id)) {
    return Status::TryAgain(fmt::format("database '{}' is still written to", it->first));
  }
  NACRE_POINT("node.destroy");
  it->second.dropping = true;
  NoteDestroyed(it->second);
  // What is not remembered any more has no slabs: never the other way around.
  Status kept = Keep();
  FinishDrop(it);
  NACRE_POINT("node.destroyed");
  return kept;
}

void ServerDatabases::SetId(Map::iterator database, uint64_t database_id) {
  by_id_.erase(database->second.id);
  database->second.id = database_id;
  database->second.log_readers.clear();
  by_id_.insert_or_assign(database_id, database);
}

ServerDatabases::Map::iterator ServerDatabases::Find(uint64_t database_id) {
  const auto found = by_id_.find(database_id);
  return found == by_id_.end() ? databases_.end() : found->second;
}

ServerDatabases::Map::const_iterator ServerDatabases::Find(uint64_t database_id) const {
  const auto found = by_id_.find(database_id);
  return found == by_id_.end() ? databases_.end() : Map::const_iterator(found->second);
}

Status ServerDatabases::Confirm(uint64_t client, uint64_t database_id, uint64_t now_nanos) {
  NACRE_RETURN_IF_ERROR(CheckOwner(client, database_id));
  Database& database = Find(database_id)->second;
  database.leaseholder = client;
  database.lease_until_nanos = now_nanos + LeaseNanos();
  return Status::OK();
}

Status ServerDatabases::CheckOwner(uint64_t client, uint64_t database_id) const {
  const auto it = Find(database_id);
  if (it != databases_.end() && it->second.claimant == client && it->second.open()) {
    return Status::OK();
  }
  if (fenced_.contains({client, database_id})) {
    return Status::Fenced(fmt::format("database {:x} was taken over", database_id));
  }
  if (Destroyed(database_id)) {
    return Status::Fenced(fmt::format("database {:x} was destroyed", database_id));
  }
  return Status::InvalidArgument(
      fmt::format("database {:x} is not open at this client", database_id));
}

Status ServerDatabases::CheckEpoch(uint64_t database_id, uint64_t epoch) const {
  const auto it = Find(database_id);
  if (it != databases_.end() && it->second.open() && it->second.epoch == epoch) {
    return Status::OK();
  }
  if (it != databases_.end() && epoch < it->second.epoch) {
    return Status::Fenced(fmt::format("database {:x} was taken over", database_id));
  }
  return Status::InvalidArgument(fmt::format("database {:x} is not open", database_id));
}

Status ServerDatabases::Report(uint64_t client, const control::ReportDatabase& report,
                               uint64_t now_nanos, control::Directions* directions) {
  NACRE_RETURN_IF_ERROR(CheckOwner(client, report.database_id()));
  NACRE_RETURN_IF_ERROR(CheckSize("a report", report));
  Database& database = Find(report.database_id())->second;
  database.report = report;
  database.reported_nanos = now_nanos;
  // A node that was started anew hears so what is on.
  const FeatureSet heard = report.features_on() & features_;
  if ((heard & ~features_on()) != 0) {
    control::Directions with = directions_;
    with.set_features_on(heard);
    NACRE_RETURN_IF_ERROR(TakeOver(std::move(with)));
  }
  *directions = DirectionsAt(now_nanos);
  return Status::OK();
}

Status ServerDatabases::AcknowledgeLog(const control::AcknowledgeLog& request, uint64_t now_nanos) {
  const auto it = Find(request.database_id());
  if (it == databases_.end()) {
    return Status::NotFound(fmt::format("there is no database {:x}", request.database_id()));
  }
  if (request.reader() == 0) return Status::OK();
  auto& readers = it->second.log_readers;
  std::erase_if(readers, [&](const auto& each) {
    return now_nanos - each.second.heard_nanos > kLogReaderForgottenNanos;
  });
  if (readers.size() >= kMaxLogReaders && !readers.contains(request.reader())) {
    return Status::Busy(
        fmt::format("the log of database '{}' has {} readers already", it->first, readers.size()));
  }
  LogReader& reader = readers[request.reader()];
  // A request may come late, over another connection.
  reader.sequence = std::max(reader.sequence, request.sequence());
  if (request.restorable()) reader.restorable = std::max(reader.restorable, request.sequence());
  reader.heard_nanos = now_nanos;
  return Status::OK();
}

void ServerDatabases::ListLogReaders(
    uint64_t database_id, uint64_t now_nanos,
    google::protobuf::RepeatedPtrField<control::LogReader>* readers) const {
  const auto it = Find(database_id);
  if (it == databases_.end()) return;
  for (const auto& [number, reader] : it->second.log_readers) {
    const uint64_t age_nanos = now_nanos - reader.heard_nanos;
    if (age_nanos > kLogReaderForgottenNanos) continue;
    control::LogReader* const listed = readers->Add();
    listed->set_reader(number);
    listed->set_sequence(reader.sequence);
    listed->set_restorable(reader.restorable);
    listed->set_age_nanos(age_nanos);
  }
}

Status ServerDatabases::Direct(const control::Directions& wanted, uint64_t now_nanos,
                               control::Directions* directions) {
  NACRE_RETURN_IF_ERROR(CheckSize("directions", wanted));
  if (const FeatureSet unknown = wanted.features_on() & ~features_; unknown != 0) {
    return Status::NotSupported(
        fmt::format("this node is of a release that does not know {}", ToString(unknown)));
  }
  if (wanted.version() > directions_.version()) {
    NACRE_RETURN_IF_ERROR(TakeOver(wanted));
    directed_nanos_ = now_nanos;
  }
  *directions = DirectionsAt(now_nanos);
  return Status::OK();
}

Status ServerDatabases::TakeOver(control::Directions directions) {
  directions.set_features_on(directions.features_on() | features_on());
  control::Directions before = std::exchange(directions_, std::move(directions));
  if (Status s = Keep(); !s.ok()) {
    directions_ = std::move(before);
    return s;
  }
  features_on_.store(directions_.features_on(), std::memory_order_relaxed);
  return Status::OK();
}

control::Directions ServerDatabases::DirectionsAt(uint64_t now_nanos) const {
  control::Directions directions = directions_;
  const uint64_t gone = now_nanos - directed_nanos_;
  for (control::Maintenance& each : *directions.mutable_maintenance()) {
    each.set_left_nanos(each.left_nanos() - std::min(each.left_nanos(), gone));
  }
  return directions;
}

void ServerDatabases::List(const control::ListDatabases& request, uint64_t now_nanos,
                           control::DatabaseList* list) const {
  *list->mutable_directions() = DirectionsAt(now_nanos);
  if (request.directions_only()) return;
  for (const auto& [name, database] : databases_) {
    control::KnownDatabase* known = list->add_databases();
    known->set_name(name);
    known->set_database_id(database.id);
    known->set_open(database.open());
    known->set_leased_bytes(region_->SlabsOf(database.id).size() * region_->slab_bytes());
    ListLogReaders(database.id, now_nanos, known->mutable_log_readers());
    if (!known->open() || database.reported_nanos == 0) continue;
    *known->mutable_report() = database.report;
    known->set_report_age_nanos(now_nanos - database.reported_nanos);
  }
}

void ServerDatabases::Unpin(uint64_t database_id) {
  const auto pin = pins_.find(database_id);
  if (pin == pins_.end() || --pin->second > 0) return;
  pins_.erase(pin);
  const auto it = Find(database_id);
  if (it != databases_.end() && it->second.dropping) FinishDrop(it);
}

std::vector<uint64_t> ServerDatabases::OwnerGone(uint64_t client, bool hung_up) {
  std::vector<uint64_t> dropped;
  std::erase_if(fenced_, [&](const auto& each) { return each.first == client; });
  for (auto it = databases_.begin(); it != databases_.end();) {
    const auto current = it++;
    Database& database = current->second;
    if (database.leaseholder == client && hung_up) database.lease_until_nanos = 0;
    if (database.claimant != client || !database.alive) continue;
    database.alive = false;
    database.ready = false;
    Fence(&database);
    if (database.root.epoch() != 0) continue;
    dropped.push_back(database.id);
    Drop(current);
  }
  return dropped;
}

std::vector<std::string> ServerDatabases::OwnedBy(uint64_t client) const {
  std::vector<std::string> names;
  for (const auto& [name, database] : databases_) {
    if (database.alive && database.claimant == client) names.push_back(name);
  }
  return names;
}

uint64_t ServerDatabases::DestroyedIn(uint64_t database_id) const {
  const auto it = std::find_if(destroyed_.rbegin(), destroyed_.rend(),
                               [&](const auto& each) { return each.first == database_id; });
  return it == destroyed_.rend() ? 0 : it->second;
}

void ServerDatabases::NoteDestroyed(const Database& database) {
  if (destroyed_.size() == kMaxDestroyed) destroyed_.pop_front();
  destroyed_.emplace_back(database.id, database.epoch);
}

void ServerDatabases::Drop(Map::iterator database) {
  database->second.dropping = true;
  if (!pins_.contains(database->second.id)) FinishDrop(database);
}

void ServerDatabases::FinishDrop(Map::iterator database) {
  const uint64_t id = database->second.id;
  std::erase_if(fenced_, [&](const auto& each) { return each.second == id; });
  region_->ReturnAll(id);
  by_id_.erase(id);
  databases_.erase(database);
  count_.store(databases_.size(), std::memory_order_relaxed);
}

}  // namespace nacre::pool
