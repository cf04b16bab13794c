#include "db/wal/log_seal.h"

#include <algorithm>
#include <utility>

#include "db/wal/log_replicas.h"
#include "pool/connect/fabric.h"
#include "pool/connect/pool_pace.h"
#include "pool/store/mirrored_extent.h"
#include "table/format/log_format.h"
#include "util/clock.h"

namespace nacre {
namespace {

/// A node is given up for this one mark when it takes so many times as long as writes that are
/// late.
constexpr int kMarkPatience = 2;

}  // namespace

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

Status LogSealer::Write(const LogSegment& segment, const ExtentAddr& copy, Deadline deadline) {
  std::unique_ptr<pool::MirroredExtent> extent;
  NACRE_RETURN_IF_ERROR(pool::MirroredExtent::Open(client_->fabric(), {copy}, &lane_, &extent));
  uint64_t ticket = 0;
  NACRE_RETURN_IF_ERROR(extent->Write(kLogSealAt, Mark(segment), &ticket));
  NACRE_RETURN_IF_ERROR(extent->Await(ticket, deadline));
  lane_ = extent->TakeLane();
  return Status::OK();
}

bool LogSealer::WriteInTime(const LogSegment& segment, const ExtentAddr& copy) {
  pool::Fabric* const fabric = client_->fabric();
  if (lane_ == nullptr && !pool::Lane::Create(fabric, 1, &lane_).ok()) return false;
  pool::NodeLink* const link = fabric->link(static_cast<NodeId>(copy.start.node));
  rdma::QueuePair* queue_pair = nullptr;
  if (!lane_->Get(link, &queue_pair, pool::Lane::Late::kGivenUp).ok()) return false;
  const auto patience = kMarkPatience * fabric->pace.Patience(pool::NodeOperation::kWrite);
  return Write(segment, copy, Deadline::After(client_->clock(), patience)).ok();
}

Status LogSealer::Seal(const LogSegment& segment, const std::vector<NodeId>& lost) {
  std::vector<ExtentAddr> copies;
  for (const ExtentAddr& copy : segment.copies) {
    const auto node = static_cast<NodeId>(copy.start.node);
    const bool skip = std::find(lost.begin(), lost.end(), node) != lost.end();
    if (!skip && copy.start.valid() && client_->alive(node)) copies.push_back(copy);
  }
  // Writers wait for this, so it waits long for a node only if no other one can be marked.
  const auto prompt = [this](const ExtentAddr& copy) {
    return client_->prompt(static_cast<NodeId>(copy.start.node));
  };
  std::stable_partition(copies.begin(), copies.end(), prompt);
  bool any = false;
  for (const ExtentAddr& copy : copies) {
    if (any && !prompt(copy)) break;
    any = WriteInTime(segment, copy) || any;
  }
  if (any) return Status::OK();
  Status status = Status::Unavailable("all nodes that have a copy are lost: " +
                                      LogSegmentNodes(client_, segment));
  for (const ExtentAddr& copy : copies) {
    if (!client_->alive(static_cast<NodeId>(copy.start.node))) continue;
    status = Write(segment, copy, client_->fabric()->context.OperationDeadline());
    if (status.ok()) break;
  }
  return status;
}

}  // namespace nacre
