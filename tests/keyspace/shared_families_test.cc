// Goal: column families of a keyspace with several members are made, used and dropped while all of
// them use it; one that is made again has nothing of the earlier one; what other members could not
// open is refused.
// Method: two members in this process over memory nodes and an etcd, both real.
// While shards move and are split: tests/sim/keyspace_case_test.cc.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/merge_operator.h"
#include "nacre/utilities/etcd.h"
#include "nacre/utilities/sharded_db.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"

namespace nacre {
namespace {

class SharedFamiliesTest : public testing::Test {
 protected:
  using Handle = std::unique_ptr<ColumnFamilyHandle>;

  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
    UseEtcd();
    etcd_ = std::make_unique<EtcdProcess>();
    nodes_ = std::make_unique<MemnodeProcesses>(3, MemnodeProcessOptions{.size = "256MiB"});
    options_ = ShardedOptions(SmallTableOptions(nullptr));
    options_.pool_uri = nodes_->pool_uri();
    options_.redundancy = "rep(2)";
    options_.boundaries = {"m"};
    options_.coordinator = "etcd:" + etcd_->endpoint();
    options_.member_address = "tcp:127.0.0.1:0";
    for (auto& member : members_) ASSERT_TRUE(IsOk(ShardedDB::Open(options_, "keys", &member)));
    int64_t second = 0;
    for (const ShardMember& member : Members(1)) {
      if (member.self) second = member.id;
    }
    ASSERT_TRUE(IsOk(members_[0]->MoveShard(members_[0]->GetShards()[1].id, second)));
  }

