#include "tests/support/table/table_factory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "pool/databases.h"
#include "table/table_builder.h"
#include "tests/support/test_db.h"

namespace nacre {

TableFactory::TableFactory(const Comparator* comparator) : comparator_(comparator) {
  TestPoolOptions options;
  options.nodes = 1;
  pool_ = OpenTestPool(options);
  pool::DatabaseLease lease;
  const Status status = pool_->client()->databases()->Open(
      "tables", {.create_if_missing = true, .error_if_exists = true}, &lease);
  EXPECT_TRUE(status.ok()) << status.ToString();
  database_id_ = lease.database_id;
  space_ = std::make_unique<pool::SpaceAllocator>(pool_->client(), database_id_, options.slab_bytes,
                                                  kChunk);
  store_ = std::make_unique<pool::TableStore>(pool_->client(), pool::LocalMemory());
}

TableFactory::~TableFactory() = default;

std::shared_ptr<TableHandle> TableFactory::Make(std::vector<TestEntry> entries) {
  SortEntries(comparator_, &entries);
  uint64_t bytes = 0;
  uint64_t largest = 0;
  for (const TestEntry& entry : entries) {
    const uint64_t size = entry.user_key.size() + entry.value.size();
    bytes += size;
    largest = std::max(largest, size + 64);
  }
  TableMeta meta;
  const auto build = [&]() -> Status {
    TableMeta identity;
    identity.id = next_id_++;
    identity.manifest_version = identity.id;
    identity.database_id = database_id_;
    identity.comparator = comparator_.user_comparator()->Name();
    const uint64_t bound = TableBuilder::SizeBound(entries.size(), bytes, largest, kChunk);
    NACRE_RETURN_IF_ERROR(space_->Reserve(Redundancy(), bound, kNoNode, &identity.placement));
    std::unique_ptr<ExtentWriter> writer;
    NACRE_RETURN_IF_ERROR(store_->NewWriter(identity.id, identity.placement, kChunk, &writer));
    TableBuilderOptions options;
    options.comparator = comparator_.user_comparator();
    TableBuilder builder(options, std::move(identity), std::move(writer));
    for (const TestEntry& entry : entries) {
      NACRE_RETURN_IF_ERROR(builder.Add(entry.user_key, entry.tag, entry.value));
    }
    return builder.Finish(&meta);
  };
  std::shared_ptr<TableHandle> table;
  Status status = build();
  if (status.ok()) {
    space_->Trim(&meta.placement, meta.size);
    status = TableHandle::Open(meta, comparator_.user_comparator(), Surroundings(),
                               PointTier::Kind::kIndex, &table);
  }
  EXPECT_TRUE(status.ok()) << status.ToString();
  return table;
}

std::shared_ptr<TableHandle> TableFactory::OpenUnread(const TableHandle& table) {
  std::shared_ptr<TableHandle> opened;
  const Status status =
      TableHandle::OpenUnread(table.meta(), comparator_.user_comparator(), Surroundings(), &opened);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return opened;
}

std::shared_ptr<TableHandle> TableFactory::MakeOfKeys(const std::vector<std::string>& keys,
                                                      size_t bytes) {
  std::vector<TestEntry> entries;
  for (const std::string& key : keys) {
    const bool first = entries.empty();
    entries.push_back({key, PackTag(next_id_, ValueType::kValue),
                       first ? TestValue(next_id_, bytes) : std::string()});
  }
  return Make(std::move(entries));
}

std::shared_ptr<TableHandle> TableFactory::MakeUnread(TableMeta meta) {
  if (meta.id == 0) meta.id = next_id_++;
  if (meta.manifest_version == 0) meta.manifest_version = meta.id;
  meta.comparator = comparator_.user_comparator()->Name();
  std::shared_ptr<TableHandle> table;
  const Status status = TableHandle::OpenUnread(std::move(meta), comparator_.user_comparator(),
                                                Surroundings(), &table);
  EXPECT_TRUE(status.ok()) << status.ToString();
  return table;
}

}  // namespace nacre
