#include <charconv>
#include <string_view>
#include <utility>
#include <vector>

#include "adapters/common/c_memory.h"
#include "adapters/leveldb/environment.h"
#include "adapters/leveldb/leveldb_error.h"
#include "adapters/leveldb/leveldb_types.h"

using nacre::Slice;
using nacre::Status;
using nacre::Succeeded;

namespace {

/// Nacre's property for one of LevelDB's; empty if LevelDB has no such one.
std::string PropertyOf(std::string_view property) {
  constexpr std::string_view kPrefix = "leveldb.";
  constexpr std::string_view kFilesAtLevel = "num-files-at-level";
  constexpr int kLevels = 7;  // LevelDB's, and Nacre's unless asked otherwise.
  if (!property.starts_with(kPrefix)) return "";
  property.remove_prefix(kPrefix.size());
  if (property == "stats" || property == "sstables") return "nacre." + std::string(property);
  if (property == "approximate-memory-usage") return "nacre.space.compute-bytes";
  if (!property.starts_with(kFilesAtLevel)) return "";
  const std::string_view digits = property.substr(kFilesAtLevel.size());
  int level = -1;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), level);
  if (failure != std::errc() || end != digits.data() + digits.size()) return "";
  if (level < 0 || level >= kLevels) return "";
  return "nacre." + std::string(kFilesAtLevel) + std::to_string(level);
}

}  // namespace

leveldb_t* leveldb_open(const leveldb_options_t* options, const char* name, char** errptr) {
  nacre::Options placed = options->rep;
  if (!Succeeded(nacre::PlaceInPool(&placed), errptr)) return nullptr;
  auto db = std::make_unique<leveldb_t>();
  db->name = nacre::DatabaseNameOf(name);
  if (!nacre::MarkOpen(db->name)) {
    nacre::SetError(nacre::HeldHereText(name), errptr);
    return nullptr;
  }
  const Status status = nacre::DB::Open(placed, db->name, &db->rep);
  if (!status.ok()) {
    nacre::UnmarkOpen(db->name);
    nacre::SetError(nacre::OpenFailureText(status, name), errptr);
    return nullptr;
  }
  return db.release();
}

void leveldb_close(leveldb_t* db) {
  const std::unique_ptr<leveldb_t> closed(db);
  if (closed == nullptr) return;
  closed->rep.reset();
  nacre::UnmarkOpen(closed->name);
}

void leveldb_put(leveldb_t* db, const leveldb_writeoptions_t* options, const char* key,
                 size_t keylen, const char* val, size_t vallen, char** errptr) {
  (void)Succeeded(db->rep->Put(options->rep, Slice(key, keylen), Slice(val, vallen)), errptr);
}

void leveldb_delete(leveldb_t* db, const leveldb_writeoptions_t* options, const char* key,
                    size_t keylen, char** errptr) {
  (void)Succeeded(db->rep->Delete(options->rep, Slice(key, keylen)), errptr);
}

void leveldb_write(leveldb_t* db, const leveldb_writeoptions_t* options,
                   leveldb_writebatch_t* batch, char** errptr) {
  if (!Succeeded(batch->failure, errptr)) return;
  (void)Succeeded(db->rep->Write(options->rep, &batch->rep), errptr);
}

char* leveldb_get(leveldb_t* db, const leveldb_readoptions_t* options, const char* key,
                  size_t keylen, size_t* vallen, char** errptr) {
  *vallen = 0;
  nacre::PinnableSlice value;
  const Status status = db->rep->Get(options->rep, Slice(key, keylen), &value);
  if (status.IsNotFound() || !Succeeded(status, errptr)) return nullptr;
  *vallen = value.size();
  return nacre::CopyToMalloc(value.ToStringView());
}

const leveldb_snapshot_t* leveldb_create_snapshot(leveldb_t* db) {
  return std::make_unique<leveldb_snapshot_t>(leveldb_snapshot_t{db->rep->GetSnapshot()}).release();
}

void leveldb_release_snapshot(leveldb_t* db, const leveldb_snapshot_t* snapshot) {
  const std::unique_ptr<const leveldb_snapshot_t> released(snapshot);
  db->rep->ReleaseSnapshot(released->rep);
}

char* leveldb_property_value(leveldb_t* db, const char* propname) {
  const std::string property = PropertyOf(propname);
  std::string value;
  if (property.empty() || !db->rep->GetProperty(property, &value)) return nullptr;
  return nacre::CopyToCString(value);
}

void leveldb_approximate_sizes(leveldb_t* db, int num_ranges, const char* const* range_start_key,
                               const size_t* range_start_key_len,
                               const char* const* range_limit_key,
                               const size_t* range_limit_key_len, uint64_t* sizes) {
  std::vector<nacre::Range> ranges;
  ranges.reserve(static_cast<size_t>(num_ranges));
  for (int i = 0; i < num_ranges; ++i) {
    sizes[i] = 0;
    ranges.push_back({Slice(range_start_key[i], range_start_key_len[i]),
                      Slice(range_limit_key[i], range_limit_key_len[i])});
  }
  // LevelDB has no failure to answer here either.
  db->rep->GetApproximateSizes(ranges.data(), num_ranges, sizes).IgnoreError();
}

void leveldb_compact_range(leveldb_t* db, const char* start_key, size_t start_key_len,
                           const char* limit_key, size_t limit_key_len) {
  const Slice start(start_key, start_key_len);
  const Slice limit(limit_key, limit_key_len);
  // What is wrong shows in the next write or read, as in LevelDB.
  db->rep
      ->CompactRange(nacre::CompactRangeOptions(), start_key == nullptr ? nullptr : &start,
                     limit_key == nullptr ? nullptr : &limit)
      .IgnoreError();
}
