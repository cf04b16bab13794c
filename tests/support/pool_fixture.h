#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "jobs/compaction_job.h"
#include "pool/pool_impl.h"
#include "pool/space/space_allocator.h"
#include "pool/store/table_store.h"
#include "table/format/table_meta.h"
#include "tests/support/table/vector_iterator.h"

namespace nacre::pool {

inline Redundancy Copies(int copies) { return Redundancy::Copies(copies); }

/// An opened pool with one database in it, and what a database needs to keep tables there.
class PoolFixture : public ::testing::Test {
 protected:
  static constexpr size_t kChunkBytes = 16 << 10;

  void OpenPoolAt(const std::string& uri, uint64_t slab_bytes = 1 << 20,
                  std::chrono::milliseconds timeout = std::chrono::milliseconds(5000));
  /// Also opens the space and the store of the database.
  void CreateDatabase(const std::string& name = "db");
  /// Ends the database's parts, then the pool.
  void ClosePool();
  ~PoolFixture() override;

  /// A sorted table of `entries`, on `copies` nodes. Its id is unique.
  Status WriteTable(const std::vector<TestEntry>& entries, int copies, NodeId preferred,
                    std::shared_ptr<const TableMeta>* table);
  Status ReadTable(const std::shared_ptr<const TableMeta>& table, std::vector<TestEntry>* entries);
  /// Writes `bytes` as they are.
  Status WriteBytes(const Placement& placement, const std::string& bytes, uint64_t table_id = 1);
  /// A job over `runs` with room for its output on `copies` nodes.
  CompactionJob MakeJob(const std::vector<std::vector<std::shared_ptr<const TableMeta>>>& runs,
                        int copies, int outputs, uint64_t output_bytes);

  std::shared_ptr<PoolImpl> pool_;
  PoolClient* client_ = nullptr;
  uint64_t slab_bytes_ = 0;
  std::string database_name_;
  uint64_t database_id_ = 0;
  std::unique_ptr<SpaceAllocator> space_;
  std::unique_ptr<TableStore> store_;
  uint64_t last_table_id_ = 0;
};

std::string RandomBytes(uint64_t seed, size_t size);

}  // namespace nacre::pool
