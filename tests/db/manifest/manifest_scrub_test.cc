// Goal: a look at the copies of a manifest finds damage wherever it counts and names the copy, and
// takes nothing for damage that commits, image updates and renewals do meanwhile.
// Method: bits flipped in all places of a small manifest on embedded nodes, one after the other;
// looks without end beside threads that commit, update images and renew.

#include "db/manifest/manifest_scrub.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "db/manifest/manifest_recovery.h"
#include "pool/wire/manifest_image.h"
#include "tests/support/manifest_pool.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

class ManifestScrubTest : public ::testing::Test {
 protected:
  void Open(uint64_t ring_bytes = 16 << 10) {
    model_ = pool_.InitialState();
    ManifestLogOptions options = pool_.LogOptions();
    options.ring_bytes = ring_bytes;
    ASSERT_TRUE(IsOk(ManifestLog::Create(options, model_, &pool_, &log_)));
    ASSERT_TRUE(IsOk(pool::PoolReader::Open(pool_.client()->fabric(), &reader_)));
  }
  void CommitRandom() {
    ManifestEdit edit = RandomManifestEdit(&random_, model_);
    ASSERT_TRUE(IsOk(log_->Commit(&edit)));
    ASSERT_TRUE(IsOk(model_.Apply(edit)));
  }
  std::vector<std::string> Look() {
    ManifestDamage damage;
    const PassBytes pass = [](uint64_t) { return Status::OK(); };
    EXPECT_TRUE(IsOk(CheckManifestCopies(
        pool_.client(), reader_.get(), [this] { return log_->place(); }, pass, &damage)));
    return damage.places;
  }
  /// Whether a flipped bit there is found, in that copy alone. It is flipped back.
  bool Finds(size_t copy, uint64_t offset) {
    const ExtentAddr where = log_->copies()[copy];
    const char mask = static_cast<char>(1 << random_.Uniform(8));
    pool_.Flip(where, offset, mask);
    const std::vector<std::string> places = Look();
    pool_.Flip(where, offset, mask);
    EXPECT_LE(places.size(), 1u);
    if (places.empty()) return false;
    EXPECT_TRUE(places[0].starts_with(pool_.client()->node_address(where.start.node))) << places[0];
    return true;
  }

  Random random_{TestSeed(63)};
  ManifestPool pool_{3, {.nodes = 4}};
  ManifestState model_;
  std::unique_ptr<ManifestLog> log_;
  std::unique_ptr<pool::PoolReader> reader_;
};

TEST_F(ManifestScrubTest, HeadAndSlots) {
  Open();
  for (int i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(CommitRandom());
  ASSERT_TRUE(IsOk(log_->UpdateImages()));
  EXPECT_TRUE(Look().empty());
  const ManifestPlace place = log_->place();
  const uint64_t used = log_->counters().image_bytes;
  for (uint64_t at = 0; at < pool::ImageHeader::kBytes; at += 3) {
    EXPECT_TRUE(Finds(at % 3, at)) << "head " << at;
  }
  for (uint64_t at = 0; at < used; at += 1 + random_.Uniform(40)) {
    EXPECT_TRUE(Finds(at % 3, place.root.slots_offset() + at)) << "slots " << at;
  }
  // Behind the slots that are used nothing counts.
  EXPECT_FALSE(Finds(0, place.root.slots_offset() + used + 10));
  EXPECT_TRUE(Look().empty());
}

TEST_F(ManifestScrubTest, EditsThatTheImagesLack) {
  Open();
  // The ring goes around, so that edits lie everywhere in it.
  int rounds = 0;
  for (int i = 0; i < 30; ++i) {
    for (int commits = 0; commits < 5; ++commits) ASSERT_NO_FATAL_FAILURE(CommitRandom());
    const ManifestPlace place = log_->place();
    const uint64_t ring = place.root.ring_offset();
    int found = 0;
    for (uint64_t at = 0; at < place.root.ring_bytes; at += 1 + random_.Uniform(120)) {
      if (Finds(at % 3, ring + at)) ++found;
    }
    const bool of_first = Finds(i % 3, ring + place.ring_position + 8);
    // A renewal in the background brings all edits into the images, and so may a commit.
    const ManifestPlace after = log_->place();
    if (after.root.identity == place.root.identity && place.first_edit <= place.version) {
      ++rounds;
      EXPECT_GT(found, 3);
      EXPECT_TRUE(of_first);
    }
    ASSERT_TRUE(IsOk(log_->UpdateImages()));
    EXPECT_FALSE(Finds(0, log_->place().root.ring_offset() + place.ring_position + 8));
    EXPECT_TRUE(Look().empty());
  }
  EXPECT_GT(rounds, 15);
}

TEST_F(ManifestScrubTest, TheEndOfTheRing) {
  Open();
  ASSERT_NO_FATAL_FAILURE(CommitRandom());
  ASSERT_TRUE(IsOk(log_->UpdateImages()));
  const ManifestPlace place = log_->place();
  ASSERT_EQ(place.first_edit, place.version + 1);
  // With a bit of its length flipped it is no end any more: with the other replicas lost, it could
  // not be told.
  EXPECT_TRUE(Finds(1, place.root.ring_offset() + place.ring_position + 25));
}

TEST_F(ManifestScrubTest, WhatChangesMeanwhileIsNoDamage) {
  Open();
  for (int i = 0; i < 200; ++i) ASSERT_NO_FATAL_FAILURE(CommitRandom());
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (size_t i = Scaled(4000); i > 0; --i) {
      ASSERT_NO_FATAL_FAILURE(CommitRandom());
      if (random_.OneIn(4)) {
        ASSERT_TRUE(IsOk(log_->UpdateImages()));
      }
      if (random_.OneIn(100)) {
        ASSERT_TRUE(IsOk(log_->Renew()));
      }
    }
    done.store(true);
  });
  while (!done.load()) {
    for (const std::string& place : Look()) ADD_FAILURE() << place;
  }
  writer.join();
  EXPECT_TRUE(Look().empty());
}

}  // namespace
}  // namespace nacre
