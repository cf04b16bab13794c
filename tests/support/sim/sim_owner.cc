#include "tests/support/sim/sim_owner.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "util/clock.h"
#include "util/random.h"
#include "util/threads/thread.h"

namespace nacre::sim {

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kOwnerOpenPause{50};

}  // namespace

Owner::Owner(Cluster* cluster, Model* model, const OwnerOptions& options)
    : cluster_(cluster),
      model_(model),
      options_(options),
      process_(options.promoted != nullptr
                   ? options.promoted->process()
                   : cluster->scheduler().NewProcess("o" + std::to_string(options.number))) {
  model_->OwnerStarts(options_.number, process_);
  cluster_->Run(process_, "main", [this] { Run(); });
}

void Owner::Run() {
  if (options_.promoted != nullptr) {
    options_.promoted->Finish();
    while (!options_.promoted->ended()) Clock::System()->SleepFor(kOwnerOpenPause);
  }
  if (Open()) {
    std::vector<Thread> threads;
    for (int writer = 0; writer < options_.writers; ++writer) {
      threads.emplace_back("writer", [this, writer] { Write(writer); });
    }
    threads.emplace_back("reader", [this] { Read(); });
    for (Thread& thread : threads) thread.Join();
    dropping_ = {};
    database_ = {};
    const Status closed = db_->Close();
    if (closed.IsCorruption()) cluster_->scheduler().Fail("close: " + closed.ToString());
    if (closed.IsFenced()) fenced_ = true;
    db_.reset();
  }
  ended_ = true;
}

Status Owner::TryOpen() {
  Options options = options_.database;
  options.create_if_missing = options.create_missing_column_families = options_.first;
  options.take_over = options_.take_over;
  // The URI includes nodes that have joined: until it is open, the owner learns of them in no other
  // way.
  options.pool_uri = cluster_->pool_uri();
  FamilyModel& families = model_->families();
  const uint64_t looked = families.moment();
  std::vector<std::string> names;
  if (!options_.first) NACRE_RETURN_IF_ERROR(ListExtraFamilies(options, "db", &names));
  const std::vector<uint32_t> numbers = families.NumbersOf(names);
  const uint64_t begun = cluster_->scheduler().TrueNanos();
  std::vector<ColumnFamilyHandle*> handles;
  NACRE_RETURN_IF_ERROR(DB::Open(options, "db", DescriptorsOf(names, options), &handles, &db_));
  database_ = TakeHandles(db_.get(), numbers, handles);
  model_->OwnerOpened(options_.number, begun);
  families.Opened(numbers, looked, [this](uint32_t owner) { return model_->replaced(owner); });
  return Status::OK();
}

