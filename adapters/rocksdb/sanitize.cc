#include "adapters/rocksdb/sanitize.h"

#include <fmt/format.h>
#include <rocksdb/convenience.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <map>
#include <span>
#include <string_view>
#include <unordered_map>

namespace nacre::rocksdb_api {
namespace {

/// Options that count, or that Open refuses where they would.
constexpr std::string_view kUsedOfDatabases[] = {
    "allow_ingest_behind",
    "atomic_flush",  // A flush is of all families.
    "best_efforts_recovery", "create_if_missing",          "create_missing_column_families",
    "db_write_buffer_size",  "delayed_write_rate",         "error_if_exists",
    "manual_wal_flush",      "max_background_compactions", "max_background_flushes",
    "max_background_jobs",   "max_subcompactions",
};
constexpr std::string_view kUsedOfFamilies[] = {
    "comparator",
    "compaction_filter",
    "compaction_filter_factory",
    "compaction_style",
    "disable_auto_compactions",
    "hard_pending_compaction_bytes_limit",
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
    "max_bytes_for_level_base",
    "max_bytes_for_level_multiplier",
    "max_write_buffer_number",
    "merge_operator",
    "num_levels",
    "prefix_extractor",
    "soft_pending_compaction_bytes_limit",
    "target_file_size_base",
    "target_file_size_multiplier",
    "write_buffer_size",
};

/// Texts by name, as RocksDB writes them. Objects of the application have none.
using Texts = std::unordered_map<std::string, std::string>;

Texts TextsOf(const rocksdb::DBOptions& options) {
  std::string text;
  Texts texts;
  const rocksdb::Status status =
      rocksdb::GetStringFromDBOptions(rocksdb::ConfigOptions(), options, &text);
  if (!status.ok() || !rocksdb::StringToMap(text, &texts).ok()) return {};
  return texts;
}

Texts TextsOf(const rocksdb::ColumnFamilyOptions& options) {
  std::string text;
  Texts texts;
  const rocksdb::Status status =
      rocksdb::GetStringFromColumnFamilyOptions(rocksdb::ConfigOptions(), options, &text);
  if (!status.ok() || !rocksdb::StringToMap(text, &texts).ok()) return {};
  return texts;
}

/// A table factory's own options. Its text as an option is but its name.
std::string FactoryText(const rocksdb::TableFactory* factory) {
  std::string text;
  if (factory == nullptr) return text;
  // One that has no text has a name that is not the usual one.
  return factory->GetOptionString(rocksdb::ConfigOptions(), &text).ok() ? text : factory->Name();
}

/// Names of options without a text that are set.
std::vector<std::string_view> ObjectsOf(const rocksdb::DBOptions& options) {
  std::vector<std::string_view> names;
  if (!options.db_paths.empty()) names.emplace_back("db_paths");
  if (options.file_checksum_gen_factory != nullptr) names.emplace_back("file_checksum_gen_factory");
  if (options.rate_limiter != nullptr) names.emplace_back("rate_limiter");
  if (options.row_cache != nullptr) names.emplace_back("row_cache");
  if (options.sst_file_manager != nullptr) names.emplace_back("sst_file_manager");
  if (options.statistics != nullptr) names.emplace_back("statistics");
  if (options.write_buffer_manager != nullptr) names.emplace_back("write_buffer_manager");
  return names;
}

std::vector<std::string_view> ObjectsOf(const rocksdb::ColumnFamilyOptions& options) {
  std::vector<std::string_view> names;
  if (options.blob_cache != nullptr) names.emplace_back("blob_cache");
  if (!options.cf_paths.empty()) names.emplace_back("cf_paths");
  if (options.compaction_thread_limiter != nullptr) {
    names.emplace_back("compaction_thread_limiter");
  }
  if (options.memtable_insert_with_hint_prefix_extractor != nullptr) {
    names.emplace_back("memtable_insert_with_hint_prefix_extractor");
  }
  if (FactoryText(options.table_factory.get()) !=
      FactoryText(rocksdb::ColumnFamilyOptions().table_factory.get())) {
    names.emplace_back("table_factory");
  }
  if (options.sst_partitioner_factory != nullptr) names.emplace_back("sst_partitioner_factory");
  if (!options.table_properties_collector_factories.empty()) {
    names.emplace_back("table_properties_collector_factories");
  }
  return names;
}

template <typename Options>
void Note(const std::string& whose, const Options& options, std::span<const std::string_view> used,
          std::vector<std::string>* notes) {
  const Texts usual = TextsOf(Options());
  std::map<std::string, std::string> unused;
  for (const auto& [name, text] : TextsOf(options)) {
    if (std::ranges::find(used, name) != used.end()) continue;
    const auto found = usual.find(name);
    if (found != usual.end() && found->second == text) continue;
    unused[name] = text.empty() || text.starts_with('{') ? "set" : text;
  }
  for (const std::string_view name : ObjectsOf(options)) unused[std::string(name)] = "set";
  for (const auto& [name, text] : unused) {
    notes->push_back(fmt::format("Options::{}{} is {}, which has no effect", name, whose, text));
  }
}

}  // namespace

void Sanitize(rocksdb::DBOptions* options, std::vector<std::string>* notes) {
  constexpr int kMostJobs = 256;  // Bounds the sum of both numbers.
  // The two that max_background_jobs replaced count if they are set; without them and it there is
  // one thread for flushes and one for compactions.
  const int flushes = options->max_background_flushes;
  const int compactions = options->max_background_compactions;
  int jobs = options->max_background_jobs;
  if (flushes != -1 || compactions != -1) {
    jobs = std::clamp(flushes, 1, kMostJobs) + std::clamp(compactions, 1, kMostJobs);
  } else if (jobs < 1) {
    jobs = 2;
  }
  if (jobs == options->max_background_jobs) return;
  notes->push_back(fmt::format("Options::max_background_jobs is {}, taken for {}",
                               options->max_background_jobs, jobs));
  options->max_background_jobs = jobs;
}

void NoteUnused(const rocksdb::DBOptions& options, std::vector<std::string>* notes) {
  Note("", options, kUsedOfDatabases, notes);
}

void NoteUnused(const std::string& name, const rocksdb::ColumnFamilyOptions& options,
                std::vector<std::string>* notes) {
  const bool is_default = name == rocksdb::kDefaultColumnFamilyName;
  Note(is_default ? "" : " of column family " + name, options, kUsedOfFamilies, notes);
}

}  // namespace nacre::rocksdb_api
