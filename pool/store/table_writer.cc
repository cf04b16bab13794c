#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "pool/store/fragment_writes.h"
#include "pool/store/table_store_rep.h"
#include "util/planted_bug.h"

namespace nacre::pool {

namespace {

/// Writes one table to all of its copies. Chunks are built in registered buffers, or, when a copy
/// lies in local memory, right where they are to stay; remote copies are sent from there while the
/// next chunk is built.
class ReplicatedWriter : public ExtentWriter {
 public:
  ReplicatedWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane, uint64_t table_id,
                   const Placement& placement, const WriteKeys* keys);

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
  FragmentChecksums checksums_;  ///< Checksums of each copy.
};

ReplicatedWriter::ReplicatedWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane,
                                   uint64_t table_id, const Placement& placement,
                                   const WriteKeys* keys)
    : chunk_size_(placement.chunk_size),
      flights_(static_cast<size_t>(store->buffers_in_flight)),
      writes_(store, std::move(lane), placement, flights_ + 1, keys) {
  for (size_t i = 0; i < placement.fragments.size(); ++i) {
    capacity_ = std::min(capacity_, FragmentCapacity(placement.fragments[i].length, chunk_size_));
    if (local_ == nullptr) local_ = writes_.Local(i);
  }
  checksums_.table_id = table_id;
  checksums_.chunk_size = chunk_size_;
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
  // While the chunk is on the wire, and in the processor's cache.
  checksums_.Add(current_.data, n);
  ++chunks_;
  written_ += n;
  current_ = {};
  writes_.Poll();
  return writes_.failure();
}

Status ReplicatedWriter::Finish(const Slice& head) {
  std::vector<FragmentChecksums> fragments(writes_.fragments(), checksums_);
  for (size_t i = 0; i < fragments.size(); ++i) fragments[i].fragment = static_cast<uint32_t>(i);
  return WriteEnds(head, fragments, flights_, &writes_);
}

}  // namespace

Status Outgrown(uint64_t capacity) {
  return Status::NoSpace(fmt::format("a table outgrows the {} bytes reserved for it", capacity));
}

Status WriteEnds(const Slice& head, const std::vector<FragmentChecksums>& fragments, size_t flight,
                 FragmentWrites* writes) {
  NACRE_RETURN_IF_ERROR(writes->failure());
  if (head.size() > kFragmentHeadBytes) {
    return writes->Fail(Status::InvalidArgument(fmt::format("a head of {} bytes", head.size())));
  }
  // The head, which all have, and then the tails.
  std::string ends = head.ToString();
  std::vector<size_t> tails;
  for (const FragmentChecksums& fragment : fragments) {
    tails.push_back(ends.size());
    EncodeFragmentTail(fragment, &ends);
  }
  tails.push_back(ends.size());
  Buffer* buffer = nullptr;
  NACRE_RETURN_IF_ERROR(writes->Buffered(flight, ends.size(), &buffer));
  std::memcpy(buffer->data(), ends.data(), ends.size());
  for (size_t i = 0; i < fragments.size(); ++i) {
    NACRE_RETURN_IF_ERROR(writes->Write(i, -static_cast<int64_t>(kFragmentHeadBytes),
                                        buffer->Part(0, static_cast<uint32_t>(head.size())),
                                        flight));
    NACRE_RETURN_IF_ERROR(writes->Write(
        i, static_cast<int64_t>(fragments[i].bytes),
        buffer->Part(tails[i], static_cast<uint32_t>(tails[i + 1] - tails[i])), flight));
  }
  if (NACRE_PLANTED_BUG("table.recorded-before-its-fragments-are-written")) return Status::OK();
  return writes->AwaitAll();
}

std::unique_ptr<ExtentWriter> NewTableWriter(TableStore::Rep* store, std::unique_ptr<Lane> lane,
                                             uint64_t table_id, const Placement& placement,
                                             const WriteKeys* keys) {
  if (placement.redundancy.striped()) {
    return NewStripedWriter(store, std::move(lane), table_id, placement, keys);
  }
  return std::make_unique<ReplicatedWriter>(store, std::move(lane), table_id, placement, keys);
}

}  // namespace nacre::pool
