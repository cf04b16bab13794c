// Goal: a transaction that was prepared is neither lost nor in effect until it is committed or
// rolled back, be it the process that prepared it or one that opens the database later: after it
// was closed, after flushes and compactions, after kill -9 at any moment. It holds its locks
// meanwhile, and its place is invisible. Method: databases and keyspaces that are closed and opened
// again over one pool; and an owner process that prepares, commits and rolls back without end and
// says what it has done, is killed, and is followed by this one, which compares.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "nacre/compaction_filter.h"
#include "nacre/utilities/transaction_db.h"
#include "tests/support/comparators.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/scale.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "tests/support/test_db.h"
#include "util/random.h"

namespace nacre {
namespace {

TransactionDBOptions Impatient() {
  TransactionDBOptions options;
  options.default_lock_timeout = 0;
  options.transaction_lock_timeout = 0;
  return options;
}

std::set<std::string> PreparedNames(TransactionDB* db) {
  std::vector<Transaction*> transactions;
  db->GetAllPreparedTransactions(&transactions);
  std::set<std::string> names;
  for (const Transaction* transaction : transactions) names.insert(transaction->GetName());
  return names;
}

/// "-" if it is absent.
std::string GetFrom(DB* db, ColumnFamilyHandle* family, const std::string& key) {
  std::string value;
  const Status status = db->Get({}, family, key, &value);
  if (status.ok()) return value;
  return status.IsNotFound() ? "-" : status.ToString();
}

/// With a database, or a keyspace of several shards.
enum class PreparedBase : uint8_t { kDatabase, kKeyspace };

std::string NameOfPreparedBase(const testing::TestParamInfo<PreparedBase>& info) {
  return info.param == PreparedBase::kDatabase ? "Database" : "Keyspace";
}

class PreparedTransactionTest : public testing::TestWithParam<PreparedBase> {
 protected:
  void SetUp() override {
    pool_ = OpenTestPool();
    ASSERT_NE(pool_, nullptr);
    static_cast<Options&>(options_) = SmallTableOptions(pool_);
    options_.boundaries = {"e", "kx", "l", "t"};
    Open();
  }
  bool is_keyspace() const { return GetParam() == PreparedBase::kKeyspace; }
  void Open() {
    ASSERT_TRUE(IsOk(is_keyspace()
                         ? TransactionDB::Open(options_, Impatient(), "prepared", &db_)
                         : TransactionDB::Open(plain_options(), Impatient(), "prepared", &db_)));
  }
  Status OpenFamilies(const std::vector<ColumnFamilyDescriptor>& families,
                      std::vector<ColumnFamilyHandle*>* handles) {
    return is_keyspace()
               ? TransactionDB::Open(options_, Impatient(), "prepared", families, handles, &db_)
               : TransactionDB::Open(plain_options(), Impatient(), "prepared", families, handles,
                                     &db_);
  }
  Status OpenWithoutTransactions(std::unique_ptr<DB>* db) {
    if (!is_keyspace()) return DB::Open(plain_options(), "prepared", db);
    std::unique_ptr<ShardedDB> keyspace;
    NACRE_RETURN_IF_ERROR(ShardedDB::Open(options_, "prepared", &keyspace));
    *db = std::move(keyspace);
    return Status::OK();
  }
  Status ListFamilies(std::vector<std::string>* families) {
    return is_keyspace() ? ShardedDB::ListColumnFamilies(options_, "prepared", families)
                         : DB::ListColumnFamilies(options_, "prepared", families);
  }
  const Options& plain_options() const { return options_; }
  void Reopen() {
    ASSERT_TRUE(IsOk(db_->Close()));
    db_.reset();
    Open();
  }
  std::unique_ptr<Transaction> Begin(const std::string& name) {
    std::unique_ptr<Transaction> transaction = db_->BeginTransaction(WriteOptions());
    EXPECT_TRUE(IsOk(transaction->SetName(name)));
    return transaction;
  }
  std::string Get(const std::string& key) { return GetFrom(db_.get(), nullptr, key); }

