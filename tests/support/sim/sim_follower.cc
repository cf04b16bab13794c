#include "tests/support/sim/sim_follower.h"

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "util/clock.h"
#include "util/threads/thread.h"

namespace nacre::sim {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kFollowerOpenPause{50};

bool IsPassing(const Status& status) {
  return status.IsUnavailable() || status.IsTimedOut() || status.IsTryAgain();
}

}  // namespace

Follower::Follower(Cluster* cluster, Model* model, const FollowerOptions& options)
    : cluster_(cluster),
      model_(model),
      options_(options),
      process_(cluster->scheduler().NewProcess("f" + std::to_string(options.number))),
      follower_model_(model, options.number) {
  cluster_->Run(process_, "main", [this] { Run(); });
}

void Follower::Run() {
  if (Open()) {
    std::vector<Thread> threads;
    for (int reader = 0; reader < options_.readers; ++reader) {
      threads.emplace_back("reader", [this, reader] { Read(reader); });
    }
    for (Thread& thread : threads) thread.Join();
    database_ = {};
    const Status closed = db_->Close();
    if (!closed.ok()) cluster_->scheduler().Fail("a follower closes: " + closed.ToString());
    db_.reset();
  }
  ended_ = true;
}

Status Follower::TryOpen() {
  Options options = options_.database;
  options.create_if_missing = false;
  // The URI includes nodes that have joined: the follower learns of them in no other way.
  options.pool_uri = cluster_->pool_uri();
  FamilyModel& families = model_->families();
  const FollowerModel::Bounds bounds = follower_model_.Begin(/*latest=*/true);
  std::vector<std::string> names;
  NACRE_RETURN_IF_ERROR(ListExtraFamilies(options, "db", &names));
  std::vector<uint32_t> numbers = families.NumbersOf(names);
  std::vector<ColumnFamilyHandle*> handles;
  NACRE_RETURN_IF_ERROR(
      DB::OpenAsSecondary(options, "db", DescriptorsOf(names, options), &handles, &db_));
  database_ = TakeHandles(db_.get(), numbers, handles);
  // What had this name may have been dropped meanwhile, and there is another one.
  std::erase_if(database_.extras,
                [&](const auto& family) { return families.dropped(family.first); });
  follower_model_.CaughtUp(bounds);
  return Status::OK();
}

bool Follower::Open() {
  while (!finishing_ && !destruction_) {
    const Status status = TryOpen();
    if (status.ok()) {
      opened_ = true;
      return true;
    }
    last_failure_ = status;
    // Families may have gone meanwhile.
    if (!IsPassing(status) && !status.IsInvalidArgument()) {
      cluster_->scheduler().Fail("a follower opens: " + status.ToString());
    }
    Clock::System()->SleepFor(kFollowerOpenPause);
  }
  return false;
}

void Follower::Judge(const Status& status) {
  if (status.ok()) return;
  last_failure_ = status;
  if (destruction_) {
    knows_of_destruction_ = knows_of_destruction_ || status.IsAborted();
  } else if (!IsPassing(status)) {
    cluster_->scheduler().Fail(fmt::format("follower {}: {}", options_.number, status.ToString()));
  }
  Clock::System()->SleepFor(milliseconds(5));
}

void Follower::Pause(Random* random, uint64_t micros_max) {
  Clock::System()->SleepFor(microseconds(random->Uniform(micros_max)));
}

void Follower::Read(int reader) {
  Random random(options_.seed * 41 + static_cast<uint64_t>(reader));
  while (!finishing_ && !knows_of_destruction_) {
    Judge(ReadSome(&random));
    Pause(&random, 60'000);
  }
}

Status Follower::ReadSome(Random* random) {
  if (random->OneIn(options_.scan_one_in)) return Scan(random);
  if (destruction_ || random->OneIn(10)) return CatchUp();
  if (random->OneIn(20)) return ReadBySnapshot(random);
  return ReadGroup(random);
}

Status Follower::CatchUp() {
  const FollowerModel::Bounds bounds = follower_model_.Begin(/*latest=*/true);
  const Status status = db_->TryCatchUpWithPrimary();
  if (status.ok()) follower_model_.CaughtUp(bounds);
  return status;
}

Status Follower::ReadGroup(Random* random) {
  ReadOptions options;
  options.linearizable = random->OneIn(5);
  const FollowerModel::Bounds bounds = follower_model_.Begin(options.linearizable);
  Model::Sight sight;
  Status status;
  if (model_->Look(database_, options, random->Uniform(model_->size()), &sight, &status)) {
    follower_model_.Judge(bounds, {sight}, options.linearizable ? "a linearizable read" : "a read");
  }
  return status;
}

Status Follower::Scan(Random* random) {
  ReadOptions options;
  options.linearizable = random->OneIn(5);
  FollowerModel::Bounds bounds = follower_model_.Begin(options.linearizable);
  const uint64_t pauses_at = random->Uniform(Model::kMostKeysPerGroup * model_->size());
  std::vector<Model::Sight> sights;
  Status status;
  if (model_->LookAtAll(
          database_, options, pauses_at, [&] { follower_model_.Fix(&bounds); }, &sights, &status)) {
    follower_model_.Judge(bounds, sights, "an iterator");
  }
  return status;
}

Status Follower::ReadBySnapshot(Random* random) {
  ReadOptions options;
  FollowerModel::Bounds bounds = follower_model_.Begin(/*latest=*/false);
  options.snapshot = db_->GetSnapshot();
  follower_model_.Fix(&bounds);
  std::vector<Model::Sight> seen;
  const uint64_t first = random->Uniform(model_->size());
  Status status;
  for (int round = 0; round < 3 && status.ok(); ++round) {
    for (size_t i = 0; i < 5; ++i) {
      Model::Sight sight;
      const size_t group = (first + i) % model_->size();
      if (!model_->Look(database_, options, group, &sight, &status)) break;
      if (seen.size() == i) {
        seen.push_back(sight);
      } else if (seen[i].found != sight.found || seen[i].attempt != sight.attempt) {
        model_->Fail(group, fmt::format("follower {}: a snapshot shows attempt {} after {}",
                                        options_.number, sight.attempt, seen[i].attempt));
      }
    }
    Pause(random, 50'000);
  }
  follower_model_.Judge(bounds, seen, "a snapshot");
  db_->ReleaseSnapshot(options.snapshot);
  return status;
}

bool Follower::ShowsAll() {
  FollowerModel::Bounds bounds = follower_model_.Begin(/*latest=*/true);
  const Status status = db_->TryCatchUpWithPrimary();
  if (!status.ok()) {
    Judge(status);
    return false;
  }
  std::vector<Model::Sight> sights;
  Status seen;
  if (!model_->LookAtAll(database_, {}, UINT64_MAX, nullptr, &sights, &seen)) {
    Judge(seen);
    return false;
  }
  follower_model_.Judge(bounds, sights, "in the end");
  return true;
}

}  // namespace nacre::sim
