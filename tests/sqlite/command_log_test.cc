// Goal: a command log gives back what was committed, in order, and nothing else, and says where it
// is damaged; many commits share a sync; a failed one is no commit.
// Method: logs in a folder of the test's own, whose files are cut, overwritten and removed between
// two openings, and which write to files that fail, or wait, when the test says so.

#include "sqlite/command_log/command_log.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "util/mutex.h"
#include "util/threads/thread.h"

namespace nacre::sqlite {
namespace {

namespace fs = std::filesystem;
using Transactions = std::vector<std::pair<uint64_t, std::string>>;

/// What files do, as the test wants it.
class Disk {
 public:
  CommandFileOpener opener() {
    return [this](const std::string& path, std::unique_ptr<CommandFile>* file) {
      std::unique_ptr<CommandFile> real;
      NACRE_RETURN_IF_ERROR(OpenCommandFile(path, &real));
      *file = std::make_unique<File>(std::move(real), this);
      return Status::OK();
    };
  }

  std::atomic<bool> fail_append{false};
  std::atomic<bool> fail_sync{false};

  /// Makes syncs wait, until `Release`.
  void Hold() { held_ = true; }
  void Release() {
    MutexLock lock(&mutex_);
    held_ = false;
    released_.SignalAll();
  }

 private:
  class File final : public CommandFile {
   public:
    File(std::unique_ptr<CommandFile> real, Disk* disk) : real_(std::move(real)), disk_(disk) {}
    Status Append(const Slice& bytes) override {
      if (!disk_->fail_append) return real_->Append(bytes);
      NACRE_RETURN_IF_ERROR(real_->Append(Slice(bytes.data(), bytes.size() / 2)));
      return Status::IOError("the disk is full");
    }
    Status Sync() override {
      disk_->AwaitRelease();
      return disk_->fail_sync ? Status::IOError("the disk is gone") : real_->Sync();
    }
    Status Truncate(uint64_t bytes) override { return real_->Truncate(bytes); }

   private:
    const std::unique_ptr<CommandFile> real_;
    Disk* const disk_;
  };

  void AwaitRelease() {
    MutexLock lock(&mutex_);
    while (held_) released_.Wait();
  }

  Mutex mutex_;
  CondVar released_{&mutex_};
  std::atomic<bool> held_{false};
};

class CommandLogTest : public testing::Test {
 protected:
  static Status Applied(uint64_t /*number*/) { return Status::OK(); }

  Status TryOpen(uint64_t applied = 0) {
    replayed_.clear();
    log_.reset();
    NACRE_RETURN_IF_ERROR(CommandLog::Open(folder_.path(), "db", disk_.opener(), &log_));
    NACRE_RETURN_IF_ERROR(log_->Replay(applied, [this](uint64_t number, const Slice& commands) {
      replayed_.emplace_back(number, commands.ToString());
      return Status::OK();
    }));
    return log_->Start(77);
  }
  void Open(uint64_t applied = 0) { ASSERT_TRUE(IsOk(TryOpen(applied))); }
  Status TryCommit(const std::string& commands) { return log_->Commit(commands, Applied); }
  void Commit(const std::string& commands) { ASSERT_TRUE(IsOk(TryCommit(commands))); }
  /// Closes the log, as its process does by dying.
  void Leave() { log_.reset(); }

