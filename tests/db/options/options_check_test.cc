// Goal: nonsense options never start a database: each is refused by name, or, where RocksDB has the
// option, moved to what RocksDB would take it for, and the LOG says so.
// Method: for each option, values at the ends of its range pass; those beyond are refused with a
// message that names the option, or a table says what becomes of them.

#include "db/options/options_check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace nacre {
namespace {

Status Check(const Options& options, const std::string& name = "db") {
  RedundancyPolicy redundancy;
  return CheckOptions(options, name, &redundancy);
}

TEST(OptionsCheckTest, DefaultsPass) { EXPECT_TRUE(Check(Options()).ok()); }

TEST(OptionsCheckTest, NameOfTheDatabase) {
  EXPECT_TRUE(Check(Options(), "x").ok());
  EXPECT_TRUE(Check(Options(), std::string(255, 'n')).ok());
  EXPECT_TRUE(Check(Options(), std::string("any\0byte\xff", 9)).ok());
  for (const std::string& name : {std::string(), std::string(256, 'n')}) {
    const Status status = Check(Options(), name);
    EXPECT_TRUE(status.IsInvalidArgument());
    EXPECT_NE(status.ToString().find("name"), std::string::npos) << status.ToString();
  }
}

struct Case {
  const char* option;  ///< That the message must name.
  std::function<void(Options*)> set;
};

/// `Part` of the options has the field.
template <typename Field, typename Part, typename Value>
Case Set(const char* option, Field Part::*field, Value value) {
  return {option,
          [field, value](Options* options) { options->*field = static_cast<Field>(value); }};
}

constexpr size_t kKiB = 1 << 10;
constexpr size_t kMiB = 1 << 20;

TEST(OptionsCheckTest, EachBadOptionIsNamed) {
  const std::vector<Case> cases = {
      {"comparator", [](Options* options) { options->comparator = nullptr; }},
      Set("slab_size", &Options::slab_size, 0),
      Set("slab_size", &Options::slab_size, 256 * kKiB - 1),
      Set("slab_size", &Options::slab_size, SIZE_MAX),
      Set("chunk_size", &Options::chunk_size, 0),
      Set("chunk_size", &Options::chunk_size, 2 * kKiB),
      Set("chunk_size", &Options::chunk_size, 256 * kKiB + 1),
      Set("chunk_size", &Options::chunk_size, 96 * kKiB),  // This is no power of two.
      Set("chunk_size", &Options::chunk_size, 32 * kMiB),
      {"chunk_size",
       [](Options* options) {  // Does not divide a slab.
         options->slab_size = kMiB + 256 * kKiB;
         options->chunk_size = 512 * kKiB;
       }},
      Set("operation_timeout", &Options::operation_timeout, std::chrono::milliseconds(0)),
      Set("operation_timeout", &Options::operation_timeout, std::chrono::milliseconds(-1)),
      Set("operation_timeout", &Options::operation_timeout, std::chrono::hours(24 * 365)),
      Set("record_cache_size", &Options::record_cache_size, 1),
      Set("record_cache_size", &Options::record_cache_size, 64 * kKiB - 1),
      Set("record_cache_size", &Options::record_cache_size, SIZE_MAX),
      Set("redundancy", &Options::redundancy, ""),
      Set("redundancy", &Options::redundancy, "rep(0)"),
      Set("redundancy", &Options::redundancy, "rep(17)"),
      Set("redundancy", &Options::redundancy, "rep(-1)"),
      Set("redundancy", &Options::redundancy, "rep(2"),
      Set("redundancy", &Options::redundancy, "rep(2))"),
      Set("redundancy", &Options::redundancy, "rep(99999999999999999999)"),
      Set("redundancy", &Options::redundancy, "two copies"),
      Set("redundancy", &Options::redundancy, "rs(17,2)"),
      Set("redundancy", &Options::redundancy, "L0:rep(2)"),
  };
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.option);
    Options options;
    bad.set(&options);
    const Status status = Check(options);
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    EXPECT_NE(status.ToString().find(bad.option), std::string::npos) << status.ToString();
  }
}

/// What is opened when `set` was asked for.
struct Sanitized {
  const char* option;
  std::function<void(Options*)> set;
  std::function<double(const Options&)> get;
  double expected;
};

