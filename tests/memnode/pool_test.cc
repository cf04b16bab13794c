// Goal: an embedded pool end to end: databases, space, tables, point reads, compactions, and what
// happens when nodes die. Method: nodes in this process over the shm transport; every byte that is
// read is compared with what was written.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "memnode/pool_impl.h"
#include "memnode/space_allocator.h"
#include "memnode/table_store.h"
#include "table/table_builder.h"
#include "table/table_reader.h"
#include "util/executor.h"
#include "util/random.h"

namespace nacre::memnode {
namespace {

class PoolTest : public ::testing::Test {
 protected:
  void Open(const std::string& uri, uint64_t slab_bytes = 1 << 20) {
    PoolOpenOptions options;
    options.slab_bytes = slab_bytes;
    options.operation_timeout = std::chrono::milliseconds(5000);
    const Status s = OpenPool(uri, options, Clock::System(), &pool_);
    ASSERT_TRUE(s.ok()) << s.ToString();
    client_ = pool_->client();
    slab_bytes_ = slab_bytes;
  }
  uint64_t Create(const std::string& name) {
    DatabaseLease lease;
    const Status s = client_->OpenDatabase(name, true, true, &lease);
    EXPECT_TRUE(s.ok()) << s.ToString();
    return lease.database_id;
  }

  std::unique_ptr<Executor> executor_ = NewThreadPool(1, "test");
  std::shared_ptr<PoolImpl> pool_;
  PoolClient* client_ = nullptr;
  uint64_t slab_bytes_ = 0;
};

TEST_F(PoolTest, WritesAndReadsBack) {
  Open("embedded:?nodes=3&size=16MiB");
  const uint64_t id = Create("db");
  SpaceAllocator space(client_, id, slab_bytes_, executor_.get());
  TableStore store(client_, LocalMemory());
  for (const uint8_t copies : {1, 2, 3}) {
    Placement placement;
    const Redundancy redundancy{.kind = RedundancyKind::kReplicated, .copies = copies};
    const uint64_t size = 1'500'000 + copies;
    ASSERT_TRUE(space.Reserve(redundancy, size, kNoNode, &placement).ok());
    ASSERT_EQ(placement.fragments.size(), copies);
    std::unique_ptr<ExtentWriter> writer;
    ASSERT_TRUE(store.NewWriter(placement, 64 << 10, &writer).ok());
    Random random(copies);
    std::string bytes(size, '\0');
    for (char& c : bytes) c = static_cast<char>(random.Next());
    for (uint64_t done = 0; done < size;) {
      char* chunk = nullptr;
      ASSERT_TRUE(writer->NextChunk(&chunk).ok());
      const size_t n = std::min<uint64_t>(64 << 10, size - done);
      memcpy(chunk, bytes.data() + done, n);
      ASSERT_TRUE(writer->Commit(n).ok());
      done += n;
    }
    ASSERT_TRUE(writer->Finish("head").ok());

    const std::shared_ptr<Extent> extent = store.OpenExtent(placement, size);
    const auto all = extent->StartRead(0, size);
    Slice read;
    ASSERT_TRUE(all->Await(&read).ok());
    EXPECT_TRUE(read == Slice(bytes));

    std::vector<PointRead> reads(300);
    std::vector<uint64_t> offsets;
    for (PointRead& point : reads) {
      offsets.push_back(random.Uniform(size - 500));
      point.from =
          store.Resolve(placement, offsets.back(), static_cast<int>(random.Uniform(copies)));
      point.length = static_cast<uint32_t>(1 + random.Uniform(500));
    }
    client_->ReadAll(reads);
    for (size_t i = 0; i < reads.size(); ++i) {
      ASSERT_TRUE(reads[i].status.ok()) << reads[i].status.ToString();
      EXPECT_EQ(memcmp(reads[i].data, bytes.data() + offsets[i], reads[i].length), 0);
    }
  }
}

}  // namespace
}  // namespace nacre::memnode
