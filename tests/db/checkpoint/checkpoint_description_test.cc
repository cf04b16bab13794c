// Goal: a description says what it was made of, and nothing else is taken for one; the pace and the
// end of jobs on tables hold for all of their threads together.
// Method: round trips; every bit changed, every length; numbers that contradict one another. A
// clock that stands still but for sleeps.

#include "db/checkpoint/checkpoint_description.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "db/checkpoint/table_jobs.h"
#include "tests/support/manifest_pool.h"
#include "tests/support/manual_clock.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre {
namespace {

CheckpointDescription MakeDescription() {
  Random random(TestSeed(81));
  CheckpointDescription description;
  description.id = 99;
  description.database_id = 5;
  description.database = "orders";
  description.comparator = "test.Order";
  description.num_levels = 7;
  description.sequence = 1 << 20;
  description.manifest_version = 300;
  description.next_table_id = 10;
  for (uint64_t id = 1; id < 4; ++id) {
    TableMeta meta = RandomTableMeta(&random, id, 20);
    meta.database_id = 5;
    meta.comparator = "test.Order";
    meta.placement = Placement();
    meta.chunk_size = 8192;
    meta.alignment_shift = 2;
    meta.largest_sequence = 1000;
    meta.manifest_version = 200;
    meta.size = 10'000;
    meta.records = {.offset = 0, .length = 5000};
    meta.point_index = {.offset = 5000, .length = 1000, .crc = 1};
    meta.range_index = {.offset = 6000, .length = 500, .crc = 2};
    meta.bloom = {.offset = 6500, .length = 0};
    meta.lineage = {.offset = 6500, .length = 40, .crc = 3};
    description.tables.emplace_back(static_cast<uint32_t>(id), std::move(meta));
  }
  return description;
}

Status Decode(const std::string& bytes) {
  CheckpointDescription description;
  return DecodeCheckpointDescription(bytes, &description);
}

TEST(CheckpointDescriptionTest, SurvivesARoundTrip) {
  const CheckpointDescription description = MakeDescription();
  const std::string bytes = EncodeCheckpointDescription(description);
  CheckpointDescription decoded;
  ASSERT_TRUE(IsOk(DecodeCheckpointDescription(bytes, &decoded)));
  EXPECT_EQ(EncodeCheckpointDescription(decoded), bytes);
  EXPECT_EQ(decoded.id, 99u);
  EXPECT_EQ(decoded.database_id, 5u);
  EXPECT_EQ(decoded.database, "orders");
  EXPECT_EQ(decoded.comparator, "test.Order");
  EXPECT_EQ(decoded.num_levels, 7u);
  EXPECT_EQ(decoded.sequence, 1u << 20);
  EXPECT_EQ(decoded.manifest_version, 300u);
  EXPECT_EQ(decoded.next_table_id, 10u);
  ASSERT_EQ(decoded.tables.size(), 3u);
  EXPECT_EQ(decoded.tables[1].first, 2u);
  EXPECT_EQ(decoded.bytes(), 30'000u);
  const ManifestState state = decoded.InitialState();
  EXPECT_EQ(state.restoring, 99u);
  EXPECT_EQ(state.last_sequence, decoded.sequence);
  EXPECT_EQ(state.version, 300u);
  EXPECT_TRUE(state.tables.empty());
}

TEST(CheckpointDescriptionTest, HasColumnFamilies) {
  CheckpointDescription description = MakeDescription();
  description.next_family = 4;
  description.families[2] = {.name = "index", .comparator = "test.Other", .num_levels = 3};
  TableMeta& meta = description.tables[1].second;
  meta.family = 2;
  EXPECT_TRUE(Decode(EncodeCheckpointDescription(description)).IsCorruption());  // Its comparator.
  meta.comparator = "test.Other";
  const std::string bytes = EncodeCheckpointDescription(description);
  CheckpointDescription decoded;
  ASSERT_TRUE(IsOk(DecodeCheckpointDescription(bytes, &decoded)));
  EXPECT_EQ(EncodeCheckpointDescription(decoded), bytes);
  EXPECT_EQ(decoded.families, description.families);
  EXPECT_EQ(decoded.next_family, 4u);
  EXPECT_EQ(decoded.InitialState().families, description.families);
  EXPECT_EQ(decoded.InitialState().next_family, 4u);
  description.tables[1].first = 3;
  EXPECT_TRUE(Decode(EncodeCheckpointDescription(description)).IsCorruption());
  description.tables[1].first = 2;
  meta.family = 3;
  EXPECT_TRUE(Decode(EncodeCheckpointDescription(description)).IsCorruption());
}

TEST(CheckpointDescriptionTest, NothingElseIsTakenForOne) {
  const std::string bytes = EncodeCheckpointDescription(MakeDescription());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    ASSERT_FALSE(Decode(damaged).ok()) << bit;
  }
  for (size_t length = 0; length < bytes.size(); ++length) {
    ASSERT_FALSE(Decode(bytes.substr(0, length)).ok()) << length;
  }
  EXPECT_FALSE(Decode(bytes + "x").ok());
}

TEST(CheckpointDescriptionTest, ContradictionsAreNamed) {
  const auto refused = [](const std::string& what, auto change) {
    CheckpointDescription description = MakeDescription();
    change(&description);
    EXPECT_TRUE(IsFailure(Decode(EncodeCheckpointDescription(description)),
                          Status::Code::kCorruption, what));
  };
  refused("is in no level", [](auto* d) { d->num_levels = 3; });
  refused("of another database", [](auto* d) { d->database_id = 6; });
  refused("of another database", [](auto* d) { d->tables[0].second.comparator = "other"; });
  refused("later than the checkpoint", [](auto* d) { d->next_table_id = 3; });
  refused("later than the checkpoint", [](auto* d) { d->sequence = 999; });
  refused("later than the checkpoint", [](auto* d) { d->manifest_version = 199; });
  refused("absurd size", [](auto* d) { d->tables[2].second.chunk_size = 5000; });
  refused("another order", [](auto* d) { d->tables[2].second.range_index.length = 501; });
  refused("twice", [](auto* d) { d->tables[2].second.id = 1; });
  refused("absurd numbers", [](auto* d) { d->id = 0; });
}

TEST(TableJobsTest, KeepThePaceTogether) {
  ManualClock clock;
  const uint64_t start = clock.NowNanos();
  TableJobs jobs(&clock, {.threads = 3, .bytes_per_second = 1000}, 5, 5000);
  ASSERT_TRUE(IsOk(jobs.Run([&](size_t) -> Status {
    for (int piece = 0; piece < 10; ++piece) NACRE_RETURN_IF_ERROR(jobs.Copy(100));
    return jobs.Done(0);
  })));
  // The last piece is not paid for.
  EXPECT_GE(clock.NowNanos() - start, 4'900'000'000u);
  EXPECT_EQ(jobs.progress().bytes_copied, 5000u);
  EXPECT_EQ(jobs.progress().tables_done, 5u);
}

TEST(TableJobsTest, EndAtTheFirstFailure) {
  ManualClock clock;
  std::atomic<int> called{0};
  TableJobs jobs(&clock, {.threads = 4}, 1000, 1000);
  const Status status = jobs.Run([&](size_t i) -> Status {
    called.fetch_add(1);
    if (i == 20) return Status::IOError("number 20");
    return jobs.Done(1);
  });
  EXPECT_TRUE(IsFailure(status, Status::Code::kIOError, "number 20"));
  EXPECT_GE(called.load(), 21);
  EXPECT_FALSE(jobs.Copy(1).ok());
}

TEST(TableJobsTest, EndWhenTheCallbackSaysSo) {
  ManualClock clock;
  int told = 0;
  TableJobs jobs(&clock,
                 {.threads = 2,
                  .progress =
                      [&](const CheckpointProgress& progress) {
                        ++told;
                        return progress.bytes_done < 50;
                      }},
                 1000, 1000);
  EXPECT_TRUE(IsFailure(jobs.Run([&](size_t) -> Status {
    NACRE_RETURN_IF_ERROR(jobs.Copy(1));
    return jobs.Done(0);
  }),
                        Status::Code::kAborted));
  EXPECT_GE(told, 50);
  EXPECT_EQ(jobs.progress().bytes_done, 50u);
}

}  // namespace
}  // namespace nacre