template <typename Field, typename Part, typename Value>
Sanitized Becomes(const char* option, Field Part::*field, Value given, double expected) {
  return {option, [=](Options* options) { options->*field = static_cast<Field>(given); },
          [=](const Options& options) { return static_cast<double>(options.*field); }, expected};
}

std::vector<std::string> Sanitize(Options* options) {
  std::vector<std::string> notes;
  static_cast<DBOptions&>(*options) = SanitizeDBOptions(*options, &notes);
  static_cast<ColumnFamilyOptions&>(*options) =
      SanitizeFamilyOptions(*options, kDefaultColumnFamilyName, &notes);
  return notes;
}

TEST(OptionsCheckTest, WhatRocksDBMovesIsMoved) {
  constexpr double kSoft = 64ULL << 30;
  constexpr double kHard = 256ULL << 30;
  const std::vector<Sanitized> cases = {
      Becomes("write_buffer_size", &Options::write_buffer_size, 0, 64 << 10),
      Becomes("write_buffer_size", &Options::write_buffer_size, 1024, 64 << 10),
      Becomes("write_buffer_size", &Options::write_buffer_size, SIZE_MAX, double(64ULL << 30)),
      Becomes("max_write_buffer_number", &Options::max_write_buffer_number, -1, 2),
      Becomes("max_write_buffer_number", &Options::max_write_buffer_number, 0, 2),
      Becomes("max_write_buffer_number", &Options::max_write_buffer_number, 1, 2),
      Becomes("max_write_buffer_number", &Options::max_write_buffer_number, 1000, 32),
      Becomes("num_levels", &Options::num_levels, 0, 2),
      Becomes("num_levels", &Options::num_levels, 1, 2),
      Becomes("num_levels", &Options::num_levels, 20, 16),
      Becomes("level0_file_num_compaction_trigger", &Options::level0_file_num_compaction_trigger, 0,
              1),
      Becomes("level0_slowdown_writes_trigger", &Options::level0_slowdown_writes_trigger, -1, 4),
      Becomes("level0_slowdown_writes_trigger", &Options::level0_slowdown_writes_trigger, 3, 4),
      Becomes("level0_stop_writes_trigger", &Options::level0_stop_writes_trigger, 0, 20),
      Becomes("level0_stop_writes_trigger", &Options::level0_stop_writes_trigger, 19, 20),
      Becomes("target_file_size_base", &Options::target_file_size_base, 0, 64 << 10),
      Becomes("target_file_size_base", &Options::target_file_size_base, UINT64_MAX,
              double(1ULL << 40)),
      Becomes("target_file_size_multiplier", &Options::target_file_size_multiplier, 0, 1),
      Becomes("max_bytes_for_level_base", &Options::max_bytes_for_level_base, 0, 64 << 10),
      Becomes("max_bytes_for_level_base", &Options::max_bytes_for_level_base, UINT64_MAX,
              double(1ULL << 50)),
      Becomes("max_bytes_for_level_multiplier", &Options::max_bytes_for_level_multiplier, -10, 1),
      Becomes("max_bytes_for_level_multiplier", &Options::max_bytes_for_level_multiplier,
              std::nan(""), 1),
      Becomes("max_bytes_for_level_multiplier", &Options::max_bytes_for_level_multiplier,
              std::numeric_limits<double>::infinity(), 1000),
      Becomes("soft_pending_compaction_bytes_limit", &Options::soft_pending_compaction_bytes_limit,
              0, kHard),
      Becomes("soft_pending_compaction_bytes_limit", &Options::soft_pending_compaction_bytes_limit,
              UINT64_MAX, kHard),
      Becomes("max_background_jobs", &Options::max_background_jobs, -1, 1),
      Becomes("max_background_jobs", &Options::max_background_jobs, 0, 1),
      Becomes("max_background_jobs", &Options::max_background_jobs, 1'000'000, 256),
      Becomes("max_subcompactions", &Options::max_subcompactions, UINT32_MAX, 256),
      Becomes("keep_log_file_num", &Options::keep_log_file_num, 0, 1),
      Becomes("manifest_image_edits", &Options::manifest_image_edits, 0, 1),
  };
  for (const Sanitized& of : cases) {
    SCOPED_TRACE(of.option);
    Options options;
    of.set(&options);
    const std::vector<std::string> notes = Sanitize(&options);
    EXPECT_EQ(of.get(options), of.expected);
    ASSERT_EQ(notes.size(), 1u);
    EXPECT_NE(notes[0].find(of.option), std::string::npos) << notes[0];
    EXPECT_TRUE(Check(options).ok()) << Check(options).ToString();
    EXPECT_TRUE(Sanitize(&options).empty()) << "once more";
  }
  EXPECT_EQ(kSoft, static_cast<double>(Options().soft_pending_compaction_bytes_limit));
}

