#include "pool/store/read_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <string>

namespace nacre::pool {

namespace {

/// Reads of so many bytes of a replicated table begin with the same replica.
constexpr uint64_t kSpreadBytes = 1 << 20;

class Planner {
 public:
  Planner(const TableStore::Rep& store, const Placement& placement, uint64_t table_bytes,
          FragmentSet lost, const DamagedChunks& damage, uint64_t offset, size_t n, ReadPlan* plan)
      : store_(store),
        placement_(placement),
        striping_(placement),
        table_bytes_(table_bytes),
        lost_(lost),
        damage_(damage.fragments() == 0 ? nullptr : &damage),
        whole_chunks_(store.memory == TableStore::Memory::kUnheld),
        offset_(offset),
        length_(n),
        plan_(plan) {}

  Status Replicated();
  Status Striped();

 private:
  /// Bytes [begin, end) of a row's chunks.
  struct Range {
    uint64_t row = 0;
    uint64_t begin = 0;
    uint64_t end = 0;
    bool operator==(const Range&) const = default;
  };
  /// A fragment's part of a range, and where it goes.
  struct Source {
    size_t fragment = 0;
    Range range;
    size_t at = 0;
  };

  static constexpr size_t kNowhere = SIZE_MAX - 1;

  size_t data() const { return placement_.redundancy.data; }
  bool IsLost(size_t fragment) const { return (lost_ >> fragment & 1) != 0; }
  /// Whether to do without the fragment's chunk in this row.
  bool IsAvoided(size_t fragment, uint64_t row) const {
    if (damage_ == nullptr) [[likely]]
      return IsLost(fragment);
    return (AvoidedIn(row) >> fragment & 1) != 0;
  }
  FragmentSet AvoidedIn(uint64_t row) const;
  const char* Local(size_t fragment) const {
    return store_.LocalBytes(placement_.fragments[fragment]);
  }
  uint64_t BytesThere(size_t fragment, const Range& range) const;
  /// Has the bytes [begin, begin + n) of a fragment, head not counted, brought to `at`.
  void Fetch(size_t fragment, uint64_t begin, size_t n, size_t at);
  /// Room behind what the buffer has so far.
  size_t TakeRoom(size_t length);
  Status DecodePart(size_t column, const Range& range, size_t at);
  Status Decode(size_t column, const Range& range, size_t at);
  /// The place of a data fragment's range among the bytes asked for; kNowhere if it is not there.
  size_t WithinRequest(size_t fragment, const Range& range) const;
  size_t PlaceOf(size_t fragment, const Range& range);
  Status TooManyLost() const;

