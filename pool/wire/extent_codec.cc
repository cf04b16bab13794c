#include "pool/wire/extent_codec.h"

#include <fmt/format.h>

#include <algorithm>

#include "pool/wire/control.pb.h"

namespace nacre::pool {
namespace {

constexpr uint64_t kMaxOffset = (uint64_t{1} << 48) - 1;

}  // namespace

void EncodePlacement(const Placement& placement, control::Placement* message) {
  message->set_kind(static_cast<uint32_t>(placement.redundancy.kind));
  message->set_data(placement.redundancy.data);
  message->set_parity(placement.redundancy.parity);
  message->set_chunk_size(placement.chunk_size);
  for (const ExtentAddr& fragment : placement.fragments) {
    EncodeExtent(fragment, message->add_fragments());
  }
}

Status DecodePlacement(const control::Placement& message, Placement* placement) {
  constexpr uint32_t kMaxByte = UINT8_MAX;
  Redundancy& redundancy = placement->redundancy;
  redundancy.kind = static_cast<RedundancyKind>(std::min(message.kind(), kMaxByte));
  redundancy.data = static_cast<uint8_t>(std::min(message.data(), kMaxByte));
  redundancy.parity = static_cast<uint8_t>(std::min(message.parity(), kMaxByte));
  if (!IsValid(redundancy)) return Status::InvalidArgument("placement: unknown redundancy");
  if (message.fragments_size() != redundancy.fragments()) {
    return Status::InvalidArgument(fmt::format("placement: {} fragments for {}",
                                               message.fragments_size(), redundancy.ToString()));
  }
  placement->chunk_size = message.chunk_size();
  if (placement->chunk_size == 0 || placement->chunk_size > kMaxChunkBytes) {
    return Status::InvalidArgument(
        fmt::format("placement: chunks of {} bytes", placement->chunk_size));
  }
  for (const control::Extent& fragment : message.fragments()) {
    NACRE_RETURN_IF_ERROR(DecodeExtent(fragment, &placement->fragments.emplace_back()));
  }
  return Status::OK();
}

void EncodeExtent(const ExtentAddr& extent, control::Extent* message) {
  message->set_node(extent.start.node);
  message->set_offset(extent.start.offset);
  message->set_length(extent.length);
}

Status DecodeExtent(const control::Extent& message, ExtentAddr* extent) {
  if (message.node() >= kNoNode || message.offset() > kMaxOffset ||
      message.length() > kMaxOffset - message.offset()) {
    return Status::InvalidArgument(fmt::format("malformed extent: {} bytes at {} of node {}",
                                               message.length(), message.offset(), message.node()));
  }
  extent->start.node = static_cast<NodeId>(message.node());
  extent->start.offset = message.offset() & kMaxOffset;
  extent->length = message.length();
  return Status::OK();
}

}  // namespace nacre::pool
