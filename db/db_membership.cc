#include <algorithm>
#include <utility>

#include "db/db_impl.h"
#include "pool/databases.h"
#include "util/log.h"
#include "util/named_point.h"

// How an open database follows its nodes; membership_keeper.h has the thread.

namespace nacre {

namespace {

constexpr const char* kFencedMessage = "another owner has taken the database over";

}  // namespace

NodeStates DBImpl::LookAtNodes() const {
  NodeStates nodes;
  for (int i = 0; i < client_->node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    nodes.alive.push_back(client_->alive(node));
    nodes.draining.push_back(reporter_.draining(node));
  }
  return nodes;
}

void DBImpl::NodesChanged(const NodeStates& before, const NodeStates& now) {
  events_.NodesChanged(before, now, *client_);
  std::vector<NodeId> draining;
  for (size_t i = 0; i < now.draining.size(); ++i) {
    if (now.draining[i]) draining.push_back(static_cast<NodeId>(i));
  }
  space_->SetDraining(std::move(draining));
}

void DBImpl::KeepUpWithNodes() {
  for (const std::string& address : reporter_.directions().added_addresses) {
    client_->AddNode(address);
  }
  Status refusal = client_->JoinRefusal();
  if (!refusal.ok() && join_refusal_.ok()) {
    Log(options_.info_log, LogLevel::kError, "{}: a node cannot join: {}", name_,
        refusal.ToString());
  }
  join_refusal_ = std::move(refusal);
  FollowNodes();
  write_path_.Settle().IgnoreError();  // Who writes next is told.
  if (events_.listens() && client_->databases()->Fenced(database_id_)) {
    events_.Fenced(Status::Fenced(kFencedMessage));
  }
}

bool DBImpl::MustLeave(NodeId node) const {
  return !client_->alive(node) || reporter_.draining(node);
}

void DBImpl::FollowNodes() {
  const auto leave = [this](NodeId node) { return MustLeave(node); };
  uint64_t published = 0;
  {
    MutexLock commit(&commit_mutex_);
    published = membership_published_;
    if (HasCopyOn(state_record_, leave)) {
      if (Status status = TryRecordState(); !status.ok()) {
        Log(options_.info_log, LogLevel::kWarn, "{}: the state record stays where it is: {}", name_,
            status.ToString());
      }
    }
  }
  const std::vector<ExtentAddr> copies = manifest_->copies();
  const bool move = std::any_of(copies.begin(), copies.end(),
                                [&](const ExtentAddr& copy) { return leave(copy.start.node); });
  // Whoever opens the database asks the nodes that the root names.
  const uint64_t membership = client_->membership_changes();
  if (!move && membership == published) return;
  NACRE_POINT("membership.changed");
  // Changes are committed meanwhile.
  if (Status status = manifest_->Renew(); !status.ok()) {
    Log(options_.info_log, LogLevel::kWarn, "{}: the manifest stays where it is: {}", name_,
        status.ToString());
    return;
  }
  MutexLock commit(&commit_mutex_);
  membership_published_ = membership;
  NACRE_POINT("membership.published");
}

void DBImpl::LeaveLogSegments() {
  const auto leave = [this](NodeId node) { return MustLeave(node); };
  if (write_path_.log() == nullptr || !write_path_.log()->LeaveNodes(leave)) return;
  // Those that were never written, and those whose last records were flushed while they were open.
  ReleaseLog(manifest_->last_sequence());
  FlushLog();
}

void DBImpl::FlushLog() {
  MutexLock lock(&state_.mutex);
  if (closing_.load(std::memory_order_relaxed) || !state_.work.immutables.empty())
    return;  // Under way.
  if (generations_.HasEntries(nullptr)) generations_.Switch();
}

}  // namespace nacre
