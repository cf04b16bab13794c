#include "db/wal/log_seal.h"

#include <algorithm>
#include <utility>

#include "db/wal/log_replicas.h"
#include "pool/store/mirrored_extent.h"
#include "table/format/log_format.h"
#include "util/clock.h"

namespace nacre {

Status LogSealer::Create(pool::PoolClient* client, uint64_t database_id,
                         std::unique_ptr<LogSealer>* sealer) {
  std::unique_ptr<rdma::MemoryRegion> mark;
  NACRE_RETURN_IF_ERROR(pool::AllocateBuffer(client->fabric(), kLogSealBytes, &mark));
  sealer->reset(new LogSealer(client, database_id, std::move(mark)));
  return Status::OK();
}

rdma::LocalBuffer LogSealer::Mark(const LogSegment& segment) {
  EncodeLogSeal(database_id_, segment.number, mark_->data());
  return {.data = mark_->data(), .size = kLogSealBytes, .region = mark_.get()};
}

Status LogSealer::Write(const LogSegment& segment, const std::vector<ExtentAddr>& copies) {
  std::unique_ptr<pool::MirroredExtent> extent;
  NACRE_RETURN_IF_ERROR(pool::MirroredExtent::Open(client_->fabric(), copies, &lane_, &extent));
  uint64_t ticket = 0;
  NACRE_RETURN_IF_ERROR(extent->Write(kLogSealAt, Mark(segment), &ticket));
  NACRE_RETURN_IF_ERROR(extent->Await(
      ticket, Deadline::After(client_->clock(), client_->options().operation_timeout)));
  lane_ = extent->TakeLane();
  return Status::OK();
}

Status LogSealer::Seal(const LogSegment& segment, const std::vector<NodeId>& lost) {
  std::vector<ExtentAddr> copies;
  for (const ExtentAddr& copy : segment.copies) {
    const auto node = static_cast<NodeId>(copy.start.node);
    const bool skip = std::find(lost.begin(), lost.end(), node) != lost.end();
    if (!skip && copy.start.valid() && client_->alive(node)) copies.push_back(copy);
  }
  if (copies.empty()) {
    return Status::Unavailable("all nodes that have a copy are lost: " +
                               LogSegmentNodes(client_, segment));
  }
  Status status = Write(segment, copies);
  if (status.ok() || copies.size() == 1) return status;
  // One of them has failed, and taken the others with it.
  bool any = false;
  for (const ExtentAddr& copy : copies) {
    if (!client_->alive(static_cast<NodeId>(copy.start.node))) continue;
    Status one = Write(segment, {copy});
    any = any || one.ok();
    if (!one.ok()) status = std::move(one);
  }
  return any ? Status::OK() : status;
}

}  // namespace nacre
