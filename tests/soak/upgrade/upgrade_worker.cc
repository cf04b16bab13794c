// One program of the rolling upgrade (rolling_upgrade.py): an owner of a database that writes and
// reads it, or a follower that reads it, until SIGTERM. It is compiled with this release and with
// the one before, so it uses of Nacre only what both have in include/nacre.
//
//     upgrade_worker owner|follower POOL_URI MODEL_FILE SLOT
//
// The model is a file that all of these programs map, and that outlives them: for each key the
// version that was acknowledged and the one that was last tried; for each SLOT of a program how far
// it is. Each answer is compared with it. The first one that is wrong, and the first call that
// fails, are printed and end the program with status 1. "ready" is printed once it runs, and
// "closed" in the end.

#include <fcntl.h>
#include <nacre/db.h>
#include <nacre/options.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kKeys = 20'000;
constexpr uint32_t kSlots = 8;
constexpr uint32_t kThreads = 4;
constexpr size_t kValueBytes = 600;
/// Each of so many versions of a key is a deletion; so is version 0, before any write.
constexpr uint32_t kDeletedEach = 16;
constexpr std::chrono::milliseconds kBetweenOperations{2};
/// Until the nodes have noticed that the owner before is gone.
constexpr std::chrono::seconds kOpenPatience{30};

struct Progress {
  std::atomic<uint64_t> operations;
  std::atomic<uint64_t> longest_micros;
};

struct Key {
  std::atomic<uint32_t> acknowledged;  ///< 0: it was never written.
  std::atomic<uint32_t> tried;         ///< The same, or one more.
};

struct Model {
  Progress progress[kSlots];
  Key keys[kKeys];
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

std::atomic<bool> stopping{false};
std::atomic<bool> failed{false};

void Fail(const std::string& what) {
  if (failed.exchange(true)) return;
  std::printf("FAILED: %s\n", what.c_str());
  std::fflush(stdout);
  stopping.store(true);
}

bool IsDeletion(uint32_t version) { return version % kDeletedEach == 0; }

std::string NameOf(uint32_t key) {
  char name[16];
  std::snprintf(name, sizeof(name), "key%08u", key);
  return name;
}

std::string ValueOf(uint32_t key, uint32_t version) {
  std::string value = std::to_string(version) + " of " + NameOf(key) + " ";
  uint64_t state = (uint64_t{key} << 32 | version) + 1;
  while (value.size() < kValueBytes) {
    state = state * 6364136223846793005 + 1442695040888963407;
    value.push_back(static_cast<char>(state >> 56));
  }
  return value;
}

/// What of [least, most] a read has found; fails if it is none of these.
uint32_t VersionIn(uint32_t key, const nacre::Status& status, const std::string& value,
                   uint32_t least, uint32_t most) {
  if (status.IsNotFound()) {
    for (uint32_t version = least; version <= most; ++version) {
      if (IsDeletion(version)) return version;
    }
    Fail(NameOf(key) + " is not there, but has version " + std::to_string(least) + " to " +
         std::to_string(most));
    return least;
  }
  if (!status.ok()) {
    Fail("read of " + NameOf(key) + ": " + status.ToString());
    return least;
  }
  const auto version = static_cast<uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
  if (value != ValueOf(key, version)) {
    Fail(NameOf(key) + " has a value that was never written");
  } else if (version < least || version > most) {
    Fail(NameOf(key) + " has version " + std::to_string(version) + ", not " +
         std::to_string(least) + " to " + std::to_string(most));
  }
  return version;
}

class Worker {
 public:
  Worker(Model* model, Progress* progress, nacre::DB* db)
      : model_(model), progress_(progress), db_(db) {}

  /// What the owner before has left: with a write whose fate it did not learn, or without.
  void CheckAll() {
    for (uint32_t key = 0; key < kKeys; ++key) {
      Key& known = model_->keys[key];
      std::string value;
      const nacre::Status status = db_->Get(nacre::ReadOptions(), NameOf(key), &value);
      const uint32_t found = VersionIn(key, status, value, known.acknowledged, known.tried);
      known.acknowledged.store(found);
    }
  }

  /// Writes and reads the keys of one thread.
  void Own(uint32_t thread) {
    std::mt19937_64 random(std::random_device{}());
    while (!stopping.load()) {
      const auto key = static_cast<uint32_t>(random() % (kKeys / kThreads)) * kThreads + thread;
      Timed([&] { random() % 3 != 0 ? Write(key) : ReadOwn(key); });
      if (random() % 256 == 0) Timed([&] { Scan(key); });
    }
  }

  void Follow() {
    std::mt19937_64 random(std::random_device{}());
    std::vector<uint32_t> seen(kKeys);  // No thread sees a key go back.
    while (!stopping.load()) {
      const auto key = static_cast<uint32_t>(random() % kKeys);
      nacre::ReadOptions options;
      options.linearizable = random() % 8 == 0;
      const uint32_t least = std::max(
          seen[key], options.linearizable ? model_->keys[key].acknowledged.load() : uint32_t{0});
      std::string value;
      nacre::Status status;
      Timed([&] { status = db_->Get(options, NameOf(key), &value); });
      seen[key] = VersionIn(key, status, value, least, model_->keys[key].tried);
    }
  }

