#include "etcd/etcd_call.h"

#include <algorithm>

namespace nacre {

void RequireLeader(grpc::ClientContext* context) { context->AddMetadata("hasleader", "true"); }

std::chrono::system_clock::time_point GrpcTime(std::chrono::nanoseconds remaining) {
  const std::chrono::nanoseconds bounded =
      std::min<std::chrono::nanoseconds>(remaining, std::chrono::hours(1));
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(bounded);
}

Status FromGrpc(const grpc::Status& status) {
  const std::string message = status.error_message();
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
      return Status::OK();
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Status::TimedOut("did not answer in time");
    case grpc::StatusCode::NOT_FOUND:
      return Status::NotFound(message);
    // The last four are what becomes of calls whose connection ends at a bad moment.
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::ABORTED:
      return Status::Unavailable(message);
    default:
      return Status::IOError(message);
  }
}

}  // namespace nacre
