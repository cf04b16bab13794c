#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "pool/connect/node_requests.h"
#include "pool/databases.h"
#include "pool/root_claims.h"
#include "pool/wire/control.pb.h"
#include "util/named_point.h"

namespace nacre::pool {
namespace {

constexpr std::chrono::milliseconds kPollPeriod{1};
/// A client that lost a race gives up what it claimed before its winner runs out of this.
constexpr std::chrono::milliseconds kLoserPatience{200};

}  // namespace

int Databases::PoolSize() const {
  std::set<std::string> addresses;
  for (int i = 0; i < fabric_->node_count(); ++i) {
    addresses.insert(fabric_->link(static_cast<NodeId>(i))->address());
  }
  return static_cast<int>(addresses.size());
}

std::string Databases::WhyMissing(const std::vector<RootAnswer>& answers) const {
  std::map<std::string, std::string> missing;  // By address; of its latest node.
  for (int i = 0; i < fabric_->node_count(); ++i) {
    const NodeLink* link = fabric_->link(static_cast<NodeId>(i));
    const bool answered = std::any_of(answers.begin(), answers.end(), [&](const RootAnswer& each) {
      return each.node == link->id();
    });
    missing.erase(link->address());
    if (answered) continue;
    const Status why = link->CheckUp();
    missing[link->address()] =
        why.ok() ? link->address() + ": did not agree" : std::string(why.message());
  }
  std::string text;
  for (const auto& [address, why] : missing) text += (text.empty() ? "" : "; ") + why;
  return text;
}

Status Databases::ReadRoots(const std::string& name, RootsSeen* seen) {
  const std::vector<NodeRequests::Answer> read = requests_->CallAll(
      fabric_->LiveNodes(),
      [&](NodeId, control::Request* request) { request->mutable_read_root()->set_name(name); });
  for (const NodeRequests::Answer& answer : read) {
    if (!answer.status.ok()) continue;
    seen->answers.push_back({.node = answer.node,
                             .instance_id = fabric_->link(answer.node)->instance_id(),
                             .state = answer.reply.database()});
  }
  NACRE_RETURN_IF_ERROR(
      LeaveOneDatabase(PoolSize(), &seen->answers).WithContext(fmt::format("database '{}'", name)));
  const RootAnswer* newest = NewestRoot(seen->answers);
  if (Status s = CheckReadQuorum(newest == nullptr ? nullptr : &newest->state.root(), seen->answers,
                                 PoolSize());
      !s.ok()) {
    return Status::Unavailable(
        fmt::format("database '{}': {} ({})", name, s.message(), WhyMissing(seen->answers)));
  }
  size_t owned = 0;
  for (const RootAnswer& answer : seen->answers) {
    if (!answer.state.exists()) continue;
    if (answer.state.epoch() >= seen->epoch && newest == nullptr) {
      seen->database_id = answer.state.database_id();
    }
    seen->epoch = std::max(seen->epoch, answer.state.epoch());
    owned += answer.state.owner() != 0 ? 1 : 0;
  }
  if (newest != nullptr) {
    seen->database_id = newest->state.database_id();
    seen->epoch = std::max(seen->epoch, newest->state.root().epoch());
    seen->root = newest->state.root();
    // The creator of a database may use it once the first step, which names founders, is over.
    const bool whole = !seen->root.value().empty() && seen->root.founding_nodes() == 0;
    const bool destroyed = IsDestroyed(seen->root, seen->answers);
    seen->exists = whole && !destroyed;
    seen->remains = !whole && !destroyed;
  }
  // An owner that was superseded may live on where its successor was not heard of.
  for (const RootAnswer& answer : seen->answers) {
    const bool latest = answer.state.epoch() == seen->epoch;
    if (answer.state.owner() != 0 && (latest || 2 * owned > seen->answers.size())) {
      seen->owned = seen->owned || answer.state.owner() != fabric_->context.client_id;
    }
  }
  return Status::OK();
}

void Databases::ClaimOnce(const control::ClaimDatabase& claim, const RootsSeen& seen,
                          const std::vector<NodeId>& nodes, Claims* claims) {
  const auto superseded = [&](NodeId node) {
    const auto it = std::find_if(seen.answers.begin(), seen.answers.end(),
                                 [&](const RootAnswer& each) { return each.node == node; });
    return it != seen.answers.end() && it->state.epoch() < seen.epoch;
  };
  std::vector<NodeRequests::Answer> answers =
      requests_->CallAll(nodes, [&](NodeId node, control::Request* request) {
        NACRE_POINT("claim.next-node");
        *request->mutable_claim_database() = claim;
        if (superseded(node)) request->mutable_claim_database()->set_take_over(true);
      });
  for (NodeRequests::Answer& answer : answers) {
    if (answer.status.ok()) {
      claims->granted.push_back({.node = answer.node,
                                 .instance_id = fabric_->link(answer.node)->instance_id(),
                                 .state = std::move(*answer.reply.mutable_database())});
    } else if (answer.status.IsTryAgain()) {
      claims->draining.push_back(answer.node);
    } else {
      const bool silent = answer.status.IsUnavailable() || answer.status.IsTimedOut();
      if (!silent) claims->refused.push_back(answer.node);
      if (claims->refusal.ok() || answer.status.IsBusy()) claims->refusal = answer.status;
    }
  }
}

Status Databases::Claim(const control::ClaimDatabase& claim, const RootsSeen& seen,
                        Claims* claims) {
  const Deadline deadline = fabric_->context.OperationDeadline();
  const Deadline patience = Deadline::After(fabric_->context.clock, kLoserPatience);
  // The first node decides between two clients: the other has claimed nothing yet.
  size_t next = 0;
  while (next < seen.answers.size() && claims->granted.empty() && claims->draining.empty()) {
    ClaimOnce(claim, seen, {seen.answers[next++].node}, claims);
    if (claims->refused.empty()) continue;
    if (!claims->refusal.IsBusy()) Release(claim, /*abandoned=*/true).IgnoreError();
    return claims->refusal;
  }
  NACRE_POINT("claim.first-node-granted");
  std::vector<NodeId> nodes;
  for (; next < seen.answers.size(); ++next) nodes.push_back(seen.answers[next].node);
  ClaimOnce(claim, seen, nodes, claims);
  while (true) {
    const bool ahead = 2 * (claims->granted.size() + claims->draining.size()) > seen.answers.size();
    nodes.clear();
    if (!deadline.Expired()) nodes.swap(claims->draining);
    if (ahead && !patience.Expired()) {
      nodes.insert(nodes.end(), claims->refused.begin(), claims->refused.end());
      claims->refused.clear();
    }
    if (nodes.empty()) break;
    fabric_->context.clock->SleepFor(kPollPeriod);
    ClaimOnce(claim, seen, nodes, claims);
  }

  const RootAnswer* newest = NewestRoot(claims->granted);
  const Status quorum = CheckReadQuorum(newest == nullptr ? nullptr : &newest->state.root(),
                                        claims->granted, PoolSize());
  // Where it was refused, a later claim may be under way.
  if (quorum.ok() && claims->refused.empty()) return quorum;
  Release(claim, /*abandoned=*/true).IgnoreError();
  if (!claims->refused.empty()) return claims->refusal;
  if (!claims->draining.empty()) {
    return Status::Busy(
        fmt::format("database '{}' is still written to for its former owner", claim.name()));
  }
  return Status::Unavailable(fmt::format("database '{}': {} ({})", claim.name(), quorum.message(),
                                         WhyMissing(claims->granted)));
}

Status Databases::Release(const control::ClaimDatabase& claim, bool abandoned) {
  Status failure;
  int released = 0;
  const std::vector<NodeRequests::Answer> answers =
      requests_->CallUntilDone(fabric_->LiveNodes(), [&](NodeId, control::Request* request) {
        NACRE_POINT("release.next-node");
        control::ReleaseDatabase* release = request->mutable_release_database();
        release->set_database_id(claim.database_id());
        release->set_epoch(claim.epoch());
        release->set_abandoned(abandoned);
      });
  for (const NodeRequests::Answer& answer : answers) {
    if (answer.status.ok()) {
      ++released;
    } else if (!answer.status.IsUnavailable() && failure.ok()) {
      failure = answer.status;  // A node that died meanwhile has nothing to keep.
    }
  }
  if (failure.ok() && released == 0) {
    return Status::Unavailable(
        fmt::format("no node of the pool is left to keep '{}'", claim.name()));
  }
  return failure;
}

std::set<uint64_t> InstancesThatAgree(const Fabric& fabric,
                                      const std::vector<const NodeRequests::Answer*>& answers) {
  std::set<uint64_t> instances;
  for (const NodeRequests::Answer* answer : answers) {
    if (answer->status.ok()) instances.insert(fabric.link(answer->node)->instance_id());
  }
  return instances;
}

Status Databases::WriteRoot(OwnedDatabase* database, control::Root root) {
  const Deadline deadline = fabric_->context.OperationDeadline();
  root.set_epoch(database->epoch);
  for (;;) {
    // Nodes that have it, though their answer was lost, take the next one as well.
    root.set_version(++database->version);
    Status status = TryWriteRoot(database, root);
    if (!status.IsUnavailable() || deadline.Expired()) return status;
    fabric_->context.clock->SleepFor(kPollPeriod);
  }
}

Status Databases::TryWriteRoot(OwnedDatabase* database, const control::Root& root) {
  const auto enough = [&](const std::vector<const NodeRequests::Answer*>& so_far) {
    return IsWritten(root, InstancesThatAgree(*fabric_, so_far));
  };
  const std::vector<NodeRequests::Answer> answers = requests_->CallAll(
      fabric_->LiveNodes(),
      [&](NodeId, control::Request* request) {
        NACRE_POINT("root.next-node");
        request->mutable_write_root()->set_database_id(database->id);
        *request->mutable_write_root()->mutable_root() = root;
      },
      fabric_->context.OperationDeadline(), NodeRequests::Late::kLeft, enough);
  std::set<uint64_t> acknowledged;
  std::vector<RootAnswer> taken;
  std::string others;  // That answer, and do not take it.
  for (const NodeRequests::Answer& answer : answers) {
    if (answer.status.IsFenced()) return Heed(database->id, answer.status);
    if (answer.status.ok()) {
      taken.push_back({.node = answer.node,
                       .instance_id = fabric_->link(answer.node)->instance_id(),
                       .state = {}});
      acknowledged.insert(taken.back().instance_id);
    } else if (!answer.status.IsUnavailable() && !answer.status.IsTimedOut()) {
      others += "; " + std::string(answer.status.message());
    }
  }
  if (IsWritten(root, acknowledged)) {
    *database->root = root;
    return Status::OK();
  }
  return Status::Unavailable(fmt::format(
      "database '{}': {} of {} nodes that keep the root took it, at least half must ({})",
      database->name, acknowledged.size(), std::max(root.members_size(), root.old_members_size()),
      WhyMissing(taken) + others));
}

std::vector<uint64_t> Databases::NextMembers(const OwnedDatabase& database) const {
  std::vector<uint64_t> members;
  for (int i = 0; i < fabric_->node_count(); ++i) {
    const NodeLink* link = fabric_->link(static_cast<NodeId>(i));
    if (link->is_self()) continue;
    // A member that is only suspected stays one: without it two of three nodes would be two of two,
    // and nothing would be left to lose if the owner and one of them died now.
    const bool stays =
        !link->cut_off() &&
        std::binary_search(database.members.begin(), database.members.end(), link->instance_id());
    if (link->alive() || stays) members.push_back(link->instance_id());
  }
  std::sort(members.begin(), members.end());
  return members;
}

Status Databases::Publish(OwnedDatabase* database, const std::string& value) {
  if (value.size() > kMaxRootBytes) {
    return Status::InvalidArgument(
        fmt::format("a root of {} bytes, {} at most", value.size(), kMaxRootBytes));
  }
  MutexLock lock(&database->publishing);
  std::vector<uint64_t> members = NextMembers(*database);
  control::Root root;
  root.set_value(value);
  root.mutable_members()->Add(members.begin(), members.end());
  if (members != database->members) {
    control::Root step = root;
    step.mutable_old_members()->Add(database->members.begin(), database->members.end());
    step.set_founding_nodes(database->founding_nodes);
    NACRE_RETURN_IF_ERROR(WriteRoot(database, std::move(step)));
    NACRE_POINT("root.members-joined");
    {
      MutexLock voting(&database->voting);
      database->voters = database->members;
      database->next_voters = members;
    }
    database->members = std::move(members);
    database->founding_nodes = 0;
    // A client that finds the next root asks the new members alone. So they have to wait for this
    // owner, too, as long as any lease that only the old ones gave.
    NACRE_RETURN_IF_ERROR(Confirm(database, fabric_->context.OperationDeadline()));
  }
  NACRE_RETURN_IF_ERROR(WriteRoot(database, std::move(root)));
  NACRE_POINT("root.written");
  MutexLock voting(&database->voting);
  database->voters = database->members;
  database->next_voters.clear();
  return Status::OK();
}

Status Databases::Settle(const Claims& claims, OwnedDatabase* database) {
  MutexLock lock(&database->publishing);
  const RootAnswer* newest = NewestRoot(claims.granted);
  if (newest == nullptr) {
    database->founding_nodes = static_cast<uint32_t>(PoolSize());
    return Status::OK();
  }
  const control::Root& root = newest->state.root();
  std::set<uint64_t> acknowledged;
  for (const RootAnswer& answer : claims.granted) {
    const control::Root& there = answer.state.root();
    if (there.epoch() == root.epoch() && there.version() == root.version()) {
      acknowledged.insert(answer.instance_id);
    }
  }
  *database->root = root;
  if (!IsWritten(root, acknowledged) || acknowledged.size() < claims.granted.size()) {
    NACRE_RETURN_IF_ERROR(WriteRoot(database, root));
  }
  database->members.assign(root.members().begin(), root.members().end());
  std::sort(database->members.begin(), database->members.end());
  return Status::OK();
}

}  // namespace nacre::pool