  std::shared_ptr<pool::PoolImpl> pool_;
  ShardedOptions options_;
  std::unique_ptr<TransactionDB> db_;
};

INSTANTIATE_TEST_SUITE_P(Bases, PreparedTransactionTest,
                         testing::Values(PreparedBase::kDatabase, PreparedBase::kKeyspace),
                         NameOfPreparedBase);

TEST_P(PreparedTransactionTest, PreparedThenCommitted) {
  const std::unique_ptr<Transaction> one = Begin("one");
  ASSERT_TRUE(IsOk(one->Put("k", "v")));
  ASSERT_TRUE(IsOk(one->Prepare()));
  EXPECT_EQ(one->GetState(), Transaction::PREPARED);
  EXPECT_EQ(Get("k"), "-");
  EXPECT_EQ(PreparedNames(db_.get()), std::set<std::string>{"one"});
  EXPECT_TRUE(IsFailure(one->Put("l", "v"), Status::Code::kInvalidArgument, "prepared"));
  EXPECT_TRUE(IsFailure(one->Prepare(), Status::Code::kInvalidArgument, "prepared"));
  EXPECT_TRUE(IsFailure(db_->Put({}, "k", "other"), Status::Code::kTimedOut));
  ASSERT_TRUE(IsOk(one->Commit()));
  EXPECT_EQ(Get("k"), "v");
  EXPECT_TRUE(PreparedNames(db_.get()).empty());
  EXPECT_EQ(db_->GetTransactionByName("one"), nullptr);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_TRUE(PreparedNames(db_.get()).empty());
  EXPECT_EQ(Get("k"), "v");
}

TEST_P(PreparedTransactionTest, WhatIsNeededToPrepare) {
  const std::unique_ptr<Transaction> nameless = db_->BeginTransaction(WriteOptions());
  ASSERT_TRUE(IsOk(nameless->Put("k", "v")));
  EXPECT_TRUE(IsFailure(nameless->Prepare(), Status::Code::kInvalidArgument, "name"));
  EXPECT_TRUE(IsOk(nameless->Commit()));
  TransactionOptions options;
  options.skip_prepare = false;
  const std::unique_ptr<Transaction> strict = db_->BeginTransaction(WriteOptions(), options);
  ASSERT_TRUE(IsOk(strict->SetName("strict")));
  EXPECT_TRUE(IsFailure(strict->Commit(), Status::Code::kInvalidArgument, "not been prepared"));
  EXPECT_TRUE(IsOk(strict->Prepare()));  // Empty.
  EXPECT_TRUE(IsOk(strict->Commit()));
}

TEST_P(PreparedTransactionTest, FoundByWhoOpensItNext) {
  for (const bool flushed : {false, true}) {
    for (const bool committed : {false, true}) {
      const std::string name = std::string("x") + (flushed ? "f" : "") + (committed ? "c" : "r");
      SCOPED_TRACE(name);
      const std::string key = "k" + name;
      std::unique_ptr<Transaction> one = Begin(name);
      ASSERT_TRUE(IsOk(one->Put(key, "v")));
      ASSERT_TRUE(IsOk(one->Delete("d" + name)));
      ASSERT_TRUE(IsOk(one->Prepare()));
      if (flushed) {
        ASSERT_TRUE(IsOk(db_->Flush({})));
        ASSERT_TRUE(IsOk(db_->CompactRange({}, nullptr, nullptr)));
      }
      one.reset();
      ASSERT_NO_FATAL_FAILURE(Reopen());
      EXPECT_EQ(Get(key), "-");
      EXPECT_EQ(PreparedNames(db_.get()), std::set<std::string>{name});
      EXPECT_TRUE(IsFailure(db_->Put({}, key, "other"), Status::Code::kTimedOut));
      EXPECT_TRUE(IsFailure(db_->Put({}, "d" + name, "other"), Status::Code::kTimedOut));
      Transaction* found = db_->GetTransactionByName(name);
      ASSERT_NE(found, nullptr);
      const std::unique_ptr<Transaction> other = db_->BeginTransaction(WriteOptions());
      EXPECT_TRUE(IsFailure(other->SetName(name), Status::Code::kInvalidArgument, name));
      ASSERT_TRUE(IsOk(committed ? found->Commit() : found->Rollback()));
      EXPECT_EQ(Get(key), committed ? "v" : "-");
      EXPECT_TRUE(IsOk(other->SetName(name)));
      EXPECT_TRUE(IsOk(db_->Put({}, "d" + name, "other")));
      ASSERT_TRUE(IsOk(other->Rollback()));
    }
  }
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_TRUE(PreparedNames(db_.get()).empty());
}

TEST_P(PreparedTransactionTest, NobodySeesWhereItIsKept) {
  std::unique_ptr<Transaction> one = Begin("one");
  ASSERT_TRUE(IsOk(one->Put("k", "v")));
  ASSERT_TRUE(IsOk(one->Prepare()));
  one.reset();
  std::vector<std::string> families;
  ASSERT_TRUE(IsOk(ListFamilies(&families)));
  EXPECT_EQ(families, std::vector<std::string>{kDefaultColumnFamilyName});
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();

  std::unique_ptr<DB> plain;
  ASSERT_TRUE(IsOk(OpenWithoutTransactions(&plain)));
  const std::unique_ptr<Iterator> entries = plain->NewIterator({});
  entries->SeekToFirst();
  EXPECT_FALSE(entries->Valid());
  EXPECT_TRUE(IsOk(entries->status()));
  ASSERT_TRUE(IsOk(plain->Close()));
  plain.reset();
  if (!is_keyspace()) {
    ASSERT_TRUE(IsOk(DB::OpenForReadOnly(options_, "prepared", &plain)));
    plain.reset();
  }

  ASSERT_NO_FATAL_FAILURE(Open());
  EXPECT_EQ(PreparedNames(db_.get()), std::set<std::string>{"one"});
}

/// Would have nothing kept.
class RemoveAll final : public CompactionFilter {
 public:
  const char* Name() const override { return "RemoveAll"; }
  bool Filter(int /*level*/, const Slice& /*key*/, const Slice& /*value*/,
              std::string* /*new_value*/, bool* /*value_changed*/) const override {
    return true;
  }
};

TEST_P(PreparedTransactionTest, NoCompactionFilterIsAskedAboutThem) {
  const RemoveAll filter;
  options_.compaction_filter = &filter;
  options_.level0_file_num_compaction_trigger = 2;
  ASSERT_NO_FATAL_FAILURE(Reopen());
  std::set<std::string> prepared;
  for (int i = 0; i < 6; ++i) {
    const std::string number = std::to_string(i);
    ASSERT_TRUE(IsOk(db_->Put({}, "plain" + number, "v")));
    std::unique_ptr<Transaction> one = Begin("x" + number);
    ASSERT_TRUE(IsOk(one->Put("k" + number, "v")));
    ASSERT_TRUE(IsOk(one->Prepare()));
    prepared.insert(one->GetName());
    one.reset();
    ASSERT_NO_FATAL_FAILURE(Reopen());  // Makes a table in each family that was written.
    ASSERT_TRUE(IsOk(db_->WaitForCompact()));
  }
  EXPECT_EQ(Get("plain0"), "-");
  EXPECT_EQ(PreparedNames(db_.get()), prepared);
  ASSERT_TRUE(IsOk(db_->GetTransactionByName("x0")->Commit()));
  EXPECT_EQ(Get("k0"), "v");
  db_.reset();  // The filter must outlive it.
}

TEST_P(PreparedTransactionTest, SeveralFamilies) {
  ColumnFamilyHandle* handle = nullptr;
  ColumnFamilyHandle* dropped = nullptr;
  ColumnFamilyOptions reverse = options_;
  if (!is_keyspace()) reverse.comparator = ReverseBytewiseComparator();
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily(reverse, "reverse", &handle)));
  ASSERT_TRUE(IsOk(db_->CreateColumnFamily(options_, "dropped", &dropped)));
  std::unique_ptr<Transaction> one = Begin("one");
  ASSERT_TRUE(IsOk(one->Put("k", "of default")));
  ASSERT_TRUE(IsOk(one->Put(handle, "k", "of reverse")));
  ASSERT_TRUE(IsOk(one->Put(dropped, "k", "of dropped")));
  ASSERT_TRUE(IsOk(one->Put(handle, "l", "of reverse")));
  const std::unique_ptr<Iterator> iterator = one->GetIterator({}, handle);
  iterator->SeekToFirst();
  ASSERT_TRUE(iterator->Valid());
  EXPECT_EQ(iterator->key(), Slice(is_keyspace() ? "k" : "l"));
  ASSERT_TRUE(IsOk(one->Prepare()));
  one.reset();
  ASSERT_TRUE(IsOk(db_->DropColumnFamily(dropped)));
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(dropped)));
  ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(handle)));
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();

  std::vector<ColumnFamilyHandle*> handles;
  ASSERT_TRUE(
      IsOk(OpenFamilies({{kDefaultColumnFamilyName, options_}, {"reverse", reverse}}, &handles)));
  ASSERT_EQ(handles.size(), 2U);
  EXPECT_TRUE(IsFailure(db_->Put({}, handles[1], "k", "other"), Status::Code::kTimedOut));
  EXPECT_TRUE(IsOk(db_->Put({}, handles[1], "m", "other")));
  Transaction* found = db_->GetTransactionByName("one");
  ASSERT_NE(found, nullptr);
  ASSERT_TRUE(IsOk(found->Commit()));
  EXPECT_EQ(Get("k"), "of default");
  EXPECT_EQ(GetFrom(db_.get(), handles[1], "k"), "of reverse");
  EXPECT_EQ(GetFrom(db_.get(), handles[1], "l"), "of reverse");
  for (ColumnFamilyHandle* open : handles) {
    ASSERT_TRUE(IsOk(db_->DestroyColumnFamilyHandle(open)));
  }
}

