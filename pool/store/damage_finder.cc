#include "pool/store/damage_finder.h"

#include <bit>
#include <utility>
#include <vector>

#include "pool/read/remote_stream.h"
#include "table/format/fragment_checksums.h"

namespace nacre::pool {
namespace {

class DamageFinder {
 public:
  explicit DamageFinder(RemoteTable* table)
      : table_(table),
        placement_(table->placement),
        fragments_(placement_.fragments.size()),
        lost_(table->Lost()) {}

  Status ReadTails();
  Status Examine(uint64_t row);
  /// Those of whose chunks nothing can be said, because their tails are damaged.
  FragmentSet without_sums() const { return without_sums_; }

 private:
  /// Bytes of one fragment, on their way or in place.
  struct Piece {
    const char* in_place = nullptr;
    std::shared_ptr<StreamRead> read;
  };

  bool striped() const { return placement_.redundancy.striped(); }
  uint64_t Bytes(size_t fragment) const {
    return FragmentBytes(placement_, static_cast<int>(fragment), table_->size);
  }
  bool Has(FragmentSet set, size_t fragment) const { return (set >> fragment & 1) != 0; }
  Piece Start(size_t fragment, uint64_t offset, size_t n);
  /// Null if the node does not answer.
  const char* Await(size_t fragment, Piece* piece);

  RemoteTable* const table_;
  const Placement& placement_;
  const size_t fragments_;
  RemoteStream* stream_ = nullptr;
  FragmentSet lost_;
  std::vector<FragmentChecksums> sums_;
  FragmentSet without_sums_ = 0;
};

DamageFinder::Piece DamageFinder::Start(size_t fragment, uint64_t offset, size_t n) {
  const ExtentAddr& extent = placement_.fragments[fragment];
  if (const char* local = table_->store->LocalBytes(extent); local != nullptr) {
    return {.in_place = local + offset, .read = nullptr};
  }
  const StreamPart part{.node = static_cast<NodeId>(extent.start.node),
                        .offset = extent.start.offset + kFragmentHeadBytes + offset,
                        .length = n,
                        .at = 0};
  return {.in_place = nullptr, .read = stream_->Start({&part, 1}, n)};
}

const char* DamageFinder::Await(size_t fragment, Piece* piece) {
  if (piece->in_place != nullptr) return piece->in_place;
  stream_->Await(*piece->read);
  if (piece->read->status().ok()) return piece->read->buffer().data();
  lost_ |= FragmentSet{1} << fragment;
  return nullptr;
}

Status DamageFinder::ReadTails() {
  NACRE_RETURN_IF_ERROR(table_->store->connections.Stream(&stream_));
  sums_.resize(fragments_);
  std::vector<Piece> tails(fragments_);
  const auto tail_bytes = [&](size_t i) {
    return static_cast<size_t>(FragmentTailBytes(Bytes(i), placement_.chunk_size));
  };
  for (size_t i = 0; i < fragments_; ++i) {
    if (!Has(lost_, i)) tails[i] = Start(i, Bytes(i), tail_bytes(i));
  }
  for (size_t i = 0; i < fragments_; ++i) {
    if (Has(lost_, i)) continue;
    const char* const tail = Await(i, &tails[i]);
    if (tail == nullptr) continue;
    const FragmentIdentity identity{
        .table_id = table_->id, .fragment = static_cast<uint32_t>(i), .bytes = Bytes(i)};
    const Status status = DecodeFragmentTail(Slice(tail, tail_bytes(i)), identity, &sums_[i]);
    if (!status.ok() || sums_[i].chunk_size != placement_.chunk_size) {
      without_sums_ |= FragmentSet{1} << i;
    }
  }
  table_->ReportDamage(without_sums_);
  return Status::OK();
}

Status DamageFinder::Examine(uint64_t row) {
  std::vector<Piece> chunks(fragments_);
  FragmentSet there = 0;
  FragmentSet whole = 0;
  for (size_t i = 0; i < fragments_; ++i) {
    if (row * placement_.chunk_size >= Bytes(i)) {
      whole |= FragmentSet{1} << i;  // An empty column is as it should be.
    } else if (!Has(lost_ | without_sums_, i)) {
      chunks[i] = Start(i, row * placement_.chunk_size, sums_[i].ChunkBytes(row));
      there |= FragmentSet{1} << i;
    }
  }
  FragmentSet damaged = 0;
  for (size_t i = 0; i < fragments_; ++i) {
    if (!Has(there, i)) continue;
    const char* const bytes = Await(i, &chunks[i]);
    if (bytes == nullptr) continue;
    (sums_[i].Matches(row, bytes) ? whole : damaged) |= FragmentSet{1} << i;
  }
  // Chunks of which nothing can be said are done without, if the others suffice.
  if (std::popcount(whole) >= placement_.redundancy.data) damaged |= without_sums_ & ~whole;
  table_->ReportDamage(damaged, row);
  return Status::OK();
}

}  // namespace

std::string FindDamage(RemoteTable* table, uint64_t offset, size_t n, bool again) {
  const Placement& placement = table->placement;
  // A placement without chunk sizes does not lead to tails.
  if (placement.chunk_size == 0 || n == 0 || !table->malformed.ok()) return {};
  const uint64_t row_bytes = placement.chunk_size * placement.redundancy.data;
  const uint64_t first = offset / row_bytes;
  const uint64_t last = (offset + n - 1) / row_bytes;
  const auto known = [&] {
    FragmentSet fragments = 0;
    for (uint64_t row = first; row <= last; ++row) fragments |= table->damage.InRow(row);
    return fragments;
  };
  FragmentSet damaged = known();
  if (damaged == 0 || again) {
    DamageFinder finder(table);
    Status status = finder.ReadTails();
    for (uint64_t row = first; row <= last && status.ok(); ++row) status = finder.Examine(row);
    damaged = known() | finder.without_sums();
  }
  std::string nodes;
  for (size_t i = 0; i < placement.fragments.size(); ++i) {
    if ((damaged >> i & 1) == 0) continue;
    if (!nodes.empty()) nodes += ", ";
    nodes += table->store->client->node_address(placement.fragments[i].start.node);
  }
  return nodes;
}

}  // namespace nacre::pool
