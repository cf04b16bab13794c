#include "memnode/job_grants.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace nacre::pool {

Status JobGrants::Begin(uint64_t database_id, uint64_t job_id,
                        const std::vector<ExtentAddr>& extents, rdma::MemoryRegion* memory,
                        std::vector<uint32_t>* keys) {
  if (job_id == 0 || jobs_.contains({database_id, job_id})) {
    return Status::InvalidArgument("job: its id is in use");
  }
  if (std::find(ended_first_.begin(), ended_first_.end(), Key{database_id, job_id}) !=
      ended_first_.end()) {
    return Status::Aborted("job: it has been ended");
  }
  if (jobs_.size() >= kMost) return Status::Busy(fmt::format("{} jobs have begun", jobs_.size()));
  std::vector<size_t> order(extents.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return extents[a].start.offset < extents[b].start.offset; });
  Job job;
  keys->assign(extents.size(), 0);
  for (size_t first = 0; first < order.size();) {
    Grant grant{.offset = extents[order[first]].start.offset, .length = 0, .grant = nullptr};
    size_t next = first;
    for (; next < order.size(); ++next) {
      const ExtentAddr& extent = extents[order[next]];
      if (extent.start.offset > grant.offset + grant.length) break;
      grant.length = std::max(grant.length, extent.start.offset + extent.length - grant.offset);
    }
    Status s = memory->Grant(grant.offset, grant.length, rdma::Access::kRemoteAll, &grant.grant);
    if (!s.ok()) return s.IsNoSpace() ? Status::Busy(s.message()) : s;
    for (; first < next; ++first) (*keys)[order[first]] = grant.grant->remote_key().key;
    job.grants.push_back(std::move(grant));
  }
  jobs_.emplace(Key{database_id, job_id}, std::move(job));
  return Status::OK();
}

bool JobGrants::Has(uint64_t database_id, uint64_t job_id) const {
  const auto job = jobs_.find({database_id, job_id});
  return job != jobs_.end() && !job->second.ended;
}

Status JobGrants::End(uint64_t database_id, uint64_t job_id) {
  const auto job = jobs_.find({database_id, job_id});
  if (job == jobs_.end()) {
    if (ended_first_.size() == kMostOvertaking) ended_first_.pop_front();
    ended_first_.emplace_back(database_id, job_id);
    return Status::OK();
  }
  job->second.ended = true;
  Status failure;
  std::erase_if(job->second.grants, [&](const Grant& grant) {
    Status s = grant.grant->Revoke();
    if (!s.ok()) failure = std::move(s);
    return s.ok();
  });
  if (job->second.grants.empty()) jobs_.erase(job);
  return failure;
}

void JobGrants::EndAll(uint64_t database_id) {
  for (auto job = jobs_.lower_bound({database_id, 0});
       job != jobs_.end() && job->first.first == database_id;) {
    const uint64_t job_id = job++->first.second;
    // One that cannot be revoked keeps its slab from being used (RevokeWithin).
    End(database_id, job_id).IgnoreError();
  }
}

Status JobGrants::RevokeWithin(uint64_t offset, uint64_t length) {
  Status failure;
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    const auto job = it++;
    std::erase_if(job->second.grants, [&](const Grant& grant) {
      if (grant.offset >= offset + length || offset >= grant.offset + grant.length) return false;
      Status s = grant.grant->Revoke();
      if (!s.ok()) failure = std::move(s);
      return s.ok();
    });
    if (job->second.ended && job->second.grants.empty()) jobs_.erase(job);
  }
  return failure;
}

}  // namespace nacre::pool