// ---- Keyspaces ----------------------------------------------------------------------------------

using PreparedInKeyspaceTest = PreparedTransactionTest;
INSTANTIATE_TEST_SUITE_P(Keyspaces, PreparedInKeyspaceTest,
                         testing::Values(PreparedBase::kKeyspace), NameOfPreparedBase);

TEST_P(PreparedInKeyspaceTest, StaysPreparedWhenItsShardsAreSplitAndMerged) {
  for (const bool committed : {false, true}) {
    SCOPED_TRACE(committed);
    std::unique_ptr<Transaction> one = Begin("one");
    for (const char* const key : {"a", "f", "k", "l", "z"}) ASSERT_TRUE(IsOk(one->Put(key, "v")));
    ASSERT_TRUE(IsOk(one->Prepare()));
    auto* const keyspace = static_cast<ShardedDB*>(db_->GetBaseDB());
    ASSERT_TRUE(
        IsOk(keyspace->SplitShard(keyspace->GetShards().front().id, committed ? "a5" : "b")));
    const std::vector<ShardInfo> shards = keyspace->GetShards();
    ASSERT_TRUE(IsOk(keyspace->MergeShards(shards[1].id, shards[2].id)));
    EXPECT_TRUE(IsFailure(db_->Put({}, "f", "other"), Status::Code::kTimedOut));
    Transaction* ends = one.get();
    if (committed) {
      one.reset();
      ASSERT_NO_FATAL_FAILURE(Reopen());
      ends = db_->GetTransactionByName("one");
      ASSERT_NE(ends, nullptr);
    }
    EXPECT_EQ(Get("f"), "-");
    ASSERT_TRUE(IsOk(committed ? ends->Commit() : ends->Rollback()));
    for (const char* const key : {"a", "f", "k", "l", "z"}) {
      EXPECT_EQ(Get(key), committed ? "v" : "-");
    }
  }
}

