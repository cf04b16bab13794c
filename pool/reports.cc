#include "pool/reports.h"

#include "pool/connect/node_requests.h"
#include "pool/databases.h"

namespace nacre::pool {

Status GetStats(PoolClient* client, NodeId node, NodeStats* stats, NodeRequests::Late late) {
  control::Request request;
  control::Reply reply;
  request.mutable_get_stats();
  NACRE_RETURN_IF_ERROR(client->requests()->Call(node, &request, &reply, late));
  *stats = DecodeStats(reply.stats());
  return Status::OK();
}

Status ReportDatabase(PoolClient* client, NodeId node, const DatabaseReport& report,
                      Directions* directions) {
  control::Request request;
  control::Reply reply;
  EncodeReport(report, request.mutable_report_database());
  NACRE_RETURN_IF_ERROR(client->databases()->Heed(
      report.database_id,
      client->requests()->Call(node, &request, &reply, NodeRequests::Late::kLeft)));
  DecodeDirections(reply.directions(), directions);
  return Status::OK();
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
                     Directions* directions) {
  control::Request request;
  control::Reply reply;
  request.mutable_list_databases();
  NACRE_RETURN_IF_ERROR(client->requests()->Call(node, &request, &reply));
  databases->clear();
  for (const control::KnownDatabase& known : reply.databases().databases()) {
    DecodeKnownDatabase(known, &databases->emplace_back());
  }
  DecodeDirections(reply.databases().directions(), directions);
  return Status::OK();
}

}  // namespace nacre::pool
