// Goal: what was committed is what a recovery finds, whatever else happens: image updates,
// renewals, lost nodes, a full ring, an image that outgrows its place, spaces and roots that fail.
// Method: random edits against a plain ManifestState, with a recovery after each step; failures of
// the space and of nodes at chosen moments.

#include "db/manifest/manifest_log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "db/manifest/manifest_recovery.h"
#include "tests/support/manifest_pool.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"

namespace nacre {
namespace {

class ManifestLogTest : public ::testing::Test {
 protected:
  void Open(const ManifestLogOptions& options) {
    log_.reset();
    ASSERT_TRUE(IsOk(ManifestLog::Create(options, model_, &pool_, &log_)));
  }
  void Open() {
    model_ = pool_.InitialState();
    Open(pool_.LogOptions());
  }
  Status Commit(ManifestEdit edit) {
    NACRE_RETURN_IF_ERROR(log_->Commit(&edit));
    EXPECT_EQ(edit.version, model_.version + 1);
    EXPECT_TRUE(IsOk(model_.Apply(edit)));
    return Status::OK();
  }
  Status CommitRandom(size_t key_bytes = 20) {
    return Commit(RandomManifestEdit(&random_, model_, key_bytes));
  }
  /// A recovery gives the model.
  void Check() {
    ManifestRecovered recovered;
    ASSERT_TRUE(IsOk(Recover(&recovered)));
    ASSERT_EQ(recovered.state.version, model_.version);
    ASSERT_TRUE(EncodeForComparison(recovered.state) == EncodeForComparison(model_));
    if (log_ == nullptr) return;
    ASSERT_TRUE(EncodeForComparison(log_->Snapshot()) == EncodeForComparison(model_));
  }
  Status Recover(ManifestRecovered* recovered) {
    return RecoverManifest(pool_.client(), pool_.root(), pool_.database_id(), recovered);
  }

