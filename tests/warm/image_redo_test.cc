// Goal: a manifest's replica in which an image update was half applied when its node was killed
// becomes what the update makes of it, by what was recorded before. Method: random updates of a
// random image, each of which is cut after a random number of the bytes that it changes, a slot's
// and the header's included.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "pool/wire/manifest_image.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre::pool {
namespace {

constexpr size_t kSlotBytes = 128;
constexpr uint32_t kSlots = 64;

std::string RandomSlot(Random* random) {
  std::string slot(kSlotBytes, '\0');
  for (size_t i = random->Uniform(kSlotBytes); i > 0; --i) {
    slot[random->Uniform(kSlotBytes)] = static_cast<char>(random->Next());
  }
  return slot;
}

TEST(ImageRedoTest, FinishesWhatWasCutAnywhere) {
  Random random(TestSeed(951));
  std::vector<std::string> slots(20);
  for (std::string& slot : slots) slot = RandomSlot(&random);
  const ManifestIdentity identity{.database_id = 5, .epoch = 1, .generation = 2};
  std::string copy(ImageHeader::kBytes + kSlots * kSlotBytes + 100, 'x');
  ImageHeader header{.identity = identity,
                     .version = 1,
                     .slot_bytes = kSlotBytes,
                     .image_slots = kSlots,
                     .slots_used = static_cast<uint32_t>(slots.size())};
  header.Encode(copy.data());
  for (size_t i = 0; i < slots.size(); ++i) {
    copy.replace(ImageHeader::kBytes + i * kSlotBytes, kSlotBytes, slots[i]);
  }
  for (uint64_t version = 2; version < 500; ++version) {
    std::vector<SlotChange> changes;
    for (uint32_t i = 0; i < slots.size(); ++i) {
      if (!random.OneIn(4)) continue;
      changes.push_back({.slot = i, .before = slots[i], .after = RandomSlot(&random)});
      slots[i] = changes.back().after;
    }
    if (slots.size() < kSlots && random.OneIn(10)) {
      slots.push_back(RandomSlot(&random));
      changes.push_back(
          {.slot = static_cast<uint32_t>(slots.size() - 1), .before = {}, .after = slots.back()});
    }
    ImageDelta delta{.identity = identity,
                     .base_version = version - 1,
                     .version = version,
                     .slots_used = static_cast<uint32_t>(slots.size())};
    ASSERT_TRUE(IsOk(PackChanges(changes, kSlotBytes, &delta)));

    std::string refused = copy;
    ASSERT_TRUE(ApplyImageUpdate(delta, refused.data(), refused.size(), [](std::string) {
                  return Status::NoSpace("no");
                }).IsNoSpace());
    ASSERT_TRUE(refused == copy);

    std::string redo;
    std::string after = copy;
    ASSERT_TRUE(IsOk(ApplyImageUpdate(delta, after.data(), after.size(), [&](std::string bytes) {
      redo = std::move(bytes);
      return Status::OK();
    })));
    // Cut: any of the bytes that differ may have been written, or not; the header is a third thing.
    std::string cut = copy;
    for (size_t at = 0; at < cut.size(); ++at) {
      if (random.OneIn(2)) cut[at] = after[at];
    }
    ASSERT_TRUE(IsOk(RedoImageUpdate(redo, cut.data(), cut.size())));
    ASSERT_TRUE(cut == after);
    ASSERT_TRUE(IsOk(RedoImageUpdate(redo, cut.data(), cut.size()))) << "once more";
    ASSERT_TRUE(cut == after);
    const std::string damaged = redo.substr(0, redo.size() - 1);
    ASSERT_TRUE(RedoImageUpdate(damaged, cut.data(), cut.size()).IsCorruption());
    ASSERT_TRUE(RedoImageUpdate(redo, cut.data(), ImageHeader::kBytes).IsCorruption());
    ASSERT_TRUE(cut == after);
    copy = after;
  }
}

}  // namespace
}  // namespace nacre::pool
