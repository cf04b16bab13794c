#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "db/version/table_handle.h"
#include "pool/pool_impl.h"
#include "pool/space/space_allocator.h"
#include "pool/store/table_store.h"
#include "tests/support/table/vector_iterator.h"
#include "util/threads/epoch.h"

namespace nacre {

/// Real tables in an embedded pool, for tests of what the engine does with tables.
class TableFactory {
 public:
  explicit TableFactory(const Comparator* comparator);
  ~TableFactory();

  /// A table with `entries`, which are sorted here. Null, and a failed test, if that goes wrong.
  std::shared_ptr<TableHandle> Make(std::vector<TestEntry> entries);
  /// A table of values at `keys`, the first of them so long that the table has about `bytes`.
  std::shared_ptr<TableHandle> MakeOfKeys(const std::vector<std::string>& keys, size_t bytes = 0);
  /// The same table as a database opens it at first: nothing of it has been read.
  std::shared_ptr<TableHandle> OpenUnread(const TableHandle& table);
  /// From here on no table can be read.
  void LoseTables() { pool_->KillEmbeddedNode(0); }

  /// A table of which there is nothing but `meta`, for what looks at no records. It gets an id and
  /// a version unless it has them.
  std::shared_ptr<TableHandle> MakeUnread(TableMeta meta);

  /// From here on tables count their indexes in `memory`, which outlives them.
  void SetIndexMemory(IndexMemory* memory) { memory_ = memory; }

  const InternalKeyComparator& comparator() const { return comparator_; }
  const pool::SpaceAllocator& space() const { return *space_; }
  const pool::PoolClient* client() const { return pool_->client(); }
  /// Reports of all tables: see TableStore::damage_reports.
  uint64_t damage_reports() const { return store_->damage_reports(); }
  uint64_t used_bytes() const { return space_->Usage().used_bytes; }

 private:
  TableSurroundings Surroundings() { return {store_.get(), space_.get(), &epochs_, memory_}; }

  static constexpr size_t kChunk = 4 << 10;

  const InternalKeyComparator comparator_;
  std::shared_ptr<pool::PoolImpl> pool_;
  std::unique_ptr<pool::SpaceAllocator> space_;
  std::unique_ptr<pool::TableStore> store_;
  EpochDomain epochs_;
  IndexMemory* memory_ = nullptr;
  uint64_t database_id_ = 0;
  uint64_t next_id_ = 1;
};

}  // namespace nacre
