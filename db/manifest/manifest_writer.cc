#include "db/manifest/manifest_writer.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "util/clock.h"
#include "util/named_point.h"

namespace nacre {

namespace {

/// Size of the registered memory that is kept; longer entries get theirs for a while.
constexpr uint64_t kMinBufferBytes = 64 << 10;
/// An image travels in chunks, of which so many are on their way at once.
constexpr size_t kChunksInFlight = 32;

}  // namespace

Status ManifestWriter::Create(pool::PoolClient* client, const ManifestRoot& sizes,
                              std::vector<ExtentAddr> copies, const SlotImage& image,
                              uint64_t version, uint64_t chosen,
                              std::unique_ptr<ManifestWriter>* writer) {
  std::unique_ptr<ManifestWriter> made(new ManifestWriter(client, sizes));
  ManifestRoot& root = made->root_;
  assert(image.used() <= root.image_slots);
  root.replicas.clear();
  for (const ExtentAddr& copy : copies) {
    if (copy.length < root.bytes()) return Status::InvalidArgument("manifest: a copy is too short");
    root.replicas.push_back(
        {.instance_id = client->instance_id(static_cast<NodeId>(copy.start.node)),
         .offset = copy.start.offset,
         .length = copy.length});
  }
  made->copies_ = copies;
  NACRE_RETURN_IF_ERROR(
      pool::MirroredExtent::Open(client->fabric(), std::move(copies), &made->extent_, chosen));
  made->WaitForLate(chosen == pool::MirroredExtent::kChosenNow);
  NACRE_RETURN_IF_ERROR(made->WriteAll(image, version));
  *writer = std::move(made);
  return Status::OK();
}

Status ManifestWriter::WriteAll(const SlotImage& image, uint64_t version) {
  NACRE_RETURN_IF_ERROR(WriteImage(image));
  const pool::ImageHeader header{.identity = root_.identity,
                                 .version = version,
                                 .slot_bytes = root_.slot_bytes,
                                 .image_slots = root_.image_slots,
                                 .slots_used = image.used()};
  std::string bytes(pool::ImageHeader::kBytes, '\0');
  header.Encode(bytes.data());
  const size_t cut = bytes.size();
  bytes.append(ManifestRing::kTerminatorBytes, '\0');
  const Part parts[] = {{.from = 0, .to = cut, .offset = 0},
                        {.from = cut, .to = bytes.size(), .offset = root_.ring_offset()}};
  return Write(bytes, parts);
}

Status ManifestWriter::WriteImage(const SlotImage& image) {
  constexpr size_t kChunkBytes = SlotImage::kChunkBytes;
  const size_t places = std::min(image.chunks(), kChunksInFlight);
  std::unique_ptr<rdma::MemoryRegion> buffer;
  NACRE_RETURN_IF_ERROR(pool::AllocateBuffer(client_->fabric(), places * kChunkBytes, &buffer));
  uint64_t ticket = 0;
  Status status;
  for (size_t i = 0; i < image.chunks() && status.ok(); ++i) {
    // The chunk that was in this place before has to be gone.
    if (i >= places) status = extent_->Await(ticket - places + 1, OperationDeadline());
    if (!status.ok()) break;
    const Slice chunk = image.chunk(i);
    char* const place = buffer->data() + i % places * kChunkBytes;
    std::memcpy(place, chunk.data(), chunk.size());
    status = extent_->Write(
        root_.slots_offset() + i * kChunkBytes,
        {.data = place, .size = static_cast<uint32_t>(chunk.size()), .region = buffer.get()},
        &ticket);
  }
  // Nothing is in flight any more after a failure.
  return status.ok() ? extent_->Await(ticket, OperationDeadline()) : status;
}

Deadline ManifestWriter::OperationDeadline() const {
  return Deadline::After(client_->clock(), client_->options().operation_timeout);
}

Status ManifestWriter::Write(const std::string& bytes, std::span<const Part> parts) {
  if (buffer_ == nullptr || buffer_->size() < bytes.size()) {
    NACRE_RETURN_IF_ERROR(pool::AllocateBuffer(
        client_->fabric(), std::max<uint64_t>(bytes.size(), kMinBufferBytes), &buffer_));
  }
  char* const data = buffer_->data();
  std::memcpy(data, bytes.data(), bytes.size());
  uint64_t ticket = 0;
  for (const Part& part : parts) {
    if (&part != &parts.front()) NACRE_POINT("manifest.first-part-posted");
    const rdma::LocalBuffer from{.data = data + part.from,
                                 .size = static_cast<uint32_t>(part.to - part.from),
                                 .region = buffer_.get()};
    NACRE_RETURN_IF_ERROR(extent_->Write(part.offset, from, &ticket));
  }
  NACRE_POINT("manifest.posted");
  return extent_->Await(ticket, OperationDeadline());
}

uint64_t ManifestWriter::Skipped(size_t edit_bytes) const {
  const uint64_t left = root_.ring_bytes - tail_in_ring();
  const uint64_t wanted = ManifestRing::EntryBytes(edit_bytes) + ManifestRing::kTerminatorBytes;
  return wanted <= left ? 0 : left;
}

uint64_t ManifestWriter::Needed(size_t edit_bytes) const {
  return Skipped(edit_bytes) + ManifestRing::EntryBytes(edit_bytes) +
         ManifestRing::kTerminatorBytes;
}

bool ManifestWriter::FitsEver(size_t edit_bytes) const {
  // Wherever the tail is, one half of the ring is in one piece.
  return ManifestRing::EntryBytes(edit_bytes) + ManifestRing::kTerminatorBytes <=
         root_.ring_bytes / 2;
}

Status ManifestWriter::Append(uint64_t version, const Slice& edit) {
  const uint64_t skipped = Skipped(edit.size());
  const uint64_t bytes = ManifestRing::EntryBytes(edit.size());
  const uint64_t end = root_.ring_offset() + (skipped > 0 ? 0 : tail_in_ring()) + bytes;
  entry_.clear();
  ring_.EncodeEntry(version, edit, &entry_);
  const Part terminator{.from = bytes, .to = entry_.size(), .offset = end};
  const Part entry{.from = 0, .to = bytes, .offset = end - bytes};
  if (skipped == 0) {
    const Part parts[] = {terminator, entry};
    NACRE_RETURN_IF_ERROR(Write(entry_, parts));
  } else {
    const Part marker{.from = entry_.size(),
                      .to = entry_.size() + ManifestRing::kHeaderBytes,
                      .offset = root_.ring_offset() + tail_in_ring()};
    ring_.EncodeWrap(version, &entry_);
    const Part parts[] = {terminator, entry, marker};
    NACRE_RETURN_IF_ERROR(Write(entry_, parts));
  }
  tail_ += skipped + bytes;
  return Status::OK();
}

}  // namespace nacre
