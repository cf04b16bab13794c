#include "pool/store/chunk_sums.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "pool/read/remote_stream.h"
#include "pool/store/remote_table.h"

namespace nacre::pool {
namespace {

Status ReadTail(const RemoteTable& table, size_t fragment, FragmentChecksums* sums) {
  const ExtentAddr& extent = table.placement.fragments[fragment];
  const FragmentIdentity identity{
      .table_id = table.id,
      .fragment = static_cast<uint32_t>(fragment),
      .bytes = FragmentBytes(table.placement, static_cast<int>(fragment), table.size)};
  RemoteStream* stream = nullptr;
  NACRE_RETURN_IF_ERROR(table.store->connections.Stream(&stream));
  const StreamPart part{.node = static_cast<NodeId>(extent.start.node),
                        .offset = extent.start.offset + kFragmentHeadBytes + identity.bytes,
                        .length = FragmentTailBytes(identity.bytes, table.placement.chunk_size),
                        .at = 0};
  const std::shared_ptr<StreamRead> read = stream->Start({&part, 1}, part.length);
  stream->Await(*read);
  NACRE_RETURN_IF_ERROR(read->status());
  NACRE_RETURN_IF_ERROR(
      DecodeFragmentTail(Slice(read->buffer().data(), part.length), identity, sums));
  if (sums->chunk_size == table.placement.chunk_size) return Status::OK();
  return Status::Corruption(fmt::format("its tail is of chunks of {} bytes", sums->chunk_size));
}

}  // namespace

Status ChunkSums::Check(const RemoteTable& table, size_t fragment, uint64_t row,
                        const char* bytes) {
  const auto where = [&] {
    return fmt::format(
        "table {}: fragment {} on {}", table.id, fragment,
        table.store->client->node_address(table.placement.fragments[fragment].start.node));
  };
  const FragmentChecksums* known = nullptr;
  {
    MutexLock lock(&mutex_);
    if (const auto found = sums_.find(fragment); found != sums_.end()) known = &found->second;
  }
  if (known == nullptr) {
    FragmentChecksums sums;
    NACRE_RETURN_IF_ERROR(ReadTail(table, fragment, &sums).WithContext(where()));
    MutexLock lock(&mutex_);
    known = &sums_.try_emplace(fragment, std::move(sums)).first->second;
  }
  if (known->Matches(row, bytes)) return Status::OK();
  return Status::Corruption(
      fmt::format("{}: chunk {} does not match its checksum, or is another table's", where(), row));
}

}  // namespace nacre::pool
