// Goal: an erasure-coded table is read back exactly, whole and in any part, whichever nodes are
// lost, at all sizes around the chunks' and rows' ends; its parity is what the code says. So it is
// for a reader that does not hold the table's memory, and it never gets bytes that are made of two
// tables.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "pool/connect/lane.h"
#include "pool/connect/node_link.h"
#include "pool/pool_client.h"
#include "pool/read/point_reader.h"
#include "table/format/fragment_checksums.h"
#include "table/format/record.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/codes/reed_solomon.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

constexpr uint64_t kRow = 4 * (16 << 10);

Redundancy Coded(int data, int parity) {
  return {.kind = RedundancyKind::kErasureCoded,
          .data = static_cast<uint8_t>(data),
          .parity = static_cast<uint8_t>(parity)};
}

class StripingTest : public PoolFixture {
 protected:
  struct Table {
    uint64_t id = 0;
    Placement placement;
    std::string bytes;
  };

  void Write(const Redundancy& redundancy, size_t size, Table* table) {
    table->id = ++last_table_id_;
    table->bytes = RandomBytes(seed_ + size, size);
    ASSERT_TRUE(IsOk(
        space_->Reserve(redundancy, std::max<uint64_t>(size, kRow), kNoNode, &table->placement)));
    ASSERT_EQ(table->placement.redundancy, redundancy);
    ASSERT_TRUE(IsOk(WriteBytes(table->placement, table->bytes, table->id)));
    space_->Trim(&table->placement, size);
  }

  /// Each fragment's bytes are those that its own tail says.
  void CheckTails(const Table& table) {
    for (size_t i = 0; i < table.placement.fragments.size(); ++i) {
      const uint64_t bytes =
          FragmentBytes(table.placement, static_cast<int>(i), table.bytes.size());
      const std::string raw = Raw(table.placement.fragments[i]);
      const Slice behind_head(raw.data() + kFragmentHeadBytes, raw.size() - kFragmentHeadBytes);
      FragmentChecksums sums;
      ASSERT_TRUE(
          IsOk(DecodeFragmentTail(Slice(behind_head.data() + bytes, behind_head.size() - bytes),
                                  {table.id, static_cast<uint32_t>(i), bytes}, &sums)))
          << "fragment " << i << " of a table of " << table.bytes.size();
      ASSERT_EQ(sums.chunk_size, kChunkBytes);
      for (size_t chunk = 0; chunk < sums.chunks.size(); ++chunk) {
        ASSERT_TRUE(sums.Matches(chunk, behind_head.data() + chunk * kChunkBytes));
      }
    }
  }

  void CreateDatabase() {
    PoolFixture::CreateDatabase();
    unheld_ = std::make_unique<TableStore>(client_, LocalMemory(), /*buffers_in_flight=*/4,
                                           TableStore::Memory::kUnheld);
  }
  void ClosePool() {
    unheld_.reset();
    PoolFixture::ClosePool();
  }

  Status ReadRange(const Table& table, uint64_t offset, size_t n) {
    for (TableStore* const store : {store_.get(), unheld_.get()}) {
      const auto extent = store->OpenExtent(table.id, table.placement, table.bytes.size());
      for (const bool ahead : {false, true}) {
        Slice bytes;
        const auto read = ahead ? extent->StartReadAhead(offset, n) : extent->StartRead(offset, n);
        NACRE_RETURN_IF_ERROR(read->Await(&bytes));
        EXPECT_EQ(bytes.size(), n);
        EXPECT_EQ(std::memcmp(bytes.data(), table.bytes.data() + offset, n), 0)
            << n << " bytes at " << offset << " of " << table.bytes.size();
      }
    }
    return Status::OK();
  }

  void CheckAll(const Table& table) {
    ASSERT_TRUE(IsOk(ReadRange(table, 0, table.bytes.size())));
    for (int i = 0; i < 40; ++i) {
      const uint64_t offset = random_.Uniform(table.bytes.size());
      const uint64_t most =
          std::min<uint64_t>(table.bytes.size() - offset, random_.OneIn(2) ? 600 : 3 * kRow);
      ASSERT_TRUE(IsOk(ReadRange(table, offset, random_.Uniform(most + 1))));
    }
  }

