#include "tests/support/pool_fixture.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "pool/databases.h"
#include "table/table_builder.h"
#include "table/table_reader.h"
#include "tests/support/table/test_table.h"
#include "util/random.h"

namespace nacre::pool {

std::string RandomBytes(uint64_t seed, size_t size) {
  Random random(seed);
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; i += 8) {
    const uint64_t word = random.Next();
    std::memcpy(bytes.data() + i, &word, std::min<size_t>(8, size - i));
  }
  return bytes;
}

PoolFixture::~PoolFixture() { ClosePool(); }

void PoolFixture::OpenPoolAt(const std::string& uri, uint64_t slab_bytes,
                             std::chrono::milliseconds timeout) {
  PoolOpenOptions options;
  options.slab_bytes = slab_bytes;
  options.operation_timeout = timeout;
  const Status s = OpenPool(uri, options, Clock::System(), &pool_);
  ASSERT_TRUE(s.ok()) << s.ToString();
  client_ = pool_->client();
  slab_bytes_ = slab_bytes;
}

void PoolFixture::CreateDatabase(const std::string& name) {
  ASSERT_NE(client_, nullptr) << "the pool was not opened";
  DatabaseLease lease;
  const Status s = client_->databases()->Open(
      name, {.create_if_missing = true, .error_if_exists = true}, &lease);
  ASSERT_TRUE(s.ok()) << s.ToString();
  database_name_ = name;
  database_id_ = lease.database_id;
  space_ = std::make_unique<SpaceAllocator>(client_, database_id_, slab_bytes_, kChunkBytes);
  store_ = std::make_unique<TableStore>(client_, LocalMemory());
}

void PoolFixture::ClosePool() {
  store_.reset();
  space_.reset();
  client_ = nullptr;
  pool_.reset();
}

Status PoolFixture::WriteTable(const std::vector<TestEntry>& entries, int copies, NodeId preferred,
                               std::shared_ptr<const TableMeta>* table) {
  uint64_t user_bytes = 0;
  uint64_t largest = 0;
  for (const TestEntry& entry : entries) {
    const uint64_t size = entry.user_key.size() + entry.value.size();
    user_bytes += size;
    largest = std::max(largest, RecordBytes(entry.user_key.size(), entry.tag, entry.value.size()));
  }
  TableMeta identity;
  identity.id = ++last_table_id_;
  identity.database_id = database_id_;
  identity.comparator = BytewiseComparator()->Name();
  NACRE_RETURN_IF_ERROR(space_->Reserve(
      Copies(copies), TableBuilder::SizeBound(entries.size(), user_bytes, largest, kChunkBytes),
      preferred, &identity.placement));
  std::unique_ptr<ExtentWriter> writer;
  NACRE_RETURN_IF_ERROR(store_->NewWriter(identity.id, identity.placement, kChunkBytes, &writer));
  TableBuilderOptions options;
  options.comparator = BytewiseComparator();
  TableBuilder builder(options, identity, std::move(writer));
  for (const TestEntry& entry : entries) {
    NACRE_RETURN_IF_ERROR(builder.Add(entry.user_key, entry.tag, entry.value));
  }
  auto meta = std::make_shared<TableMeta>();
  NACRE_RETURN_IF_ERROR(builder.Finish(meta.get()));
  space_->Trim(&meta->placement, meta->size);
  *table = std::move(meta);
  return Status::OK();
}

Status PoolFixture::ReadTable(const std::shared_ptr<const TableMeta>& table,
                              std::vector<TestEntry>* entries) {
  std::unique_ptr<TableReader> reader;
  NACRE_RETURN_IF_ERROR(
      TableReader::Open(table, BytewiseComparator(),
                        store_->OpenExtent(table->id, table->placement, table->size), &reader));
  const auto iterator = reader->NewIterator(TableIteratorOptions());
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    entries->push_back({.user_key = iterator->user_key().ToString(),
                        .tag = iterator->tag(),
                        .value = iterator->value().ToString()});
  }
  return iterator->status();
}

Status PoolFixture::WriteBytes(const Placement& placement, const std::string& bytes,
                               uint64_t table_id) {
  std::unique_ptr<ExtentWriter> writer;
  NACRE_RETURN_IF_ERROR(store_->NewWriter(table_id, placement, kChunkBytes, &writer));
  for (size_t done = 0; done < bytes.size();) {
    char* chunk = nullptr;
    NACRE_RETURN_IF_ERROR(writer->NextChunk(&chunk));
    const size_t n = std::min(kChunkBytes, bytes.size() - done);
    std::memcpy(chunk, bytes.data() + done, n);
    NACRE_RETURN_IF_ERROR(writer->Commit(n));
    done += n;
  }
  return writer->Finish("head");
}

CompactionJob PoolFixture::MakeJob(
    const std::vector<std::vector<std::shared_ptr<const TableMeta>>>& runs, int copies, int outputs,
    uint64_t output_bytes) {
  CompactionJob job;
  job.database_id = database_id_;
  job.comparator_name = BytewiseComparator()->Name();
  job.runs = runs;
  job.target_table_bytes = output_bytes * 3 / 4;
  job.chunk_size = kChunkBytes;
  job.output_level = 1;
  job.manifest_version = 1;
  for (int i = 0; i < outputs; ++i) {
    ReservedTable& output = job.outputs.emplace_back();
    output.id = ++last_table_id_;
    const Status s = space_->Reserve(Copies(copies), output_bytes, kNoNode, &output.placement);
    EXPECT_TRUE(s.ok()) << s.ToString();
  }
  return job;
}

}  // namespace nacre::pool
