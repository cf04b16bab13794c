#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "nacre/db.h"
#include "tests/support/seed.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {

/// A database on an embedded pool whose nodes can be lost and damaged, and a model of what it
/// holds.
class RedundantDBTest : public testing::Test {
 protected:
  static constexpr int kKeys = 2000;

  /// A database and a model of nothing. What the test has set in `options_` of compactions,
  /// memory and narrow writes holds.
  void Open(const std::string& redundancy, int nodes, bool degraded_writes = false);
  /// Overwrites and deletes, too; some values are longer than chunks and rows.
  void Fill(size_t writes);
  /// By Get, MultiGet and iterators in both directions.
  void Check();

  uint64_t scrub_bytes_per_second_ = 0;
  /// Damaged fragments stay as and where they are.
  bool pause_repair_ = false;
  Random random_{TestSeed(301)};
  std::shared_ptr<pool::PoolImpl> pool_;
  Options options_;
  std::unique_ptr<DB> db_;
  std::map<std::string, std::string> model_;
};

}  // namespace nacre
