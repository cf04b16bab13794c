// Goal: edits, and the entries of the ring that they travel in, come back as they were written;
// anything else is an error or is not there. A state takes an edit as a whole or not at all.
// Method: random edits; every truncation, every flipped bit, other manifests' entries.

#include "db/manifest/manifest_edit.h"

#include <gtest/gtest.h>

#include <string>

#include "db/manifest/manifest_ring.h"
#include "db/manifest/manifest_state.h"
#include "tests/support/manifest_pool.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

using pool::ManifestIdentity;

ManifestState StateWith(uint64_t tables) {
  Random random(9);
  ManifestState state;
  state.num_levels = 7;
  for (uint64_t id = 1; id <= tables; ++id) state.tables[id] = {1, RandomTableMeta(&random, id)};
  state.next_table_id = tables + 1;
  return state;
}

std::string Encode(const ManifestEdit& edit) {
  std::string bytes;
  EncodeManifestEdit(edit, &bytes);
  return bytes;
}

TEST(ManifestEditTest, RoundTrip) {
  Random random(TestSeed(31));
  ManifestState state = StateWith(50);
  for (size_t i = Scaled(2000); i > 0; --i) {
    ManifestEdit edit = RandomManifestEdit(&random, state);
    edit.version = state.version + 1;
    const std::string bytes = Encode(edit);
    ManifestEdit decoded;
    decoded.version = edit.version;
    decoded.removed.push_back(123);
    ASSERT_TRUE(IsOk(DecodeManifestEdit(bytes, &decoded)));
    EXPECT_EQ(decoded.version, edit.version);
    EXPECT_EQ(decoded.removed, edit.removed);
    EXPECT_EQ(decoded.segments_added, edit.segments_added);
    EXPECT_EQ(decoded.segments_removed, edit.segments_removed);
    EXPECT_EQ(decoded.next_table_id, edit.next_table_id);
    EXPECT_EQ(decoded.last_sequence, edit.last_sequence);
    EXPECT_EQ(decoded.nodes, edit.nodes);
    EXPECT_EQ(decoded.families_added, edit.families_added);
    EXPECT_EQ(decoded.families_dropped, edit.families_dropped);
    ASSERT_EQ(decoded.added.size(), edit.added.size());
    ASSERT_TRUE(Encode(decoded) == bytes);
    ASSERT_TRUE(IsOk(state.Apply(decoded)));
  }
}

TEST(ManifestEditTest, EveryTruncationIsAnErrorOrAShorterEdit) {
  Random random(TestSeed(32));
  const std::string bytes = Encode(RandomManifestEdit(&random, StateWith(50)));
  for (size_t length = 0; length < bytes.size(); ++length) {
    const std::string prefix = bytes.substr(0, length);
    ManifestEdit decoded;
    const Status s = DecodeManifestEdit(prefix, &decoded);
    if (s.ok()) {
      EXPECT_TRUE(Encode(decoded) == prefix);
    } else {
      EXPECT_TRUE(s.IsCorruption()) << s.ToString();
    }
  }
}

TEST(ManifestEditTest, NewerFormatIsNamedAsSuch) {
  ManifestEdit decoded;
  EXPECT_TRUE(IsFailure(DecodeManifestEdit(Slice("\x02", 1), &decoded), Status::Code::kNotSupported,
                        "version 2"));
  EXPECT_TRUE(DecodeManifestEdit(Slice("\x00", 1), &decoded).IsCorruption());
  EXPECT_TRUE(DecodeManifestEdit(Slice("\x01\x63", 2), &decoded).IsCorruption());
}

// ---- States -----------------------------------------------------------------------------------

