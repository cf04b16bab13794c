#include "tests/support/sim_owner.h"

#include <chrono>
#include <utility>
#include <vector>

#include "util/clock.h"
#include "util/random.h"
#include "util/thread.h"

namespace nacre::sim {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kOpenPause{50};

}  // namespace

Owner::Owner(Cluster* cluster, Model* model, const OwnerOptions& options)
    : cluster_(cluster),
      model_(model),
      options_(options),
      process_(options.promoted != nullptr
                   ? options.promoted->process()
                   : cluster->scheduler().NewProcess("o" + std::to_string(options.number))) {
  cluster_->Run(process_, "main", [this] { Run(); });
}

void Owner::Run() {
  if (options_.promoted != nullptr) {
    options_.promoted->Finish();
    while (!options_.promoted->ended()) Clock::System()->SleepFor(kOpenPause);
  }
  if (Open()) {
    std::vector<Thread> threads;
    for (int writer = 0; writer < options_.writers; ++writer) {
      threads.emplace_back("writer", [this, writer] { Write(writer); });
    }
    threads.emplace_back("reader", [this] { Read(); });
    for (Thread& thread : threads) thread.Join();
    const Status closed = db_->Close();
    if (closed.IsCorruption()) cluster_->scheduler().Fail("close: " + closed.ToString());
    if (closed.IsFenced()) fenced_ = true;
    db_.reset();
  }
  model_->OwnerEnds(options_.number);
  ended_ = true;
}

bool Owner::Open() {
  Options options = options_.database;
  options.create_if_missing = options_.first;
  options.take_over = options_.take_over;
  while (!finishing_) {
    // With nodes that have joined: until it is open nobody else tells it of them.
    options.pool_uri = cluster_->pool_uri();
    const uint64_t begun = cluster_->scheduler().TrueNanos();
    const Status status = DB::Open(options, "db", &db_);
    if (status.ok()) {
      model_->OwnerOpened(options_.number, begun);
      opened_ = true;
      return true;
    }
    last_failure_ = status;
    // Nodes that cannot be reached, and a predecessor that may still be there, are to be expected.
    const bool expected = status.IsUnavailable() || status.IsTimedOut() || status.IsBusy() ||
                          status.IsFenced() || status.IsAborted() || status.IsNoSpace();
    if (!expected) cluster_->scheduler().Fail("open: " + status.ToString());
    Clock::System()->SleepFor(kOpenPause);
  }
  return false;
}

bool Owner::Judge(const Status& status) {
  if (status.ok()) return true;
  last_failure_ = status;
  if (status.IsFenced()) {
    fenced_ = true;
    return false;
  }
  const bool expected = model_->replaced(options_.number) || status.IsUnavailable() ||
                        status.IsTimedOut() || status.IsNoSpace() || status.IsBusy() ||
                        (status.IsCorruption() && model_->overtaken(options_.number));
  if (!expected) cluster_->scheduler().Fail("owner: " + status.ToString());
  Clock::System()->SleepFor(milliseconds(5));
  return true;
}

void Owner::Pause(Random* random, uint64_t micros_max) {
  Clock::System()->SleepFor(microseconds(random->Uniform(micros_max)));
  while (resting_ && !finishing_ && !fenced_) Clock::System()->SleepFor(milliseconds(10));
}

void Owner::Write(int writer) {
  Random random(options_.seed * 31 + static_cast<uint64_t>(writer));
  const auto writers = static_cast<uint64_t>(options_.writers);
  const uint64_t mine = model_->size() / writers;
  while (!finishing_ && !fenced_) {
    const size_t group = random.Uniform(mine) * writers + static_cast<uint64_t>(writer);
    WriteBatch batch;
    const size_t bytes = random.OneIn(5) ? random.Uniform(9000) : random.Uniform(700);
    const uint64_t attempt =
        model_->BeginWrite(group, options_.number, random.OneIn(8), bytes, &batch);
    const Status status = db_->Write({}, &batch);
    model_->EndWrite(group, attempt, status.ok());
    if (status.ok()) ++writes_;
    if (!Judge(status)) return;
    Pause(&random, 20'000);
  }
}

void Owner::Read() {
  Random random(options_.seed * 37);
  while (!finishing_ && !fenced_) {
    Status status;
    if (random.OneIn(options_.scan_one_in)) {
      const uint64_t pauses_at = random.Uniform(2 * Model::kKeysPerGroup * model_->size());
      model_->Scan(options_.number, db_.get(), pauses_at, &status);
    } else if (random.OneIn(20)) {
      ReadBySnapshot(&random);
    } else {
      model_->Read(options_.number, db_.get(), random.Uniform(model_->size()), &status);
    }
    if (!Judge(status)) return;
    Pause(&random, 30'000);
  }
}

void Owner::ReadBySnapshot(Random* random) {
  const Snapshot* const snapshot = db_->GetSnapshot();
  std::vector<uint64_t> seen(5, 0);
  const uint64_t first = random->Uniform(model_->size());
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < seen.size(); ++i) {
      Status status;
      const size_t group = (first + i) % model_->size();
      if (!model_->ReadSnapshot(options_.number, db_.get(), snapshot, group, &seen[i], &status))
        break;
    }
    Pause(random, 50'000);
  }
  db_->ReleaseSnapshot(snapshot);
}

}  // namespace nacre::sim