TEST_P(PreparedInKeyspaceTest, ItsFamilyIsNotTheApplications) {
  const std::unique_ptr<Transaction> one = Begin("one");
  ASSERT_TRUE(IsOk(one->Prepare()));
  ColumnFamilyHandle* handle = nullptr;
  EXPECT_TRUE(IsFailure(db_->CreateColumnFamily(options_, "@prepared", &handle),
                        Status::Code::kInvalidArgument, "'@'"));
  ASSERT_TRUE(IsOk(one->Commit()));
  ASSERT_TRUE(IsOk(db_->Close()));
  db_.reset();
  std::vector<ColumnFamilyHandle*> handles;
  EXPECT_TRUE(IsFailure(
      OpenFamilies({{kDefaultColumnFamilyName, options_}, {"@prepared", options_}}, &handles),
      Status::Code::kInvalidArgument, "@prepared"));
}

TEST_P(PreparedInKeyspaceTest, NotWhereNamesCannotBeKeys) {
  const BackwardsComparator backwards;
  options_.comparator = &backwards;
  options_.boundaries.clear();
  std::unique_ptr<TransactionDB> db;
  ASSERT_TRUE(IsOk(TransactionDB::Open(options_, Impatient(), "backwards", &db)));
  const std::unique_ptr<Transaction> one = db->BeginTransaction(WriteOptions());
  ASSERT_TRUE(IsOk(one->SetName("one")));
  EXPECT_TRUE(IsFailure(one->Prepare(), Status::Code::kNotSupported, "comparator"));
  EXPECT_TRUE(IsOk(one->Commit()));
}

