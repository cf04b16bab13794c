// Goal: nonsense options never start a database: each is refused by name.
// Method: for each option, values at the ends of its range pass, those beyond are refused with a
// message that names the option.

#include "db/options_check.h"

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
      Set("write_buffer_size", &Options::write_buffer_size, 0),
      Set("write_buffer_size", &Options::write_buffer_size, 64 * kKiB - 1),
      Set("write_buffer_size", &Options::write_buffer_size, SIZE_MAX),
      Set("write_buffer_size", &Options::write_buffer_size, size_t{1} << 63),
      Set("max_write_buffer_number", &Options::max_write_buffer_number, 0),
      Set("max_write_buffer_number", &Options::max_write_buffer_number, 1),
      Set("max_write_buffer_number", &Options::max_write_buffer_number, -1),
      Set("max_write_buffer_number", &Options::max_write_buffer_number, 33),
      Set("num_levels", &Options::num_levels, 1),
      Set("num_levels", &Options::num_levels, -7),
      Set("num_levels", &Options::num_levels, 17),
      Set("level0_file_num_compaction_trigger", &Options::level0_file_num_compaction_trigger, 0),
      Set("level0_file_num_compaction_trigger", &Options::level0_file_num_compaction_trigger, -4),
      Set("level0_slowdown_writes_trigger", &Options::level0_slowdown_writes_trigger, 3),
      Set("level0_stop_writes_trigger", &Options::level0_stop_writes_trigger, 19),
      Set("target_file_size_base", &Options::target_file_size_base, 0),
      Set("target_file_size_base", &Options::target_file_size_base, UINT64_MAX),
      Set("target_file_size_multiplier", &Options::target_file_size_multiplier, 0),
      Set("target_file_size_multiplier", &Options::target_file_size_multiplier, -1),
      Set("max_bytes_for_level_base", &Options::max_bytes_for_level_base, 0),
      Set("max_bytes_for_level_base", &Options::max_bytes_for_level_base, UINT64_MAX),
      Set("max_bytes_for_level_multiplier", &Options::max_bytes_for_level_multiplier, 0.5),
      Set("max_bytes_for_level_multiplier", &Options::max_bytes_for_level_multiplier, -10),
      Set("max_bytes_for_level_multiplier", &Options::max_bytes_for_level_multiplier, std::nan("")),
      Set("max_bytes_for_level_multiplier", &Options::max_bytes_for_level_multiplier,
          std::numeric_limits<double>::infinity()),
      Set("max_background_jobs", &Options::max_background_jobs, 0),
      Set("max_background_jobs", &Options::max_background_jobs, -2),
      Set("max_background_jobs", &Options::max_background_jobs, 1'000'000),
      Set("max_subcompactions", &Options::max_subcompactions, 0),
      Set("max_subcompactions", &Options::max_subcompactions, UINT32_MAX),
      Set("slab_size", &Options::slab_size, 0),
      Set("slab_size", &Options::slab_size, kMiB - 1),
      Set("slab_size", &Options::slab_size, SIZE_MAX),
      Set("chunk_size", &Options::chunk_size, 0),
      Set("chunk_size", &Options::chunk_size, 2 * kKiB),
      Set("chunk_size", &Options::chunk_size, 256 * kKiB + 1),
      Set("chunk_size", &Options::chunk_size, 96 * kKiB),  // Not a power of two.
      Set("chunk_size", &Options::chunk_size, 32 * kMiB),
      {"chunk_size",
       [](Options* options) {  // Does not divide a slab.
         options->slab_size = kMiB + 256 * kKiB;
         options->chunk_size = 512 * kKiB;
       }},
      Set("operation_timeout", &Options::operation_timeout, std::chrono::milliseconds(0)),
      Set("operation_timeout", &Options::operation_timeout, std::chrono::milliseconds(-1)),
      Set("operation_timeout", &Options::operation_timeout, std::chrono::hours(24 * 365)),
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

TEST(OptionsCheckTest, EndsOfRangesPass) {
  const std::vector<Case> cases = {
      Set("", &Options::write_buffer_size, 64 * kKiB),
      Set("", &Options::write_buffer_size, size_t{64} << 30),
      Set("", &Options::max_write_buffer_number, 2),
      Set("", &Options::max_write_buffer_number, 32),
      Set("", &Options::num_levels, 2),
      Set("", &Options::num_levels, 16),
      Set("", &Options::level0_file_num_compaction_trigger, 1),
      Set("", &Options::level0_slowdown_writes_trigger, 4),
      Set("", &Options::level0_stop_writes_trigger, 20),
      Set("", &Options::target_file_size_base, 64 * kKiB),
      Set("", &Options::max_bytes_for_level_base, 64 * kKiB),
      Set("", &Options::max_bytes_for_level_multiplier, 1),
      Set("", &Options::max_bytes_for_level_multiplier, 1000),
      Set("", &Options::max_background_jobs, 1),
      Set("", &Options::max_subcompactions, 256),
      Set("", &Options::slab_size, kMiB),
      Set("", &Options::chunk_size, 4 * kKiB),
      Set("", &Options::chunk_size, 16 * kMiB),
      Set("", &Options::operation_timeout, std::chrono::milliseconds(1)),
      Set("", &Options::redundancy, "none"),
      Set("", &Options::redundancy, "rep(1)"),
      Set("", &Options::redundancy, "rep(16)"),
      Set("", &Options::index_memory_budget, 0),
      Set("", &Options::record_cache_size, 0),
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    Options options;
    cases[i].set(&options);
    EXPECT_TRUE(Check(options).ok()) << "case " << i << ": " << Check(options).ToString();
  }
}

TEST(OptionsCheckTest, SaysWhatIsNotThere) {
  Options options;
  options.record_cache_size = 1;
  EXPECT_TRUE(Check(options).IsNotSupported());
  EXPECT_NE(Check(options).ToString().find("record_cache_size"), std::string::npos);
}

TEST(OptionsCheckTest, NamesNegativeValuesAsTheyWereGiven) {
  Options options;
  options.max_background_jobs = -2;
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
