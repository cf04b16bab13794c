#include "pool/store/table_rebuild.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pool/read/remote_stream.h"
#include "pool/store/fragment_writes.h"
#include "pool/store/table_store.h"
#include "pool/store/table_store_rep.h"
#include "table/format/fragment_checksums.h"
#include "table/format/table_meta.h"
#include "util/codes/reed_solomon.h"
#include "util/named_point.h"
#include "util/planted_bug.h"

namespace nacre::pool {

namespace {

/// Makes fragments of one table anew, chunk by chunk: a chunk of each source is in flight while
/// earlier ones are checked and decoded, in the processor's cache, right into the place where they
/// are to stay. Sources that this process has mapped are not copied but checked and decoded where
/// they lie, and what was made counts if their memory does afterwards. A fragment that is there and
/// only moves is copied; the others are decoded from k sources. When a node fails, other sources
/// take its place; when a chunk is damaged, other chunks of its row do. So what is written is
/// right, or nothing is.
class TableRebuilder {
 public:
  TableRebuilder(TableStore::Rep* store, const TableRebuild& table, const WriteKeys* keys,
                 RebuildWork* work);

  Status Run(const std::atomic<bool>* cancelled);

 private:
  /// Pieces of sources that are on their way at a time.
  static constexpr size_t kReadsAhead = 2;
  /// How many each fragment has; one more is for the heads.
  static constexpr size_t kWriteFlights = 2;

  /// Bytes [begin, end) of each source, heads not counted: a chunk, or what there is of it.
  struct Piece {
    uint64_t begin = 0;
    uint64_t end = 0;
    RemoteStream* stream = nullptr;
    std::shared_ptr<StreamRead> read;  ///< Null: all sources are local or mapped.
  };

  size_t fragments() const { return table_.placement.fragments.size(); }
  bool Has(FragmentSet set, size_t fragment) const { return (set >> fragment & 1) != 0; }
  /// How many bytes the fragment has in [begin, end); the rest is zero.
  uint64_t BytesThere(size_t fragment, uint64_t begin, uint64_t end) const;
  const char* Local(size_t fragment) const {
    return store_->LocalBytes(table_.placement.fragments[fragment]);
  }
  /// The fragment's bytes in mapped memory; null if they have to be read.
  const char* Mapped(size_t fragment) const {
    const LoadableMemory* const region = regions_[fragment].get();
    if (region == nullptr) return nullptr;
    return FragmentBytesIn(*region, table_.placement.fragments[fragment]);
  }
  void Map(size_t fragment);
  /// Whether what was taken of mapped sources counts; else they are read from now on.
  bool StillMapped();
  /// Whether a piece of the fragment is read.
  bool IsRead(size_t fragment) const {
    return Local(fragment) == nullptr && Mapped(fragment) == nullptr;
  }
  NodeId NodeOf(size_t fragment) const { return table_.placement.fragments[fragment].start.node; }

  /// What to read, for all pieces or, if `damaged` fragments are to be avoided, for one.
  Status Choose(FragmentSet damaged);
  Status OpenWriter();
  Status Start(Piece* piece);
  /// Waits for the piece, and makes of it what is wanted.
  Status Take(Piece* piece);
  /// Which of the sources are damaged there.
  FragmentSet Damaged(const Piece& piece, const std::vector<const char*>& bytes) const;
  Status LoadChecksums(size_t fragment);
  /// Source number `slot` of a piece: its bytes, padded with zeros; null: nothing but zeros.
  const char* Bytes(const Piece& piece, size_t slot);
  /// Makes what is wanted of the piece, or nothing if `*made` is false afterwards, since memory
  /// that was mapped does not count any more.
  Status Produce(const Piece& piece, const std::vector<const char*>& bytes, bool* made);
  /// Where the piece of a wanted fragment is made.
  Status PlaceOf(const Piece& piece, size_t wanted, rdma::LocalBuffer* to);
  size_t FlightOf(const Piece& piece, size_t wanted) const {
    return wanted * kWriteFlights + piece.begin / piece_bytes_ % kWriteFlights;
  }
  Status WritePiece(const Piece& piece, size_t wanted, const rdma::LocalBuffer& from);
  /// The first `n` bytes of a piece of a wanted fragment.
  void Make(size_t fragment, const std::vector<const char*>& bytes, uint64_t n, char* to) const;
  /// `n` bytes of a node, from `offset` of the fragment, its head counted.
  Status ReadPlain(size_t fragment, uint64_t offset, uint64_t n, std::string* bytes);
  Status WriteTheEnds();
  void GiveUpOn(const StreamRead& read);