TEST(OptionsCheckTest, WhatMeansSomethingStays) {
  const std::vector<Sanitized> cases = {
      Becomes("", &Options::hard_pending_compaction_bytes_limit, 0, 0),
      Becomes("", &Options::delayed_write_rate, 0, 0),
      Becomes("", &Options::repair_bytes_per_second, 0, 0),
      Becomes("", &Options::max_subcompactions, 0, 0),
      Becomes("", &Options::scrub_bytes_per_second, 0, 0),
      Becomes("", &Options::index_memory_budget, 0, 0),
      Becomes("", &Options::max_log_file_size, 0, 0),
      Becomes("", &Options::write_buffer_size, 64 << 10, 64 << 10),
      Becomes("", &Options::max_write_buffer_number, 32, 32),
      Becomes("", &Options::num_levels, 2, 2),
      Becomes("", &Options::num_levels, 16, 16),
      Becomes("", &Options::level0_slowdown_writes_trigger, 4, 4),
      Becomes("", &Options::level0_stop_writes_trigger, 1 << 30, 1 << 30),
      Becomes("", &Options::max_background_jobs, 256, 256),
  };
  for (const Sanitized& of : cases) {
    Options options;
    of.set(&options);
    EXPECT_TRUE(Sanitize(&options).empty());
    EXPECT_EQ(of.get(options), of.expected);
    EXPECT_TRUE(Check(options).ok());
  }
  // Both limits off, and RocksDB's PrepareForBulkLoad.
  Options bulk;
  bulk.soft_pending_compaction_bytes_limit = bulk.hard_pending_compaction_bytes_limit = 0;
  bulk.level0_file_num_compaction_trigger = bulk.level0_slowdown_writes_trigger =
      bulk.level0_stop_writes_trigger = 1 << 30;
  bulk.disable_auto_compactions = true;
  bulk.num_levels = 2;
  bulk.max_write_buffer_number = 6;
  EXPECT_TRUE(Sanitize(&bulk).empty());
  EXPECT_TRUE(Check(bulk).ok());
}

TEST(OptionsCheckTest, EndsOfRangesPass) {
  const std::vector<Case> cases = {
      Set("", &Options::slab_size, kMiB),
      Set("", &Options::chunk_size, 4 * kKiB),
      Set("", &Options::chunk_size, 16 * kMiB),
      Set("", &Options::operation_timeout, std::chrono::milliseconds(1)),
      Set("", &Options::redundancy, "none"),
      Set("", &Options::redundancy, "rep(1)"),
      Set("", &Options::redundancy, "rep(16)"),
      Set("", &Options::index_memory_budget, 0),
      Set("", &Options::record_cache_size, 0),
      Set("", &Options::record_cache_size, 64 * kKiB),
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    Options options;
    cases[i].set(&options);
    EXPECT_TRUE(Check(options).ok()) << "case " << i << ": " << Check(options).ToString();
  }
}

TEST(OptionsCheckTest, NamesNegativeValuesAsTheyWereGiven) {
  Options options;
  options.operation_timeout = std::chrono::milliseconds(-2);
  EXPECT_NE(Check(options).ToString().find("is -2,"), std::string::npos)
      << Check(options).ToString();
}

TEST(OptionsCheckTest, ParsesRedundancy) {
  Options options;
  options.redundancy = "rep(3)";
  RedundancyPolicy redundancy;
  ASSERT_TRUE(CheckOptions(options, "db", &redundancy).ok());
  EXPECT_EQ(redundancy.For(0), Redundancy::Copies(3));
  options.redundancy = "L0:rep(2),*:rs(4,2)";
  ASSERT_TRUE(CheckOptions(options, "db", &redundancy).ok());
  EXPECT_EQ(redundancy.ToString(), options.redundancy);
}

}  // namespace
}  // namespace nacre
