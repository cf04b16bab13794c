#include "memnode/database_report.h"
#include "memnode/pool_client.h"
#include "memnode/pool_client_rep.h"

namespace nacre::memnode {

Status PoolClient::ReportDatabase(NodeId node, const DatabaseReport& report,
                                  Directions* directions) {
  control::Request request;
  control::Reply reply;
  EncodeReport(report, request.mutable_report_database());
  NACRE_RETURN_IF_ERROR(rep_->Heed(report.database_id, rep_->Call(node, &request, &reply)));
  DecodeDirections(reply.directions(), directions);
  return Status::OK();
}

Status PoolClient::SetDirections(NodeId node, const Directions& wanted, Directions* directions) {
  control::Request request;
  control::Reply reply;
  EncodeDirections(wanted, request.mutable_set_directions());
  NACRE_RETURN_IF_ERROR(rep_->Call(node, &request, &reply));
  DecodeDirections(reply.directions(), directions);
  return Status::OK();
}

Status PoolClient::ListDatabases(NodeId node, std::vector<KnownDatabase>* databases,
                                 Directions* directions) {
  control::Request request;
  control::Reply reply;
  request.mutable_list_databases();
  NACRE_RETURN_IF_ERROR(rep_->Call(node, &request, &reply));
  databases->clear();
  for (const control::KnownDatabase& known : reply.databases().databases()) {
    DecodeKnownDatabase(known, &databases->emplace_back());
  }
  DecodeDirections(reply.databases().directions(), directions);
  return Status::OK();
}

}  // namespace nacre::memnode
