// Goal: the slots say what the state is, whatever edits made it; only what an edit touches changes,
// and what travels from one image to the next makes the same of a copy. Bytes that are no
// image are an error. Method: random edits against a plain ManifestState; the changes applied to a
// copy as a node does; every bit of a small image flipped; slots of two versions mixed.

#include "db/manifest/manifest_slots.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "pool/wire/manifest_image.h"
#include "tests/support/manifest_pool.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

using pool::ImageDelta;
using pool::ImageHeader;

constexpr size_t kSlotBytes = ManifestSlots::kSlotBytes;

ManifestState EmptyState() {
  ManifestState state;
  state.comparator = "leveldb.BytewiseComparator";
  state.num_levels = 7;
  state.slab_bytes = 1 << 20;
  state.database_id = 5;
  return state;
}

ManifestEdit NextEdit(Random* random, const ManifestState& state, size_t key_bytes = 20) {
  ManifestEdit edit = RandomManifestEdit(random, state, key_bytes);
  edit.version = state.version + 1;
  return edit;
}

Status Decode(const std::string& bytes, ManifestState* state, uint64_t* ring_position) {
  std::vector<const char*> slots;
  for (size_t at = 0; at < bytes.size(); at += kSlotBytes) {
    slots.push_back(bytes.data() + at);
    if (!ManifestSlotReader::IsWhole(slots.back())) {
      return Status::Corruption("slot " + std::to_string(at / kSlotBytes));
    }
  }
  return ManifestSlotReader::Decode(slots, state, ring_position);
}

/// A node's copy.
class Copy {
 public:
  Copy(const ManifestSlots& slots, uint64_t version, uint32_t image_slots)
      : bytes_(ImageHeader::kBytes + image_slots * kSlotBytes, 'x') {
    const ImageHeader header{.identity = {.database_id = 5, .epoch = 1, .generation = 2},
                             .version = version,
                             .slot_bytes = kSlotBytes,
                             .image_slots = image_slots,
                             .slots_used = slots.used()};
    header.Encode(bytes_.data());
    const std::string image = slots.image().ToString();
    bytes_.replace(ImageHeader::kBytes, image.size(), image);
  }
  Status Apply(const ImageDelta& delta) {
    return pool::ApplyImageUpdate(delta, bytes_.data(), bytes_.size());
  }
  ImageHeader header() const {
    ImageHeader header;
    EXPECT_TRUE(IsOk(ImageHeader::Decode(bytes_, &header)));
    return header;
  }
  std::string image() const {
    return bytes_.substr(ImageHeader::kBytes, header().slots_used * kSlotBytes);
  }
  std::string bytes_;
};

ImageDelta MakeDelta(const std::vector<pool::SlotChange>& changes, uint64_t base_version,
                     uint64_t version, uint32_t used) {
  ImageDelta delta{.identity = {.database_id = 5, .epoch = 1, .generation = 2},
                   .base_version = base_version,
                   .version = version,
                   .slots_used = used};
  EXPECT_TRUE(IsOk(pool::PackChanges(changes, kSlotBytes, &delta)));
  return delta;
}