TEST(ManifestStateTest, FamiliesComeAndGoWithTheirTables) {
  Random random(TestSeed(34));
  ManifestState state = StateWith(3);
  const FamilyRecord wanted = {.name = "index", .comparator = "test.Order", .num_levels = 2};
  const auto next = [&] {
    ManifestEdit edit;
    edit.version = state.version + 1;
    return edit;
  };
  const auto refuse = [&](const ManifestEdit& edit, std::string_view why) {
    EXPECT_TRUE(IsFailure(state.Apply(edit), Status::Code::kCorruption, why));
  };
  TableMeta table = RandomTableMeta(&random, 10);
  table.family = 1;
  ManifestEdit edit = next();
  edit.added.emplace_back(0, table);
  refuse(edit, "column family 1");
  edit.families_added[1] = wanted;
  ASSERT_TRUE(IsOk(state.Apply(edit)));
  EXPECT_EQ(state.LevelsOf(1), 2u);
  EXPECT_EQ(state.next_family, 2u);

  edit = next();
  edit.families_added[1] = {.name = "other", .comparator = "test.Order", .num_levels = 2};
  refuse(edit, "column family 1 anew");
  edit = next();
  edit.families_added[2] = wanted;
  refuse(edit, "a second column family index");
  edit = next();
  edit.families_added[2] = {.name = "twin", .comparator = "test.Order", .num_levels = 2};
  edit.families_added[3] = edit.families_added[2];
  refuse(edit, "a second column family twin");
  edit = next();
  edit.added.emplace_back(2, table);
  refuse(edit, "level 2 of 2");
  edit = next();
  edit.families_dropped = {2};
  refuse(edit, "column family 2");
  edit.families_dropped = {1};
  refuse(edit, "not all its tables");
  edit.removed = {10};
  ASSERT_TRUE(IsOk(state.Apply(edit)));
  EXPECT_TRUE(state.families.empty());
  EXPECT_EQ(state.tables.size(), 3u);
  // Its id is not used again; its name may be.
  edit = next();
  edit.families_added[1] = wanted;
  refuse(edit, "column family 1 anew");
  edit.families_added = {{2, wanted}};
  ASSERT_TRUE(IsOk(state.Apply(edit)));
  EXPECT_EQ(state.next_family, 3u);
}

TEST(ManifestStateTest, AnEditIsTakenAsAWholeOrNotAtAll) {
  Random random(TestSeed(33));
  ManifestState state = StateWith(5);
  state.segments[1] = RandomLogSegment(&random, 1);
  const std::string before = EncodeForComparison(state);
  const auto refuse = [&](ManifestEdit edit, std::string_view why) {
    edit.added.emplace_back(0, RandomTableMeta(&random, 50));
    if (edit.version == 0) edit.version = 1;
    EXPECT_TRUE(IsFailure(state.Apply(edit), Status::Code::kCorruption, why));
    EXPECT_TRUE(EncodeForComparison(state) == before);
    EXPECT_EQ(state.version, 0u);
  };
  const TableMeta table = RandomTableMeta(&random, 3);
  ManifestEdit edit;
  edit.version = 2;
  refuse(edit, "after version 0");
  edit = ManifestEdit();
  edit.removed = {6};
  refuse(edit, "table 6");
  edit.removed = {2, 2};
  refuse(edit, "table 2");
  edit.removed = {3};
  edit.added.emplace_back(1, table);
  refuse(edit, "table 3");
  edit = ManifestEdit();
  edit.added = {{1, table}, {2, table}};
  refuse(edit, "table 3 twice");
  edit.added = {{7, table}};
  refuse(edit, "level 7");
  edit = ManifestEdit();
  edit.segments_removed = {2};
  refuse(edit, "segment 2");
  edit.segments_removed = {1};
  edit.segments_added.push_back(RandomLogSegment(&random, 1));
  refuse(edit, "segment 1");
  edit.segments_removed.clear();
  edit.segments_added.push_back(RandomLogSegment(&random, 1));
  refuse(edit, "segment 1 twice");
}

TEST(ManifestStateTest, HighWaterMarksKeepTheHigher) {
  Random random(TestSeed(34));
  ManifestState state = StateWith(5);
  ManifestEdit edit;
  edit.version = 1;
  edit.next_table_id = 100;
  edit.last_sequence = 1000;
  edit.segments_added.push_back(RandomLogSegment(&random, 8));
  ASSERT_TRUE(IsOk(state.Apply(edit)));
  edit.version = 2;
  edit.next_table_id = 50;
  edit.last_sequence = 500;
  edit.segments_added[0].number = 7;
  ASSERT_TRUE(IsOk(state.Apply(edit)));
  EXPECT_EQ(state.next_table_id, 100u);
  EXPECT_EQ(state.last_sequence, 1000u);
  EXPECT_EQ(state.next_segment, 9u);
  EXPECT_EQ(state.segments.size(), 2u);
}

TEST(ManifestStateTest, NodesAreNumberedAnew) {
  Random random(TestSeed(35));
  ManifestState state = StateWith(1);
  state.nodes = {{0, 100}, {1, 101}, {2, 102}};
  Placement& placement = state.tables[1].second.placement;
  ASSERT_EQ(placement.fragments.size(), 3u);
  for (size_t i = 0; i < 3; ++i) placement.fragments[i].start.node = i;
  state.segments[1] = {.number = 1, .copies = {placement.fragments[1], placement.fragments[2]}};
  state.Renumber({{0, 1}, {2, 0}});
  EXPECT_EQ(state.nodes, (std::map<NodeId, uint64_t>{{1, 100}, {0, 102}}));
  EXPECT_EQ(placement.fragments[0].start.node, 1u);
  EXPECT_EQ(placement.fragments[1].start.node, uint64_t{kLostNode});
  EXPECT_EQ(placement.fragments[2].start.node, 0u);
  EXPECT_EQ(state.segments[1].copies[0].start.node, uint64_t{kLostNode});
  EXPECT_EQ(state.segments[1].copies[1].start.node, 0u);
}