  TableStore::Rep* const store_;
  const TableRebuild& table_;
  const WriteKeys* const keys_;
  RebuildWork* const work_;
  const uint64_t piece_bytes_;  ///< A chunk.
  uint64_t longest_ = 0;        ///< The longest of the wanted fragments, in bytes.
  FragmentSet unusable_ = 0;
  Status damage_;  ///< The first that was met.
  /// Checksums of sources, by fragment; without a table id until they are loaded.
  std::vector<FragmentChecksums> checksums_;
  std::vector<FragmentChecksums> new_checksums_;  ///< Indexed by wanted fragment.
  std::vector<size_t> sources_;                   ///< Fragments that are read, ascending.
  FragmentSet decode_from_ = 0;  ///< k of them, or one copy; 0: nothing has to be decoded.
  /// Memory of the sources that are mapped, by fragment.
  std::vector<std::shared_ptr<const LoadableMemory>> regions_;
  FragmentSet unmapped_ = 0;  ///< These are read, whatever is mapped.
  std::vector<char> padded_;  ///< Local and mapped sources that end within a piece.
  std::unique_ptr<FragmentWrites> writes_;
};

TableRebuilder::TableRebuilder(TableStore::Rep* store, const TableRebuild& table,
                               const WriteKeys* keys, RebuildWork* work)
    : store_(store),
      table_(table),
      keys_(keys),
      work_(work),
      piece_bytes_(table.placement.chunk_size),
      checksums_(table.placement.fragments.size()),
      regions_(table.placement.fragments.size()) {
  for (const FragmentRebuild& wanted : table.fragments) {
    FragmentChecksums& checksums = new_checksums_.emplace_back();
    checksums.table_id = table.table_id;
    checksums.fragment = static_cast<uint32_t>(wanted.fragment);
    checksums.chunk_size = table.placement.chunk_size;
    longest_ =
        std::max(longest_, FragmentBytes(table.placement, wanted.fragment, table.table_bytes));
  }
}

uint64_t TableRebuilder::BytesThere(size_t fragment, uint64_t begin, uint64_t end) const {
  const uint64_t bytes =
      FragmentBytes(table_.placement, static_cast<int>(fragment), table_.table_bytes);
  return std::min(bytes, end) - std::min(bytes, begin);
}

Status TableRebuilder::Choose(FragmentSet damaged) {
  FragmentSet usable = 0;
  for (size_t i = 0; i < fragments(); ++i) {
    const bool there = NodeOf(i) == store_->local.node || store_->client->alive(NodeOf(i));
    if (there && !Has(unusable_ | damaged, i)) usable |= FragmentSet{1} << i;
  }
  const bool striped = table_.placement.redundancy.striped();
  FragmentSet read = 0;
  bool decode = false;
  for (const FragmentRebuild& wanted : table_.fragments) {
    const auto fragment = static_cast<size_t>(wanted.fragment);
    if (Has(usable, fragment)) {
      read |= FragmentSet{1} << fragment;
    } else {
      decode = true;
    }
  }
  // One replica is as good as k fragments of a code.
  const size_t needed = striped ? table_.placement.redundancy.data : 1;
  decode_from_ = 0;
  if (decode) {
    std::vector<std::pair<int, size_t>> choice;
    for (size_t i = 0; i < fragments(); ++i) {
      if (!Has(usable, i)) continue;
      choice.emplace_back(Has(read, i) ? 0 : Local(i) != nullptr ? 1 : 2, i);
    }
    if (choice.size() < needed) {
      std::string nodes;
      for (size_t i = 0; i < fragments(); ++i) {
        if (Has(usable, i)) continue;
        if (!nodes.empty()) nodes += ", ";
        nodes += store_->client->node_address(NodeOf(i));
      }
      return Status::Unavailable(fmt::format(
          "table {} cannot be rebuilt: too many fragments of {} are lost or damaged: {}{}{}",
          table_.table_id, table_.placement.redundancy.ToString(), nodes, damage_.ok() ? "" : "; ",
          damage_.message()));
    }
    std::sort(choice.begin(), choice.end());
    for (size_t i = 0; i < needed; ++i) decode_from_ |= FragmentSet{1} << choice[i].second;
  }
  read |= decode_from_;
  sources_.clear();
  for (size_t i = 0; i < fragments(); ++i) {
    if (Has(read, i)) sources_.push_back(i);
  }
  for (const size_t fragment : sources_) {
    Map(fragment);
    if (checksums_[fragment].chunk_size != 0) continue;
    const Status s = LoadChecksums(fragment);
    if (s.ok()) continue;
    // Without its checksums a source cannot be trusted; the others may suffice.
    if (damage_.ok()) damage_ = s.WithContext(store_->client->node_address(NodeOf(fragment)));
    unusable_ |= FragmentSet{1} << fragment;
    return Choose(damaged);
  }
  return Status::OK();
}

void TableRebuilder::Map(size_t fragment) {
  if (!LoadableMemory::kInPlace || Has(unmapped_, fragment) || !IsRead(fragment)) return;
  const ExtentAddr& extent = table_.placement.fragments[fragment];
  std::shared_ptr<const LoadableMemory> region = store_->loadable.RegionOf(extent);
  if (region != nullptr && region->Valid()) regions_[fragment] = std::move(region);
}

bool TableRebuilder::StillMapped() {
  bool all = true;
  for (size_t i = 0; i < fragments(); ++i) {
    if (regions_[i] == nullptr || regions_[i]->Valid()) continue;
    regions_[i] = nullptr;
    unmapped_ |= FragmentSet{1} << i;
    all = false;
    NACRE_POINT("rebuild.memory-gone");
  }
  return all;
}

Status TableRebuilder::LoadChecksums(size_t fragment) {
  const uint64_t bytes =
      FragmentBytes(table_.placement, static_cast<int>(fragment), table_.table_bytes);
  std::string tail;
  NACRE_RETURN_IF_ERROR(ReadPlain(fragment, kFragmentHeadBytes + bytes,
                                  FragmentTailBytes(bytes, piece_bytes_), &tail));
  FragmentChecksums loaded;
  NACRE_RETURN_IF_ERROR(DecodeFragmentTail(
      tail,
      {.table_id = table_.table_id, .fragment = static_cast<uint32_t>(fragment), .bytes = bytes},
      &loaded));
  if (loaded.chunk_size != piece_bytes_) return Status::Corruption("a tail of other chunks");
  checksums_[fragment] = std::move(loaded);
  return Status::OK();
}

Status TableRebuilder::ReadPlain(size_t fragment, uint64_t offset, uint64_t n, std::string* bytes) {
  if (const char* local = Local(fragment); local != nullptr) {
    bytes->assign(local - kFragmentHeadBytes + offset, n);
    return Status::OK();
  }
  const RemoteAddr start = table_.placement.fragments[fragment].start;
  const StreamPart part{.node = static_cast<NodeId>(start.node),
                        .offset = start.offset + offset,
                        .length = n,
                        .at = 0};
  RemoteStream* stream = nullptr;
  NACRE_RETURN_IF_ERROR(store_->connections.Stream(&stream));
  const std::shared_ptr<StreamRead> read = stream->Start({&part, 1}, n);
  stream->Await(*read);
  NACRE_RETURN_IF_ERROR(read->status());
  bytes->assign(read->buffer().data(), n);
  work_->bytes_read += n;
  return Status::OK();
}

Status TableRebuilder::OpenWriter() {
  Placement to;
  to.chunk_size = piece_bytes_;
  for (const FragmentRebuild& wanted : table_.fragments) {
    const uint64_t bytes = FragmentBytes(table_.placement, wanted.fragment, table_.table_bytes);
    NACRE_RETURN_IF_ERROR(store_->CheckFragment(wanted.to, bytes, piece_bytes_));
    to.fragments.push_back(wanted.to);
  }
  std::unique_ptr<Lane> lane;
  NACRE_RETURN_IF_ERROR(store_->ConnectedLane(to, &lane));
  writes_ = std::make_unique<FragmentWrites>(store_, std::move(lane), to,
                                             table_.fragments.size() * kWriteFlights + 1, keys_);
  return Status::OK();
}

Status TableRebuilder::Start(Piece* piece) {
  std::vector<StreamPart> parts;
  for (size_t slot = 0; slot < sources_.size(); ++slot) {
    const size_t fragment = sources_[slot];
    const uint64_t there = BytesThere(fragment, piece->begin, piece->end);
    if (there == 0 || Local(fragment) != nullptr) continue;
    work_->bytes_read += there;
    if (!IsRead(fragment)) continue;
    const RemoteAddr start = table_.placement.fragments[fragment].start;
    parts.push_back({.node = static_cast<NodeId>(start.node),
                     .offset = start.offset + kFragmentHeadBytes + piece->begin,
                     .length = there,
                     .at = slot * piece_bytes_});
  }
  if (parts.empty()) return Status::OK();
  NACRE_RETURN_IF_ERROR(store_->connections.Stream(&piece->stream));
  piece->read = piece->stream->Start(parts, sources_.size() * piece_bytes_);
  return Status::OK();
}

const char* TableRebuilder::Bytes(const Piece& piece, size_t slot) {
  const size_t fragment = sources_[slot];
  const uint64_t length = piece.end - piece.begin;
  const uint64_t there = BytesThere(fragment, piece.begin, piece.end);
  if (there == 0) return nullptr;
  const char* const here = Local(fragment) != nullptr ? Local(fragment) : Mapped(fragment);
  if (here != nullptr && there == length) return here + piece.begin;
  char* bytes = nullptr;
  if (here != nullptr) {
    padded_.resize(sources_.size() * piece_bytes_);
    bytes = padded_.data() + slot * piece_bytes_;
    std::memcpy(bytes, here + piece.begin, there);
  } else {
    bytes = piece.read->buffer().data() + slot * piece_bytes_;
  }
  std::memset(bytes + there, 0, length - there);
  return bytes;
}

FragmentSet TableRebuilder::Damaged(const Piece& piece,
                                    const std::vector<const char*>& bytes) const {
  FragmentSet damaged = 0;
  for (size_t slot = 0; slot < sources_.size(); ++slot) {
    if (bytes[slot] == nullptr) continue;
    const FragmentChecksums& checksums = checksums_[sources_[slot]];
    if (!checksums.Matches(piece.begin / piece_bytes_, bytes[slot]) &&
        !NACRE_PLANTED_BUG("table.damage-copied-by-repair")) {
      damaged |= FragmentSet{1} << sources_[slot];
    }
  }
  return damaged;
}

Status TableRebuilder::Take(Piece* piece) {
  FragmentSet damaged = 0;
  for (;;) {
    if (piece->read != nullptr) {
      piece->stream->Await(*piece->read);
      NACRE_RETURN_IF_ERROR(piece->read->status());
    }
    std::vector<const char*> bytes;
    for (size_t slot = 0; slot < sources_.size(); ++slot) bytes.push_back(Bytes(*piece, slot));
    const FragmentSet found = Damaged(*piece, bytes);
    if (found == 0) {
      bool made = false;
      NACRE_RETURN_IF_ERROR(Produce(*piece, bytes, &made));
      // The next piece may be sound in what this one is not.
      if (made) return damaged == 0 ? Status::OK() : Choose(0);
    } else if (StillMapped()) {
      damaged |= found;
    }
    NACRE_RETURN_IF_ERROR(Choose(damaged));
    piece->read.reset();
    NACRE_RETURN_IF_ERROR(Start(piece));
  }
}

Status TableRebuilder::Produce(const Piece& piece, const std::vector<const char*>& bytes,
                               bool* made) {
  std::vector<rdma::LocalBuffer> places(table_.fragments.size());
  for (size_t i = 0; i < places.size(); ++i) {
    NACRE_RETURN_IF_ERROR(PlaceOf(piece, i, &places[i]));
    if (places[i].size == 0) continue;
    Make(static_cast<size_t>(table_.fragments[i].fragment), bytes, places[i].size, places[i].data);
  }
  NACRE_POINT("rebuild.piece-made");
  *made = StillMapped();
  for (size_t i = 0; *made && i < places.size(); ++i) {
    if (places[i].size > 0) NACRE_RETURN_IF_ERROR(WritePiece(piece, i, places[i]));
  }
  return Status::OK();
}

Status TableRebuilder::PlaceOf(const Piece& piece, size_t wanted, rdma::LocalBuffer* to) {
  const auto fragment = static_cast<size_t>(table_.fragments[wanted].fragment);
  const uint64_t n = BytesThere(fragment, piece.begin, piece.end);
  if (n == 0) return Status::OK();
  if (char* const local = writes_->Local(wanted); local != nullptr) {
    *to = writes_->LocalPart(local + piece.begin, n);
    return Status::OK();
  }
  Buffer* buffer = nullptr;
  NACRE_RETURN_IF_ERROR(writes_->Buffered(FlightOf(piece, wanted), piece_bytes_, &buffer));
  *to = buffer->Part(0, static_cast<uint32_t>(n));
  return Status::OK();
}

Status TableRebuilder::WritePiece(const Piece& piece, size_t wanted,
                                  const rdma::LocalBuffer& from) {
  new_checksums_[wanted].Add(from.data, from.size);
  work_->bytes_written += from.size;
  if (NACRE_PLANTED_BUG("table.parity-not-rewritten-by-repair") &&
      static_cast<size_t>(table_.fragments[wanted].fragment) >= table_.placement.redundancy.data) {
    return Status::OK();
  }
  return writes_->Write(wanted, static_cast<int64_t>(piece.begin), from, FlightOf(piece, wanted));
}

void TableRebuilder::Make(size_t fragment, const std::vector<const char*>& bytes, uint64_t n,
                          char* to) const {
  const Redundancy& redundancy = table_.placement.redundancy;
  const auto copied = std::find(sources_.begin(), sources_.end(), fragment);
  if (copied != sources_.end() || !redundancy.striped()) {
    const size_t slot =
        copied != sources_.end()
            ? static_cast<size_t>(copied - sources_.begin())
            : static_cast<size_t>(std::find(sources_.begin(), sources_.end(),
                                            static_cast<size_t>(std::countr_zero(decode_from_))) -
                                  sources_.begin());
    if (bytes[slot] != nullptr) {
      std::memcpy(to, bytes[slot], n);
    } else {
      std::memset(to, 0, n);
    }
    return;
  }
  std::array<const char*, ReedSolomon::kMaxData> sources{};
  size_t used = 0;
  for (size_t slot = 0; slot < sources_.size(); ++slot) {
    if (Has(decode_from_, sources_[slot])) sources[used++] = bytes[slot];
  }
  ReedSolomon::Get(redundancy.data, redundancy.parity)
      .Decoder(decode_from_, FragmentSet{1} << fragment)
      .Combine(n, sources.data(), &to);
}

Status TableRebuilder::WriteTheEnds() {
  // All heads are alike; one that is damaged may be that of the only source.
  std::vector<size_t> order = sources_;
  for (size_t i = 0; i < fragments(); ++i) {
    const bool there = NodeOf(i) == store_->local.node || store_->client->alive(NodeOf(i));
    if (there && std::find(sources_.begin(), sources_.end(), i) == sources_.end()) {
      order.push_back(i);
    }
  }
  Status status;
  for (const size_t fragment : order) {
    std::string head;
    status = ReadPlain(fragment, 0, kFragmentHeadBytes, &head);
    Slice input(head);
    TableMeta meta;
    if (status.ok()) status = DecodeTableMeta(&input, &meta);
    if (!status.ok()) continue;
    head.resize(head.size() - input.size());
    return WriteEnds(head, new_checksums_, table_.fragments.size() * kWriteFlights, writes_.get());
  }
  return status;
}

void TableRebuilder::GiveUpOn(const StreamRead& read) {
  for (size_t i = 0; i < fragments(); ++i) {
    const auto& failed = read.failed();
    if (std::find(failed.begin(), failed.end(), NodeOf(i)) != failed.end()) {
      unusable_ |= FragmentSet{1} << i;
    }
  }
}

Status TableRebuilder::Run(const std::atomic<bool>* cancelled) {
  for (size_t i = 0; i < fragments(); ++i) {
    const uint64_t bytes = FragmentBytes(table_.placement, static_cast<int>(i), table_.table_bytes);
    NACRE_RETURN_IF_ERROR(
        store_->CheckFragment(table_.placement.fragments[i], bytes, piece_bytes_));
  }
  NACRE_RETURN_IF_ERROR(Choose(0));
  NACRE_RETURN_IF_ERROR(OpenWriter());
  std::deque<Piece> ahead;
  uint64_t started = 0;  // Bytes of which the reads have been started.
  for (uint64_t done = 0; done < longest_;) {
    if (cancelled != nullptr && cancelled->load(std::memory_order_acquire)) {
      return Status::Aborted("cancelled");
    }
    while (started < longest_ && ahead.size() <= kReadsAhead) {
      Piece& piece = ahead.emplace_back();
      piece.begin = started;
      // Whole chunks of the sources, of which the longest is the first.
      piece.end =
          started +
          std::min(piece_bytes_, FragmentBytes(table_.placement, 0, table_.table_bytes) - started);
      NACRE_RETURN_IF_ERROR(Start(&piece));
      started = piece.end;
    }
    Piece piece = std::move(ahead.front());
    ahead.pop_front();
    const std::vector<size_t> sources = sources_;
    const FragmentSet unmapped = unmapped_;
    if (Status s = Take(&piece); s.ok()) {
      done = piece.end;
    } else {
      // If nodes failed it, other sources take over.
      if (piece.read == nullptr || piece.read->failed().empty()) return s;
      GiveUpOn(*piece.read);
      NACRE_RETURN_IF_ERROR(Choose(0));
    }
    if (sources_ != sources || unmapped_ != unmapped || done != piece.end) {
      ahead.clear();
      started = done;
    }
  }
  return WriteTheEnds();
}

}  // namespace

Status TableStore::Rebuild(const TableRebuild& table, const std::atomic<bool>* cancelled,
                           RebuildWork* work, const WriteKeys* keys) {
  return TableRebuilder(rep_.get(), table, keys, work).Run(cancelled);
}

}  // namespace nacre::pool
