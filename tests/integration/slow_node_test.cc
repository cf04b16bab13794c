// Goal: a node that pauses keeps no caller waiting: writes, reads, flushes and compactions go on
// without it, what was acknowledged meanwhile is as safe as ever, and afterwards the node serves as
// before. A pool in which every node pauses goes on when they do.
// Method: processes over tcp, stopped and let go on, under a database that may wait for ten
// minutes: what waits for a stopped node ends only when the test does. A model says what there must
// be.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "nacre/listener.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/mutex.h"
#include "util/random.h"

namespace nacre {
namespace {

constexpr int kSlowNodes = 6;

/// Hears which nodes become slow, and which no longer are.
class PaceListener : public EventListener {
 public:
  void OnNodeSlow(DB* /*db*/, const NodeInfo& info) override { Add("slow " + info.address); }
  void OnNodePrompt(DB* /*db*/, const NodeInfo& info) override { Add("prompt " + info.address); }

  size_t Count(const std::string& event) const {
    MutexLock lock(&mutex_);
    return static_cast<size_t>(std::count(events_.begin(), events_.end(), event));
  }

 private:
  void Add(std::string event) {
    MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
  }

  mutable Mutex mutex_;
  std::vector<std::string> events_ GUARDED_BY(mutex_);
};

class SlowNodeTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    nodes_ = std::make_unique<MemnodeProcesses>(kSlowNodes, MemnodeProcessOptions{.scheme = "tcp"});
    ASSERT_NO_FATAL_FAILURE(Open());
  }
  void TearDown() override {
    for (size_t i = 0; i < nodes_->size(); ++i) {
      if ((*nodes_)[i].running()) (*nodes_)[i].Resume();
    }
    db_.reset();
  }

  void Open() {
    TestPoolOptions pool_options;
    pool_options.operation_timeout = std::chrono::minutes(10);
    pool_ = ConnectTestPool(nodes_->pool_uri() + "?timeout_ms=600000", pool_options);
    ASSERT_NE(pool_, nullptr);
    Options options = SmallTableOptions(pool_);
    options.redundancy = GetParam();
    options.take_over = true;
    options.listeners = {heard_};
    ASSERT_TRUE(IsOk(DB::Open(options, "db", &db_)));
  }

  static std::string Key(uint64_t i) { return "key" + std::to_string(i * 7919 % 100'003); }

  void Write(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const std::string key = Key(random_.Uniform(3000));
      const std::string value = TestValue(++writes_, 100 + random_.Uniform(500));
      ASSERT_TRUE(IsOk(db_->Put({}, key, value)));
      model_[key] = value;
    }
  }

  void Check() {
    std::string value;
    for (const auto& [key, expected] : model_) {
      ASSERT_TRUE(IsOk(db_->Get({}, key, &value))) << key;
      ASSERT_EQ(value, expected) << key;
    }
    std::vector<std::string> names;
    for (const auto& [key, expected] : model_) names.push_back(key);
    const std::vector<Slice> keys(names.begin(), names.end());
    std::vector<std::string> values;
    for (const Status& status : db_->MultiGet({}, keys, &values)) ASSERT_TRUE(IsOk(status));
    for (size_t i = 0; i < names.size(); ++i) ASSERT_EQ(values[i], model_[names[i]]);
    const std::unique_ptr<Iterator> iterator(db_->NewIterator({}));
    auto expected = model_.begin();
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next(), ++expected) {
      ASSERT_NE(expected, model_.end());
      ASSERT_EQ(iterator->key().ToString(), expected->first);
      ASSERT_EQ(iterator->value().ToString(), expected->second);
    }
    ASSERT_TRUE(IsOk(iterator->status()));
    ASSERT_EQ(expected, model_.end());
  }

  /// All that an application does, to its end.
  void Use() {
    ASSERT_NO_FATAL_FAILURE(Write(500));
    ASSERT_NO_FATAL_FAILURE(Check());
    ASSERT_TRUE(IsOk(db_->Flush({})));
    ASSERT_NO_FATAL_FAILURE(Check());
  }

  bool AllPrompt() {
    for (NodeId node = 0; node < kSlowNodes; ++node) {
      if ((*nodes_)[node].running() && !pool_->client()->prompt(node)) return false;
    }
    return true;
  }

