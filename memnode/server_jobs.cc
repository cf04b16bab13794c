#include <fmt/format.h>

#include <utility>

#include "memnode/server.h"
#include "util/named_point.h"

namespace nacre::memnode {

Status Server::StartJob(ServerConnection* connection) {
  const control::Request& request = connection->request;
  const control::JobHeader& header = *JobHeaderOf(request);
  NACRE_RETURN_IF_ERROR(databases_->CheckOwner(connection->client_id, header.database_id()));
  NACRE_RETURN_IF_ERROR(databases_->CheckEpoch(header.database_id(), header.owner_epoch()));
  std::shared_ptr<NodeJob> job;
  NACRE_RETURN_IF_ERROR(MakeNodeJob(request, *plugins_, connection->client_id, instance_id_, &job));
  NACRE_RETURN_IF_ERROR(CheckExtents(*job));

  const JobKey key{job->client_id(), job->job_id()};
  if (job->job_id() == 0 || jobs_.contains(key)) {
    return Status::InvalidArgument("job: its id is in use");
  }
  NACRE_RETURN_IF_ERROR(ServiceFor(request)->Submit(job));
  connection->job_id = job->job_id();
  databases_->Pin(job->database_id());
  jobs_[key] = {.job = std::move(job), .connection = connection->id, .cancelled = {}};
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
    if (region_->Owns(job.database_id(), extent.start.offset, extent.length)) continue;
    return Status::InvalidArgument(
        fmt::format("job: {} bytes at {} are not leased to database {:x}", extent.length,
                    static_cast<uint64_t>(extent.start.offset), job.database_id()));
  }
  return Status::OK();
}

bool Server::CancelJob(ServerConnection* connection, uint64_t job_id) {
  const auto running = jobs_.find({connection->client_id, job_id});
  if (running == jobs_.end()) return false;
  running->second.job->Cancel();
  running->second.cancelled.push_back(connection->id);
  return true;
}

void Server::AbortJobs(uint64_t database_id) {
  for (const auto& [key, running] : jobs_) {
    if (running.job->database_id() == database_id) running.job->Cancel();
  }
}

void Server::TakeFinished() {
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

    if (const auto owner = connections_.find(running.connection); owner != connections_.end()) {
      owner->second->job_id = 0;
      control::Reply reply;
      Status status = job->status;
      if (status.ok()) {
        job->FillReply(&reply);
      } else if (stopping_.load(std::memory_order_acquire)) {
        status = Status::Unavailable("the node is stopping");
      }
      Answer(owner->second.get(), status, std::move(reply));
    }
    for (const uint64_t waiting : running.cancelled) {
      const auto connection = connections_.find(waiting);
      if (connection != connections_.end()) Answer(connection->second.get(), Status::OK(), {});
    }
  }
}

}  // namespace nacre::memnode
