#include "tests/support/process/owner_process.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "nacre/write_batch.h"
#include "tests/support/process/child_data.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/log.h"
#include "util/random.h"

namespace nacre {

namespace {

constexpr auto kMostPatience = std::chrono::seconds(60);

/// One operation of a thread: updates that take effect together.
struct OwnerOperation {
  struct Update {
    uint64_t key;
    bool put;
    size_t value_bytes;
  };
  std::vector<Update> updates;
  bool batch = false;
};

/// Performs the operations of one thread, one after the other.
class OwnerOperations {
 public:
  OwnerOperations(const OwnerPlan& plan, uint32_t thread)
      : keys_(plan.keys_per_thread), random_(plan.seed * 1000 + thread) {}

  OwnerOperation Next() {
    OwnerOperation operation;
    operation.batch = random_.OneIn(8);
    const uint64_t count = operation.batch ? 1 + random_.Uniform(6) : 1;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t key = random_.Uniform(keys_);
      const bool put = !random_.OneIn(10);
      const bool large = random_.OneIn(500);
      const size_t bytes = large ? 20'000 + random_.Uniform(200'000) : random_.Uniform(600);
      operation.updates.push_back({.key = key, .put = put, .value_bytes = bytes});
    }
    return operation;
  }

 private:
  const uint64_t keys_;
  Random random_;
};

std::string PrefixOf(const OwnerPlan& plan, uint32_t thread) {
  return plan.prefix + "t" + std::to_string(thread) + "-";
}

std::string KeyOf(const std::string& prefix, uint64_t key) {
  return prefix + std::to_string(key * 7919 % 100'003);
}

std::string ValueOf(uint64_t operation, const OwnerOperation::Update& update) {
  return TestValue(operation, update.value_bytes);
}

using ThreadModel = std::map<std::string, std::string>;

void Apply(const OwnerOperation& operation, uint64_t number, const std::string& prefix,
           ThreadModel* model) {
  for (const auto& update : operation.updates) {
    const std::string key = KeyOf(prefix, update.key);
    if (update.put) {
      (*model)[key] = ValueOf(number, update);
    } else {
      model->erase(key);
    }
  }
}

Status Perform(const OwnerOperation& operation, uint64_t number, const std::string& prefix,
               DB* db) {
  if (!operation.batch) {
    const auto& update = operation.updates.front();
    const std::string key = KeyOf(prefix, update.key);
    return update.put ? db->Put({}, key, ValueOf(number, update)) : db->Delete({}, key);
  }
  WriteBatch batch;
  for (const auto& update : operation.updates) {
    const std::string key = KeyOf(prefix, update.key);
    NACRE_RETURN_IF_ERROR(update.put ? batch.Put(key, ValueOf(number, update)) : batch.Delete(key));
  }
  return db->Write({}, &batch);
}

volatile OwnerProgress* MapProgress(const std::string& path, uint32_t threads) {
  return static_cast<volatile OwnerProgress*>(MapShared(path, threads * sizeof(OwnerProgress)));
}

void Fail(const Status& status, volatile OwnerProgress* progress) {
  const std::string text = status.ToString();
  for (size_t i = 0; i < text.size() && i + 1 < sizeof(progress->message); ++i) {
    progress->message[i] = text[i];
  }
  progress->failure = static_cast<int64_t>(status.code());
}

std::string MessageOf(const volatile OwnerProgress& progress) {
  std::string text;
  for (const volatile char& c : progress.message) {
    if (c == '\0') break;
    text += c;
  }
  return text;
}

}  // namespace

bool IsOwnerProcess() { return std::getenv("NACRE_OWNER_PROGRESS") != nullptr; }

