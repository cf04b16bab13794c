// Goal: options as text mean what they say, come back as they were, and bad text is named.
// Method: texts by hand, and all options there and back.

#include <gtest/gtest.h>

#include <string>
#include <unordered_map>

#include "nacre/convenience.h"
#include "nacre/slice_transform.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

TEST(OptionsTextTest, SetsWhatItNames) {
  Options base;
  base.num_levels = 5;
  Options options;
  ASSERT_TRUE(IsOk(GetOptionsFromString(
      base,
      " write_buffer_size = 32M ; max_background_jobs=4;redundancy={L0:rep(3),*:rs(4,2)};"
      "create_if_missing=true;operation_timeout=2500;wal_recovery_mode=kAbsoluteConsistency;"
      "max_bytes_for_level_multiplier=8.5;comparator=rocksdb.ReverseBytewiseComparator;"
      "merge_operator=uint64add;prefix_extractor=fixed:8",
      &options)));
  EXPECT_EQ(options.write_buffer_size, 32u << 20);
  EXPECT_EQ(options.max_background_jobs, 4);
  EXPECT_EQ(options.redundancy, "L0:rep(3),*:rs(4,2)");
  EXPECT_TRUE(options.create_if_missing);
  EXPECT_EQ(options.operation_timeout.count(), 2500);
  EXPECT_EQ(options.wal_recovery_mode, WALRecoveryMode::kAbsoluteConsistency);
  EXPECT_EQ(options.max_bytes_for_level_multiplier, 8.5);
  EXPECT_EQ(options.comparator, ReverseBytewiseComparator());
  ASSERT_NE(options.merge_operator, nullptr);
  ASSERT_NE(options.prefix_extractor, nullptr);
  EXPECT_EQ(options.prefix_extractor->Transform("0123456789"), Slice("01234567"));
  EXPECT_EQ(options.num_levels, 5);
  ASSERT_TRUE(IsOk(GetOptionsFromString(base, "", &options)));
  EXPECT_EQ(options.num_levels, 5);
}

TEST(OptionsTextTest, NamesWhatIsWrong) {
  const Options base;
  for (const auto& [text, word] : std::unordered_map<std::string, std::string>{
           {"no_such_option=1", "no_such_option"},
           {"num_levels=many", "num_levels"},
           {"num_levels=", "num_levels"},
           {"num_levels=99999999999", "num_levels"},
           {"write_buffer_size=-1", "write_buffer_size"},
           {"write_buffer_size=99999999999999t", "write_buffer_size"},
           {"create_if_missing=maybe", "create_if_missing"},
           {"compaction=elsewhere", "compaction"},
           {"comparator=no.such", "comparator"},
           {"merge_operator=no.such", "merge_operator"},
           {"prefix_extractor=fixed:x", "prefix_extractor"},
           {"max_bytes_for_level_multiplier=nan", "max_bytes_for_level_multiplier"},
           {"operation_timeout=-1", "operation_timeout"},
           {"num_levels", "num_levels"},
           {"=3", "=3"},
           {"redundancy={none", "redundancy"},
           {"redundancy={none}more;", "redundancy"}}) {
    Options options;
    options.num_levels = 3;
    const Status status = GetOptionsFromString(base, text, &options);
    EXPECT_TRUE(status.IsInvalidArgument()) << text;
    EXPECT_NE(status.ToString().find(word), std::string::npos) << status.ToString();
    EXPECT_EQ(options.num_levels, base.num_levels) << text;
  }
  ConfigOptions config;
  config.ignore_unknown_options = true;
  Options options;
  EXPECT_TRUE(IsOk(GetOptionsFromString(config, base, "block_size=4k;num_levels=4", &options)));
  EXPECT_EQ(options.num_levels, 4);
}

TEST(OptionsTextTest, PartsTakeTheirOwnOnly) {
  DBOptions db;
  ColumnFamilyOptions family;
  EXPECT_TRUE(IsOk(GetDBOptionsFromString({}, {}, "max_background_jobs=3", &db)));
  EXPECT_EQ(db.max_background_jobs, 3);
  EXPECT_TRUE(GetDBOptionsFromString({}, {}, "num_levels=3", &db).IsInvalidArgument());
  EXPECT_TRUE(IsOk(GetColumnFamilyOptionsFromString({}, {}, "num_levels=3", &family)));
  EXPECT_EQ(family.num_levels, 3);
  EXPECT_TRUE(GetColumnFamilyOptionsFromString({}, {}, "max_background_jobs=3", &family)
                  .IsInvalidArgument());
}

TEST(OptionsTextTest, GoesThereAndBack) {
  Options options;
  options.redundancy = "L0:rep(2),*:rs(4,2)";
  options.pool_uri = "embedded:?nodes=4&size=1GiB";
  options.compaction = CompactionSite::kCompute;
  options.take_over = true;
  options.max_bytes_for_level_multiplier = 2.25;
  options.write_buffer_size = 12345678;
  options.follow_interval = std::chrono::milliseconds(7);
  options.metrics_address = "127.0.0.1:9200";
  options.encryption_key_file = "/etc/nacre/keys";
  options.prefix_extractor = NewCappedPrefixTransform(3);
  std::string db_text;
  std::string family_text;
  ASSERT_TRUE(IsOk(GetStringFromDBOptions({}, options, &db_text)));
  ASSERT_TRUE(IsOk(GetStringFromColumnFamilyOptions({}, options, &family_text)));
  Options back;
  ASSERT_TRUE(IsOk(GetOptionsFromString(Options(), db_text + family_text, &back)));
  std::string again;
  ASSERT_TRUE(IsOk(GetStringFromDBOptions({}, back, &again)));
  EXPECT_EQ(again, db_text);
  ASSERT_TRUE(IsOk(GetStringFromColumnFamilyOptions({}, back, &again)));
  EXPECT_EQ(again, family_text);
  ASSERT_NE(back.prefix_extractor, nullptr);
  EXPECT_STREQ(back.prefix_extractor->Name(), options.prefix_extractor->Name());
  EXPECT_EQ(back.redundancy, options.redundancy);
  EXPECT_EQ(back.pool_uri, options.pool_uri);
  EXPECT_EQ(back.metrics_address, options.metrics_address);
  EXPECT_EQ(back.encryption_key_file, options.encryption_key_file);
  EXPECT_EQ(back.write_buffer_size, options.write_buffer_size);
}

TEST(OptionsTextTest, StringsThatNoTextGivesBackAreNamed) {
  for (const char* name : {"plain", "", "a;b", "{a}b", "a={b}"}) {
    Options options;
    options.db_log_dir = name;
    std::string text;
    Options back;
    ASSERT_TRUE(IsOk(GetStringFromDBOptions({}, options, &text))) << name;
    ASSERT_TRUE(IsOk(GetOptionsFromString(Options(), text, &back))) << text;
    EXPECT_EQ(back.db_log_dir, name);
  }
  for (const char* name : {"a{b", "a}b", "}{", " a", "a\n"}) {
    Options options;
    options.db_log_dir = name;
    std::string text;
    const Status status = GetStringFromDBOptions({}, options, &text);
    EXPECT_TRUE(status.IsInvalidArgument()) << name;
    EXPECT_NE(status.ToString().find("db_log_dir"), std::string::npos) << status.ToString();
  }
}

}  // namespace
}  // namespace nacre