 private:
  template <typename Operation>
  void Timed(const Operation& operation) {
    const Clock::time_point start = Clock::now();
    operation();
    const auto micros = static_cast<uint64_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
    uint64_t longest = progress_->longest_micros.load();
    while (micros > longest && !progress_->longest_micros.compare_exchange_weak(longest, micros)) {
    }
    progress_->operations.fetch_add(1);
    std::this_thread::sleep_for(kBetweenOperations);
  }

  void Write(uint32_t key) {
    Key& known = model_->keys[key];
    const uint32_t version = known.acknowledged + 1;
    known.tried.store(version);
    const nacre::Status status =
        IsDeletion(version) ? db_->Delete(nacre::WriteOptions(), NameOf(key))
                            : db_->Put(nacre::WriteOptions(), NameOf(key), ValueOf(key, version));
    if (!status.ok()) return Fail("write of " + NameOf(key) + ": " + status.ToString());
    known.acknowledged.store(version);
  }

  void ReadOwn(uint32_t key) {
    const uint32_t version = model_->keys[key].acknowledged;
    std::string value;
    const nacre::Status status = db_->Get(nacre::ReadOptions(), NameOf(key), &value);
    VersionIn(key, status, value, version, version);
  }

  /// Each key that is met is as new as when the scan began, and as written as when it was met.
  void Scan(uint32_t from) {
    constexpr uint32_t kScanned = 50;
    const uint32_t end = std::min(from + kScanned, kKeys);
    std::vector<uint32_t> least;
    for (uint32_t key = from; key < end; ++key) {
      least.push_back(model_->keys[key].acknowledged);
    }
    std::unique_ptr<nacre::Iterator> it(db_->NewIterator(nacre::ReadOptions()));
    it->Seek(NameOf(from));
    for (uint32_t key = from; key < end; ++key) {
      const bool found = it->Valid() && it->key() == NameOf(key);
      if (!it->status().ok()) return Fail("scan: " + it->status().ToString());
      VersionIn(key, found ? nacre::Status::OK() : nacre::Status::NotFound(""),
                found ? it->value().ToString() : "", least[key - from], model_->keys[key].tried);
      if (found) it->Next();
    }
  }

  Model* const model_;
  Progress* const progress_;
  nacre::DB* const db_;
};

Model* MapModel(const char* path) {
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ftruncate(file, sizeof(Model)) != 0) return nullptr;
  void* const mapped = mmap(nullptr, sizeof(Model), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<Model*>(mapped);
}

nacre::Options OptionsFor(const char* pool_uri) {
  nacre::Options options;
  options.create_if_missing = true;
  options.pool_uri = pool_uri;
  options.redundancy = "rs(3,2)";
  options.allow_degraded_writes = true;
  options.slab_size = 1 << 20;
  options.write_buffer_size = 1 << 20;
  options.target_file_size_base = 1 << 20;
  options.max_bytes_for_level_base = 4 << 20;
  options.chunk_size = 16 << 10;
  options.follow_interval = std::chrono::milliseconds(50);
  return options;
}

nacre::Status OpenAs(bool owner, const char* pool_uri, std::unique_ptr<nacre::DB>* db) {
  const nacre::Options options = OptionsFor(pool_uri);
  if (!owner) return nacre::DB::OpenAsSecondary(options, "rolled", db);
  const Clock::time_point end = Clock::now() + kOpenPatience;
  nacre::Status status;
  do {
    status = nacre::DB::Open(options, "rolled", db);
    if (!status.IsBusy()) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  } while (Clock::now() < end);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string role = argc == 5 ? argv[1] : "";
  const unsigned long slot = argc == 5 ? std::strtoul(argv[4], nullptr, 10) : kSlots;
  if ((role != "owner" && role != "follower") || slot >= kSlots) {
    std::fprintf(stderr, "usage: upgrade_worker owner|follower POOL_URI MODEL_FILE SLOT\n");
    return 2;
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Model* const model = MapModel(argv[3]);
  if (model == nullptr) {
    std::perror(argv[3]);
    return 1;
  }
  std::unique_ptr<nacre::DB> db;
  if (const nacre::Status status = OpenAs(role == "owner", argv[2], &db); !status.ok()) {
    Fail("open: " + status.ToString());
    return 1;
  }
  Worker worker(model, &model->progress[slot], db.get());
  if (role == "owner") worker.CheckAll();
  if (!failed.load()) {
    std::printf("ready\n");
    std::fflush(stdout);
  }
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] { role == "owner" ? worker.Own(i) : worker.Follow(); });
  }
  const timespec moment = {.tv_sec = 0, .tv_nsec = 50'000'000};
  while (!stopping.load()) {
    if (sigtimedwait(&signals, nullptr, &moment) == SIGTERM) stopping.store(true);
  }
  for (std::thread& thread : threads) thread.join();
  if (!failed.load()) {
    if (const nacre::Status status = db->Close(); !status.ok()) Fail("close: " + status.ToString());
  }
  db.reset();
  if (failed.load()) return 1;
  std::printf("closed\n");
  return 0;
}