// ---- Owners that are killed ---------------------------------------------------------------------

constexpr const char* kPoolOfOwner = "NACRE_TEST_PREPARED_POOL";
constexpr const char* kBaseOfOwner = "NACRE_TEST_PREPARED_BASE";
constexpr size_t kValueBytes = 2000;

/// The two parts are in two shards, and the names of transactions in a third one.
std::string KeyOf(uint64_t number, int part) {
  return (part == 0 ? "a" : "b") + std::to_string(number);
}

Status OpenOwned(PreparedBase base, const std::string& pool_uri,
                 const TransactionDBOptions& db_options, std::unique_ptr<TransactionDB>* db) {
  ShardedOptions options;
  static_cast<Options&>(options) = SmallTableOptions(nullptr);
  options.pool_uri = pool_uri;
  options.redundancy = "rep(2)";
  options.boundaries = {"b", "c"};
  if (base == PreparedBase::kKeyspace) return TransactionDB::Open(options, db_options, "db", db);
  return TransactionDB::Open(static_cast<const Options&>(options), db_options, "db", db);
}

/// One transaction after the other: a third stays prepared, a third is committed, a third rolled
/// back. Says what it has done: 'p', 'c' or 'r', and the number. Plain writes in between have
/// MemTables flushed and the segments of the log given back.
void WriteWithoutEnd(TransactionDB* db) {
  for (uint64_t i = 0;; ++i) {
    const std::unique_ptr<Transaction> transaction = db->BeginTransaction(WriteOptions());
    ASSERT_TRUE(IsOk(transaction->SetName("x" + std::to_string(i))));
    for (const int part : {0, 1}) {
      ASSERT_TRUE(IsOk(transaction->Put(KeyOf(i, part), TestValue(i, kValueBytes))));
    }
    ASSERT_TRUE(IsOk(transaction->Prepare()));
    std::printf("p%llu\n", static_cast<unsigned long long>(i));
    if (i % 3 == 1) {
      ASSERT_TRUE(IsOk(transaction->Commit()));
      std::printf("c%llu\n", static_cast<unsigned long long>(i));
    } else if (i % 3 == 2) {
      ASSERT_TRUE(IsOk(transaction->Rollback()));
      std::printf("r%llu\n", static_cast<unsigned long long>(i));
    }
    std::fflush(stdout);
    for (int j = 0; j < 10; ++j) {
      ASSERT_TRUE(IsOk(db->Put({}, "plain" + std::to_string(j), TestValue(i, kValueBytes))));
    }
    if (i % 50 == 49) {
      ASSERT_TRUE(IsOk(db->Flush({})));
    }
  }
}

TEST(PreparedOwnerChild, Run) {
  const char* const pool_uri = std::getenv(kPoolOfOwner);
  if (pool_uri == nullptr) GTEST_SKIP() << "started by others";
  const PreparedBase base =
      std::getenv(kBaseOfOwner) == nullptr ? PreparedBase::kDatabase : PreparedBase::kKeyspace;
  std::unique_ptr<TransactionDB> db;
  ASSERT_TRUE(IsOk(OpenOwned(base, pool_uri, {}, &db)));
  WriteWithoutEnd(db.get());
}

/// What the owner said.
struct Said {
  std::set<uint64_t> prepared;
  std::set<uint64_t> ended;
};

Said Parse(const std::string& output) {
  Said said;
  std::istringstream lines(output);
  std::string line;
  // One that was cut off has no end.
  while (std::getline(lines, line) && !lines.eof()) {
    if (line.size() < 2 || line.find_first_not_of("0123456789", 1) != std::string::npos) continue;
    if (line[0] == 'p') said.prepared.insert(std::stoull(line.substr(1)));
    if (line[0] == 'c' || line[0] == 'r') said.ended.insert(std::stoull(line.substr(1)));
  }
  return said;
}

