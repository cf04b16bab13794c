#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "memnode/fragment_writes.h"
#include "memnode/table_store_rep.h"

namespace nacre::memnode {

namespace {

/// Writes one table to all of its copies. Chunks are built in registered buffers, or, when a copy
/// lies in local memory, right where they are to stay; remote copies are sent from there while the
/// next chunk is built.
class ReplicatedWriter : public ExtentWriter {
 public:
  ReplicatedWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane, const Placement& placement,
                   size_t chunk_size);

  size_t chunk_size() const override { return chunk_size_; }
  uint64_t capacity() const override { return capacity_; }
  Status NextChunk(char** buffer) override;
  Status Commit(size_t n) override;
  Status Finish(const Slice& head) override;

 private:
  bool BuiltInPlace() const { return local_ != nullptr && chunk_size_ <= capacity_ - written_; }
  size_t Flight() const { return chunks_ % flights_; }

  const size_t chunk_size_;
  const size_t flights_;
  FragmentWrites writes_;
  uint64_t capacity_ = UINT64_MAX;
  char* local_ = nullptr;  ///< Table bytes of a local copy.
  uint64_t chunks_ = 0;    ///< Committed.
  uint64_t written_ = 0;   ///< Bytes committed.
  rdma::LocalBuffer current_;
};

ReplicatedWriter::ReplicatedWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane,
                                   const Placement& placement, size_t chunk_size)
    : chunk_size_(chunk_size),
      flights_(static_cast<size_t>(store->buffers_in_flight)),
      writes_(store, std::move(lane), placement, flights_ + 1) {
  for (size_t i = 0; i < placement.fragments.size(); ++i) {
    capacity_ = std::min(capacity_, placement.fragments[i].length - kFragmentHeadBytes);
    if (local_ == nullptr) local_ = writes_.Local(i);
  }
}

Status ReplicatedWriter::NextChunk(char** buffer) {
  NACRE_RETURN_IF_ERROR(writes_.AwaitFlight(Flight()));
  if (BuiltInPlace()) {
    current_ = writes_.LocalPart(local_ + written_, chunk_size_);
  } else {
    Buffer* place = nullptr;
    NACRE_RETURN_IF_ERROR(writes_.Buffered(Flight(), chunk_size_, &place));
    current_ = place->Part(0, static_cast<uint32_t>(chunk_size_));
  }
  *buffer = current_.data;
  return Status::OK();
}

Status ReplicatedWriter::Commit(size_t n) {
  NACRE_RETURN_IF_ERROR(writes_.failure());
  assert(current_.data != nullptr && n <= chunk_size_);
  if (n > capacity_ - written_) return writes_.Fail(Outgrown(capacity_));
  current_.size = static_cast<uint32_t>(n);
  for (size_t i = 0; i < writes_.fragments(); ++i) {
    NACRE_RETURN_IF_ERROR(writes_.Write(i, static_cast<int64_t>(written_), current_, Flight()));
  }
  ++chunks_;
  written_ += n;
  current_ = {};
  writes_.Poll();
  return writes_.failure();
}

Status ReplicatedWriter::Finish(const Slice& head) { return WriteHeads(head, flights_, &writes_); }

}  // namespace

Status Outgrown(uint64_t capacity) {
  return Status::NoSpace(fmt::format("a table outgrows the {} bytes reserved for it", capacity));
}

Status WriteHeads(const Slice& head, size_t flight, FragmentWrites* writes) {
  NACRE_RETURN_IF_ERROR(writes->failure());
  if (head.size() > kFragmentHeadBytes) {
    return writes->Fail(Status::InvalidArgument(fmt::format("a head of {} bytes", head.size())));
  }
  if (!head.empty()) {
    Buffer* buffer = nullptr;
    NACRE_RETURN_IF_ERROR(writes->Buffered(flight, kFragmentHeadBytes, &buffer));
    std::memcpy(buffer->data(), head.data(), head.size());
    for (size_t i = 0; i < writes->fragments(); ++i) {
      NACRE_RETURN_IF_ERROR(writes->Write(i, -static_cast<int64_t>(kFragmentHeadBytes),
                                          buffer->Part(0, static_cast<uint32_t>(head.size())),
                                          flight));
    }
  }
  return writes->AwaitAll();
}

std::unique_ptr<ExtentWriter> NewTableWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane,
                                             const Placement& placement, size_t chunk_size) {
  if (placement.redundancy.striped()) {
    return NewStripedWriter(store, std::move(lane), placement);
  }
  return std::make_unique<ReplicatedWriter>(store, std::move(lane), placement, chunk_size);
}

}  // namespace nacre::memnode
