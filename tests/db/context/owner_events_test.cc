// Goal: a listener that does not return delays no other thread and takes bounded memory; it hears
// the latest events then, and how many it missed is counted. Method: a listener that is held in its
// first call while more events than there is room for are posted.

#include "db/context/owner_events.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "nacre/listener.h"
#include "util/mutex.h"

namespace nacre {
namespace {

class Slow final : public EventListener {
 public:
  void OnRebuildCompleted(DB*, const NodeRebuildInfo& info) override {
    MutexLock lock(&mutex_);
    heard_.push_back(info.tables);
    entered_ = true;
    changed_.SignalAll();
    while (!released_) changed_.Wait();
  }
  void AwaitFirst() {
    MutexLock lock(&mutex_);
    while (!entered_) changed_.Wait();
  }
  void Release() {
    MutexLock lock(&mutex_);
    released_ = true;
    changed_.SignalAll();
  }
  std::vector<uint64_t> heard() {
    MutexLock lock(&mutex_);
    return heard_;
  }

 private:
  Mutex mutex_;
  CondVar changed_{&mutex_};
  bool entered_ = false;
  bool released_ = false;
  std::vector<uint64_t> heard_;
};

TEST(OwnerEventsTest, ASlowListenerMissesTheOldest) {
  auto slow = std::make_shared<Slow>();
  TaskThreads threads;
  OwnerEvents events(&threads, nullptr, "db", {slow});
  events.Rebuilt({.tables = 0});
  slow->AwaitFirst();
  constexpr uint64_t kEvents = 200'000;
  for (uint64_t i = 1; i <= kEvents; ++i) events.Rebuilt({.tables = i});
  const uint64_t dropped = events.dropped();
  EXPECT_GT(dropped, kEvents / 2);
  slow->Release();
  events.Stop();
  const std::vector<uint64_t> heard = slow->heard();
  ASSERT_EQ(heard.size(), 1 + kEvents - dropped);
  for (size_t i = 1; i < heard.size(); ++i) ASSERT_EQ(heard[i], dropped + i);
  EXPECT_EQ(events.dropped(), dropped);
}

}  // namespace
}  // namespace nacre
