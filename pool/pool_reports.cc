#include "pool/pool_client.h"
#include "pool/pool_client_rep.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/database_report.h"

namespace nacre::pool {

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

void PoolClient::JoinAddedNodes() {
  constexpr std::chrono::seconds kPatience{1};
  const Deadline deadline = Deadline::After(clock(), kPatience);
  Directions newest;
  for (const Rep::NodeAnswer& answer : rep_->CallAll(
           rep_->LiveNodes(),
           [](NodeId, control::Request* request) { request->mutable_list_databases(); },
           deadline)) {
    if (!answer.status.ok()) continue;
    Directions directions;
    DecodeDirections(answer.reply.databases().directions(), &directions);
    if (directions.version > newest.version) newest = std::move(directions);
  }
  for (const std::string& address : newest.added_addresses) {
    rep_->fabric.monitor->AwaitNode(address, deadline);
  }
}

}  // namespace nacre::pool