void CheckWhatIsLeft(const Said& said, TransactionDB* db) {
  const std::set<std::string> names = PreparedNames(db);
  ASSERT_FALSE(said.prepared.empty());
  // The owner may have had no time to say what became of the last ones.
  for (uint64_t i = 0; i <= *said.prepared.rbegin() + 1; ++i) {
    SCOPED_TRACE(i);
    const bool prepared = names.count("x" + std::to_string(i)) > 0;
    const std::string value = GetFrom(db, nullptr, KeyOf(i, 0));
    const bool committed = value != "-";
    EXPECT_EQ(value, GetFrom(db, nullptr, KeyOf(i, 1)));
    if (committed) {
      EXPECT_EQ(value, TestValue(i, kValueBytes));
    }
    EXPECT_FALSE(prepared && committed);
    if (prepared) {
      EXPECT_TRUE(IsFailure(db->Put({}, KeyOf(i, 1), "other"), Status::Code::kTimedOut));
    }
    if (i % 3 == 0) {
      EXPECT_FALSE(committed);
      if (said.prepared.count(i) > 0) {
        EXPECT_TRUE(prepared);
      }
    } else if (said.ended.count(i) > 0) {
      EXPECT_FALSE(prepared);
      EXPECT_EQ(committed, i % 3 == 1);
    } else if (said.prepared.count(i) > 0 && i % 3 == 1) {
      EXPECT_TRUE(prepared || committed);
    }
  }
}

class PreparedTakeoverTest : public testing::TestWithParam<PreparedBase> {};

INSTANTIATE_TEST_SUITE_P(Bases, PreparedTakeoverTest,
                         testing::Values(PreparedBase::kDatabase, PreparedBase::kKeyspace),
                         NameOfPreparedBase);

TEST_P(PreparedTakeoverTest, AnOwnerKilledAtAnyMoment) {
  Random random(TestSeed(808));
  for (size_t round = 0; round < Scaled(3); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const MemnodeProcesses nodes(3, MemnodeProcessOptions{.size = "256MiB", .slab_size = "1MiB"});
    std::vector<std::string> environment = {std::string(kPoolOfOwner) + "=" + nodes.pool_uri()};
    if (GetParam() == PreparedBase::kKeyspace)
      environment.push_back(std::string(kBaseOfOwner) + "=keyspace");
    ChildProcess owner("transactions_tests", {"--gtest_filter=PreparedOwnerChild.Run"},
                       environment);
    const uint64_t until = random.Uniform(250);
    std::string output = owner.AwaitOutput("p" + std::to_string(until) + "\n", 300);
    ASSERT_NE(output.find("p" + std::to_string(until) + "\n"), std::string::npos) << output;
    owner.Kill();
    output += owner.AwaitOutput("", 60);
    const Said said = Parse(output);

    std::unique_ptr<TransactionDB> db;
    Status status;
    ASSERT_TRUE(Eventually([&] {
      status = OpenOwned(GetParam(), nodes.pool_uri(), Impatient(), &db);
      return !status.IsBusy();
    }));
    ASSERT_TRUE(IsOk(status));
    ASSERT_NO_FATAL_FAILURE(CheckWhatIsLeft(said, db.get()));
    std::vector<Transaction*> transactions;
    db->GetAllPreparedTransactions(&transactions);
    std::set<std::string> committed;
    for (Transaction* transaction : transactions) {
      if (random.OneIn(2)) {
        committed.insert(transaction->GetName());
        ASSERT_TRUE(IsOk(transaction->Commit()));
      } else {
        ASSERT_TRUE(IsOk(transaction->Rollback()));
      }
    }
    ASSERT_TRUE(IsOk(db->Close()));
    db.reset();
    ASSERT_TRUE(IsOk(OpenOwned(GetParam(), nodes.pool_uri(), Impatient(), &db)));
    EXPECT_TRUE(PreparedNames(db.get()).empty());
    for (const uint64_t i : said.prepared) {
      if (i % 3 != 0) continue;
      const bool expected = committed.count("x" + std::to_string(i)) > 0;
      EXPECT_EQ(GetFrom(db.get(), nullptr, KeyOf(i, 0)),
                expected ? TestValue(i, kValueBytes) : "-");
    }
  }
}

}  // namespace
}  // namespace nacre