  std::vector<ShardMember> Members(size_t asked) {
    std::vector<ShardMember> members;
    EXPECT_TRUE(IsOk(members_[asked]->GetMembers(&members)));
    return members;
  }
  Status Make(size_t member, const ColumnFamilyOptions& options, const std::string& name,
              Handle* handle) {
    ColumnFamilyHandle* made = nullptr;
    const Status status = members_[member]->CreateColumnFamily(options, name, &made);
    handle->reset(made);
    return status;
  }
  /// Once the member knows of it.
  Handle Find(size_t member, const std::string& name) {
    ColumnFamilyHandle* found = nullptr;
    EXPECT_TRUE(Eventually([&] { return members_[member]->OpenColumnFamily(name, &found).ok(); }));
    return Handle(found);
  }
  std::string Get(size_t member, const Handle& family, const std::string& key) {
    std::string value;
    const Status status = members_[member]->Get({}, family.get(), key, &value);
    return status.ok() ? value : status.ToString();
  }
  Status OpenSecond(const std::vector<std::string>& names) {
    std::vector<ColumnFamilyDescriptor> families = {{kDefaultColumnFamilyName, options_}};
    for (const std::string& name : names) families.emplace_back(name, options_);
    std::vector<ColumnFamilyHandle*> handles;
    const Status status = ShardedDB::Open(options_, "keys", families, &handles, &members_[1]);
    for (ColumnFamilyHandle* const handle : handles) delete handle;
    return status;
  }
  void CloseSecond() {
    ASSERT_TRUE(IsOk(members_[1]->Close()));
    members_[1].reset();
  }

  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<MemnodeProcesses> nodes_;
  ShardedOptions options_;
  std::unique_ptr<ShardedDB> members_[2];
};

TEST_F(SharedFamiliesTest, AreAllMembersAndNothingIsLeftOfDroppedOnes) {
  Handle made;
  ColumnFamilyOptions small = options_;
  small.write_buffer_size = 256 << 10;
  ASSERT_TRUE(IsOk(Make(0, small, "accounts", &made)));
  // A key of each shard, so each member's.
  ASSERT_TRUE(IsOk(members_[0]->Put({}, made.get(), "a", "1")));
  ASSERT_TRUE(IsOk(members_[0]->Put({}, made.get(), "z", "2")));
  Handle found = Find(1, "accounts");
  EXPECT_EQ(Get(1, found, "a"), "1");
  EXPECT_EQ(Get(1, found, "z"), "2");
  EXPECT_EQ(members_[1]->GetOptions(found.get()).write_buffer_size, small.write_buffer_size);
  WriteBatch batch;
  ASSERT_TRUE(IsOk(batch.Put(found.get(), "b", "3")));
  ASSERT_TRUE(IsOk(batch.Put(found.get(), "y", "4")));
  ASSERT_TRUE(IsOk(batch.Put("y", "of the default family")));
  ASSERT_TRUE(IsOk(members_[1]->Write({}, &batch)));
  EXPECT_EQ(Get(0, made, "b") + Get(0, made, "y"), "34");

  ASSERT_TRUE(IsOk(members_[1]->DropColumnFamily(found.get())));
  EXPECT_TRUE(members_[1]->Put({}, found.get(), "a", "late").IsInvalidArgument());
  ASSERT_TRUE(Eventually(
      [&] { return members_[0]->Put({}, made.get(), "a", "late").IsInvalidArgument(); }));
  ASSERT_TRUE(IsOk(Make(1, small, "accounts", &found)));
  made = Find(0, "accounts");
  for (const char* key : {"a", "b", "y", "z"}) {
    EXPECT_EQ(Get(0, made, key), Status::NotFound().ToString()) << key;
  }
}

TEST_F(SharedFamiliesTest, AreThoseOfMembersThatComeLater) {
  Handle made;
  ASSERT_TRUE(IsOk(Make(0, options_, "accounts", &made)));
  ASSERT_TRUE(IsOk(members_[0]->Put({}, made.get(), "z", "2")));
  CloseSecond();
  EXPECT_EQ(Get(0, made, "z"), "2");
  // The pool knows them, too, in a moment.
  std::vector<std::string> names;
  ASSERT_TRUE(Eventually([&] {
    return ShardedDB::ListColumnFamilies(options_, "keys", &names).ok() && names.size() == 2;
  }));
  EXPECT_EQ(names[1], "accounts");
  // As with any database, all of them are named.
  const Status status = OpenSecond({});
  EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
  EXPECT_NE(status.ToString().find("accounts"), std::string::npos) << status.ToString();
  options_.create_missing_column_families = true;
  ASSERT_TRUE(IsOk(OpenSecond({"accounts", "branches"})));
  EXPECT_EQ(Get(1, Find(1, "accounts"), "z"), "2");
  ASSERT_TRUE(IsOk(members_[1]->Put({}, Find(1, "branches").get(), "a", "3")));
  EXPECT_EQ(Get(0, Find(0, "branches"), "a"), "3");
}

TEST_F(SharedFamiliesTest, WhatOthersCouldNotOpenIsRefused) {
  const auto expect = [&](const Status& status, Status::Code code, const std::string& culprit) {
    EXPECT_EQ(status.code(), code) << status.ToString();
    EXPECT_NE(status.ToString().find(culprit), std::string::npos) << status.ToString();
  };
  Handle made;
  ColumnFamilyOptions other = options_;
  other.merge_operator = MergeOperators::CreateStringAppendOperator(',');
  expect(Make(0, other, "x", &made), Status::Code::kNotSupported, "merge_operator");
  other = options_;
  other.comparator = ReverseBytewiseComparator();
  expect(Make(0, other, "x", &made), Status::Code::kInvalidArgument, "comparator");
  expect(Make(0, options_, "@x", &made), Status::Code::kInvalidArgument, "'@'");
  CloseSecond();
  options_.create_missing_column_families = true;
  expect(OpenSecond({"@x"}), Status::Code::kInvalidArgument, "'@'");
  ASSERT_TRUE(IsOk(OpenSecond({})));
  expect(Make(0, options_, kDefaultColumnFamilyName, &made), Status::Code::kInvalidArgument,
         "exists already");
  ASSERT_TRUE(IsOk(Make(0, options_, "x", &made)));
  Handle again;
  expect(Make(1, options_, "x", &again), Status::Code::kInvalidArgument, "exists already");
  ColumnFamilyHandle* none = nullptr;
  EXPECT_TRUE(members_[0]->OpenColumnFamily("y", &none).IsNotFound());
  EXPECT_TRUE(
      members_[0]->DropColumnFamily(members_[0]->DefaultColumnFamily()).IsInvalidArgument());
  ASSERT_TRUE(IsOk(members_[0]->DropColumnFamily(made.get())));
  EXPECT_TRUE(members_[0]->DropColumnFamily(made.get()).IsInvalidArgument());
}

}  // namespace
}  // namespace nacre
