#include <fmt/format.h>

#include <utility>
#include <vector>

#include "memnode/server.h"
#include "pool/wire/control.pb.h"
#include "pool/wire/extent_codec.h"
#include "util/log.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre::pool {

Status Server::StartJob(ServerConnection* connection) {
  const control::Request& request = connection->request;
  const control::JobHeader& header = *JobHeaderOf(request);
  NACRE_RETURN_IF_ERROR(databases_->CheckOwner(connection->client_id, header.database_id()));
  NACRE_RETURN_IF_ERROR(databases_->CheckEpoch(header.database_id(), header.owner_epoch()));
  std::shared_ptr<NodeJob> job;
  NACRE_RETURN_IF_ERROR(MakeNodeJob(request, *plugins_, connection->client_id, instance_id_, &job));
  NACRE_RETURN_IF_ERROR(CheckExtents(*job));
  if (!region_->HasJob(job->database_id(), job->job_id())) {
    return Status::Aborted("job: it was not begun here, or has been ended");
  }

  const JobKey key{job->client_id(), job->job_id()};
  if (jobs_.contains(key)) return Status::InvalidArgument("job: its id is in use");
  NodeJobService* const service = ServiceFor(request);
  NACRE_RETURN_IF_ERROR(service->Submit(job));
  connection->job_id = job->job_id();
  databases_->Pin(job->database_id());
  jobs_[key] = {.job = std::move(job), .service = service, .connection = connection->id};
  NACRE_POINT("node.job-taken");
  return Status::OK();
}

NodeJobService* Server::ServiceFor(const control::Request& request) const {
  switch (request.body_case()) {
    case control::Request::kCompact:
      return compactions_.get();
    case control::Request::kFlush:
      return flushes_.get();
    case control::Request::kScrub:
      return scrubs_.get();
    default:
      return maintenance_.get();
  }
}

Status Server::CheckExtents(const NodeJob& job) const {
  for (const ExtentAddr& extent : job.Extents()) {
    if (extent.start.node != job.peers().self) continue;
    NACRE_RETURN_IF_ERROR(CheckLeased(job.database_id(), extent));
  }
  return Status::OK();
}

Status Server::CheckLeased(uint64_t database_id, const ExtentAddr& extent) const {
  if (region_->Owns(database_id, extent.start.offset, extent.length)) return Status::OK();
  return Status::InvalidArgument(
      fmt::format("{} bytes at {} are not leased to database {:x}", extent.length,
                  static_cast<uint64_t>(extent.start.offset), database_id));
}

Status Server::BeginJob(const ServerConnection& connection, const control::BeginJob& request,
                        control::JobKeys* reply) {
  const uint64_t database_id = request.database_id();
  NACRE_RETURN_IF_ERROR(databases_->CheckOwner(connection.client_id, database_id));
  std::vector<ExtentAddr> extents;
  for (const control::Extent& extent : request.extents()) {
    ExtentAddr& decoded = extents.emplace_back();
    NACRE_RETURN_IF_ERROR(DecodeExtent(extent, &decoded));
    NACRE_RETURN_IF_ERROR(CheckLeased(database_id, decoded));
  }
  std::vector<uint32_t> keys;
  NACRE_RETURN_IF_ERROR(region_->BeginJob(database_id, request.job_id(), extents, &keys));
  NACRE_POINT("node.job-granted");
  for (const uint32_t key : keys) reply->add_keys(key);
  return Status::OK();
}

Status Server::EndJobs(const ServerConnection& connection, const control::EndJobs& request) {
  NACRE_RETURN_IF_ERROR(databases_->CheckOwner(connection.client_id, request.database_id()));
  Status status;
  for (const uint64_t job_id : request.job_ids()) {
    const auto running = jobs_.find({connection.client_id, job_id});
    if (running != jobs_.end()) {
      running->second.service->Cancel(running->second.job);
      status = Status::TryAgain("a job still runs");
    }
    if (NACRE_PLANTED_BUG("job.keys-kept-when-it-is-ended")) continue;
    Status revoked = region_->EndJob(request.database_id(), job_id);
    if (status.ok()) status = std::move(revoked);
  }
  NACRE_POINT("node.jobs-ended");
  return status;
}

void Server::AbortJobs(uint64_t database_id) {
  for (const auto& [key, running] : jobs_) {
    if (running.job->database_id() == database_id) running.service->Cancel(running.job);
  }
}

void Server::OnIo() {
  if (const FeatureSet on = features_on(); requests_->CloseThoseWithout(on)) {
    Log(options_.log, LogLevel::kInfo, "{}: on in this pool: {}", address_, ToString(on));
  }
  while (true) {
    std::shared_ptr<NodeJob> job;
    {
      MutexLock lock(&mutex_);
      if (finished_.empty()) return;
      job = std::move(finished_.front());
      finished_.pop_front();
    }
    const auto it = jobs_.find({job->client_id(), job->job_id()});
    if (it == jobs_.end()) continue;
    const RunningJob running = std::move(it->second);
    jobs_.erase(it);
    databases_->Unpin(job->database_id());

    if (ServerConnection* const owner = requests_->Find(running.connection); owner != nullptr) {
      owner->job_id = 0;
      control::Reply reply;
      Status status = job->status;
      if (status.ok()) {
        job->FillReply(&reply);
      } else if (requests_->stopping()) {
        status = Status::Unavailable("the node is stopping");
      }
      requests_->Answer(owner, status, std::move(reply));
    }
  }
}

}  // namespace nacre::pool
