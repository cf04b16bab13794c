#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "db/database_parts.h"
#include "nacre/options.h"
#include "pool/pool_impl.h"
#include "tests/support/test_db.h"

namespace nacre {

/// The parts of a new database on an embedded pool, as DBImpl has them, without threads of their
/// own and without a log: a test calls one part, and looks at the others.
class PartsFixture : public testing::Test {
 protected:
  PartsFixture() : PartsFixture(TestPoolOptions()) {}
  explicit PartsFixture(const TestPoolOptions& pool);
  ~PartsFixture() override;

  /// Makes them of `options_`. `manifest`: the committer has one, which flushes need.
  void Open(const std::string& redundancy = "rep(2)", bool manifest = true);
  /// Background work ends; the parts can still be looked at.
  void StopWork();

  Status Put(const std::string& key, const std::string& value);
  /// "(...)" for a failure.
  std::string Get(const std::string& key);
  /// Flushes `keys` values of 100 bytes under keys that begin with `prefix`.
  Status FlushKeys(const std::string& prefix, int keys);

  ColumnFamily* family() { return parts_->state.default_family.get(); }
  std::shared_ptr<const Version> version();
  size_t ended_generations();
  /// Reserves for nothing what is free in the pool, but for `left` pieces of `bytes`.
  void FillPool(uint64_t bytes, size_t left);
  /// Gives back what FillPool reserved.
  void EmptyPool();

  const std::shared_ptr<pool::PoolImpl> pool_;
  Options options_ = SmallTableOptions(pool_);
  std::unique_ptr<DatabaseParts> parts_;

 private:
  /// Reserves pieces of `bytes` until there is no room for one more.
  void FillWith(uint64_t bytes);

  std::vector<Placement> filling_;
};

}  // namespace nacre
