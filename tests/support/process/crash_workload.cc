#include "tests/support/process/crash_workload.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "nacre/checkpoint.h"
#include "nacre/column_family.h"
#include "nacre/write_batch.h"
#include "pool/reports.h"
#include "pool/wire/database_report.h"
#include "pool/wire/node_stats.h"
#include "tests/support/process/child_data.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/coding.h"
#include "util/random.h"

namespace nacre {

namespace {

constexpr uint64_t kKeys = 80;
constexpr int kPatienceSeconds = 60;

struct Update {
  std::string key;
  bool put = true;
  std::string value;
};

/// What write `number` changes, all at once.
std::vector<Update> UpdatesOf(uint64_t seed, uint64_t number) {
  Random random(seed * 1'000'003 + number);
  std::vector<Update> updates(random.OneIn(3) ? 2 + random.Uniform(4) : 1);
  for (Update& update : updates) {
    update.key = "key" + std::to_string(random.Uniform(kKeys));
    update.put = !random.OneIn(8);
    // Some records are longer than the log's ring takes.
    const uint64_t bytes = random.OneIn(12) ? 70'000 + random.Uniform(30'000)
                                            : random.Uniform(random.OneIn(2) ? 200 : 16'000);
    if (update.put) update.value = TestValue(number * 17 + random.Uniform(1000), bytes);
  }
  return updates;
}

Status Write(DB* db, const CrashPlan& plan, uint64_t from, uint64_t to, CrashPoints* points) {
  for (uint64_t number = from; number < to; ++number) {
    NACRE_RETURN_IF_ERROR(WriteOne(db, plan.seed, number).WithContext("write"));
    points->Acknowledge(number);
  }
  return Status::OK();
}

constexpr int kFamilyKeys = 3;

std::vector<std::string> FamilyNames() { return {"extra 1", "extra 2", "extra 3"}; }

/// Column families come together, are written by one batch, flushed with the rest, and go together.
Status UseFamilies(DB* db, const Options& options) {
  std::vector<ColumnFamilyHandle*> families;
  NACRE_RETURN_IF_ERROR(db->CreateColumnFamilies(options, FamilyNames(), &families));
  WriteBatch batch;
  for (ColumnFamilyHandle* family : families) {
    for (int i = 0; i < kFamilyKeys; ++i) {
      NACRE_RETURN_IF_ERROR(batch.Put(family, "key" + std::to_string(i), TestValue(3, 2000)));
    }
  }
  Status status = db->Write({}, &batch);
  if (status.ok()) status = db->Flush({}, families.front());
  if (status.ok()) status = db->DropColumnFamilies(families);
  for (ColumnFamilyHandle* family : families) {
    NACRE_RETURN_IF_ERROR(db->DestroyColumnFamilyHandle(family));
  }
  return status;
}

/// There are all families or none; they have their batch or nothing. They go.
void CheckFamilies(DB* db, const std::vector<ColumnFamilyHandle*>& families) {
  if (families.empty()) return;
  EXPECT_EQ(families.size(), FamilyNames().size());
  size_t found = 0;
  for (ColumnFamilyHandle* family : families) {
    for (int i = 0; i < kFamilyKeys; ++i) {
      std::string value;
      const Status status = db->Get({}, family, "key" + std::to_string(i), &value);
      EXPECT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
      if (!status.ok()) continue;
      EXPECT_TRUE(value == TestValue(3, 2000));
      ++found;
    }
  }
  EXPECT_TRUE(found == 0 || found == families.size() * kFamilyKeys) << found;
  EXPECT_TRUE(IsOk(db->DropColumnFamilies(families)));
}

[[noreturn]] void Die() {
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

Status Live(const CrashPlan& plan, CrashPoints* points) {
  const Options options = CrashOptions(plan.pool_uri, plan.redundancy);
  std::unique_ptr<DB> db;
  NACRE_RETURN_IF_ERROR(DB::Open(options, kCrashDatabase, &db).WithContext("open"));
  const uint64_t end = plan.first + plan.writes;
  const uint64_t most = plan.first + plan.writes * 3 / 4;
  NACRE_RETURN_IF_ERROR(Write(db.get(), plan, plan.first, most, points));
  NACRE_RETURN_IF_ERROR(UseFamilies(db.get(), options).WithContext("column families"));
  NACRE_RETURN_IF_ERROR(db->Flush({}).WithContext("flush"));
  NACRE_RETURN_IF_ERROR(db->CompactRange({}, nullptr, nullptr).WithContext("compact"));
  NACRE_RETURN_IF_ERROR(Write(db.get(), plan, most, end, points));
  if (plan.die_at_end) Die();
  NACRE_RETURN_IF_ERROR(db->Close().WithContext("close"));
  db.reset();
  points->Destroying();
  return DestroyDB(kCrashDatabase, options).WithContext("destroy");
}

/// The test has made the database. The first node is to be left, and another one comes.
Status Drain(const CrashPlan& plan, CrashPoints* points) {
  const std::shared_ptr<pool::PoolImpl> pool = ConnectTestPool(plan.pool_uri);
  Options options = CrashOptions("", plan.redundancy);
  options.pool = pool;
  std::unique_ptr<DB> db;
  NACRE_RETURN_IF_ERROR(DB::Open(options, kCrashDatabase, &db).WithContext("open"));
  Status status;
  const int before = pool->client()->node_count();
  const pool::Directions wanted{.version = plan.directions_version,
                                .draining = {pool->client()->instance_id(0)},
                                .added_addresses = {plan.added}};
  for (int i = 0; i < before; ++i) {
    pool::Directions now;
    NACRE_RETURN_IF_ERROR(
        pool::SetDirections(pool->client(), static_cast<NodeId>(i), wanted, &now));
  }
  const bool left = Eventually([&] {
    pool::NodeStats stats;
    status = pool::GetStats(pool->client(), 0, &stats);
    if (!status.ok()) return true;
    return stats.slabs_leased == 0 && pool->client()->node_count() > before &&
           points->Hits()["membership.published"] > 0;
  });
  NACRE_RETURN_IF_ERROR(std::move(status));
  if (!left) return Status::TimedOut("the node is not left");
  NACRE_RETURN_IF_ERROR(Write(db.get(), plan, plan.first, plan.first + plan.writes, points));
  return db->Close().WithContext("close");
}

Status TakeOver(const CrashPlan& plan, CrashPoints* points) {
  const std::unique_ptr<DB> db = OpenAfterCrash(CrashOptions(plan.pool_uri, plan.redundancy));
  if (db == nullptr) return Status::Aborted("not opened");
  NACRE_RETURN_IF_ERROR(Write(db.get(), plan, plan.first, plan.first + plan.writes, points));
  NACRE_RETURN_IF_ERROR(db->Flush({}).WithContext("flush"));
  NACRE_RETURN_IF_ERROR(db->WaitForCompact().WithContext("compact"));
  Die();
}

Status MakeCheckpoint(DB* db, const std::string& dir) {
  std::unique_ptr<Checkpoint> checkpoint;
  NACRE_RETURN_IF_ERROR(Checkpoint::Create(db, &checkpoint));
  return checkpoint->CreateCheckpoint(dir, {}, nullptr).WithContext("checkpoint");
}

/// Behind the checkpoint, as a log of an archive would be; it changes nothing that is read.
Status LoadABatch(DB* db) {
  WriteBatch batch;
  NACRE_RETURN_IF_ERROR(batch.Delete("a key that never was"));
  std::string bytes = batch.Data();
  EncodeFixed64(bytes.data(), db->GetLatestSequenceNumber() + 1);
  const Slice loaded(bytes);
  return LoadBatches(db, {&loaded, 1});
}

Status CheckpointAndRestore(const CrashPlan& plan, CrashPoints* points) {
  const Options options = CrashOptions(plan.pool_uri, plan.redundancy);
  std::unique_ptr<DB> db = OpenAfterCrash(options);
  if (db == nullptr) return Status::Aborted("not opened");
  const uint64_t half = plan.first + plan.writes / 2;
  NACRE_RETURN_IF_ERROR(Write(db.get(), plan, plan.first, half, points));
  NACRE_RETURN_IF_ERROR(MakeCheckpoint(db.get(), plan.dir));
  NACRE_RETURN_IF_ERROR(Write(db.get(), plan, half, plan.first + plan.writes, points));
  NACRE_RETURN_IF_ERROR(MakeCheckpoint(db.get(), plan.dir));
  NACRE_RETURN_IF_ERROR(DeleteCheckpoint(plan.dir, 1).WithContext("remove"));
  NACRE_RETURN_IF_ERROR(db->Close().WithContext("close"));
  db.reset();
  return RestoreDB(options, kCrashCopy, plan.dir, {.then = LoadABatch});
}

}  // namespace

Options CrashOptions(const std::string& pool_uri, const std::string& redundancy) {
  Options options = SmallTableOptions(nullptr);
  options.pool_uri = pool_uri;
  options.redundancy = redundancy;
  options.write_buffer_size = 256 << 10;
  options.chunk_size = 4 << 10;
  // As little as possible depends on when threads run: a run is to have much the same hits each
  // time.
  options.disable_auto_compactions = true;
  options.max_subcompactions = 1;
  options.manifest_image_interval = std::chrono::hours(1);
  options.manifest_image_edits = 4;
  return options;
}

Status RunCrashPlan(const CrashPlan& plan, CrashPoints* points) {
  points->Acknowledge(plan.first - 1);
  switch (plan.course) {
    case CrashPlan::Course::kLife:
      return Live(plan, points);
    case CrashPlan::Course::kDrain:
      return Drain(plan, points);
    case CrashPlan::Course::kTakeOver:
      return TakeOver(plan, points);
    case CrashPlan::Course::kCheckpoint:
      return CheckpointAndRestore(plan, points);
  }
  return Status::InvalidArgument("no such course");
}

CrashModel ModelOf(uint64_t seed, uint64_t writes) {
  CrashModel model;
  for (uint64_t number = 1; number <= writes; ++number) {
    for (Update& update : UpdatesOf(seed, number)) {
      if (update.put) {
        model[update.key] = std::move(update.value);
      } else {
        model.erase(update.key);
      }
    }
  }
  return model;
}

Status WriteOne(DB* db, uint64_t seed, uint64_t number) {
  const std::vector<Update> updates = UpdatesOf(seed, number);
  if (updates.size() == 1) {
    const Update& update = updates.front();
    return update.put ? db->Put({}, update.key, update.value) : db->Delete({}, update.key);
  }
  WriteBatch batch;
  for (const Update& update : updates) {
    NACRE_RETURN_IF_ERROR(update.put ? batch.Put(update.key, update.value)
                                     : batch.Delete(update.key));
  }
  return db->Write({}, &batch);
}

CrashModel Contents(DB* db) {
  CrashModel found;
  const std::unique_ptr<Iterator> iterator = db->NewIterator({});
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    found[iterator->key().ToString()] = iterator->value().ToString();
  }
  EXPECT_TRUE(IsOk(iterator->status()));
  for (uint64_t i = 0; i < kKeys; ++i) {
    const std::string key = "key" + std::to_string(i);
    const auto expected = found.find(key);
    std::string value;
    const Status status = db->Get({}, key, &value);
    if (expected == found.end()) {
      EXPECT_TRUE(status.IsNotFound()) << key << ": " << status.ToString();
    } else {
      EXPECT_TRUE(IsOk(status)) << key;
      EXPECT_TRUE(value == expected->second) << key;
    }
  }
  return found;
}

std::unique_ptr<DB> OpenAfterCrash(const Options& options) {
  std::unique_ptr<DB> db;
  Status status;
  std::vector<ColumnFamilyHandle*> handles;
  const bool opened = Eventually([&] {
    std::vector<std::string> names;
    DB::ListColumnFamilies(options, kCrashDatabase, &names).IgnoreError();  // Opening tells.
    std::vector<ColumnFamilyDescriptor> families = {{kDefaultColumnFamilyName, options}};
    for (size_t i = 1; i < names.size(); ++i) families.emplace_back(names[i], options);
    status = DB::Open(options, kCrashDatabase, families, &handles, &db);
    // It may have been named while its owner still was at work.
    return !status.IsBusy() && (names.size() > 1 || !status.IsInvalidArgument());
  });
  EXPECT_TRUE(opened);
  EXPECT_TRUE(IsOk(status));
  if (!handles.empty()) CheckFamilies(db.get(), {handles.begin() + 1, handles.end()});
  for (ColumnFamilyHandle* handle : handles) {
    EXPECT_TRUE(IsOk(db->DestroyColumnFamilyHandle(handle)));
  }
  return db;
}

bool RunCrashProcess() {
  const std::string path = Environment("NACRE_CRASH_POINTS");
  if (path.empty()) return false;
  CrashPlan plan;
  plan.course = static_cast<CrashPlan::Course>(EnvironmentNumber("NACRE_CRASH_COURSE"));
  plan.pool_uri = Environment("NACRE_CRASH_POOL");
  plan.redundancy = Environment("NACRE_CRASH_REDUNDANCY");
  plan.seed = EnvironmentNumber("NACRE_CRASH_SEED");
  plan.first = EnvironmentNumber("NACRE_CRASH_FIRST");
  plan.writes = EnvironmentNumber("NACRE_CRASH_WRITES");
  plan.dir = Environment("NACRE_CRASH_DIR");
  plan.added = Environment("NACRE_CRASH_ADDED");
  plan.directions_version = EnvironmentNumber("NACRE_CRASH_DIRECTIONS");
  plan.die_at_end = EnvironmentNumber("NACRE_CRASH_DIE") != 0;
  CrashPoints points(path);
  points.Install();
  const Status status = RunCrashPlan(plan, &points);
  if (!status.ok()) points.Fail(status);
  EXPECT_TRUE(IsOk(status));
  return true;
}

int RunInCrashProcess(const std::string& binary, const CrashPlan& plan, const CrashPoints& points,
                      std::string* output) {
  ChildProcess process(
      binary, {"--gtest_filter=CrashProcessChild.Run"},
      {"NACRE_CRASH_POINTS=" + points.path(),
       "NACRE_CRASH_COURSE=" + std::to_string(static_cast<int>(plan.course)),
       "NACRE_CRASH_POOL=" + plan.pool_uri, "NACRE_CRASH_REDUNDANCY=" + plan.redundancy,
       "NACRE_CRASH_SEED=" + std::to_string(plan.seed),
       "NACRE_CRASH_FIRST=" + std::to_string(plan.first),
       "NACRE_CRASH_WRITES=" + std::to_string(plan.writes), "NACRE_CRASH_DIR=" + plan.dir,
       "NACRE_CRASH_ADDED=" + plan.added,
       "NACRE_CRASH_DIRECTIONS=" + std::to_string(plan.directions_version),
       "NACRE_CRASH_DIE=" + std::to_string(static_cast<int>(plan.die_at_end))});
  *output = process.AwaitOutput("", kPatienceSeconds);
  return process.AwaitExit(kPatienceSeconds);
}

}  // namespace nacre
