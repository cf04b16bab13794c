#include "pool/space/pending_writes.h"

#include <chrono>
#include <map>

#include "pool/connect/node_requests.h"
#include "pool/databases.h"

namespace nacre::pool {
namespace {

/// How long nodes may take to say that something has ended there. Other threads wait for the one
/// that asks.
constexpr std::chrono::milliseconds kEndPatience{1000};

Deadline EndDeadline(const ClientContext& context) {
  return Deadline::After(context.clock, std::min<std::chrono::nanoseconds>(
                                            kEndPatience, context.options.operation_timeout));
}

}  // namespace

void EndJobs(PoolClient* client, uint64_t database_id, std::vector<JobEnd>* jobs) {
  Fabric* const fabric = client->fabric();
  std::map<NodeId, std::vector<uint64_t>> by_node;
  for (const JobEnd& job : *jobs) {
    for (const NodeId node : job.open) by_node[node].push_back(job.job_id);
  }
  const auto close = [&](NodeId node) {
    for (JobEnd& job : *jobs) std::erase(job.open, node);
  };
  std::vector<NodeId> nodes;
  for (const auto& [node, job_ids] : by_node) {
    const NodeLink* link = fabric->link(node);
    if (link == nullptr || link->state() == NodeLink::State::kLost) {
      close(node);  // Its memory is gone.
    } else {
      nodes.push_back(node);
    }
  }
  const Deadline deadline = EndDeadline(fabric->context);
  while (!nodes.empty()) {
    const bool last = deadline.Expired();
    const auto answers = client->requests()->CallAll(
        nodes,
        [&](NodeId node, control::Request* request) {
          request->mutable_end_jobs()->set_database_id(database_id);
          for (const uint64_t id : by_node.at(node)) request->mutable_end_jobs()->add_job_ids(id);
        },
        deadline, NodeRequests::Late::kLeft);
    nodes.clear();
    for (const NodeRequests::Answer& answer : answers) {
      const Status status = client->databases()->Heed(database_id, answer.status);
      if (status.ok()) close(answer.node);
      if (status.IsTryAgain() && !last) nodes.push_back(answer.node);
    }
    if (!nodes.empty()) fabric->context.clock->SleepFor(std::chrono::milliseconds(1));
  }
}

bool MayStillWriteOn(const PoolClient* client, NodeId node) {
  return client->fabric()->abandoned_writes.Any(node);
}

void EndAbandonedWrites(PoolClient* client) {
  Fabric* const fabric = client->fabric();
  std::map<NodeId, std::vector<uint32_t>> connections = fabric->abandoned_writes.All();
  std::vector<NodeId> nodes;
  for (const auto& [node, of_node] : connections) {
    if (fabric->link(node)->state() == NodeLink::State::kLost) {
      fabric->abandoned_writes.Ended(node, of_node);  // Its memory is gone.
    } else {
      nodes.push_back(node);
    }
  }
  if (nodes.empty()) return;
  const auto answers = client->requests()->CallAll(
      nodes,
      [&](NodeId node, control::Request* request) {
        for (const uint32_t connection : connections.at(node)) {
          request->mutable_end_connections()->add_connections(connection);
        }
      },
      EndDeadline(fabric->context), NodeRequests::Late::kLeft);
  for (const NodeRequests::Answer& answer : answers) {
    if (answer.status.ok()) {
      fabric->abandoned_writes.Ended(answer.node, connections.at(answer.node));
    }
  }
}

}  // namespace nacre::pool