  const TableStore::Rep& store_;
  const Placement& placement_;
  const Striping striping_;
  const uint64_t table_bytes_;
  const FragmentSet lost_;
  const DamagedChunks* const damage_;  ///< Null if there is none.
  const bool whole_chunks_;            ///< Are decoded, and their sources checked.
  const uint64_t offset_;
  const size_t length_;
  ReadPlan* const plan_;
  mutable std::map<uint64_t, FragmentSet> avoided_;  ///< Keyed by row, once asked for.
  std::vector<Source> sources_;                      ///< Brought for decoding only.
};

void Planner::Fetch(size_t fragment, uint64_t begin, size_t n, size_t at) {
  if (const char* local = Local(fragment); local != nullptr) {
    plan_->copies.push_back({local + begin, n, at});
    return;
  }
  const RemoteAddr start = placement_.fragments[fragment].start;
  plan_->parts.push_back({.node = static_cast<NodeId>(start.node),
                          .offset = start.offset + kFragmentHeadBytes + begin,
                          .length = n,
                          .at = at});
}

Status Planner::TooManyLost() const {
  std::string nodes;
  for (size_t i = 0; i < placement_.fragments.size(); ++i) {
    if (!IsLost(i)) continue;
    if (!nodes.empty()) nodes += ", ";
    nodes += store_.client->node_address(placement_.fragments[i].start.node);
  }
  return Status::Unavailable(fmt::format("of a table's {} fragments, {}, too many are lost: {}",
                                         placement_.fragments.size(),
                                         placement_.redundancy.ToString(), nodes));
}

Status Planner::Replicated() {
  plan_->bytes = length_;
  for (size_t done = 0; done < length_;) {
    // Reads in one piece unless one copy is better for some chunk, and another for another.
    const uint64_t at = offset_ + done;
    const uint64_t chunk_size = damage_ == nullptr ? UINT64_MAX : placement_.chunk_size;
    const size_t n = std::min<uint64_t>(length_ - done, chunk_size - at % chunk_size);
    const size_t copies = placement_.fragments.size();
    // A long read, and all that are in one region of the table, stay with one node.
    size_t copy = store_.FirstCopy(placement_, at / kSpreadBytes);
    size_t tried = 0;
    for (; tried < copies && IsAvoided(copy, at / chunk_size); ++tried) copy = (copy + 1) % copies;
    if (tried == copies) return TooManyLost();
    if (const char* local = Local(copy); local != nullptr && n == length_) {
      plan_->in_place = local + at;
      return Status::OK();
    }
    Fetch(copy, at, n, done);
    done += n;
  }
  return Status::OK();
}

FragmentSet Planner::AvoidedIn(uint64_t row) const {
  // Others may find more damage meanwhile: a plan holds to what it found first.
  const auto [known, first_time] = avoided_.try_emplace(row, lost_);
  if (!first_time) return known->second;
  FragmentSet avoided = lost_ | damage_->InRow(row);
  if (placement_.redundancy.striped()) {
    for (size_t i = 0; i < data(); ++i) {
      // An empty column lacks nowhere.
      const bool empty = striping_.ChunkBytes(row, static_cast<int>(i), table_bytes_) == 0;
      if (empty) avoided &= ~(FragmentSet{1} << i);
    }
  }
  if (std::popcount(avoided) <= placement_.redundancy.parity) known->second = avoided;
  return known->second;
}

Status Planner::Striped() {
  const uint64_t chunk_size = placement_.chunk_size;
  const Striping::Place first = striping_.Locate(offset_);
  const uint64_t first_row = offset_ / chunk_size / data();
  if (!IsAvoided(first.fragment, first_row) && offset_ % chunk_size + length_ <= chunk_size) {
    if (const char* local = Local(first.fragment); local != nullptr) {
      plan_->in_place = local + first.offset;
      return Status::OK();
    }
  }
  plan_->bytes = length_;
  for (size_t done = 0; done < length_;) {
    const uint64_t at = offset_ + done;
    const uint64_t begin = at % chunk_size;
    const size_t n = std::min<uint64_t>(length_ - done, chunk_size - begin);
    const Striping::Place place = striping_.Locate(at);
    const uint64_t row = at / chunk_size / data();
    if (!IsAvoided(place.fragment, row)) {
      Fetch(place.fragment, place.offset, n, done);
    } else {
      const Range range{.row = row, .begin = begin, .end = begin + n};
      NACRE_RETURN_IF_ERROR(DecodePart(place.fragment, range, done));
    }
    done += n;
  }
  return Status::OK();
}

/// How many bytes of the range, from its beginning on, the fragment has; the rest is zero.
uint64_t Planner::BytesThere(size_t fragment, const Range& range) const {
  const int column = fragment < data() ? static_cast<int>(fragment) : 0;
  const uint64_t there = striping_.ChunkBytes(range.row, column, table_bytes_);
  return std::min(there, range.end) - std::min(there, range.begin);
}

size_t Planner::WithinRequest(size_t fragment, const Range& range) const {
  if (whole_chunks_ || fragment >= data() || IsAvoided(fragment, range.row)) return kNowhere;
  const uint64_t chunk = (range.row * data() + fragment) * placement_.chunk_size;
  const uint64_t begin = chunk + range.begin;
  const bool within = begin >= offset_ && chunk + range.end <= offset_ + length_;
  return within ? begin - offset_ : kNowhere;
}

size_t Planner::PlaceOf(size_t fragment, const Range& range) {
  const uint64_t there = BytesThere(fragment, range);
  if (there == 0) return ReadPlan::kZeros;
  if (const size_t at = WithinRequest(fragment, range); at != kNowhere) return at;
  for (const Source& source : sources_) {
    if (source.fragment == fragment && source.range == range) return source.at;
  }
  const size_t length = range.end - range.begin;
  const size_t at = TakeRoom(length);
  Fetch(fragment, range.row * placement_.chunk_size + range.begin, there, at);
  if (there < length) plan_->zeros.emplace_back(at + there, length - there);
  sources_.push_back({fragment, range, at});
  if (whole_chunks_) plan_->unchecked.push_back({fragment, range.row, at});
  return at;
}

size_t Planner::TakeRoom(size_t length) {
  const size_t at = plan_->bytes;
  plan_->bytes += (length + 63) / 64 * 64;
  return at;
}

Status Planner::DecodePart(size_t column, const Range& range, size_t at) {
  if (!whole_chunks_) return Decode(column, range, at);
  // It is as long as the longest chunk of the row.
  const Range whole{
      .row = range.row, .begin = 0, .end = striping_.ChunkBytes(range.row, 0, table_bytes_)};
  const size_t decoded = TakeRoom(whole.end);
  plan_->moves.push_back(
      {.from = decoded + range.begin, .length = range.end - range.begin, .to = at});
  return Decode(column, whole, decoded);
}

Status Planner::Decode(size_t column, const Range& range, size_t at) {
  // Rather what costs least to have: zeros, what is read anyway, what is here, then data.
  std::vector<std::pair<int, size_t>> choice;
  for (size_t i = 0; i < placement_.fragments.size(); ++i) {
    const bool zeros = i < data() && BytesThere(i, range) == 0;
    if (zeros) {
      choice.emplace_back(0, i);
    } else if (!IsAvoided(i, range.row)) {
      const bool at_hand = WithinRequest(i, range) != kNowhere ||
                           std::any_of(sources_.begin(), sources_.end(), [&](const Source& source) {
                             return source.fragment == i && source.range == range;
                           });
      choice.emplace_back(at_hand ? 1 : Local(i) != nullptr ? 2 : 3, i);
    }
  }
  if (choice.size() < data()) return TooManyLost();
  std::sort(choice.begin(), choice.end());
  FragmentSet set = 0;
  for (size_t i = 0; i < data(); ++i) set |= FragmentSet{1} << choice[i].second;

  ReadPlan::Decoding decoding{
      .decoder = nullptr, .sources = {}, .length = range.end - range.begin, .at = at};
  decoding.decoder = &ReedSolomon::Get(placement_.redundancy.data, placement_.redundancy.parity)
                          .Decoder(set, FragmentSet{1} << column);
  for (size_t i = 0; i < placement_.fragments.size(); ++i) {
    if ((set >> i & 1) != 0) decoding.sources.push_back(PlaceOf(i, range));
  }
  plan_->decodings.push_back(std::move(decoding));
  return Status::OK();
}

}  // namespace

void ReadPlan::Complete(char* buffer) const {
  for (const Copy& copy : copies) std::memcpy(buffer + copy.at, copy.from, copy.length);
  for (const auto& [at, length] : zeros) std::memset(buffer + at, 0, length);
  for (const Decoding& decoding : decodings) {
    std::array<const char*, ReedSolomon::kMaxData> sources{};
    for (size_t i = 0; i < decoding.sources.size(); ++i) {
      if (decoding.sources[i] != kZeros) sources[i] = buffer + decoding.sources[i];
    }
    char* const result = buffer + decoding.at;
    decoding.decoder->Combine(decoding.length, sources.data(), &result);
  }
  for (const Move& move : moves) std::memcpy(buffer + move.to, buffer + move.from, move.length);
}

Status PlanRead(const TableStore::Rep& store, const Placement& placement, uint64_t table_bytes,
                FragmentSet lost, const DamagedChunks& damage, uint64_t offset, size_t n,
                ReadPlan* plan) {
  *plan = ReadPlan();
  Planner planner(store, placement, table_bytes, lost, damage, offset, n, plan);
  return placement.redundancy.striped() ? planner.Striped() : planner.Replicated();
}

}  // namespace nacre::pool
