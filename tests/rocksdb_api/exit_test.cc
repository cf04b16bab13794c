// Goal: a program may end with a rocksdb::DB of Nacre's open, and its threads busy.
// Method: that of tests/integration/exit_test.cc.

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "adapters/rocksdb/nacre_rocksdb.h"
#include "tests/support/process/exit_while_busy.h"

namespace nacre::rocksdb_api {
namespace {

[[noreturn]] void OpenAndExit() {
  nacre::Options nacre_options;
  nacre_options.pool_uri = "embedded:?nodes=3&size=256MiB";
  rocksdb::Options options;
  options.create_if_missing = true;
  options.write_buffer_size = 512 << 10;
  std::unique_ptr<rocksdb::DB> opened;
  if (!Open(options, nacre_options, "left open", &opened).ok()) std::abort();
  rocksdb::DB* const db = opened.release();
  ExitWhileBusy(3, [db](uint64_t round) {
    const std::string key = "key" + std::to_string(round % 5000);
    if (!db->Put({}, key, std::string(1000, 'v')).ok()) std::abort();
    std::string value;
    if (!db->Get({}, key, &value).ok()) std::abort();
    if (round % 50 != 0) return;
    const std::unique_ptr<rocksdb::Iterator> iterator(db->NewIterator({}));
    iterator->SeekToFirst();
    if (!iterator->Valid()) std::abort();
  });
}

TEST(ExitTest, WithTheDatabaseOpen) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(OpenAndExit(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace nacre::rocksdb_api
