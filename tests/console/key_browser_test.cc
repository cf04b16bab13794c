// Goal: the browser of keys shows what a database has, page by page and as any bytes, changes
// nothing, and does not keep databases open that were not looked into for a while.
// Method: memory nodes as processes, a database that the test owns, and a clock that it sets.

#include "console/key_browser.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/manual_clock.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre::console {
namespace {

class KeyBrowserTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = ConnectTestPool(nodes_.pool_uri());
    ASSERT_NE(pool_, nullptr);
    ASSERT_TRUE(IsOk(OpenDatabase("orders", &db_)));
  }
  Status OpenDatabase(const std::string& name, std::unique_ptr<DB>* db) {
    Options options = SmallTableOptions(pool_);
    options.create_if_missing = true;
    options.redundancy = "rep(2)";
    return DB::Open(options, name, db);
  }
  Status Look(const KeyQuery& query) { return browser_.Look(query, &page_); }
  std::vector<std::string> Keys() const {
    std::vector<std::string> keys;
    for (const KeyRow& row : page_.rows) keys.push_back(row.key);
    return keys;
  }

  MemnodeProcesses nodes_{2, {.size = "128MiB", .slab_size = "1MiB"}};
  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<DB> db_;
  ManualClock clock_;
  KeyBrowser browser_{nodes_.pool_uri(), &clock_};
  KeyPage page_;
};

TEST_F(KeyBrowserTest, PagesFollowOneAnother) {
  for (int i = 0; i < 25; ++i) {
    ASSERT_TRUE(IsOk(db_->Put({}, fmt::format("a{:02}", i), fmt::format("value {}", i))));
  }
  ASSERT_TRUE(IsOk(db_->Put({}, "b", "other")));
  ASSERT_TRUE(IsOk(db_->Flush({})));
  ASSERT_TRUE(IsOk(db_->Delete({}, "a03")));

  std::vector<std::string> all;
  KeyQuery query{.database = "orders", .prefix = "a", .limit = 10};
  for (int pages = 0; pages < 10; ++pages) {
    ASSERT_TRUE(IsOk(Look(query)));
    for (const std::string& key : Keys()) all.push_back(key);
    if (!page_.next.has_value()) break;
    EXPECT_EQ(page_.rows.size(), 10u);
    query.from = *page_.next;
  }
  ASSERT_EQ(all.size(), 24u);
  EXPECT_EQ(all.front(), "a00");
  EXPECT_EQ(all[3], "a04");
  EXPECT_EQ(all.back(), "a24");
  EXPECT_EQ(page_.families, std::vector<std::string>{"default"});

  // It sees what was written since, and what is behind the prefix only without one.
  ASSERT_TRUE(IsOk(db_->Put({}, "c", "new")));
  ASSERT_TRUE(IsOk(Look({.database = "orders", .from = "b"})));
  EXPECT_EQ(Keys(), (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(page_.rows[1].value, "new");
  EXPECT_EQ(page_.rows[1].value_bytes, 3u);
}

TEST_F(KeyBrowserTest, LongKeysAndValuesAreCut) {
  const std::string key(KeyBrowser::kKeyBytesMax + 7, 'k');
  const std::string value = TestValue(1, 100'000);
  ASSERT_TRUE(IsOk(db_->Put({}, key, value)));
  ASSERT_TRUE(IsOk(Look({.database = "orders"})));
  ASSERT_EQ(page_.rows.size(), 1u);
  EXPECT_EQ(page_.rows[0].key, key.substr(0, KeyBrowser::kKeyBytesMax));
  EXPECT_EQ(page_.rows[0].key_bytes, key.size());
  EXPECT_EQ(page_.rows[0].value, value.substr(0, KeyBrowser::kValueBytesMax));
  EXPECT_EQ(page_.rows[0].value_bytes, value.size());
}

TEST_F(KeyBrowserTest, FamiliesAreShownByName) {
  ColumnFamilyHandle* family = nullptr;
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily({}, "archive", &family)));
  ASSERT_TRUE(IsOk(db_->Put({}, family, "old", "value")));
  ASSERT_TRUE(IsOk(Look({.database = "orders", .family = "archive"})));
  EXPECT_EQ(Keys(), std::vector<std::string>{"old"});
  EXPECT_EQ(page_.families, (std::vector<std::string>{"default", "archive"}));
  EXPECT_TRUE(Look({.database = "orders", .family = "none"}).IsNotFound());
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(family)));
}

TEST_F(KeyBrowserTest, MistakesAreNamed) {
  EXPECT_TRUE(Look({.database = "nothing"}).IsNotFound());
  EXPECT_TRUE(Look({.database = "orders", .limit = 0}).IsInvalidArgument());
  EXPECT_TRUE(Look({.database = "orders", .limit = KeyBrowser::kRowsMax + 1}).IsInvalidArgument());
}

TEST_F(KeyBrowserTest, FewDatabasesAreOpenAndNotForLong) {
  std::vector<std::unique_ptr<DB>> others(KeyBrowser::kOpenMax);
  for (size_t i = 0; i < others.size(); ++i) {
    const std::string name = fmt::format("other{}", i);
    ASSERT_TRUE(IsOk(OpenDatabase(name, &others[i])));
    clock_.Advance(std::chrono::seconds(1));
    ASSERT_TRUE(IsOk(Look({.database = name})));
  }
  EXPECT_EQ(browser_.open_count(), KeyBrowser::kOpenMax);
  ASSERT_TRUE(IsOk(Look({.database = "orders"})));
  EXPECT_EQ(browser_.open_count(), KeyBrowser::kOpenMax);
  browser_.CloseIdle();
  EXPECT_EQ(browser_.open_count(), KeyBrowser::kOpenMax);
  clock_.Advance(KeyBrowser::kIdle);
  browser_.CloseIdle();
  EXPECT_EQ(browser_.open_count(), 0u);
  ASSERT_TRUE(IsOk(Look({.database = "orders"})));
}

TEST(KeyPageJsonTest, AnyBytesAreHexadecimal) {
  KeyPage page;
  page.families = {"de\"fault"};
  page.rows.push_back(
      {.key = std::string("\0<\xff", 3), .value = "\"", .key_bytes = 3, .value_bytes = 1});
  EXPECT_EQ(KeyPageJson(page),
            "{\"families\": [\"de\\\"fault\"],\n\"rows\": [{\"key\": \"003cff\", \"key_bytes\": 3, "
            "\"value\": \"22\", \"value_bytes\": 1}],\n\"next\": null}\n");
  page.next = "\n";
  EXPECT_NE(KeyPageJson(page).find("\"next\": \"0a\""), std::string::npos);
  std::string bytes;
  ASSERT_TRUE(IsOk(BytesOfHex("003cFF", &bytes)));
  EXPECT_EQ(bytes, std::string("\0<\xff", 3));
  for (const std::string hex : {"0", "0g", "x0", "00 0"}) {
    EXPECT_TRUE(BytesOfHex(hex, &bytes).IsInvalidArgument()) << hex;
  }
}

}  // namespace
}  // namespace nacre::console
