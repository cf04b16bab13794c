#include "db/checkpoint/checkpoint_description.h"

#include <algorithm>
#include <array>
#include <bit>
#include <set>

#include "db/manifest/manifest_edit.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"

namespace nacre {
namespace {

constexpr uint32_t kFormatVersion = 1;
/// The version of descriptions with column families.
constexpr uint32_t kFormatVersionWithFamilies = 2;
constexpr size_t kVersionAt = 8;
constexpr size_t kBytesAt = 16;
constexpr size_t kNumbersAt = 24;
constexpr size_t kNumbers = 5;
constexpr size_t kLevelsAt = 64;
constexpr size_t kTablesAt = 68;
constexpr size_t kFixedBytes = 72;
static_assert(kNumbersAt + kNumbers * 8 == kLevelsAt);
static_assert(kLevelsAt + 4 == kTablesAt);
static_assert(kTablesAt + 4 == kFixedBytes);

/// As Options has it.
constexpr uint64_t kChunkBytesMin = 4 << 10;
constexpr uint64_t kChunkBytesMax = 16 << 20;

Status Malformed(const std::string& what) { return Status::Corruption("description: " + what); }

/// The numbers in their order, for both directions.
template <typename Description>
auto NumbersOf(Description& description) {
  return std::array{&description.id, &description.database_id, &description.sequence,
                    &description.manifest_version, &description.next_table_id};
}

/// What restoring it relies on.
Status CheckTable(const CheckpointDescription& description, uint32_t level, const TableMeta& meta) {
  const std::string name = "table " + std::to_string(meta.id);
  const auto family = description.families.find(meta.family);
  const bool of_default = meta.family == 0;
  if (!of_default && family == description.families.end()) {
    return Malformed(name + " is of no column family");
  }
  const uint32_t levels = of_default ? description.num_levels : family->second.num_levels;
  const std::string& comparator = of_default ? description.comparator : family->second.comparator;
  if (level >= levels) return Malformed(name + " is in no level");
  if (meta.database_id != description.database_id || meta.comparator != comparator) {
    return Malformed(name + " is of another database");
  }
  if (meta.id >= description.next_table_id || meta.largest_sequence > description.sequence ||
      meta.manifest_version > description.manifest_version) {
    return Malformed(name + " is later than the checkpoint");
  }
  if (!std::has_single_bit(meta.chunk_size) || meta.chunk_size < kChunkBytesMin ||
      meta.chunk_size > kChunkBytesMax || uint64_t{1} << meta.alignment_shift > meta.chunk_size) {
    return Malformed(name + " has chunks of an absurd size");
  }
  for (const TableSection* part :
       {&meta.records, &meta.point_index, &meta.range_index, &meta.bloom}) {
    if (part->offset + part->length > meta.lineage.offset) {
      return Malformed(name + " has its parts in another order");
    }
  }
  return Status::OK();
}

}  // namespace

uint64_t CheckpointDescription::bytes() const {
  uint64_t sum = 0;
  for (const auto& [level, meta] : tables) sum += meta.size;
  return sum;
}

CheckpointInfo CheckpointDescription::Info(uint64_t number) const {
  CheckpointInfo info;
  info.number = number;
  info.id = id;
  info.database = database;
  info.sequence = sequence;
  info.comparator = comparator;
  info.tables = tables.size();
  info.bytes = bytes();
  info.key_id = key_id;
  return info;
}

ManifestState CheckpointDescription::InitialState() const {
  ManifestState state;
  state.comparator = comparator;
  state.num_levels = num_levels;
  state.families = families;
  state.next_family = next_family;
  state.version = manifest_version;
  state.next_table_id = next_table_id;
  state.last_sequence = sequence;
  state.restoring = id;
  return state;
}

std::string EncodeCheckpointDescription(const CheckpointDescription& description) {
  std::string bytes(kFixedBytes, '\0');
  EncodeFixed64(bytes.data(), kDescriptionMagic);
  const bool has_families = description.next_family > 1;
  EncodeFixed32(bytes.data() + kVersionAt,
                has_families ? kFormatVersionWithFamilies : kFormatVersion);
  size_t at = kNumbersAt;
  for (const uint64_t* number : NumbersOf(description)) {
    EncodeFixed64(bytes.data() + at, *number);
    at += 8;
  }
  EncodeFixed32(bytes.data() + kLevelsAt, description.num_levels);
  EncodeFixed32(bytes.data() + kTablesAt, static_cast<uint32_t>(description.tables.size()));
  PutLengthPrefixedSlice(&bytes, description.database);
  PutLengthPrefixedSlice(&bytes, description.comparator);
  if (has_families) EncodeFamilies(description.families, description.next_family, &bytes);
  for (const auto& [level, meta] : description.tables) EncodeLevelAndTable(level, meta, &bytes);
  EncodeFixed64(bytes.data() + kBytesAt, bytes.size() + kCrcBytes);
  PutFixed32(&bytes, Crc32c(bytes.data(), bytes.size()));
  return bytes;
}

Status DecodeCheckpointDescription(const Slice& bytes, CheckpointDescription* description) {
  *description = CheckpointDescription();
  if (bytes.size() < kFixedBytes + kCrcBytes) return Malformed("truncated");
  const char* const fixed = bytes.data();
  if (DecodeFixed64(fixed) != kDescriptionMagic) return Malformed("wrong magic number");
  if (DecodeFixed64(fixed + kBytesAt) != bytes.size()) return Malformed("truncated");
  if (DecodeFixed32(bytes.end() - kCrcBytes) != Crc32c(fixed, bytes.size() - kCrcBytes)) {
    return Malformed("wrong checksum");
  }
  // The checksum holds for any version, so this number can be believed.
  const uint32_t version = DecodeFixed32(fixed + kVersionAt);
  if (version != kFormatVersion && version != kFormatVersionWithFamilies) {
    return Status::NotSupported("description: format version " + std::to_string(version) +
                                ", this program reads " +
                                std::to_string(kFormatVersionWithFamilies));
  }
  size_t at = kNumbersAt;
  for (uint64_t* number : NumbersOf(*description)) {
    *number = DecodeFixed64(fixed + at);
    at += 8;
  }
  description->num_levels = DecodeFixed32(fixed + kLevelsAt);
  const uint32_t tables = DecodeFixed32(fixed + kTablesAt);
  if (description->id == 0 || description->sequence > kMaxSequenceNumber) {
    return Malformed("absurd numbers");
  }
  Slice input(fixed + kFixedBytes, bytes.size() - kFixedBytes - kCrcBytes);
  Slice database;
  Slice comparator;
  if (!GetLengthPrefixedSlice(&input, &database) || !GetLengthPrefixedSlice(&input, &comparator)) {
    return Malformed("malformed names");
  }
  description->database = database.ToString();
  description->comparator = comparator.ToString();
  if (version == kFormatVersionWithFamilies) {
    NACRE_RETURN_IF_ERROR(DecodeFamilies(&input, &description->families, &description->next_family)
                              .WithContext("description"));
  }
  std::set<uint64_t> ids;
  for (uint32_t i = 0; i < tables; ++i) {
    auto& [level, meta] = description->tables.emplace_back();
    NACRE_RETURN_IF_ERROR(DecodeLevelAndTable(&input, &level, &meta).WithContext("description"));
    NACRE_RETURN_IF_ERROR(CheckTable(*description, level, meta));
    if (!ids.insert(meta.id).second) return Malformed("a table is there twice");
  }
  return input.empty() ? Status::OK() : Malformed("bytes behind the tables");
}

}  // namespace nacre
