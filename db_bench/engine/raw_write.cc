#include "db_bench/engine/raw_write.h"

#include <chrono>
#include <string>
#include <utility>

#include "pool/databases.h"
#include "pool/pool_impl.h"
#include "table/format/log_format.h"
#include "table/format/placement.h"
#include "table/format/redundancy.h"
#include "table/format/write_batch_format.h"
#include "util/clock.h"
#include "util/thread_index.h"

namespace nacre::bench {
namespace {

constexpr uint64_t kExtentBytes = 16 << 20;
constexpr uint64_t kSlabBytes = 64 << 20;
constexpr uint64_t kChunkBytes = 256 << 10;
constexpr std::chrono::seconds kLongestWait{10};

/// Size of the record that a Put appends.
uint32_t RecordBytes(const BenchConfig& config) {
  const std::string key(config.key_size, 'k');
  const std::string value(config.value_size_max, 'v');
  const EncodedUpdate update(ValueType::kValue, kDefaultFamily, key, value);
  uint64_t payload = 0;
  for (const Slice& part : update.parts()) payload += part.size();
  return static_cast<uint32_t>(LogRecordBytes(payload));
}

}  // namespace

RawWriter::RawWriter(const BenchConfig& config, std::shared_ptr<Pool> pool)
    : pool_(std::move(pool)),
      client_(static_cast<pool::PoolImpl*>(pool_.get())->client()),
      bytes_(RecordBytes(config)) {}

Status RawWriter::Open(const BenchConfig& config, std::shared_ptr<Pool> pool,
                       std::unique_ptr<RawWriter>* writer) {
  if (pool == nullptr) return Status::NotSupported("rawwrite: the database has opened the pool");
  std::unique_ptr<RawWriter> made(new RawWriter(config, std::move(pool)));
  NACRE_RETURN_IF_ERROR(made->Reserve(config));
  *writer = std::move(made);
  return Status::OK();
}

Status RawWriter::Reserve(const BenchConfig& config) {
  Redundancy redundancy;
  NACRE_RETURN_IF_ERROR(ParseRedundancy(config.options.redundancy, &redundancy));
  if (bytes_ > kExtentBytes) return Status::InvalidArgument("rawwrite: a value is too large");
  // Its space needs an owner. Nothing is published, so it goes with this process.
  pool::DatabaseLease lease;
  NACRE_RETURN_IF_ERROR(
      client_->databases()->Open("db_bench-rawwrite-" + std::to_string(ThreadIndex::Current()),
                                 {.create_if_missing = true}, &lease));
  space_ =
      std::make_unique<pool::SpaceAllocator>(client_, lease.database_id, kSlabBytes, kChunkBytes);
  // A log has as many copies as it takes to lose as many nodes.
  Placement placement;
  NACRE_RETURN_IF_ERROR(space_->Reserve(Redundancy::Copies(redundancy.parity + 1), kExtentBytes,
                                        kNoNode, &placement));
  NACRE_RETURN_IF_ERROR(pool::AllocateBuffer(client_->fabric(), bytes_, &buffer_));
  return pool::MirroredExtent::Open(client_->fabric(), placement.fragments, &extent_);
}

Status RawWriter::Write() {
  uint64_t ticket = 0;
  if (offset_ + bytes_ > extent_->length()) offset_ = 0;
  NACRE_RETURN_IF_ERROR(extent_->Write(
      offset_, {.data = buffer_->data(), .size = bytes_, .region = buffer_.get()}, &ticket));
  offset_ += bytes_;
  return extent_->Poll() >= ticket
             ? Status::OK()
             : extent_->Await(ticket, Deadline::After(Clock::System(), kLongestWait));
}

}  // namespace nacre::bench