void RunOwner() {
  OwnerPlan plan;
  plan.pool_uri = Environment("NACRE_OWNER_POOL");
  plan.database = Environment("NACRE_OWNER_DATABASE");
  plan.redundancy = Environment("NACRE_OWNER_REDUNDANCY");
  plan.prefix = Environment("NACRE_OWNER_PREFIX");
  plan.seed = EnvironmentNumber("NACRE_OWNER_SEED");
  plan.threads = static_cast<uint32_t>(EnvironmentNumber("NACRE_OWNER_THREADS"));
  plan.keys_per_thread = EnvironmentNumber("NACRE_OWNER_KEYS");
  plan.write_buffer_size = EnvironmentNumber("NACRE_OWNER_BUFFER");
  volatile OwnerProgress* progress = MapProgress(Environment("NACRE_OWNER_PROGRESS"), plan.threads);
  ASSERT_NE(progress, nullptr);

  Options options = SmallTableOptions(nullptr);
  options.pool_uri = plan.pool_uri;
  options.redundancy = plan.redundancy;
  options.write_buffer_size = plan.write_buffer_size;
  options.allow_degraded_writes = EnvironmentNumber("NACRE_OWNER_DEGRADED") != 0;
  options.take_over = EnvironmentNumber("NACRE_OWNER_TAKE_OVER") != 0;
  const std::string log_path = Environment("NACRE_OWNER_LOG");
  if (!log_path.empty()) options.info_log = NewFileLogger(log_path);
  std::unique_ptr<DB> db;
  Status opened;
  // The nodes may be about to notice that the last owner is gone.
  const auto start = std::chrono::steady_clock::now();
  do {
    opened = DB::Open(options, plan.database, &db);
  } while (opened.IsBusy() && std::chrono::steady_clock::now() - start < kMostPatience);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < plan.threads; ++thread) {
    if (!opened.ok()) {
      Fail(opened.WithContext("open"), &progress[thread]);
      continue;
    }
    threads.emplace_back([&, thread] {
      OwnerOperations operations(plan, thread);
      const std::string prefix = PrefixOf(plan, thread);
      for (uint64_t number = 1;; ++number) {
        const Status status = Perform(operations.Next(), number, prefix, db.get());
        if (!status.ok()) {
          Fail(status, &progress[thread]);
          return;
        }
        progress[thread].acknowledged = number;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(IsOk(opened));
  // What a fenced owner, or one without its nodes, answers at its end is not the matter here.
  if (db != nullptr) db->Close().IgnoreError();
}

OwnerProcess::OwnerProcess(const std::string& binary, const OwnerPlan& plan) : plan_(plan) {
  const std::string path = folder_.File("progress");
  progress_ = MapProgress(path, plan.threads);
  EXPECT_NE(progress_, nullptr);
  process_ = std::make_unique<ChildProcess>(
      binary, std::vector<std::string>{"--gtest_filter=OwnerProcessChild.Run"},
      std::vector<std::string>{
          "NACRE_OWNER_PROGRESS=" + path, "NACRE_OWNER_POOL=" + plan.pool_uri,
          "NACRE_OWNER_DATABASE=" + plan.database, "NACRE_OWNER_REDUNDANCY=" + plan.redundancy,
          "NACRE_OWNER_PREFIX=" + plan.prefix, "NACRE_OWNER_SEED=" + std::to_string(plan.seed),
          "NACRE_OWNER_THREADS=" + std::to_string(plan.threads),
          "NACRE_OWNER_KEYS=" + std::to_string(plan.keys_per_thread),
          "NACRE_OWNER_BUFFER=" + std::to_string(plan.write_buffer_size),
          "NACRE_OWNER_DEGRADED=" + std::to_string(static_cast<int>(plan.allow_degraded_writes)),
          "NACRE_OWNER_TAKE_OVER=" + std::to_string(static_cast<int>(plan.take_over)),
          "NACRE_OWNER_LOG=" + plan.log_path});
}

OwnerProcess::~OwnerProcess() {
  process_.reset();
  if (progress_ != nullptr) {
    ::munmap(const_cast<OwnerProgress*>(progress_), plan_.threads * sizeof(OwnerProgress));
  }
}

bool OwnerProcess::AwaitProgress(uint64_t operations) {
  std::vector<uint64_t> goals;
  for (uint32_t t = 0; t < plan_.threads; ++t) {
    goals.push_back(progress_[t].acknowledged + operations);
  }
  const auto start = std::chrono::steady_clock::now();
  for (uint32_t t = 0; t < plan_.threads;) {
    if (progress_[t].acknowledged >= goals[t]) {
      ++t;
      continue;
    }
    if (progress_[t].failure != 0) {
      ADD_FAILURE() << "thread " << t << " of the owner ended: " << MessageOf(progress_[t]);
      return false;
    }
    if (std::chrono::steady_clock::now() - start > kMostPatience) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

std::vector<int64_t> OwnerProcess::AwaitFailures() {
  std::vector<int64_t> failures;
  const auto start = std::chrono::steady_clock::now();
  for (uint32_t t = 0; t < plan_.threads; ++t) {
    while (progress_[t].failure == 0 && !died() &&
           std::chrono::steady_clock::now() - start < kMostPatience) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    failures.push_back(progress_[t].failure == 0 ? -1 : progress_[t].failure);
  }
  return failures;
}

bool OwnerProcess::died() const {
  std::ifstream file("/proc/" + std::to_string(process_->pid()) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const size_t state = stat.rfind(") ");
  return state != std::string::npos && stat[state + 2] == 'Z';
}

void OwnerProcess::Stop() { process_->Signal(SIGSTOP); }
void OwnerProcess::Continue() { process_->Signal(SIGCONT); }

void OwnerProcess::Check(DB* db) const {
  ThreadModel found;
  const std::unique_ptr<Iterator> iterator = db->NewIterator({});
  for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) {
    found[iterator->key().ToString()] = iterator->value().ToString();
  }
  ASSERT_TRUE(IsOk(iterator->status()));
  for (uint32_t thread = 0; thread < plan_.threads; ++thread) {
    ThreadModel mine;
    const std::string prefix = PrefixOf(plan_, thread);
    for (auto it = found.lower_bound(prefix);
         it != found.end() && it->first.compare(0, prefix.size(), prefix) == 0; ++it) {
      mine.insert(*it);
    }
    ThreadModel model;
    OwnerOperations operations(plan_, thread);
    const uint64_t acknowledged = progress_[thread].acknowledged;
    for (uint64_t number = 1; number <= acknowledged; ++number) {
      Apply(operations.Next(), number, prefix, &model);
    }
    ThreadModel next = model;
    Apply(operations.Next(), acknowledged + 1, prefix, &next);
    EXPECT_TRUE(mine == model || mine == next)
        << "thread " << thread << " had " << acknowledged << " operations acknowledged; found "
        << mine.size() << " keys, expected " << model.size() << " or " << next.size();
    size_t looked = 0;
    for (const auto& [key, value] : mine) {
      if (++looked > 100) break;
      std::string got;
      ASSERT_TRUE(IsOk(db->Get({}, key, &got)));
      ASSERT_EQ(got, value) << key;
    }
  }
}

}  // namespace nacre