TEST(ManifestSlotsTest, CopiesFollowTheState) {
  Random random(TestSeed(41));
  ManifestState state = EmptyState();
  state.restoring = 17;  // This holds until an edit says that it has ended.
  ManifestSlots slots(state, 0);
  Copy copy(slots, 0, 100'000);
  uint64_t base = 0;
  for (size_t i = Scaled(2000); i > 0; --i) {
    const ManifestEdit edit = NextEdit(&random, state, random.OneIn(8) ? 1500 : 20);
    ASSERT_TRUE(IsOk(state.Apply(edit)));
    slots.Apply(edit);
    if (!random.OneIn(5)) continue;
    const uint64_t ring_position = random.Next();
    slots.Seal(state, ring_position);
    const ImageDelta delta = MakeDelta(slots.TakeChanges(), base, state.version, slots.used());
    ASSERT_TRUE(IsOk(copy.Apply(delta)));
    ASSERT_TRUE(IsOk(copy.Apply(delta))) << "the same once more";
    base = state.version;
    ASSERT_TRUE(copy.image() == slots.image().ToString());
    ManifestState decoded;
    uint64_t decoded_position = 0;
    ASSERT_TRUE(IsOk(Decode(copy.image(), &decoded, &decoded_position))) << state.version;
    ASSERT_TRUE(EncodeForComparison(decoded) == EncodeForComparison(state));
    ASSERT_EQ(decoded.version, state.version);
    ASSERT_EQ(decoded_position, ring_position);
  }
}

TEST(ManifestSlotsTest, OnlyWhatAnEditTouchesChanges) {
  Random random(TestSeed(42));
  ManifestState state = EmptyState();
  for (uint64_t id = 1; id <= 1000; ++id) {
    state.tables[id] = {1, RandomTableMeta(&random, id)};
  }
  ManifestSlots slots(state, 0);
  EXPECT_TRUE(slots.TakeChanges().empty());
  // A table changes its level: the slot with the level, and the header.
  ManifestEdit edit;
  edit.version = 1;
  edit.added.emplace_back(2, state.tables[500].second);
  ASSERT_TRUE(IsOk(state.Apply(edit)));
  slots.Apply(edit);
  slots.Seal(state, 0);
  std::vector<pool::SlotChange> changes = slots.TakeChanges();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].slot, 0u);
  // One is dropped, one added: the new one takes the slots of the old one.
  const uint32_t used = slots.used();
  edit = ManifestEdit();
  edit.version = 2;
  edit.removed.push_back(500);
  TableMeta meta = state.tables[500].second;
  meta.id = 2000;
  edit.added.emplace_back(2, meta);
  ASSERT_TRUE(IsOk(state.Apply(edit)));
  slots.Apply(edit);
  slots.Seal(state, 0);
  changes = slots.TakeChanges();
  EXPECT_LE(changes.size(), 3u);
  EXPECT_EQ(slots.used(), used);
}

TEST(ManifestSlotsTest, CopiesThatAreBegunAtAnyTimeFollowBesideTheOthers) {
  Random random(TestSeed(47));
  ManifestState state = EmptyState();
  // More than a chunk of slots.
  for (uint64_t id = 1; id <= 400; ++id) state.tables[id] = {1, RandomTableMeta(&random, id)};
  state.next_table_id = 401;
  ManifestSlots slots(state, 0);
  constexpr uint32_t kImageSlots = 100'000;
  auto current = std::make_unique<Copy>(slots, 0, kImageSlots);
  uint64_t base = 0;
  const auto edit = [&](size_t n) {
    for (; n > 0; --n) {
      const ManifestEdit next = NextEdit(&random, state, random.OneIn(8) ? 1500 : 20);
      ASSERT_TRUE(IsOk(state.Apply(next)));
      slots.Apply(next);
    }
  };
  const auto follow = [&](Copy* copy, uint64_t* version, bool begun) {
    if (*version == state.version) return;
    slots.Seal(state, begun ? 0 : 64);
    const ImageDelta delta = MakeDelta(begun ? slots.TakeCopyChanges() : slots.TakeChanges(),
                                       *version, state.version, slots.used());
    ASSERT_TRUE(IsOk(copy->Apply(delta)));
    *version = state.version;
    ASSERT_TRUE(copy->image() == slots.image().ToString());
  };
  for (size_t round = Scaled(40); round > 0; --round) {
    ASSERT_NO_FATAL_FAILURE(edit(random.Uniform(10)));
    slots.Seal(state, 0);
    const SlotImage image = slots.BeginCopy();
    const std::string begun = image.ToString();
    uint64_t copy_version = state.version;
    auto copy = std::make_unique<Copy>(slots, copy_version, kImageSlots);
    for (int step = 0; step < 6; ++step) {
      ASSERT_NO_FATAL_FAILURE(edit(random.Uniform(10)));
      const bool to_copy = random.OneIn(2);
      ASSERT_NO_FATAL_FAILURE(
          follow(to_copy ? copy.get() : current.get(), to_copy ? &copy_version : &base, to_copy));
      ASSERT_TRUE(image.ToString() == begun) << "what is read meanwhile has changed";
    }
    if (random.OneIn(3)) {
      slots.AbandonCopy();
    } else {
      ASSERT_NO_FATAL_FAILURE(follow(copy.get(), &copy_version, /*begun=*/true));
      slots.SwitchToCopy();
      current = std::move(copy);
      base = copy_version;
    }
  }
}

