// Goal: damage in one copy of a manifest is healed from another one, damage in all of them is
// Corruption that says where, and in no case is there a state that has not been.
// Method: a small manifest with slots of every kind and edits behind an image; at many places a
// bit is flipped in one copy, then in all; images of different versions, with torn and missing
// edits, are made by hand.

#include "db/manifest/manifest_recovery.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "db/manifest/manifest_log.h"
#include "db/manifest/manifest_report.h"
#include "db/manifest/manifest_ring.h"
#include "tests/support/manifest_pool.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/codes/crc32c.h"
#include "util/coding.h"
#include "util/named_point.h"

namespace nacre {
namespace {

class ManifestRecoveryTest : public ::testing::Test {
 protected:
  ManifestRecoveryTest() {
    ManifestLogOptions options = pool_.LogOptions();
    options.ring_bytes = 8 << 10;
    model_ = pool_.InitialState();
    EXPECT_TRUE(IsOk(ManifestLog::Create(options, model_, &pool_, &log_)));
    CommitOne(1);
    CommitOne(2);
    EXPECT_TRUE(IsOk(log_->UpdateImages()));
    EXPECT_TRUE(IsOk(DecodeManifestRoot(pool_.root(), &root_)));
    copies_ = log_->copies();
  }
  ~ManifestRecoveryTest() override { log_.reset(); }

  void CommitOne(uint64_t id) {
    ManifestEdit edit;
    edit.added.emplace_back(1, RandomTableMeta(&random_, id));
    edit.segments_added.push_back(RandomLogSegment(&random_, id));
    edit.next_table_id = id + 1;
    if (id > 2) edit.removed.push_back(id - 1);
    edit.version = model_.version + 1;
    std::string encoded;
    EncodeManifestEdit(edit, &encoded);
    next_edit_bytes_ = encoded.size();
    ASSERT_TRUE(IsOk(log_->Commit(&edit)));
    ASSERT_TRUE(IsOk(model_.Apply(edit)));
    edits_.push_back(edit);
  }
  Status Recover(ManifestRecovered* recovered) {
    return RecoverManifest(pool_.client(), pool_.root(), pool_.database_id(), recovered);
  }
  void ExpectModel(const std::string& what = "") {
    ManifestRecovered recovered;
    ASSERT_TRUE(IsOk(Recover(&recovered))) << what;
    ASSERT_EQ(recovered.state.version, model_.version) << what;
    ASSERT_TRUE(EncodeForComparison(recovered.state) == EncodeForComparison(model_)) << what;
  }
  /// Bytes of a copy that mean anything: head, image, and the ring up to the terminator.
  uint64_t EndOfSlots() {
    ManifestSlots slots(model_, 0);
    return root_.slots_offset() + slots.used() * ManifestSlots::kSlotBytes;
  }

