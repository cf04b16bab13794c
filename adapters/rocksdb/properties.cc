#include "adapters/rocksdb/properties.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>

#include "nacre/metadata.h"
#include "util/uri.h"

namespace nacre::rocksdb_api {
namespace {

constexpr std::string_view kPrefix = "rocksdb.";
constexpr std::string_view kTableProperties = "aggregated-table-properties-at-level";
constexpr std::string_view kCompressionRatio = "compression-ratio-at-level";
constexpr std::string_view kTemperature = "live-sst-files-size-at-temperature";

/// What there is nothing of.
constexpr std::string_view kZeros[] = {
    "num-immutable-mem-table-flushed",
    "min-log-number-to-keep",
    "block-cache-capacity",
    "block-cache-usage",
    "block-cache-pinned-usage",
    "num-blob-files",
    "total-blob-file-size",
    "live-blob-file-size",
    "live-blob-file-garbage-size",
};
constexpr std::string_view kEmptyMaps[] = {
    "block-cache-entry-stats",
    "fast-block-cache-entry-stats",
};
constexpr std::string_view kEmptyTexts[] = {"cf-file-histogram", "blob-stats"};

bool IsAmong(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// The name without the prefix; no value if it has another one.
std::optional<std::string> BareName(const std::string& property) {
  if (!property.starts_with(kPrefix)) return std::nullopt;
  return property.substr(kPrefix.size());
}

std::string TextOf(const std::map<std::string, std::string>& map) {
  std::string text;
  for (const auto& [key, value] : map) text += key + ": " + value + "\n";
  return text;
}

}  // namespace

void SnapshotTimes::Add(int64_t seconds) {
  MutexLock lock(&mutex_);
  seconds_.insert(seconds);
}

void SnapshotTimes::Remove(int64_t seconds) {
  MutexLock lock(&mutex_);
  if (const auto found = seconds_.find(seconds); found != seconds_.end()) seconds_.erase(found);
}

uint64_t SnapshotTimes::Oldest() const {
  MutexLock lock(&mutex_);
  return seconds_.empty() ? 0 : static_cast<uint64_t>(*seconds_.begin());
}

bool PropertySource::Text(nacre::ColumnFamilyHandle* family, const std::string& property,
                          std::string* value) const {
  if (db_->GetProperty(family, property, value)) return true;
  value->clear();
  const std::optional<std::string> name = BareName(property);
  if (!name.has_value()) return false;
  if (name == "cfstats-no-file-histogram") {
    return db_->GetProperty(family, "rocksdb.cfstats", value);
  }
  if (IsAmong(kEmptyTexts, *name)) return true;
  std::map<std::string, std::string> map;
  if (name->starts_with(kCompressionRatio)) {
    if (!OfLevel(family, property, &map)) return false;
    *value = map["num-files"] == "0" ? "-1.000000" : "1.000000";
    return true;
  }
  if (Map(family, property, &map)) {
    *value = TextOf(map);
    return true;
  }
  uint64_t number = 0;
  if (!Number(family, property, &number)) return false;
  *value = std::to_string(number);
  return true;
}

bool PropertySource::Number(nacre::ColumnFamilyHandle* family, const std::string& property,
                            uint64_t* value) const {
  if (db_->GetIntProperty(family, property, value)) return true;
  const std::optional<std::string> name = BareName(property);
  if (!name.has_value()) return false;
  if (name->starts_with(kTemperature)) {
    // No table has another one than 0, the unknown.
    if (*name == std::string(kTemperature) + "0") {
      return db_->GetIntProperty(family, "rocksdb.live-sst-files-size", value);
    }
    *value = 0;
    uint64_t temperature = 0;
    return ParseNumber(name->substr(kTemperature.size()), 0, UINT8_MAX, &temperature).ok();
  }
  return OwnNumber(*name, value);
}

bool PropertySource::Map(nacre::ColumnFamilyHandle* family, const std::string& property,
                         std::map<std::string, std::string>* value) const {
  if (db_->GetMapProperty(family, property, value)) return true;
  value->clear();
  const std::optional<std::string> name = BareName(property);
  if (!name.has_value()) return false;
  if (name->starts_with(kTableProperties)) return OfLevel(family, property, value);
  return IsAmong(kEmptyMaps, *name);
}

bool PropertySource::Sum(const std::string& property, uint64_t* value) const {
  if (db_->GetAggregatedIntProperty(property, value)) return true;
  const std::optional<std::string> name = BareName(property);
  return name.has_value() && OwnNumber(*name, value);
}

bool PropertySource::OwnNumber(const std::string& name, uint64_t* value) const {
  *value = 0;
  if (IsAmong(kZeros, name)) return true;
  if (name == "background-errors") {
    *value = errors_->errors();
  } else if (name == "is-file-deletions-enabled") {
    *value = file_deletions_.load(std::memory_order_relaxed) ? 1 : 0;
  } else if (name == "oldest-snapshot-time") {
    *value = snapshots_->Oldest();
  } else if (name == "num-live-versions" || name == "base-level") {
    *value = 1;
  } else if (name == "current-super-version-number") {
    return db_->GetIntProperty("rocksdb.manifest.edits", value);
  } else if (name == "min-obsolete-sst-number-to-keep") {
    *value = UINT64_MAX;
  } else {
    return false;
  }
  return true;
}

bool PropertySource::OfLevel(nacre::ColumnFamilyHandle* family, const std::string& property,
                             std::map<std::string, std::string>* value) const {
  const size_t digits = property.find_last_not_of("0123456789") + 1;
  nacre::ColumnFamilyMetaData metadata;
  db_->GetColumnFamilyMetaData(family, &metadata);
  uint64_t level = 0;
  if (metadata.levels.empty() ||
      !ParseNumber(property.substr(digits), 0, metadata.levels.size() - 1, &level).ok()) {
    return false;
  }
  const nacre::LevelMetaData& of = metadata.levels[level];
  uint64_t entries = 0;
  uint64_t deletions = 0;
  for (const nacre::LiveTableMetaData& table : of.files) {
    entries += table.num_entries;
    deletions += table.num_deletions;
  }
  *value = {{"num-files", std::to_string(of.files.size())},
            {"num-entries", std::to_string(entries)},
            {"num-deletions", std::to_string(deletions)},
            {"size", std::to_string(of.size)}};
  return true;
}

}  // namespace nacre::rocksdb_api
