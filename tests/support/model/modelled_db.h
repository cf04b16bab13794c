#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "nacre/db.h"
#include "nacre/options.h"
#include "tests/support/model/model_db.h"
#include "tests/support/process/memnode_process.h"
#include "util/random.h"

namespace nacre {

/// A database over three nacre-memnode processes, with near-data flushes, and a model of what it
/// holds. A write buffer is flushed when the test says so.
class ModelledDBTest : public testing::Test {
 protected:
  /// Keys that are looked up besides those that are there.
  ModelledDBTest(uint64_t seed, std::vector<std::string> lookups);
  ~ModelledDBTest() override;

  /// Also sets the options.
  void StartNodes();
  void Open();
  /// By iterators both ways, MultiGet and Get: `db` is what the model was at `time`.
  void ExpectModel(DB* db, const Snapshot* snapshot, uint64_t time);
  void ExpectModel() { ExpectModel(db_.get(), nullptr, model_.Now()); }

  Random random_;
  ModelDB model_;
  std::unique_ptr<MemnodeProcesses> nodes_;
  Options options_;
  std::unique_ptr<DB> db_;

 private:
  const std::vector<std::string> lookups_;
};

}  // namespace nacre
