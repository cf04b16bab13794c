#pragma once

#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>

#include <memory>
#include <sstream>
#include <string>

#include "adapters/rocksdb/nacre_rocksdb.h"
#include "nacre/pool.h"
#include "tests/support/status_assert.h"

namespace nacre::rocksdb_api {

/// The first line in which two transcripts differ; empty if they are equal.
inline std::string FirstDifference(const std::string& ours, const std::string& theirs) {
  std::istringstream our_lines(ours);
  std::istringstream their_lines(theirs);
  for (int number = 1;; ++number) {
    std::string our_line;
    std::string their_line;
    const bool more = static_cast<bool>(std::getline(our_lines, our_line));
    if (more != static_cast<bool>(std::getline(their_lines, their_line)) ||
        our_line != their_line) {
      return "line " + std::to_string(number) + ": " + our_line + ", RocksDB: " + their_line;
    }
    if (!more) return "";
  }
}

/// A database of RocksDB's in memory, and one of Nacre's in an embedded pool, with the same
/// options.
class BothDatabases : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(IsOk(Pool::Open("embedded:?nodes=2&size=256MiB", &pool_)));
    nacre_options_.pool = pool_;
    options_.create_if_missing = true;
    options_.write_buffer_size = 1 << 20;
    options_.compression = rocksdb::kNoCompression;
  }
  void OpenNacre() {
    nacre_db_.reset();
    const rocksdb::Status status = Open(options_, nacre_options_, "program", &nacre_db_);
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
  void OpenRocksdb() {
    rocksdb_.reset();
    rocksdb::Options options = options_;
    options.env = memory_.get();
    rocksdb::DB* db = nullptr;
    const rocksdb::Status status = rocksdb::DB::Open(options, "/program", &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    rocksdb_.reset(db);
  }

  std::shared_ptr<Pool> pool_;
  nacre::Options nacre_options_;
  rocksdb::Options options_;
  const std::unique_ptr<rocksdb::Env> memory_{rocksdb::NewMemEnv(rocksdb::Env::Default())};
  std::unique_ptr<rocksdb::DB> rocksdb_;
  std::unique_ptr<rocksdb::DB> nacre_db_;
};

}  // namespace nacre::rocksdb_api