  Random random_{TestSeed(61)};
  ManifestPool pool_{3, {.nodes = 6}};
  ManifestState model_;
  std::unique_ptr<ManifestLog> log_;
};

TEST_F(ManifestLogTest, EveryStepIsRecovered) {
  model_ = pool_.InitialState();
  ManifestLogOptions options = pool_.LogOptions();
  options.ring_bytes = 48 << 10;
  Open(options);
  for (size_t i = Scaled(600); i > 0; --i) {
    switch (random_.Uniform(20)) {
      case 0:
        ASSERT_TRUE(IsOk(log_->Renew()));
        break;
      case 1:
      case 2:
        ASSERT_TRUE(IsOk(log_->UpdateImages()));
        break;
      case 3: {  // Another owner.
        ManifestRecovered recovered;
        ASSERT_TRUE(IsOk(Recover(&recovered)));
        log_.reset();
        model_ = recovered.state;
        options.epoch = pool_.LogOptions().epoch;
        Open(options);
        pool_.FreeReplicas(recovered.copies);
        break;
      }
      default:
        ASSERT_TRUE(IsOk(CommitRandom(random_.OneIn(10) ? 2000 : 20)));
    }
    ASSERT_NO_FATAL_FAILURE(Check());
    ASSERT_EQ(pool_.copies_in_use(), 3u);
  }
  const ManifestCounters counters = log_->counters();
  EXPECT_LE(counters.edits, model_.version);
  log_->Close();
  EXPECT_TRUE(CommitRandom().IsShutdownInProgress());
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(ManifestLogTest, ARenewedManifestStartsWithAnImageOfEverything) {
  Open();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(IsOk(CommitRandom()));
  ManifestRecovered recovered;
  ASSERT_TRUE(IsOk(Recover(&recovered)));
  EXPECT_EQ(recovered.image_version, 0u);
  EXPECT_EQ(recovered.edits.size(), 20u);
  ASSERT_TRUE(IsOk(log_->UpdateImages()));
  ASSERT_TRUE(IsOk(CommitRandom()));
  ASSERT_TRUE(IsOk(Recover(&recovered)));
  EXPECT_EQ(recovered.image_version, 20u);
  EXPECT_EQ(recovered.edits.size(), 1u);
  ASSERT_TRUE(IsOk(log_->Renew()));
  ASSERT_TRUE(IsOk(Recover(&recovered)));
  EXPECT_EQ(recovered.image_version, 21u);
  EXPECT_TRUE(recovered.edits.empty());
  EXPECT_TRUE(recovered.notes.empty());
  EXPECT_EQ(log_->counters().renewals, 1u);
}

TEST_F(ManifestLogTest, TheRingWrapsAndFillsUp) {
  model_ = pool_.InitialState();
  ManifestLogOptions options = pool_.LogOptions();
  options.ring_bytes = 4 << 10;
  Open(options);
  for (size_t i = Scaled(300); i > 0; --i) {
    ASSERT_TRUE(IsOk(CommitRandom()));
    if (random_.OneIn(8)) {
      ASSERT_NO_FATAL_FAILURE(Check());
    }
  }
  EXPECT_GT(log_->counters().image_updates, Scaled(300) / 30);
}

TEST_F(ManifestLogTest, AnEditLargerThanTheRingRenews) {
  model_ = pool_.InitialState();
  ManifestLogOptions options = pool_.LogOptions();
  options.ring_bytes = 4 << 10;
  Open(options);
  ManifestEdit edit;
  for (uint64_t id = 1; id <= 100; ++id) {
    edit.added.emplace_back(1, RandomTableMeta(&random_, id));
  }
  edit.next_table_id = 101;
  ASSERT_TRUE(IsOk(Commit(edit)));
  EXPECT_GE(log_->counters().renewals, 1u);
  EXPECT_EQ(log_->counters().edits, 1u);
  ASSERT_NO_FATAL_FAILURE(Check());
  // The large ring does not stay.
  ASSERT_TRUE(Eventually([&] {
    ManifestRecovered recovered;
    return Recover(&recovered).ok() && recovered.root.ring_bytes == options.ring_bytes;
  }));
  ASSERT_NO_FATAL_FAILURE(Check());
}

// ---- What goes on while a manifest is renewed -------------------------------------------------

TEST_F(ManifestLogTest, CommitsAndImageUpdatesGoOnMeanwhile) {
  Open();
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(IsOk(CommitRandom()));
  bool went_on = false;
  std::thread other;
  pool_.on_reserve = [&] {
    std::atomic<bool> done{false};
    other = std::thread([&] {
      for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(IsOk(CommitRandom()));
        if (i % 8 != 0) continue;
        EXPECT_TRUE(IsOk(log_->UpdateImages()));
      }
      done.store(true);
    });
    went_on = Eventually([&] { return done.load(); });
  };
  const uint64_t before = model_.version;
  ASSERT_TRUE(IsOk(log_->Renew()));
  other.join();
  pool_.on_reserve = nullptr;
  EXPECT_TRUE(went_on) << "commits waited for the renewal";
  EXPECT_EQ(log_->version(), before + 20);
  EXPECT_EQ(log_->counters().renewals, 1u);
  ManifestRecovered recovered;
  ASSERT_TRUE(IsOk(Recover(&recovered)));
  EXPECT_EQ(recovered.image_version, before + 20) << "the new copies were not brought up to date";
  ASSERT_NO_FATAL_FAILURE(Check());
  // What comes next is in the new manifest.
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(IsOk(CommitRandom()));
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_TRUE(IsOk(log_->UpdateImages()));
  ASSERT_TRUE(IsOk(CommitRandom()));
  ASSERT_NO_FATAL_FAILURE(Check());
  EXPECT_EQ(pool_.copies_in_use(), 3u);
}

TEST_F(ManifestLogTest, ACommitThatMeetsALostNodeMeanwhileGoesIntoTheNewManifest) {
  Open();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(IsOk(CommitRandom()));
  std::thread other;
  std::atomic<bool> begun{false};
  pool_.on_reserve = [&] {
    if (begun.exchange(true)) return;
    pool_.pool()->KillEmbeddedNode(static_cast<NodeId>(log_->copies()[0].start.node));
    other = std::thread([&] { EXPECT_TRUE(IsOk(CommitRandom())); });
  };
  ASSERT_TRUE(IsOk(log_->Renew()));
  other.join();
  pool_.on_reserve = nullptr;
  ASSERT_NO_FATAL_FAILURE(Check());
  EXPECT_LE(log_->counters().renewals, 2u);
  ASSERT_TRUE(IsOk(CommitRandom()));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(ManifestLogTest, AnImageGrowsIntoALargerPlaceBeforeCommitsHaveToWait) {
  Open();
  std::atomic<bool> by_thread{false};
  const std::thread::id committer = std::this_thread::get_id();
  pool_.on_reserve = [&] {
    EXPECT_NE(std::this_thread::get_id(), committer);
    by_thread.store(true);
  };
  constexpr uint64_t kPlaceBytes = 256 * ManifestSlots::kSlotBytes;
  for (uint64_t id = 1; id <= 300; ++id) {
    if (log_->counters().image_bytes > kPlaceBytes / 8 * 7) {
      ASSERT_TRUE(Eventually([&] { return log_->counters().renewals > 0; }));
      break;
    }
    ManifestEdit edit;
    edit.added.emplace_back(1, RandomTableMeta(&random_, id, /*key_bytes=*/4));
    edit.next_table_id = id + 1;
    ASSERT_TRUE(IsOk(Commit(edit)));
  }
  EXPECT_TRUE(by_thread.load());
  ASSERT_NO_FATAL_FAILURE(Check());
  log_.reset();
}

TEST_F(ManifestLogTest, AFeatureThatIsTurnedOnGetsIntoTheRoot) {
  Open();
  ASSERT_TRUE(IsOk(CommitRandom()));
  ManifestRecovered recovered;
  ASSERT_TRUE(IsOk(Recover(&recovered)));
  EXPECT_EQ(recovered.root.features, 0u);
  pool_.client()->HearFeatures(pool::kKnownFeatures);
  ASSERT_TRUE(IsOk(CommitRandom()));
  EXPECT_TRUE(Eventually([&] { return log_->counters().renewals > 0; }));
  ASSERT_TRUE(IsOk(Recover(&recovered)));
  EXPECT_EQ(recovered.root.features, pool::kKnownFeatures);
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(ManifestLogTest, RenewalsAndImageUpdatesWhileManyThreadsCommit) {
  Open();
  constexpr int kThreads = 3;
  const auto per_thread = static_cast<uint64_t>(Scaled(300));
  std::atomic<int> left{kThreads};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(200 + t);
      for (uint64_t i = 0; i < per_thread; ++i) {
        ManifestEdit edit;
        edit.added.emplace_back(2, RandomTableMeta(&random, 1 + t * 10'000 + i));
        if (i > 3) edit.removed.push_back(1 + t * 10'000 + i - 3);
        edit.next_table_id = 100'000;
        ASSERT_TRUE(IsOk(log_->Commit(&edit)));
      }
      left.fetch_sub(1);
    });
  }
  while (left.load() > 0) {
    ASSERT_TRUE(IsOk(log_->Renew()));
    ASSERT_TRUE(IsOk(log_->UpdateImages()));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log_->version(), kThreads * per_thread);
  model_ = log_->Snapshot();
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_TRUE(IsOk(CommitRandom()));
  ASSERT_NO_FATAL_FAILURE(Check());
  EXPECT_EQ(pool_.copies_in_use(), 3u);
}

TEST_F(ManifestLogTest, TheImageOutgrowsItsPlace) {
  Open();
  for (int i = 0; i < 200; ++i) {
    ManifestEdit edit;
    for (int n = 0; n < 20; ++n) {
      const uint64_t id = model_.next_table_id + static_cast<uint64_t>(n);
      edit.added.emplace_back(1, RandomTableMeta(&random_, id));
    }
    edit.next_table_id = model_.next_table_id + 20;
    ASSERT_TRUE(IsOk(Commit(edit)));
    if (i % 20 == 0) {
      ASSERT_TRUE(IsOk(log_->UpdateImages()));
    }
  }
  const ManifestCounters counters = log_->counters();
  EXPECT_GE(counters.renewals, 2u);
  EXPECT_LE(counters.renewals, 6u) << "the image does not double";
  ASSERT_NO_FATAL_FAILURE(Check());
  EXPECT_EQ(pool_.copies_in_use(), 3u);
}

TEST_F(ManifestLogTest, AnEditThatContradictsTheStateIsRefused) {
  Open();
  ASSERT_TRUE(IsOk(CommitRandom()));
  ManifestEdit edit;
  edit.removed.push_back(999);
  EXPECT_TRUE(IsFailure(Commit(edit), Status::Code::kCorruption, "999"));
  edit.removed.clear();
  edit.added.emplace_back(7, RandomTableMeta(&random_, 5000));
  EXPECT_TRUE(IsFailure(Commit(edit), Status::Code::kCorruption, "level 7"));
  EXPECT_TRUE(IsOk(log_->status()));
  ASSERT_TRUE(IsOk(CommitRandom()));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(ManifestLogTest, ALostNodeIsReplacedByTheCommitThatMeetsIt) {
  Open();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(IsOk(CommitRandom()));
    pool_.pool()->KillEmbeddedNode(static_cast<NodeId>(log_->copies()[0].start.node));
    ASSERT_TRUE(IsOk(CommitRandom()));
    EXPECT_EQ(log_->counters().renewals, static_cast<uint64_t>(round) + 1);
    EXPECT_EQ(log_->copies().size(), 3u);
    ASSERT_NO_FATAL_FAILURE(Check());
  }
  // Three nodes are left: then two.
  pool_.pool()->KillEmbeddedNode(static_cast<NodeId>(log_->copies()[0].start.node));
  ASSERT_TRUE(IsOk(CommitRandom()));
  EXPECT_EQ(log_->copies().size(), 2u);
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(ManifestLogTest, ALostNodeIsReplacedByTheImageUpdateThatMeetsIt) {
  Open();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(IsOk(CommitRandom()));
  pool_.pool()->KillEmbeddedNode(static_cast<NodeId>(log_->copies()[1].start.node));
  ASSERT_TRUE(IsOk(log_->UpdateImages()));
  EXPECT_EQ(log_->counters().renewals, 1u);
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(ManifestLogTest, RecoversFromTheCopiesThatAreLeft) {
  Open();
  for (int i = 0; i < 30; ++i) {
    ASSERT_TRUE(IsOk(CommitRandom()));
    if (i == 15) {
      ASSERT_TRUE(IsOk(log_->UpdateImages()));
    }
  }
  const std::vector<ExtentAddr> copies = log_->copies();
  log_->Close();
  for (size_t lost = 0; lost < 2; ++lost) {
    pool_.pool()->KillEmbeddedNode(static_cast<NodeId>(copies[lost].start.node));
    ASSERT_NO_FATAL_FAILURE(Check());
  }
  pool_.pool()->KillEmbeddedNode(static_cast<NodeId>(copies[2].start.node));
  ManifestRecovered recovered;
  EXPECT_TRUE(IsFailure(Recover(&recovered), Status::Code::kUnavailable, "copy"));
}

TEST_F(ManifestLogTest, NodesDieWhileManyThreadsCommit) {
  Open();
  constexpr int kThreads = 4;
  const auto per_thread = static_cast<uint64_t>(Scaled(150));
  std::atomic<uint64_t> committed{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(100 + t);
      for (uint64_t i = 0; i < per_thread; ++i) {
        ManifestEdit edit;
        edit.added.emplace_back(2, RandomTableMeta(&random, 1 + t * 10'000 + i));
        if (i > 3) edit.removed.push_back(1 + t * 10'000 + i - 3);
        ASSERT_TRUE(IsOk(log_->Commit(&edit)));
        committed.fetch_add(1);
      }
    });
  }
  for (uint64_t kill = 1; kill <= 3; ++kill) {
    ASSERT_TRUE(Eventually([&] { return committed.load() > kill * per_thread; }));
    pool_.pool()->KillEmbeddedNode(static_cast<NodeId>(log_->copies()[0].start.node));
    ASSERT_TRUE(IsOk(log_->UpdateImages()));
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(log_->version(), kThreads * per_thread);
  model_ = log_->Snapshot();
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(ManifestLogTest, ImageUpdatesRunByThemselves) {
  model_ = pool_.InitialState();
  ManifestLogOptions options = pool_.LogOptions();
  options.image_edits = 4;
  Open(options);
  // The thread has to be asleep to be woken.
  ASSERT_TRUE(Eventually([&] {
    EXPECT_TRUE(IsOk(CommitRandom()));
    return log_->counters().image_updates > 0;
  }));
  options.image_edits = UINT64_MAX;
  options.image_interval = std::chrono::milliseconds(1);
  options.epoch = pool_.LogOptions().epoch;
  Open(options);
  ASSERT_TRUE(IsOk(CommitRandom()));
  ASSERT_TRUE(Eventually([&] { return log_->counters().image_updates > 0; }));
  ASSERT_NO_FATAL_FAILURE(Check());
}

// ---- When there is no room, or the root cannot be set ----------------------------------------

TEST_F(ManifestLogTest, ARenewalWithoutRoomChangesNothing) {
  Open();
  ASSERT_TRUE(IsOk(CommitRandom()));
  pool_.next_reserve = Status::NoSpace("full");
  EXPECT_TRUE(IsFailure(log_->Renew(), Status::Code::kNoSpace, "full"));
  ASSERT_TRUE(IsOk(CommitRandom()));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_F(ManifestLogTest, ACommitOfUnknownFateStopsTheLogUntilItIsRenewed) {
  Open();
  ASSERT_TRUE(IsOk(CommitRandom()));
  pool_.pool()->KillEmbeddedNode(static_cast<NodeId>(log_->copies()[0].start.node));
  pool_.next_reserve = Status::NoSpace("full");
  ManifestEdit edit;
  edit.added.emplace_back(2, RandomTableMeta(&random_, 77));
  EXPECT_TRUE(IsFailure(log_->Commit(&edit), Status::Code::kTimedOut, "full"));
  EXPECT_TRUE(CommitRandom().IsTimedOut());
  EXPECT_TRUE(log_->UpdateImages().IsTimedOut());
  EXPECT_TRUE(log_->status().IsTimedOut());
  ManifestRecovered recovered;
  ASSERT_TRUE(IsOk(Recover(&recovered)));
  EXPECT_LE(recovered.state.version, model_.version + 1);
  ASSERT_TRUE(IsOk(log_->Renew()));
  ASSERT_NO_FATAL_FAILURE(Check());
  ASSERT_TRUE(IsOk(CommitRandom()));
  ASSERT_NO_FATAL_FAILURE(Check());
  EXPECT_EQ(pool_.copies_in_use(), 3u);
}

TEST_F(ManifestLogTest, ARootOfUnknownFateIsSetAgain) {
  for (const bool set : {false, true}) {
    Open();
    ASSERT_TRUE(IsOk(CommitRandom()));
    const uint64_t in_use = pool_.copies_in_use();
    pool_.next_publish = Status::TimedOut("register");
    pool_.publish_though_failed = set;
    EXPECT_TRUE(IsFailure(log_->Renew(), Status::Code::kTimedOut, "register"));
    EXPECT_TRUE(CommitRandom().IsTimedOut());
    ASSERT_NO_FATAL_FAILURE(Check());
    EXPECT_EQ(pool_.copies_in_use(), in_use + 3) << "either may be the root's";
    ASSERT_TRUE(IsOk(log_->Renew()));
    ASSERT_TRUE(IsOk(CommitRandom()));
    ASSERT_NO_FATAL_FAILURE(Check());
    EXPECT_EQ(pool_.copies_in_use(), in_use);
  }
}

TEST_F(ManifestLogTest, AFencedOwnerIsOver) {
  Open();
  ASSERT_TRUE(IsOk(CommitRandom()));
  pool_.next_publish = Status::Fenced("epoch 9");
  EXPECT_TRUE(IsFailure(log_->Renew(), Status::Code::kFenced, "epoch 9"));
  EXPECT_TRUE(CommitRandom().IsFenced());
  EXPECT_TRUE(log_->Renew().IsFenced());
  EXPECT_TRUE(log_->UpdateImages().IsFenced());
  // The next owner may find either manifest.
  EXPECT_EQ(pool_.copies_in_use(), 6u);
}

}  // namespace
}  // namespace nacre