  Random random_{TestSeed(71)};
  ManifestPool pool_{3, {.nodes = 5}};
  ManifestState model_;
  std::unique_ptr<ManifestLog> log_;
  ManifestRoot root_;
  std::vector<ExtentAddr> copies_;
  std::vector<ManifestEdit> edits_;
  size_t next_edit_bytes_ = 0;  ///< Size of the encoded edit that is being committed.
};

TEST_F(ManifestRecoveryTest, AFlippedBitAnywhereIsHealedOrNamed) {
  CommitOne(3);
  CommitOne(4);
  // Opening a connection for each read makes a round dear: some places, not all. Slots and entries
  // have tests of their own, of every place.
  const std::string whole = pool_.ReadCopy(copies_[0], 0, root_.bytes());
  const uint64_t slots_end = EndOfSlots();
  size_t named = 0;
  const size_t rounds = Scaled(800);
  for (size_t i = 0; i < rounds; ++i) {
    const uint64_t at =
        random_.OneIn(2) ? random_.Uniform(slots_end) : root_.ring_offset() + random_.Uniform(2048);
    const std::string what = "at " + std::to_string(at);
    const std::string flipped(1, static_cast<char>(whole[at] ^ 1 << random_.Uniform(8)));
    pool_.WriteCopy(copies_[i % 3], at, flipped);
    ASSERT_NO_FATAL_FAILURE(ExpectModel(what));
    pool_.WriteCopy(copies_[(i + 1) % 3], at, flipped);
    pool_.WriteCopy(copies_[(i + 2) % 3], at, flipped);
    ManifestRecovered recovered;
    const Status s = Recover(&recovered);
    if (s.ok()) {
      ASSERT_NO_FATAL_FAILURE(ExpectModel(what));
    } else {
      ++named;
      ASSERT_TRUE(IsFailure(s, Status::Code::kCorruption, "all copies")) << what;
    }
    for (const ExtentAddr& copy : copies_) pool_.WriteCopy(copy, at, whole.substr(at, 1));
  }
  EXPECT_GT(named, rounds / 3);
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
}

TEST_F(ManifestRecoveryTest, DamageInDifferentPlacesOfAllCopiesIsHealed) {
  CommitOne(3);
  CommitOne(4);
  // Head of the first, slot of the second, edits of the third.
  pool_.Flip(copies_[0], 20, 1);
  pool_.Flip(copies_[1], root_.slots_offset() + 300, 1);
  pool_.Flip(copies_[2], root_.slots_offset() + 600, 1);
  pool_.Flip(copies_[0], root_.slots_offset() + 900, 1);
  pool_.WriteCopy(copies_[2], root_.ring_offset(), std::string(root_.ring_bytes, '\xff'));
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
}

TEST_F(ManifestRecoveryTest, ImagesOfDifferentVersions) {
  const std::string whole = pool_.ReadCopy(copies_[0], 0, root_.ring_offset());
  CommitOne(3);
  ASSERT_TRUE(IsOk(log_->UpdateImages()));
  CommitOne(4);
  // The first copy has not got the update: then the ring was not freed.
  pool_.WriteCopy(copies_[0], 0, whole);
  ManifestRecovered recovered;
  ASSERT_TRUE(IsOk(Recover(&recovered)));
  EXPECT_EQ(recovered.image_version, 3u);
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
  // It is the only one whose image is whole.
  for (const size_t copy : {size_t{1}, size_t{2}}) {
    pool_.Flip(copies_[copy], root_.slots_offset() + 10, 1);
  }
  ASSERT_TRUE(IsOk(Recover(&recovered)));
  EXPECT_EQ(recovered.image_version, 2u);
  EXPECT_EQ(recovered.edits.size(), 2u);
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
}

TEST_F(ManifestRecoveryTest, ACopyLeftHalfChangedCountsForItsSlotsOnly) {
  CommitOne(3);
  pool::ImageHeader header;
  std::string bytes = pool_.ReadCopy(copies_[0], 0, pool::ImageHeader::kBytes);
  ASSERT_TRUE(IsOk(pool::ImageHeader::Decode(bytes, &header)));
  header.applying = 9;
  header.Encode(bytes.data());
  pool_.WriteCopy(copies_[0], 0, bytes);
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
}

// The owner dies while an edit is on its way: it counts if one copy has it whole.
TEST_F(ManifestRecoveryTest, AnEditThatDidNotArriveEverywhere) {
  CommitOne(3);
  const ManifestState before = model_;
  const std::string old_ring = pool_.ReadCopy(copies_[0], root_.ring_offset(), root_.ring_bytes);
  CommitOne(4);
  const std::string ring = pool_.ReadCopy(copies_[0], root_.ring_offset(), root_.ring_bytes);
  const auto start = static_cast<size_t>(
      std::mismatch(ring.begin(), ring.end(), old_ring.begin()).first - ring.begin());
  size_t end = ring.size();
  while (ring[end - 1] == old_ring[end - 1]) --end;
  // Without the trailer, which the checksum needs only where it does not match.
  for (size_t cut = start / 8 * 8; cut < end - 8; cut += 8) {
    const std::string torn = ring.substr(0, cut) + old_ring.substr(cut);
    // It is whole in one replica.
    pool_.WriteCopy(copies_[0], root_.ring_offset(), torn);
    pool_.WriteCopy(copies_[1], root_.ring_offset(), old_ring);
    ASSERT_NO_FATAL_FAILURE(ExpectModel());
    // It is whole in none.
    pool_.WriteCopy(copies_[2], root_.ring_offset(), old_ring);
    ManifestRecovered recovered;
    ASSERT_TRUE(IsOk(Recover(&recovered)));
    ASSERT_TRUE(EncodeForComparison(recovered.state) == EncodeForComparison(before)) << cut;
    pool_.WriteCopy(copies_[2], root_.ring_offset(), ring);
  }
}

// Memory behind the last edit is never what was there before, wherever the owner dies.
TEST_F(ManifestRecoveryTest, TheTerminatorArrivesBeforeItsEdit) {
  static std::function<void()> posted;
  bool seen = false;
  posted = [&] {
    seen = true;
    for (const ExtentAddr& copy : copies_) {
      // It is on its way, and nothing else.
      ManifestRecovered recovered;
      const ManifestRing ring(root_.identity);
      const std::string zeros(ManifestRing::kTerminatorBytes, '\0');
      uint64_t end = 0;
      std::string bytes;
      do {
        ASSERT_TRUE(IsOk(Recover(&recovered)));
        ASSERT_EQ(recovered.state.version, model_.version);
        bytes = pool_.ReadCopy(copy, root_.ring_offset(), root_.ring_bytes);
        end = recovered.ring_position + ManifestRing::EntryBytes(next_edit_bytes_);
      } while (bytes.substr(end, zeros.size()) != zeros);
      EXPECT_EQ(ring.Read(bytes, recovered.ring_position, model_.version + 1).found,
                ManifestRing::Found::kNothing);
    }
  };
  // A lap in which every byte is used: zeros in it are not bytes that were never written.
  const std::string before(root_.ring_bytes, 'x');
  ManifestRecovered recovered;
  ASSERT_TRUE(IsOk(Recover(&recovered)));
  const uint64_t behind = recovered.ring_position + ManifestRing::kTerminatorBytes;
  for (const ExtentAddr& copy : copies_) {
    pool_.WriteCopy(copy, root_.ring_offset() + behind, before.substr(behind));
  }
  SetPointHandler([](const NamedPoint& point) {
    if (point.name == std::string_view("manifest.first-part-posted")) posted();
  });
  CommitOne(3);
  SetPointHandler(nullptr);
  EXPECT_TRUE(seen);
  ASSERT_NO_FATAL_FAILURE(ExpectModel());
}

TEST_F(ManifestRecoveryTest, RootsThatAreNone) {
  ManifestRecovered recovered;
  const std::string root = pool_.root();
  const auto recover = [&](const std::string& value, uint64_t database_id) {
    return RecoverManifest(pool_.client(), value, database_id, &recovered);
  };
  EXPECT_TRUE(recover("", 1).IsCorruption());
  EXPECT_TRUE(IsFailure(recover(root, 1), Status::Code::kCorruption, "database"));
  for (size_t length = 0; length < root.size(); ++length) {
    ASSERT_TRUE(recover(root.substr(0, length), pool_.database_id()).IsCorruption());
  }
  for (size_t bit = 0; bit < 8 * root.size(); ++bit) {
    std::string damaged = root;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    ASSERT_TRUE(recover(damaged, pool_.database_id()).IsCorruption()) << bit;
  }
  std::string newer = root;
  EncodeFixed32(newer.data() + 4, 3);
  EncodeFixed32(newer.data() + newer.size() - 4, Crc32c(newer.data(), newer.size() - 4));
  EXPECT_TRUE(IsFailure(recover(newer, pool_.database_id()), Status::Code::kNotSupported,
                        "format version 3"));
  ManifestRoot decoded;
  ASSERT_TRUE(IsOk(DecodeManifestRoot(root, &decoded)));
  EXPECT_EQ(decoded, root_);
  EXPECT_EQ(EncodeManifestRoot(decoded), root);
}

TEST_F(ManifestRecoveryTest, RootsNameFeatures) {
  ManifestRecovered recovered;
  ManifestRoot with = root_;
  with.features = pool::kKnownFeatures;
  std::string root = EncodeManifestRoot(with);
  EXPECT_EQ(DecodeFixed32(root.data() + 4), 2u) << "which release 0.2.0 refuses";
  ManifestRoot decoded;
  ASSERT_TRUE(IsOk(DecodeManifestRoot(root, &decoded)));
  EXPECT_EQ(decoded, with);
  EXPECT_EQ(pool_.client()->features_on(), 0u);
  ASSERT_TRUE(IsOk(RecoverManifest(pool_.client(), root, pool_.database_id(), &recovered)));
  EXPECT_EQ(recovered.root, with);
  EXPECT_EQ(pool_.client()->features_on(), pool::kKnownFeatures) << "the client has heard of them";
  for (size_t length = 0; length < root.size(); ++length) {
    ASSERT_TRUE(DecodeManifestRoot(Slice(root.data(), length), &decoded).IsCorruption()) << length;
  }
  with.features |= pool::FeatureSet{1} << 40;
  root = EncodeManifestRoot(with);
  EXPECT_TRUE(IsFailure(DecodeManifestRoot(root, &decoded), Status::Code::kNotSupported,
                        "feature 40, which this release does not know"));
}

TEST_F(ManifestRecoveryTest, NodesAreFoundByTheirInstances) {
  CommitOne(3);
  ManifestRecovered recovered;
  ASSERT_TRUE(IsOk(Recover(&recovered)));
  EXPECT_EQ(recovered.copies, copies_);
  EXPECT_EQ(recovered.root, root_);
  for (const auto& [node, instance] : recovered.state.nodes) {
    EXPECT_EQ(instance, pool_.client()->instance_id(node));
  }
}

TEST_F(ManifestRecoveryTest, TheReportTellsOfEverything) {
  CommitOne(3);
  pool_.Flip(copies_[0], root_.slots_offset() + 10, 1);
  ManifestRecovered recovered;
  ASSERT_TRUE(IsOk(Recover(&recovered)));
  const std::string text = ManifestText(recovered);
  for (const char* part : {"image at version 2", "version 3", "slot 0", "segment 3", "table 3"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
  const std::string json = ManifestJson(recovered);
  for (const char* part :
       {"\"image_version\": 2", "\"version\": 3", "\"removed\": [2]", "\"copies\": ["}) {
    EXPECT_NE(json.find(part), std::string::npos) << part << " is not in\n" << json;
  }
}

}  // namespace
}  // namespace nacre
