// Goal: a long read gives the bytes that lie there, in order, however little of it is asked for at
// a time and whatever else is read between; a node that dies meanwhile is named, nothing hangs.
// Method: random bytes in embedded nodes, behind a network that takes its time and without one,
// read in random steps by two reads in turns; a node is killed in the middle.

#include "pool/read/replica_read.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "pool/connect/lane.h"
#include "pool/space/space_allocator.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

class ReplicaReadTest : public PoolFixture, public testing::WithParamInterface<const char*> {
 protected:
  static constexpr size_t kBytes = 5'000'000;  // More than is ever under way.

  void SetUp() override {
    OpenPoolAt(std::string("embedded:?size=64MiB&nodes=2") + GetParam(), 16 << 20);
    CreateDatabase();
    Placement placement;
    ASSERT_TRUE(IsOk(space_->Reserve(Copies(2), kBytes, kNoNode, &placement)));
    extents_ = placement.fragments;
    for (size_t i = 0; i < 2; ++i) {
      bytes_.push_back(RandomBytes(600 + i, kBytes));
      uint64_t contiguous = 0;
      const rdma::RemoteBuffer at = client_->fabric()
                                        ->link(extents_[i].start.node)
                                        ->Translate(extents_[i].start.offset, &contiguous);
      ASSERT_GE(contiguous, kBytes);
      bytes_[i].copy(reinterpret_cast<char*>(at.address), kBytes);
    }
    ASSERT_TRUE(IsOk(PoolReader::Open(client_->fabric(), &reader_)));
  }
  ~ReplicaReadTest() override { reader_.reset(); }

  std::vector<ExtentAddr> extents_;
  std::vector<std::string> bytes_;
  std::unique_ptr<PoolReader> reader_;
};

TEST_P(ReplicaReadTest, BytesArriveInOrder) {
  Random random(TestSeed(620));
  for (const size_t offset : {0, 1, 4096, 300'001}) {
    std::string found(kBytes - offset, '\0');
    ReplicaRead read;
    ASSERT_TRUE(IsOk(read.Start(reader_.get(), extents_[0], offset, found.size(), found.data())));
    for (size_t n = 0; n < found.size();) {
      n = std::min(found.size(), n + random.Uniform(400'000));
      ASSERT_TRUE(IsOk(read.AwaitFirst(n)));
      ASSERT_GE(read.arrived(), n);
      ASSERT_TRUE(Slice(found.data(), n) == Slice(bytes_[0].data() + offset, n));
    }
    EXPECT_TRUE(read.AwaitFirst(found.size() + 1).IsInvalidArgument());
  }
}

TEST_P(ReplicaReadTest, SeveralReadsTakeTurns) {
  Random random(TestSeed(621));
  std::string found[2] = {std::string(kBytes, '\0'), std::string(kBytes, '\0')};
  ReplicaRead reads[2];
  size_t n[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(IsOk(reads[i].Start(reader_.get(), extents_[i], 0, kBytes, found[i].data())));
  }
  while (n[0] < kBytes || n[1] < kBytes) {
    const size_t i = random.Uniform(2);
    n[i] = std::min(kBytes, n[i] + random.Uniform(900'000));
    ASSERT_TRUE(IsOk(reads[i].AwaitFirst(n[i])));
    ASSERT_TRUE(Slice(found[i].data(), n[i]) == Slice(bytes_[i].data(), n[i]));
    ASSERT_TRUE(IsOk(reads[i].AwaitPosted()));
    if (random.OneIn(4)) {
      std::string other(1000, '\0');
      ASSERT_TRUE(IsOk(reader_->Read(extents_[1 - i], 17, other.size(), other.data())));
      ASSERT_TRUE(Slice(other) == Slice(bytes_[1 - i].data() + 17, other.size()));
    }
  }
}

TEST_P(ReplicaReadTest, AReadThatIsGivenUpLeavesTheNextOneAlone) {
  std::string found(kBytes, '\0');
  for (int i = 0; i < 20; ++i) {
    ReplicaRead read;
    ASSERT_TRUE(IsOk(read.Start(reader_.get(), extents_[0], 0, kBytes, found.data())));
    ASSERT_TRUE(IsOk(read.AwaitFirst(1 + static_cast<size_t>(i) * 1000)));
  }
  ASSERT_TRUE(IsOk(reader_->Read(extents_[1], 0, kBytes, found.data())));
  EXPECT_TRUE(found == bytes_[1]);
}

TEST_P(ReplicaReadTest, ANodeThatDiesIsNamed) {
  std::string found(kBytes, '\0');
  ReplicaRead read;
  ASSERT_TRUE(IsOk(read.Start(reader_.get(), extents_[0], 0, kBytes, found.data())));
  ASSERT_TRUE(IsOk(read.AwaitFirst(1000)));
  const NodeId victim = extents_[0].start.node;
  pool_->KillEmbeddedNode(victim);
  const Status s = read.AwaitFirst(kBytes);
  EXPECT_TRUE(IsFailure(s, Status::Code::kUnavailable, client_->node_address(victim)));
  EXPECT_EQ(read.AwaitFirst(kBytes), s);
  EXPECT_TRUE(IsOk(read.AwaitFirst(1000)));
  EXPECT_TRUE(Slice(found.data(), 1000) == Slice(bytes_[0].data(), 1000));
  EXPECT_TRUE(reader_->Read(extents_[0], 0, 10, found.data()).IsUnavailable());
  ASSERT_TRUE(IsOk(reader_->Read(extents_[1], 0, kBytes, found.data())));
  EXPECT_TRUE(found == bytes_[1]);
}

TEST_P(ReplicaReadTest, ARangeOutsideIsRefused) {
  char byte = 0;
  ReplicaRead read;
  const uint64_t length = extents_[0].length;
  EXPECT_TRUE(read.Start(reader_.get(), extents_[0], length, 1, &byte).IsInvalidArgument());
  EXPECT_TRUE(read.Start(reader_.get(), extents_[0], 0, length + 1, &byte).IsInvalidArgument());
  EXPECT_TRUE(read.AwaitFirst(1).IsInvalidArgument());
  EXPECT_TRUE(IsOk(read.Start(reader_.get(), extents_[0], length, 0, &byte)));
  EXPECT_TRUE(IsOk(read.AwaitFirst(0)));
}

INSTANTIATE_TEST_SUITE_P(Networks, ReplicaReadTest, testing::Values("", "&rtt_us=30"));

}  // namespace
}  // namespace nacre::pool
