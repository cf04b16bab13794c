// Goal: a node that was away while its database was destroyed, and another made under its name,
// never has the first one come back, nor costs the second one anything.
// Method: the answers of a pool's nodes, made up in every combination of nodes that have the first
// database, the second, or none; by what more than half of the members say the outcome is known.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "pool/wire/control.pb.h"
#include "pool/wire/root_register.h"
#include "tests/support/status_assert.h"

namespace nacre::pool {
namespace {

constexpr uint64_t kFirst = 11;
constexpr uint64_t kSecond = 22;

RootAnswer AnswerOf(NodeId node, uint64_t database_id, uint64_t epoch,
                    const std::vector<uint64_t>& members) {
  RootAnswer answer{.node = node, .instance_id = node + 1u, .state = {}};
  if (database_id == 0) return answer;
  answer.state.set_exists(true);
  answer.state.set_database_id(database_id);
  answer.state.set_epoch(epoch);
  control::Root* const root = answer.state.mutable_root();
  root->set_epoch(epoch);
  root->set_version(1);
  root->set_value("value");
  for (const uint64_t member : members) root->add_members(member);
  return answer;
}

TEST(SameNameTest, WhatWasDestroyedIsToldFromWhatExists) {
  const std::vector<uint64_t> members = {1, 2, 3, 4, 5};
  // What each node holds: 0 nothing, 1 the first database, 2 the second.
  int decided = 0;
  for (int code = 0; code < 243; ++code) {
    SCOPED_TRACE(code);
    std::vector<RootAnswer> answers;
    int count[3] = {0, 0, 0};
    for (int node = 0, rest = code; node < 5; ++node, rest /= 3) {
      const int what = rest % 3;
      ++count[what];
      // The first had many owners, the second its first.
      answers.push_back(AnswerOf(static_cast<NodeId>(node),
                                 what == 0 ? 0 : (what == 1 ? kFirst : kSecond), what == 1 ? 57 : 1,
                                 members));
    }
    const size_t all = answers.size();
    ASSERT_TRUE(IsOk(LeaveOneDatabase(5, &answers)));
    // All members are here, and say that one of the two is no more.
    ASSERT_EQ(answers.size(), all);
    if (count[1] == 0 || count[2] == 0) continue;
    ASSERT_TRUE(count[1] < 3 || count[2] < 3);
    const RootAnswer* const newest = NewestRoot(answers);
    ASSERT_NE(newest, nullptr);
    if (count[1] >= 3 || count[2] >= 3) {
      ++decided;
      EXPECT_EQ(newest->state.database_id(), count[1] >= 3 ? kFirst : kSecond);
      EXPECT_FALSE(IsDestroyed(newest->state.root(), answers));
    } else {
      EXPECT_TRUE(IsDestroyed(newest->state.root(), answers));
    }
  }
  EXPECT_GT(decided, 0);
}

TEST(SameNameTest, ANodeOfAnotherPoolIsLeftOut) {
  const std::vector<uint64_t> here = {1, 2, 3};
  const std::vector<uint64_t> elsewhere = {4, 91, 92};
  std::vector<RootAnswer> answers;
  for (NodeId node = 0; node < 3; ++node) answers.push_back(AnswerOf(node, kFirst, 3, here));
  answers.push_back(AnswerOf(3, kSecond, 1000, elsewhere));
  ASSERT_TRUE(IsOk(LeaveOneDatabase(4, &answers)));
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(NewestRoot(answers)->state.database_id(), kFirst);
}

TEST(SameNameTest, OfTwoThatExistNoneIsTaken) {
  std::vector<RootAnswer> answers = {AnswerOf(0, kFirst, 3, {1, 2}), AnswerOf(1, kFirst, 3, {1, 2}),
                                     AnswerOf(2, kSecond, 7, {3})};
  const Status s = LeaveOneDatabase(3, &answers);
  EXPECT_TRUE(s.IsCorruption()) << s.ToString();
}

TEST(SameNameTest, WhereTooFewAnswerNothingIsDecided) {
  std::vector<RootAnswer> answers = {AnswerOf(0, kFirst, 3, {1, 2, 3, 4, 5}),
                                     AnswerOf(1, kSecond, 7, {2, 3, 4})};
  ASSERT_TRUE(IsOk(LeaveOneDatabase(5, &answers)));
  EXPECT_FALSE(CheckReadQuorum(&NewestRoot(answers)->state.root(), answers, 5).ok());
}

}  // namespace
}  // namespace nacre::pool