TEST(ManifestSlotsTest, WhatIsDroppedIsNotSent) {
  Random random(TestSeed(46));
  ManifestState state = EmptyState();
  for (uint64_t id = 1; id <= 200; ++id) state.tables[id] = {1, RandomTableMeta(&random, id)};
  ManifestSlots slots(state, 0);
  Copy copy(slots, 0, 10'000);
  ManifestEdit edit;
  edit.version = 1;
  for (uint64_t id = 1; id <= 150; ++id) edit.removed.push_back(id);
  ASSERT_TRUE(IsOk(state.Apply(edit)));
  slots.Apply(edit);
  slots.Seal(state, 0);
  const std::vector<pool::SlotChange> changes = slots.TakeChanges();
  const ImageDelta delta = MakeDelta(changes, 0, 1, slots.used());
  ASSERT_GE(changes.size(), 150u);
  // A few bytes for the number of each; of the tables' places nothing.
  EXPECT_LT(delta.compressed.size(), 6 * changes.size() + kSlotBytes);
  ASSERT_TRUE(IsOk(copy.Apply(delta)));
  EXPECT_TRUE(copy.image() == slots.image().ToString());
}

TEST(ManifestSlotsTest, EveryFlippedBitIsSeen) {
  Random random(TestSeed(43));
  ManifestState state = EmptyState();
  state.nodes[3] = 77;
  state.tables[1] = {1, RandomTableMeta(&random, 1, 500)};
  state.segments[1] = RandomLogSegment(&random, 1);
  state.next_segment = 2;
  ManifestSlots slots(state, 0);
  // Some that are free again.
  ManifestEdit edit;
  edit.version = 1;
  edit.added.emplace_back(1, RandomTableMeta(&random, 2, 500));
  edit.segments_removed.push_back(1);
  ASSERT_TRUE(IsOk(state.Apply(edit)));
  slots.Apply(edit);
  slots.Seal(state, 0);
  const std::string whole = slots.image().ToString();
  for (size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    ManifestState decoded;
    uint64_t position = 0;
    ASSERT_TRUE(Decode(damaged, &decoded, &position).IsCorruption()) << "bit " << bit;
  }
}

TEST(ManifestSlotsTest, SlotsOfTwoVersionsAreNoImage) {
  Random random(TestSeed(44));
  ManifestState state = EmptyState();
  for (uint64_t id = 1; id <= 20; ++id) state.tables[id] = {1, RandomTableMeta(&random, id)};
  state.next_table_id = 21;
  ManifestSlots slots(state, 0);
  for (size_t i = Scaled(300); i > 0; --i) {
    const std::string before = slots.image().ToString();
    const ManifestEdit edit = NextEdit(&random, state);
    ASSERT_TRUE(IsOk(state.Apply(edit)));
    slots.Apply(edit);
    slots.Seal(state, 0);
    for (const pool::SlotChange& change : slots.TakeChanges()) {
      if (change.before.empty()) continue;
      std::string mixed = slots.image().ToString();
      mixed.replace(change.slot * kSlotBytes, kSlotBytes, change.before);
      ManifestState decoded;
      uint64_t position = 0;
      ASSERT_TRUE(Decode(mixed, &decoded, &position).IsCorruption()) << "slot " << change.slot;
    }
  }
}

// ---- What a node refuses ----------------------------------------------------------------------

class ImageUpdateTest : public ::testing::Test {
 protected:
  ImageUpdateTest() : slots_(EmptyState(), 0), copy_(slots_, 0, 100) {
    Random random(TestSeed(45));
    ManifestState state = EmptyState();
    ManifestEdit edit;
    edit.version = 1;
    edit.added.emplace_back(1, RandomTableMeta(&random, 1));
    EXPECT_TRUE(IsOk(state.Apply(edit)));
    slots_.Apply(edit);
    slots_.Seal(state, 0);
    changes_ = slots_.TakeChanges();
    delta_ = MakeDelta(changes_, 0, 1, slots_.used());
  }
  void ExpectRefused(const ImageDelta& delta, Status::Code code) {
    const std::string before = copy_.bytes_;
    EXPECT_TRUE(IsFailure(copy_.Apply(delta), code));
    EXPECT_TRUE(copy_.bytes_ == before);
  }

  ManifestSlots slots_;
  Copy copy_;
  std::vector<pool::SlotChange> changes_;
  ImageDelta delta_;
};

TEST_F(ImageUpdateTest, OfAnotherManifestOrVersion) {
  for (int i = 0; i < 4; ++i) {
    ImageDelta delta = delta_;
    if (i == 0) delta.identity.database_id = 6;
    if (i == 1) delta.identity.epoch = 2;
    if (i == 2) delta.identity.generation = 3;
    if (i == 3) delta.base_version = 7;
    ExpectRefused(delta, Status::Code::kInvalidArgument);
  }
  EXPECT_TRUE(IsOk(copy_.Apply(delta_)));
}

TEST_F(ImageUpdateTest, Damaged) {
  ImageDelta delta = delta_;
  delta.compressed[3] = static_cast<char>(delta.compressed[3] ^ 4);
  ExpectRefused(delta, Status::Code::kCorruption);
  delta = delta_;
  --delta.raw_bytes;
  ExpectRefused(delta, Status::Code::kCorruption);
  delta.raw_bytes = UINT32_MAX;
  ExpectRefused(delta, Status::Code::kCorruption);
  delta = delta_;
  ++delta.slots_used;
  ExpectRefused(delta, Status::Code::kCorruption);
  delta.slots_used = 0;
  ExpectRefused(delta, Status::Code::kCorruption);
  delta.slots_used = 101;
  ExpectRefused(delta, Status::Code::kCorruption);
  // Twice the same slot; one beyond those in use.
  std::vector<pool::SlotChange> changes = changes_;
  changes.push_back(changes.back());
  ExpectRefused(MakeDelta(changes, 0, 1, slots_.used()), Status::Code::kCorruption);
  changes = changes_;
  changes.back().slot = 99;
  ExpectRefused(MakeDelta(changes, 0, 1, slots_.used()), Status::Code::kCorruption);
  // The copy itself.
  copy_.bytes_[ImageHeader::kBytes + 100] ^= 1;
  ExpectRefused(delta_, Status::Code::kCorruption);
  copy_.bytes_[ImageHeader::kBytes + 100] ^= 1;
  copy_.bytes_[70] ^= 1;
  ExpectRefused(delta_, Status::Code::kCorruption);
  copy_.bytes_[70] ^= 1;
  EXPECT_TRUE(IsOk(copy_.Apply(delta_)));
}

TEST_F(ImageUpdateTest, ToACopyThatDoesNotFitItsExtent) {
  copy_.bytes_.resize(ImageHeader::kBytes + 100 * kSlotBytes - 1);
  ExpectRefused(delta_, Status::Code::kCorruption);
  copy_.bytes_.resize(ImageHeader::kBytes - 1);
  ExpectRefused(delta_, Status::Code::kCorruption);
  copy_.bytes_.clear();
  ExpectRefused(delta_, Status::Code::kCorruption);
}

}  // namespace
}  // namespace nacre
