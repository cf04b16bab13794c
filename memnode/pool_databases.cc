#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "memnode/pool_client.h"
#include "memnode/pool_client_rep.h"

namespace nacre::memnode {
namespace {

constexpr size_t kMaxNameBytes = 1024;

Status CheckName(const std::string& name) {
  if (!name.empty() && name.size() <= kMaxNameBytes) return Status::OK();
  return Status::InvalidArgument(
      fmt::format("a database name has 1 to {} bytes, this one {}", kMaxNameBytes, name.size()));
}

Status NewDatabaseId(uint64_t* id) {
  do {
    if (::getrandom(id, sizeof(*id), 0) != static_cast<ssize_t>(sizeof(*id))) {
      return Status::IOError("the system gives no random numbers");
    }
  } while (*id == 0);
  return Status::OK();
}

/// False at the deadline; else sleeps a moment.
bool PauseUnless(const Deadline& deadline) {
  if (deadline.Expired()) return false;
  deadline.clock()->SleepFor(std::chrono::milliseconds(10));
  return true;
}

}  // namespace

// The name is acquired on the nodes one after the other, in the order of the pool, so that of two
// clients one wins and the other finds the first node busy; neither waits for the other. Nothing
// changes on a node before CommitDatabase.
Status PoolClient::OpenDatabase(const std::string& name, bool create_if_missing,
                                bool error_if_exists, DatabaseLease* lease) {
  NACRE_RETURN_IF_ERROR(CheckName(name));
  const MutexLock membership(&rep_->membership);
  std::vector<NodeId> acquired;
  // A node that the name was acquired on and that keeps it would answer Busy to all others.
  const auto release = [&](Status why) {
    for (const NodeId node : acquired) {
      control::Request request;
      control::Reply reply;
      request.mutable_release_database()->set_name(name);
      rep_->Call(node, &request, &reply).IgnoreError();
    }
    return why;
  };

  *lease = DatabaseLease();
  uint64_t manifest_version = 0;
  Status last_failure;
  for (int i = 0; i < node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    control::Request request;
    control::Reply reply;
    request.mutable_acquire_database()->set_name(name);
    const Status s = rep_->Call(node, &request, &reply);
    if (s.IsUnavailable() && !alive(node)) {
      last_failure = s;
      continue;
    }
    if (!s.ok()) return release(s);
    acquired.push_back(node);
    const control::DatabaseState& state = reply.database();
    if (state.exists() && (!lease->existed || state.manifest_version() > manifest_version)) {
      lease->existed = true;
      lease->database_id = state.database_id();
      lease->manifest = state.manifest();
      manifest_version = state.manifest_version();
    }
  }
  if (acquired.empty()) return last_failure;
  if (!lease->existed && !create_if_missing) {
    return release(Status::InvalidArgument(
        fmt::format("database '{}' does not exist (create_if_missing is false)", name)));
  }
  if (lease->existed && error_if_exists) {
    return release(Status::InvalidArgument(
        fmt::format("database '{}' exists (error_if_exists is true)", name)));
  }
  if (!lease->existed) {
    if (Status s = NewDatabaseId(&lease->database_id); !s.ok()) return release(std::move(s));
  }

  rep_->fabric.monitor->AddDatabase();
  for (const NodeId node : acquired) {
    control::Request request;
    control::Reply reply;
    request.mutable_commit_database()->set_name(name);
    request.mutable_commit_database()->set_database_id(lease->database_id);
    Status s = rep_->Call(node, &request, &reply);
    if (s.ok()) s = rep_->fabric.link(node)->SetWriteKeys(reply.slabs());
    if (!s.ok() && alive(node)) {
      rep_->fabric.monitor->RemoveDatabase();
      return release(s);
    }
    if (s.ok()) {
      lease->slabs[node].assign(reply.slabs().offsets().begin(), reply.slabs().offsets().end());
    }
  }
  // A node that comes back now does not know of the database.
  for (int i = 0; i < node_count(); ++i) {
    NodeLink* link = rep_->fabric.link(static_cast<NodeId>(i));
    if (!link->alive()) link->SetLost(link->CheckUp());
  }
  MutexLock lock(&rep_->mutex);
  rep_->databases[name] = {.id = lease->database_id, .manifest_version = manifest_version};
  return Status::OK();
}

Status PoolClient::Rep::BringDatabases(NodeLink* link, Deadline deadline) {
  // Who opens a database meanwhile may wait for the monitor.
  if (!membership.TryLock()) return Status::Busy("databases are being opened or closed");
  const Status status = BringAll(link, deadline);
  membership.Unlock();
  return status;
}

Status PoolClient::Rep::BringAll(NodeLink* link, Deadline deadline) {
  std::map<std::string, OpenDatabase> open;
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
  for (const auto& [name, database] : open) {
    control::Request request;
    control::Reply reply;
    request.mutable_acquire_database()->set_name(name);
    NACRE_RETURN_IF_ERROR(call(request, &reply));
    request.mutable_commit_database()->set_name(name);
    request.mutable_commit_database()->set_database_id(database.id);
    NACRE_RETURN_IF_ERROR(call(request, &reply));
    // Of a time when the node was in the pool: what is in them is out of date.
    const control::Slabs slabs = reply.slabs();
    if (slabs.offsets().empty()) continue;
    request.mutable_return_slabs()->set_database_id(database.id);
    *request.mutable_return_slabs()->mutable_offsets() = slabs.offsets();
    NACRE_RETURN_IF_ERROR(call(request, &reply));
  }
  return Status::OK();
}

Status PoolClient::CloseDatabase(const std::string& name, const std::string& manifest) {
  const MutexLock membership(&rep_->membership);
  uint64_t version = 0;
  {
    MutexLock lock(&rep_->mutex);
    const auto it = rep_->databases.find(name);
    if (it == rep_->databases.end()) {
      return Status::InvalidArgument(fmt::format("database '{}' is not open here", name));
    }
    version = it->second.manifest_version + 1;
    rep_->databases.erase(it);
  }
  const Deadline deadline = rep_->fabric.context.OperationDeadline();
  Status failure;
  int closed = 0;
  for (int i = 0; i < node_count(); ++i) {
    const auto node = static_cast<NodeId>(i);
    if (!alive(node)) continue;
    control::Request request;
    request.mutable_close_database()->set_name(name);
    request.mutable_close_database()->set_manifest_version(version);
    request.mutable_close_database()->set_manifest(manifest);
    Status s;
    do {
      control::Reply reply;
      s = rep_->Call(node, &request, &reply);
      // An executor that could not take its leave keeps the node busy until the node has noticed
      // that it is gone.
    } while (s.IsBusy() && PauseUnless(deadline));
    if (s.ok()) ++closed;
    // A node that died meanwhile has nothing to keep.
    if (!s.ok() && alive(node) && failure.ok()) failure = s;
  }
  rep_->fabric.monitor->RemoveDatabase();
  if (failure.ok() && closed == 0) {
    return Status::Unavailable(fmt::format("no node of the pool is left to keep '{}'", name));
  }
  return failure;
}

}  // namespace nacre::memnode