// ---- Ring -------------------------------------------------------------------------------------

constexpr ManifestIdentity kIdentity{.database_id = 5, .epoch = 6, .generation = 7};
using Found = ManifestRing::Found;

TEST(ManifestRingTest, WhatIsThereIsRead) {
  const ManifestRing ring(kIdentity);
  std::string bytes;
  ring.EncodeEntry(10, "an edit", &bytes);
  bytes.resize(bytes.size() - ManifestRing::kTerminatorBytes);
  const size_t second = bytes.size();
  EXPECT_EQ(second, ManifestRing::EntryBytes(7));
  ring.EncodeEntry(11, std::string(100, 'y'), &bytes);
  const ManifestRing::Entry entry = ring.Read(bytes, 0, 10);
  ASSERT_EQ(entry.found, Found::kEntry);
  EXPECT_EQ(entry.edit.ToString(), "an edit");
  EXPECT_EQ(entry.next, second);
  EXPECT_EQ(ring.Read(bytes, second, 11).edit.ToString(), std::string(100, 'y'));
  EXPECT_EQ(ring.Read(bytes, ring.Read(bytes, second, 11).next, 12).found, Found::kNothing);
  EXPECT_EQ(ring.Read(bytes, 0, 12).found, Found::kNothing) << "of an earlier lap";
  EXPECT_EQ(ring.Read(bytes, 0, 9).found, Found::kDamage);
  EXPECT_EQ(ring.Read(bytes, 8, 10).found, Found::kDamage);
  EXPECT_EQ(ring.Read(bytes, bytes.size(), 10).found, Found::kDamage);
  EXPECT_EQ(ring.Read(bytes, UINT64_MAX - 31, 10).found, Found::kDamage);
  std::string marker;
  ring.EncodeWrap(12, &marker);
  EXPECT_EQ(ring.Read(marker, 0, 12).found, Found::kWrap);
}

TEST(ManifestRingTest, EntriesOfOtherManifestsAreNone) {
  const ManifestRing ring(kIdentity);
  for (int i = 0; i < 3; ++i) {
    ManifestIdentity other = kIdentity;
    if (i == 0) ++other.database_id;
    if (i == 1) ++other.epoch;
    if (i == 2) ++other.generation;
    std::string bytes;
    ManifestRing(other).EncodeEntry(10, "an edit", &bytes);
    EXPECT_EQ(ring.Read(bytes, 0, 10).found, Found::kDamage) << i;
  }
}

TEST(ManifestRingTest, EveryFlippedBitIsDamage) {
  const ManifestRing ring(kIdentity);
  std::string bytes;
  ring.EncodeEntry(10, "an edit", &bytes);
  const size_t counts = ManifestRing::kHeaderBytes + 7;
  for (size_t bit = 0; bit < 8 * counts; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    EXPECT_EQ(ring.Read(damaged, 0, 10).found, Found::kDamage) << bit;
  }
}

TEST(ManifestRingTest, AHeaderThatWasBegunIsNothing) {
  const ManifestRing ring(kIdentity);
  std::string entry;
  std::string marker;
  ring.EncodeEntry(10, "an edit", &entry);
  ring.EncodeWrap(10, &marker);
  for (std::string bytes : {entry, marker}) {
    for (size_t length = 24; length > 0; --length) {
      std::fill(bytes.begin() + static_cast<ptrdiff_t>(length), bytes.end(), '\0');
      EXPECT_EQ(ring.Read(bytes, 0, 10).found, Found::kNothing) << length;
    }
  }
}

TEST(ManifestRingTest, ABeginningWithoutItsEndIsNothing) {
  const ManifestRing ring(kIdentity);
  std::string bytes;
  ring.EncodeEntry(10, "an edit", &bytes);
  for (const char old : {'\0', 'x'}) {
    for (size_t length = ManifestRing::kHeaderBytes; length < ManifestRing::kHeaderBytes + 7;
         ++length) {
      std::string torn = bytes;
      std::fill(torn.begin() + static_cast<ptrdiff_t>(length), torn.end(), old);
      EXPECT_EQ(ring.Read(torn, 0, 10).found, Found::kNothing) << length;
    }
  }
}

}  // namespace
}  // namespace nacre