bool Owner::Open() {
  while (!finishing_) {
    const Status status = TryOpen();
    if (status.ok()) {
      opened_ = true;
      return true;
    }
    last_failure_ = status;
    // Nodes that cannot be reached, a predecessor that may still be there, and families that came
    // or went meanwhile, are to be expected.
    const bool expected = status.IsUnavailable() || status.IsTimedOut() || status.IsBusy() ||
                          status.IsFenced() || status.IsAborted() || status.IsNoSpace() ||
                          status.IsInvalidArgument();
    if (!expected) cluster_->scheduler().Fail("open: " + status.ToString());
    Clock::System()->SleepFor(kOwnerOpenPause);
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
  const size_t mine = model_->size() / static_cast<size_t>(options_.writers);
  while (!finishing_ && !fenced_) {
    const bool changes = writer == 0 && random.OneIn(options_.family_one_in);
    const Status status = changes ? ChangeFamilies(&random)
                                  : WriteSome(static_cast<size_t>(writer) * mine, mine, &random);
    if (!Judge(status)) return;
    Pause(&random, 20'000);
  }
}

Status Owner::WriteSome(size_t first, size_t count, Random* random) {
  constexpr size_t kMostDeleted = 6;
  const size_t bytes = random->OneIn(5) ? random->Uniform(9000) : random->Uniform(700);
  const size_t group = first + random->Uniform(count);
  const OpenDatabase database = database_;
  WriteBatch batch;
  Model::Kind kind = Model::Kind::kPut;
  size_t groups = 1;
  if (random->OneIn(4)) {
    kind = Model::Kind::kMerge;
  } else if (random->OneIn(10)) {
    kind = Model::Kind::kDelete;
  } else if (random->OneIn(20)) {
    kind = Model::Kind::kDeleteRange;
    groups = std::min(1 + random->Uniform(kMostDeleted), first + count - group);
    Model::DeleteGroups(group, groups, database, &batch);
  }
  std::vector<uint64_t> attempts;
  for (size_t i = 0; i < groups; ++i) {
    attempts.push_back(
        model_->BeginWrite(group + i, options_.number, kind, bytes, database, &batch));
  }
  Status status = db_->Write({}, &batch);
  for (size_t i = 0; i < groups; ++i) model_->EndWrite(group + i, attempts[i], status.ok());
  if (status.ok()) ++writes_;
  // The other writer may have dropped a family meanwhile.
  const auto dropped = [this](const auto& family) {
    return model_->families().dropped(family.first);
  };
  if (status.IsInvalidArgument() &&
      std::any_of(database.extras.begin(), database.extras.end(), dropped)) {
    return Status::OK();
  }
  return status;
}

Status Owner::ChangeFamilies(Random* random) {
  constexpr size_t kMostFamilies = 2;
  if (dropping_.second != nullptr) return DropFamily();
  if (database_.extras.size() < kMostFamilies && random->OneIn(2)) return CreateFamily();
  if (database_.extras.empty()) return Status::OK();
  const auto chosen =
      database_.extras.begin() + static_cast<ptrdiff_t>(random->Uniform(database_.extras.size()));
  dropping_ = *chosen;
  database_.extras.erase(chosen);
  return DropFamily();
}

Status Owner::CreateFamily() {
  FamilyModel& families = model_->families();
  uint32_t number = 0;
  std::string name;
  if (!families.BeginCreate(options_.number, &number, &name)) return Status::OK();
  const bool forbidden = model_->replaced(options_.number);
  ColumnFamilyHandle* handle = nullptr;
  NACRE_RETURN_IF_ERROR(db_->CreateColumnFamily(options_.database, name, &handle));
  if (forbidden) cluster_->scheduler().Fail("an owner that was replaced has made family " + name);
  families.EndCreate(number);
  database_.extras.emplace_back(number, TakeHandle(db_.get(), handle));
  return Status::OK();
}

Status Owner::DropFamily() {
  FamilyModel& families = model_->families();
  const bool forbidden = model_->replaced(options_.number);
  families.BeginDrop(options_.number, dropping_.first);
  NACRE_RETURN_IF_ERROR(db_->DropColumnFamily(dropping_.second.get()));
  if (forbidden) cluster_->scheduler().Fail("an owner that was replaced has dropped a family");
  families.EndDrop(dropping_.first);
  dropping_ = {};
  return Status::OK();
}

void Owner::Read() {
  Random random(options_.seed * 37);
  while (!finishing_ && !fenced_) {
    Status status;
    if (random.OneIn(options_.scan_one_in)) {
      const uint64_t pauses_at = random.Uniform(Model::kMostKeysPerGroup * model_->size());
      model_->Scan(options_.number, database(), pauses_at, &status);
    } else if (random.OneIn(20)) {
      ReadBySnapshot(&random);
    } else {
      model_->Read(options_.number, database(), random.Uniform(model_->size()), &status);
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
      if (!model_->ReadSnapshot(options_.number, database(), snapshot, group, &seen[i], &status))
        break;
    }
    Pause(random, 50'000);
  }
  db_->ReleaseSnapshot(snapshot);
}

}  // namespace nacre::sim
