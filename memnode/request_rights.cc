#include "memnode/request_rights.h"

#include <fmt/format.h>

#include "pool/wire/control.pb.h"

namespace nacre::pool {
namespace {

using Kind = NeededRight::Kind;

NeededRight WriteKnown(uint64_t database_id) {
  return {.kind = Kind::kWriteKnown, .database_id = database_id};
}

}  // namespace

NeededRight RightNeededFor(const control::Request& request) {
  switch (request.body_case()) {
    // What tells something, or ends something of the sender's own.
    case control::Request::kPing:
    case control::Request::kDescribe:
    case control::Request::kGetStats:
    case control::Request::kFetchReply:
    case control::Request::kReadRoot:
    case control::Request::kListDatabases:
    case control::Request::kEndConnections:
    // A follower needs the log that it still has to read, and says so.
    case control::Request::kAcknowledgeLog:
      return {.kind = Kind::kRead};
    case control::Request::kClaimDatabase:
      return {.kind = Kind::kWriteNamed, .database = request.claim_database().name()};
    case control::Request::kLeaseSlabs:
      return WriteKnown(request.lease_slabs().database_id());
    case control::Request::kReturnSlabs:
      return WriteKnown(request.return_slabs().database_id());
    case control::Request::kWriteRoot:
      return WriteKnown(request.write_root().database_id());
    case control::Request::kReleaseDatabase:
      return WriteKnown(request.release_database().database_id());
    case control::Request::kDestroyDatabase:
      return WriteKnown(request.destroy_database().database_id());
    case control::Request::kConfirmOwner:
      return WriteKnown(request.confirm_owner().database_id());
    case control::Request::kBeginJob:
      return WriteKnown(request.begin_job().database_id());
    case control::Request::kEndJobs:
      return WriteKnown(request.end_jobs().database_id());
    case control::Request::kCompact:
      return WriteKnown(request.compact().header().database_id());
    case control::Request::kRebuild:
      return WriteKnown(request.rebuild().header().database_id());
    case control::Request::kScrub:
      return WriteKnown(request.scrub().header().database_id());
    case control::Request::kFlush:
      return WriteKnown(request.flush().header().database_id());
    case control::Request::kReportDatabase:
      return WriteKnown(request.report_database().database_id());
    case control::Request::kApplyImageUpdate:
      return WriteKnown(request.apply_image_update().database_id());
    case control::Request::kSetDirections:
    // No memory node takes these.
    case control::Request::kMemberRequest:
    case control::Request::BODY_NOT_SET:
      break;
  }
  return {.kind = Kind::kAdminister};
}

Status CheckRight(const NeededRight& needed, const Rights& rights, const std::string& name,
                  const std::string* database) {
  switch (needed.kind) {
    case Kind::kRead:
      return Status::OK();
    case Kind::kWriteNamed:
      if (rights.MayWriteTo(needed.database)) return Status::OK();
      return rights.Denied(name, fmt::format("'write' to database '{}'", needed.database));
    case Kind::kWriteKnown:
      if (database == nullptr) {
        return rights.may_write() ? Status::OK() : rights.Denied(name, "'write'");
      }
      if (rights.MayWriteTo(*database)) return Status::OK();
      return rights.Denied(name, fmt::format("'write' to database '{}'", *database));
    case Kind::kAdminister:
      break;
  }
  return rights.may_administer() ? Status::OK() : rights.Denied(name, "'admin'");
}

}  // namespace nacre::pool