  /// In the memory of its node; head not counted.
  char* Byte(const ExtentAddr& fragment, uint64_t offset) {
    uint64_t contiguous = 0;
    return reinterpret_cast<char*>(
        client_->fabric()
            ->link(fragment.start.node)
            ->Translate(fragment.start.offset + kFragmentHeadBytes + offset, &contiguous)
            .address);
  }

  std::string Raw(const ExtentAddr& extent) {
    PointRead read;
    read.from = extent.start;
    read.length = static_cast<uint32_t>(extent.length);
    PointReader reader(client_->point_sessions());
    reader.ReadAll({&read, 1});
    EXPECT_TRUE(IsOk(read.status));
    return std::string(read.data, read.length);
  }

  const uint64_t seed_ = TestSeed(301);
  Random random_{seed_};
  std::unique_ptr<TableStore> unheld_;
};

TEST_F(StripingTest, ReadsBackAtAllSizesWithAnyNodesLost) {
  for (const Redundancy& code : {Coded(2, 1), Coded(4, 2), Coded(3, 4), Coded(4, 0)}) {
    SCOPED_TRACE(code.ToString());
    OpenPoolAt("embedded:?size=16MiB&nodes=" + std::to_string(code.fragments()));
    CreateDatabase();
    std::vector<Table> tables;
    for (const size_t size : {size_t{1}, kChunkBytes - 1, kChunkBytes, kChunkBytes + 1,
                              2 * kChunkBytes, size_t{kRow} - 1, size_t{kRow}, size_t{kRow} + 1,
                              size_t{kRow} + 2 * kChunkBytes + 17, size_t{700'000}}) {
      ASSERT_NO_FATAL_FAILURE(Write(code, size, &tables.emplace_back()));
    }
    for (const Table& table : tables) {
      ASSERT_NO_FATAL_FAILURE(CheckAll(table));
      ASSERT_NO_FATAL_FAILURE(CheckTails(table));
    }
    // One after another, as many as may be lost.
    std::vector<NodeId> nodes;
    for (int i = 0; i < code.fragments(); ++i) nodes.push_back(static_cast<NodeId>(i));
    for (int lost = 0; lost < code.parity; ++lost) {
      const auto victim = nodes.begin() + static_cast<ptrdiff_t>(random_.Uniform(nodes.size()));
      pool_->KillEmbeddedNode(*victim);
      nodes.erase(victim);
      for (const Table& table : tables) ASSERT_NO_FATAL_FAILURE(CheckAll(table));
    }
    // With one more lost, what lies on the others is still there, and the rest says which nodes are
    // missing.
    const NodeId last = nodes[random_.Uniform(nodes.size())];
    const std::string address = client_->node_address(last);
    pool_->KillEmbeddedNode(last);
    size_t read = 0;
    size_t failed = 0;
    const Table& table = tables.back();
    for (uint64_t at = 0; at + 100 < table.bytes.size(); at += 1000) {
      const Status status = ReadRange(table, at, 100);
      if (status.ok()) {
        ++read;
      } else {
        ASSERT_TRUE(IsFailure(status, Status::Code::kUnavailable, address));
        ++failed;
      }
    }
    EXPECT_GT(failed, 0u);
    if (code.parity < 3) {
      EXPECT_GT(read, 0u);
    }
    ClosePool();
  }
}

TEST_F(StripingTest, FragmentsAreWhatTheCodeSays) {
  OpenPoolAt("embedded:?size=16MiB&nodes=6");
  CreateDatabase();
  const size_t size = kRow + kChunkBytes + 100;  // The last row has one and a bit of its chunks.
  Table table;
  ASSERT_NO_FATAL_FAILURE(Write(Coded(4, 2), size, &table));
  std::vector<std::string> fragments;
  for (const ExtentAddr& extent : table.placement.fragments) {
    std::string raw = Raw(extent);
    EXPECT_EQ(raw.substr(0, 4), "head");
    fragments.push_back(raw.substr(kFragmentHeadBytes));
  }
  // Row 0, and row 1, where columns 2 and 3 are empty.
  for (const uint64_t row : {0, 1}) {
    std::vector<std::string> columns(4, std::string(kChunkBytes, '\0'));
    for (size_t i = 0; i < 4; ++i) {
      const size_t begin = std::min(size, (row * 4 + i) * kChunkBytes);
      const size_t n = std::min(kChunkBytes, size - begin);
      table.bytes.copy(columns[i].data(), n, begin);
      EXPECT_EQ(fragments[i].substr(row * kChunkBytes, n), columns[i].substr(0, n));
    }
    std::vector<std::string> parity(2, std::string(kChunkBytes, '#'));
    std::vector<const char*> from;
    std::vector<char*> to;
    for (const std::string& column : columns) from.push_back(column.data());
    for (std::string& chunk : parity) to.push_back(chunk.data());
    ReedSolomon::Get(4, 2).encoder().Combine(kChunkBytes, from.data(), to.data());
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_TRUE(fragments[4 + i].substr(row * kChunkBytes, kChunkBytes) == parity[i]);
    }
  }
}

TEST_F(StripingTest, CopiesHaveTailsToo) {
  OpenPoolAt("embedded:?size=16MiB&nodes=3");
  CreateDatabase();
  for (const size_t size : {size_t{1}, kChunkBytes, kChunkBytes + 1, size_t{700'000}}) {
    Table table;
    ASSERT_NO_FATAL_FAILURE(Write(Copies(3), size, &table));
    ASSERT_NO_FATAL_FAILURE(CheckTails(table));
  }
}

TEST_F(StripingTest, DamageIsFoundAndReadAround) {
  OpenPoolAt("embedded:?size=16MiB&nodes=6");
  CreateDatabase();
  for (const Redundancy& code : {Coded(2, 1), Coded(4, 2), Copies(3)}) {
    for (const size_t size : {size_t{1}, kChunkBytes, kChunkBytes + 1, size_t{kRow} - 1,
                              size_t{kRow}, size_t{kRow} + 2 * kChunkBytes + 17}) {
      SCOPED_TRACE(code.ToString() + ", " + std::to_string(size));
      Table table;
      ASSERT_NO_FATAL_FAILURE(Write(code, size, &table));
      for (size_t i = 0; i < table.placement.fragments.size(); ++i) {
        const uint64_t bytes = FragmentBytes(table.placement, static_cast<int>(i), size);
        if (bytes == 0) continue;
        // The first byte, the last, and any: of its data, and of its tail.
        for (const uint64_t at : {uint64_t{0}, bytes - 1, random_.Uniform(bytes), bytes,
                                  bytes + FragmentTailBytes(bytes, kChunkBytes) - 1}) {
          char* const byte = Byte(table.placement.fragments[i], at);
          const char before = *byte;
          *byte = static_cast<char>(before ^ 1 << random_.Uniform(8));
          // It has not been looked at so far.
          const auto extent = store_->OpenExtent(table.id, table.placement, size);
          EXPECT_EQ(extent->damaged(), 0u);
          const std::string nodes = extent->FindDamage(0, size, false);
          EXPECT_EQ(extent->damaged(), FragmentSet{1} << i);
          if (at < bytes) {
            EXPECT_EQ(nodes, client_->node_address(table.placement.fragments[i].start.node));
          }
          Slice read;
          const auto all = extent->StartRead(0, size);
          ASSERT_TRUE(IsOk(all->Await(&read)));
          ASSERT_TRUE(read == Slice(table.bytes));
          const auto unheld = unheld_->OpenExtent(table.id, table.placement, size);
          unheld->FindDamage(0, size, false);
          const auto again = unheld->StartRead(0, size);
          ASSERT_TRUE(IsOk(again->Await(&read)));
          ASSERT_TRUE(read == Slice(table.bytes));
          *byte = before;
        }
      }
      space_->Free(table.placement);
    }
  }
}

TEST_F(StripingTest, WhatIsDecodedIsOfOneTable) {
  OpenPoolAt("embedded:?size=16MiB&nodes=3");
  CreateDatabase();
  // Records of one length, as many databases have them.
  constexpr size_t kRecord = 512;
  constexpr size_t kSize = 2 * kChunkBytes;
  const uint64_t tag = PackTag(1'000'000, ValueType::kValue);
  const auto records = [&](uint64_t table_id, char name) {
    std::string bytes(kSize, '\0');
    size_t value_bytes = kRecord;
    while (RecordBytes(4, tag, value_bytes) > kRecord) --value_bytes;
    for (size_t at = 0; at < kSize; at += kRecord) {
      const std::string key = {name, static_cast<char>('0' + at / kChunkBytes), '/',
                               static_cast<char>('A' + at % kChunkBytes / kRecord)};
      EncodeRecord(bytes.data() + at, table_id, key, tag,
                   RandomBytes(seed_ + table_id * kSize + at, value_bytes));
    }
    return bytes;
  };
  Table table{.id = 1, .placement = {}, .bytes = records(1, 'a')};
  ASSERT_TRUE(IsOk(space_->Reserve(Coded(2, 1), kRow, kNoNode, &table.placement)));
  ASSERT_TRUE(IsOk(WriteBytes(table.placement, table.bytes, 1)));
  const auto& fragments = table.placement.fragments;
  constexpr size_t kFragment = kChunkBytes;
  const std::string first = Raw(fragments[0]).substr(kFragmentHeadBytes);
  const std::string parity = Raw(fragments[2]).substr(kFragmentHeadBytes);
  const size_t tail_bytes = FragmentTailBytes(kFragment, kChunkBytes);

  // Reads a record of the second fragment, which is damaged or on a lost node.
  const Slice wanted(table.bytes.data() + kChunkBytes + kRecord, kRecord);
  Slice read;
  std::unique_ptr<PendingRead> pending;
  const auto read_second = [&](TableStore* store) {
    const auto extent = store->OpenExtent(1, table.placement, kSize);
    extent->ReportDamage(FragmentSet{1} << 1, 0);
    pending = extent->StartRead(kChunkBytes + kRecord, kRecord);
    return pending->Await(&read);
  };
  const auto is_record = [&read] {
    Record record;
    return ParseRecord(read, uint64_t{1}, /*verify_checksum=*/true, &record) == RecordParse::kOk;
  };
  ASSERT_TRUE(IsOk(read_second(unheld_.get())));
  EXPECT_TRUE(read == wanted);

  // Another table has the memory now, but for the first fragment.
  ASSERT_TRUE(IsOk(WriteBytes(table.placement, records(2, 'q'), 2)));
  std::memcpy(Byte(fragments[0], 0), first.data(), kFragment + tail_bytes);
  // This is why records' checksums do not suffice: this record was never written.
  ASSERT_TRUE(IsOk(read_second(store_.get())));
  EXPECT_TRUE(is_record());
  EXPECT_FALSE(read == wanted);
  // A reader that compares chunks finds that two of three are not the table's, and reads what is
  // there.
  const auto gives_no_record = [&] {
    ASSERT_TRUE(IsOk(read_second(unheld_.get())));
    EXPECT_FALSE(is_record());
  };
  gives_no_record();
  std::memcpy(Byte(fragments[2], kFragment), parity.data() + kFragment, tail_bytes);
  gives_no_record();  // Only the chunk is another's.
  std::memcpy(Byte(fragments[2], 0), parity.data(), kFragment);
  *Byte(fragments[2], kFragment + 8) ^= 1;
  gives_no_record();  // Only the tail is.
  *Byte(fragments[2], kFragment + 8) ^= 1;
  ASSERT_TRUE(IsOk(read_second(unheld_.get())));
  EXPECT_TRUE(read == wanted);

  pool_->KillEmbeddedNode(fragments[1].start.node);
  ASSERT_TRUE(IsOk(read_second(unheld_.get())));
  EXPECT_TRUE(read == wanted);
  *Byte(fragments[2], 0) ^= 1;
  // Whether the node is known to be gone by now decides which failure comes last.
  const Status status = read_second(unheld_.get());
  EXPECT_TRUE(status.IsCorruption() || status.IsUnavailable()) << status.ToString();
  EXPECT_NE(status.message().find(client_->node_address(fragments[2].start.node)),
            std::string::npos)
      << status.ToString();
}

TEST_F(StripingTest, SpaceIsThatOfTheCode) {
  OpenPoolAt("embedded:?size=64MiB&nodes=6");
  CreateDatabase();
  Table table;
  constexpr size_t kSize = 6'000'000;
  ASSERT_NO_FATAL_FAILURE(Write(Coded(4, 2), kSize, &table));
  const uint64_t used = space_->Usage().used_bytes;
  EXPECT_GE(used, kSize * 3 / 2);
  EXPECT_LE(used, kSize * 3 / 2 + 6 * (kFragmentHeadBytes + 4096 + kChunkBytes));
  space_->Free(table.placement);
  EXPECT_EQ(space_->Usage().used_bytes, 0u);
}

TEST_F(StripingTest, SmallTablesAreReplicated) {
  OpenPoolAt("embedded:?size=16MiB&nodes=6");
  CreateDatabase();
  Placement placement;
  ASSERT_TRUE(IsOk(space_->Reserve(Coded(4, 2), 10'000, kNoNode, &placement)));
  EXPECT_EQ(placement.redundancy, Redundancy::Copies(3));
  EXPECT_EQ(placement.fragments.size(), 3u);
  space_->Free(placement);
}

TEST_F(StripingTest, ParityMovesOverTheNodes) {
  OpenPoolAt("embedded:?size=16MiB&nodes=6");
  CreateDatabase();
  std::vector<int> parity(6, 0);
  for (int i = 0; i < 12; ++i) {
    Placement placement;
    ASSERT_TRUE(IsOk(space_->Reserve(Coded(4, 2), kRow, kNoNode, &placement)));
    ++parity[placement.fragments[4].start.node];
    ++parity[placement.fragments[5].start.node];
  }
  for (const int count : parity) EXPECT_GT(count, 0);
}

TEST_F(StripingTest, TooFewNodesAreNamed) {
  OpenPoolAt("embedded:?size=16MiB&nodes=6");
  CreateDatabase();
  Placement placement;
  EXPECT_TRUE(IsFailure(space_->Reserve(Coded(5, 2), kRow, kNoNode, &placement),
                        Status::Code::kInvalidArgument, "rs(5,2) needs 7 nodes, the pool has 6"));
  const std::string address = client_->node_address(3);
  pool_->KillEmbeddedNode(3);
  // The allocator may hear of it only when it asks.
  Status status;
  do {
    status = space_->Reserve(Coded(4, 2), kRow, kNoNode, &placement);
    if (status.ok()) space_->Free(placement);
  } while (status.ok());
  EXPECT_TRUE(IsFailure(status, Status::Code::kUnavailable, address));
}

TEST_F(StripingTest, DamageFollowsATableToItsNewPlace) {
  OpenPoolAt("embedded:?size=16MiB&nodes=3");
  CreateDatabase();
  Placement placement;
  ASSERT_TRUE(IsOk(space_->Reserve(Coded(2, 1), kRow, kNoNode, &placement)));
  const auto open = [&] { return store_->OpenExtent(1, placement, kRow); };
  const auto old = open();
  const auto moved = open();
  old->ReportDamage(0b101);
  old->PassDamageTo(moved, 0b011);
  EXPECT_EQ(moved->damaged(), 0b001U);
  // What goes on with the old one finds more.
  old->ReportDamage(0b110, 0);
  EXPECT_EQ(moved->damaged(), 0b011U);
  const auto again = open();
  moved->PassDamageTo(again, 0b110);
  EXPECT_EQ(again->damaged(), 0b010U);
  old->ReportDamage(0b111);
  EXPECT_EQ(again->damaged(), 0b010U);
  moved->ReportDamage(0b100, 1);
  EXPECT_EQ(again->damaged(), 0b110U);

  for (int i = 0; i < 300; ++i) {
    const auto from = open();
    const auto to = open();
    std::thread finder([&] { from->ReportDamage(0b010, 0); });
    from->PassDamageTo(to, 0b010);
    finder.join();
    ASSERT_EQ(to->damaged(), 0b010U) << i;
  }
}

}  // namespace
}  // namespace nacre::pool