  Random random_{TestSeed(301)};
  std::unique_ptr<MemnodeProcesses> nodes_;
  std::shared_ptr<pool::PoolImpl> pool_;
  const std::shared_ptr<PaceListener> heard_ = std::make_shared<PaceListener>();
  std::unique_ptr<DB> db_;
  std::map<std::string, std::string> model_;
  uint64_t writes_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Redundancies, SlowNodeTest, testing::Values("rep(3)", "rs(4,2)"),
                         [](const testing::TestParamInfo<const char*>& redundancy) {
                           return std::string(redundancy.index == 0 ? "Rep" : "Rs");
                         });

TEST_P(SlowNodeTest, OneAfterTheOther) {
  ASSERT_NO_FATAL_FAILURE(Use());
  for (size_t i = 0; i < kSlowNodes; ++i) {
    (*nodes_)[i].Pause();
    ASSERT_NO_FATAL_FAILURE(Use()) << i;
    (*nodes_)[i].Resume();
    ASSERT_TRUE(Eventually([&] { return AllPrompt(); })) << i;
    ASSERT_NO_FATAL_FAILURE(Write(100)) << i;
  }
  ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_P(SlowNodeTest, TwoAtOnce) {
  ASSERT_NO_FATAL_FAILURE(Use());
  for (size_t i = 0; i < 3; ++i) {
    (*nodes_)[2 * i].Pause();
    (*nodes_)[2 * i + 1].Pause();
    ASSERT_NO_FATAL_FAILURE(Use()) << i;
    (*nodes_)[2 * i].Resume();
    (*nodes_)[2 * i + 1].Resume();
    ASSERT_TRUE(Eventually([&] { return AllPrompt(); })) << i;
  }
}

TEST_P(SlowNodeTest, WhatWasAcknowledgedMeanwhileOutlivesOthers) {
  ASSERT_NO_FATAL_FAILURE(Write(300));
  (*nodes_)[0].Pause();
  ASSERT_NO_FATAL_FAILURE(Use());
  ASSERT_NO_FATAL_FAILURE(Write(300));  // This is in the log only.
  (*nodes_)[0].Resume();
  // As many as may be lost, and the owner: what it still has to say counts for nothing.
  (*nodes_)[1].Kill();
  (*nodes_)[2].Kill();
  const std::unique_ptr<DB> old = std::move(db_);
  const std::shared_ptr<pool::PoolImpl> old_pool = pool_;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Check());
}

TEST_P(SlowNodeTest, IsReported) {
  ASSERT_NO_FATAL_FAILURE(Use());
  const std::string address = (*nodes_)[3].address();
  (*nodes_)[3].Pause();
  // Sooner or later something needs the node.
  ASSERT_TRUE(Eventually([&] {
    Write(20);
    return HasFailure() || heard_->Count("slow " + address) > 0;
  }));
  EXPECT_GT(GetNumber(db_.get(), "nacre.waits.late"), 0u);
  EXPECT_NE(GetTextProperty(db_.get(), "nacre.nodes").find("3 " + address + ": "),
            std::string::npos);
  (*nodes_)[3].Resume();
  EXPECT_TRUE(Eventually([&] { return heard_->Count("prompt " + address) > 0; }));
  EXPECT_TRUE(Eventually([&] { return GetNumber(db_.get(), "nacre.slow-nodes") == 0; }));
  for (const char* name : {"nacre.reads.hedged", "nacre.log.segments-left", "nacre.jobs.left"}) {
    uint64_t number = 0;
    EXPECT_TRUE(db_->GetIntProperty(name, &number)) << name;
  }
}

TEST_P(SlowNodeTest, AllOfThem) {
  ASSERT_NO_FATAL_FAILURE(Write(300));
  for (size_t i = 0; i < kSlowNodes; ++i) (*nodes_)[i].Pause();
  std::thread later([&] {
    // Longer than any patience.
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    for (size_t i = 0; i < kSlowNodes; ++i) (*nodes_)[i].Resume();
  });
  // The owner's lease has not run out.
  Write(1);
  later.join();
  ASSERT_NO_FATAL_FAILURE(Use());
  ASSERT_TRUE(Eventually([&] { return AllPrompt(); }));
}

}  // namespace
}  // namespace nacre