  std::string PathOf(uint64_t first) const { return folder_.File(CommandFileName(first)); }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void Write(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  /// Expects that it cannot be opened, for a reason that names the file.
  void ExpectDamage(const std::string& path, const std::string& words, uint64_t applied = 0) {
    const Status status = TryOpen(applied);
    EXPECT_TRUE(status.IsCorruption()) << status.ToString();
    EXPECT_NE(status.ToString().find(path), std::string::npos) << status.ToString();
    EXPECT_NE(status.ToString().find(words), std::string::npos) << status.ToString();
    Leave();
  }

  const TempFolder folder_;
  Disk disk_;
  std::unique_ptr<CommandLog> log_;
  Transactions replayed_;
};

TEST_F(CommandLogTest, GivesBackWhatWasCommitted) {
  Open();
  EXPECT_EQ(log_->id(), 77u);
  Commit("one");
  Commit("");
  Commit(std::string(100'000, 'x'));
  Open();
  EXPECT_EQ(replayed_, (Transactions{{1, "one"}, {2, ""}, {3, std::string(100'000, 'x')}}));
  Commit("four");
  Open(/*applied=*/3);
  EXPECT_EQ(replayed_, (Transactions{{4, "four"}}));
  Open(/*applied=*/4);
  EXPECT_EQ(replayed_, Transactions());
}

TEST_F(CommandLogTest, CutsOffATornEnd) {
  Open();
  Commit("one");
  Commit("two");
  Leave();
  const std::string two = Read(PathOf(1));
  Open();
  Commit("three");
  Leave();
  const std::string three = Read(PathOf(1));
  for (size_t size = two.size(); size < three.size(); ++size) {
    for (const bool zeros : {false, true}) {  // Files grow before their bytes are written.
      std::string torn = three.substr(0, size);
      if (zeros) torn.resize(three.size(), '\0');
      if (torn == three) continue;  // Its last byte happens to be a zero.
      Write(PathOf(1), torn);
      Open();
      ASSERT_EQ(replayed_, (Transactions{{1, "one"}, {2, "two"}})) << size << zeros;
      Commit("anew");
      Open(/*applied=*/2);
      ASSERT_EQ(replayed_, (Transactions{{3, "anew"}})) << size << zeros;
      Leave();
    }
  }
}

TEST_F(CommandLogTest, SaysWhereItIsDamaged) {
  Open();
  Commit("one");
  Leave();
  const size_t begin = Read(PathOf(1)).size();
  Open();
  Commit("two");
  Leave();
  const size_t end = Read(PathOf(1)).size();
  Open();
  Commit("three");
  Leave();
  const std::string whole = Read(PathOf(1));
  for (size_t at = 0; at < end; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    Write(PathOf(1), damaged);
    const bool in_two = at >= begin;
    ExpectDamage(PathOf(1), in_two ? "damaged at byte " + std::to_string(begin) + "," : "");
  }
  // The last group alone might be torn, but for a database that has it.
  std::string damaged = whole;
  damaged[end + 5] = static_cast<char>(damaged[end + 5] ^ 0x10);
  Write(PathOf(1), damaged);
  ExpectDamage(PathOf(1), "ends before transaction 3", /*applied=*/3);
}

TEST_F(CommandLogTest, TakesNoCopyOfItselfForAGroup) {
  Open();
  Commit("one");
  Commit("two");
  Leave();
  const std::string copy = Read(PathOf(1));
  Open();
  Commit(copy + copy);
  Leave();
  std::string torn = Read(PathOf(1));
  torn[copy.size() + 1] = static_cast<char>(torn[copy.size() + 1] ^ 1);
  Write(PathOf(1), torn);
  Open();
  EXPECT_EQ(replayed_, (Transactions{{1, "one"}, {2, "two"}}));
}

TEST_F(CommandLogTest, GoesOnInAnotherFile) {
  Open();
  Commit("one");
  uint64_t last = 0;
  ASSERT_TRUE(IsOk(log_->Rotate(&last)));
  EXPECT_EQ(last, 1u);
  ASSERT_TRUE(IsOk(log_->Rotate(&last)));  // There is nothing in the new one.
  EXPECT_EQ(last, 1u);
  Commit("two");
  ASSERT_TRUE(IsOk(log_->Rotate(&last)));
  Commit("three");
  Open();
  EXPECT_EQ(replayed_, (Transactions{{1, "one"}, {2, "two"}, {3, "three"}}));
  ASSERT_TRUE(IsOk(log_->RemoveUpTo(1)));
  EXPECT_FALSE(fs::exists(PathOf(1)));
  EXPECT_TRUE(fs::exists(PathOf(2)));
  Open(/*applied=*/1);
  EXPECT_EQ(replayed_, (Transactions{{2, "two"}, {3, "three"}}));
  ExpectDamage(PathOf(2), "the log begins behind", /*applied=*/0);
  Open(/*applied=*/2);
  ASSERT_TRUE(IsOk(log_->RemoveUpTo(3)));  // The last one stays.
  EXPECT_TRUE(fs::exists(PathOf(3)));
}

TEST_F(CommandLogTest, MissesFiles) {
  Open();
  uint64_t last;
  for (int i = 1; i <= 3; ++i) {
    Commit("some");
    ASSERT_TRUE(IsOk(log_->Rotate(&last)));
  }
  Leave();
  const std::string first = Read(PathOf(1));
  Write(PathOf(1), first.substr(0, first.size() - 1));  // Others are behind: it is not torn.
  ExpectDamage(PathOf(1), "damaged at byte");
  Write(PathOf(1), first);
  fs::remove(PathOf(2));
  ExpectDamage(PathOf(1), "the next file begins with 3");
  Write(PathOf(2), first);
  ExpectDamage(PathOf(2), "another");
}

TEST_F(CommandLogTest, SyncsOnceForAllWhoWait) {
  Open();
  disk_.Hold();
  constexpr size_t kCommits = 8;
  std::vector<Thread> threads;
  std::vector<Status> statuses(kCommits);
  for (size_t i = 0; i < kCommits; ++i) {
    threads.emplace_back(
        "commit", [this, i, &statuses] { statuses[i] = TryCommit("of " + std::to_string(i)); });
    while (log_->waiting() <= i) std::this_thread::yield();
  }
  disk_.Release();
  for (Thread& thread : threads) thread.Join();
  for (const Status& status : statuses) EXPECT_TRUE(IsOk(status));
  EXPECT_EQ(log_->syncs(), 2u) << "of the first one, and of all that came while it was under way";
  Open();
  EXPECT_EQ(replayed_.size(), kCommits);
  EXPECT_EQ(replayed_[0].second, "of 0");
}

TEST_F(CommandLogTest, AppliesInTheOrderOfTheLog) {
  Open();
  Transactions applied;
  RunTogether("commit", 4, [this, &applied](size_t thread) {
    for (int i = 0; i < 50; ++i) {
      const std::string commands = std::to_string(thread) + '/' + std::to_string(i);
      ASSERT_TRUE(IsOk(log_->Commit(commands, [&applied, &commands](uint64_t number) {
        applied.emplace_back(number, commands);
        return Status::OK();
      })));
    }
  });
  Open();
  EXPECT_EQ(replayed_, applied);
  EXPECT_EQ(replayed_.size(), 200u);
}

TEST_F(CommandLogTest, ACommitThatCouldNotBeSyncedIsNone) {
  Open();
  Commit("one");
  disk_.fail_sync = true;
  bool applied = false;
  const Status lost = log_->Commit("two", [&applied](uint64_t) {
    applied = true;
    return Status::OK();
  });
  EXPECT_TRUE(lost.IsIOError()) << lost.ToString();
  EXPECT_FALSE(applied);
  disk_.fail_sync = false;
  const Status later = TryCommit("three");
  EXPECT_TRUE(later.IsIOError()) << "nobody knows what is on the disk: " << later.ToString();
  Open();
  EXPECT_EQ(replayed_, (Transactions{{1, "one"}}));
  Commit("again");
}

TEST_F(CommandLogTest, GoesOnWhenTheDiskHasRoomAgain) {
  Open();
  Commit("one");
  disk_.fail_append = true;
  EXPECT_TRUE(TryCommit("two").IsIOError());
  EXPECT_TRUE(TryCommit("three").IsIOError());
  disk_.fail_append = false;
  Commit("four");
  Open();
  EXPECT_EQ(replayed_, (Transactions{{1, "one"}, {2, "four"}}));
}

TEST_F(CommandLogTest, TakesNothingBehindWhatCouldNotBeApplied) {
  Open();
  const Status failed = log_->Commit("one", [](uint64_t) { return Status::NoSpace("full"); });
  EXPECT_TRUE(failed.IsNoSpace()) << failed.ToString();
  EXPECT_TRUE(TryCommit("two").IsNoSpace());
  Open();
  EXPECT_EQ(replayed_, (Transactions{{1, "one"}}));
}

TEST_F(CommandLogTest, IsOfOneDatabaseAtATime) {
  Open();
  std::unique_ptr<CommandLog> other;
  const Status busy = CommandLog::Open(folder_.path(), "db", OpenCommandFile, &other);
  EXPECT_TRUE(busy.IsBusy()) << busy.ToString();
  EXPECT_NE(busy.ToString().find(folder_.File("LOCK")), std::string::npos);
  Leave();
  const Status wrong = CommandLog::Open(folder_.path(), "orders", OpenCommandFile, &other);
  EXPECT_TRUE(wrong.IsInvalidArgument()) << wrong.ToString();
}

}  // namespace
}  // namespace nacre::sqlite
