#include "pool/reports.h"

#include <chrono>

#include "pool/connect/node_requests.h"
#include "pool/databases.h"

namespace nacre::pool {
namespace {

void AppendLogReaders(const control::Reply& reply, std::vector<LogReader>* log_readers) {
  for (const control::LogReader& each : reply.log_readers()) {
    log_readers->push_back(DecodeLogReader(each));
  }
}

}  // namespace

Status GetStats(PoolClient* client, NodeId node, NodeStats* stats, NodeRequests::Late late) {
  control::Request request;
  control::Reply reply;
  request.mutable_get_stats();
  NACRE_RETURN_IF_ERROR(client->requests()->Call(node, &request, &reply, late));
  *stats = DecodeStats(reply.stats());
  return Status::OK();
}

Status ReportDatabase(PoolClient* client, NodeId node, const DatabaseReport& report,
                      Directions* directions, std::vector<LogReader>* log_readers) {
  control::Request request;
  control::Reply reply;
  EncodeReport(report, request.mutable_report_database());
  NACRE_RETURN_IF_ERROR(client->databases()->Heed(
      report.database_id,
      client->requests()->Call(node, &request, &reply, NodeRequests::Late::kLeft)));
  DecodeDirections(reply.directions(), directions);
  if (log_readers != nullptr) AppendLogReaders(reply, log_readers);
  return Status::OK();
}

std::vector<NodeId> LiveNodes(const PoolClient& client) { return client.requests()->LiveNodes(); }

Status AcknowledgeLog(PoolClient* client, const std::vector<NodeId>& nodes, uint64_t database_id,
                      uint64_t reader, uint64_t sequence, bool restorable,
                      std::vector<LogReader>* log_readers) {
  // One that does not answer is no reason to wait: others know, and it is asked again.
  constexpr std::chrono::seconds kPatience{1};
  Status failure = Status::Unavailable("no node of the pool is alive");
  bool told = false;
  for (const NodeRequests::Answer& answer : client->requests()->CallAll(
           nodes,
           [&](NodeId, control::Request* request) {
             control::AcknowledgeLog* const body = request->mutable_acknowledge_log();
             body->set_database_id(database_id);
             body->set_reader(reader);
             body->set_sequence(sequence);
             body->set_restorable(restorable);
           },
           Deadline::After(client->clock(), kPatience), NodeRequests::Late::kLeft)) {
    if (answer.status.ok()) {
      told = true;
      AppendLogReaders(answer.reply, log_readers);
    } else {
      failure = answer.status;
    }
  }
  return told ? Status::OK() : failure;
}

Status SetDirections(PoolClient* client, NodeId node, const Directions& wanted,
                     Directions* directions) {
  control::Request request;
  control::Reply reply;
  EncodeDirections(wanted, request.mutable_set_directions());
  NACRE_RETURN_IF_ERROR(client->requests()->Call(node, &request, &reply));
  DecodeDirections(reply.directions(), directions);
  return Status::OK();
}

Status ListDatabases(PoolClient* client, NodeId node, std::vector<KnownDatabase>* databases,
                     Directions* directions, std::vector<ConnectedClient>* clients) {
  control::Request request;
  control::Reply reply;
  request.mutable_list_databases();
  NACRE_RETURN_IF_ERROR(client->requests()->Call(node, &request, &reply));
  databases->clear();
  for (const control::KnownDatabase& known : reply.databases().databases()) {
    DecodeKnownDatabase(known, &databases->emplace_back());
  }
  DecodeDirections(reply.databases().directions(), directions);
  if (clients == nullptr) return Status::OK();
  clients->clear();
  for (const control::ConnectedClient& each : reply.databases().clients()) {
    clients->push_back(DecodeConnectedClient(each));
  }
  return Status::OK();
}

Status GetDirections(PoolClient* client, NodeId node, Directions* directions) {
  control::Request request;
  control::Reply reply;
  request.mutable_list_databases()->set_directions_only(true);
  NACRE_RETURN_IF_ERROR(
      client->requests()->Call(node, &request, &reply, NodeRequests::Late::kLeft));
  DecodeDirections(reply.databases().directions(), directions);
  return Status::OK();
}

}  // namespace nacre::pool
