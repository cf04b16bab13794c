// Goal: randomtransaction keeps its sums equal with every engine and kind of transaction, counts
// what was aborted, and finds sums that are not equal.
// Method: the tool runs as a process; the check runs in this one, over an embedded pool.

#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "db_bench/engine/engine.h"
#include "db_bench/key_generator.h"
#include "db_bench/workload.h"
#include "tests/db_bench/tool_run.h"
#include "tests/support/status_assert.h"

namespace nacre::bench {
namespace {

class TransactionsTest : public testing::TestWithParam<std::vector<std::string>> {};

INSTANTIATE_TEST_SUITE_P(
    Engines, TransactionsTest,
    testing::Values(std::vector<std::string>{"--engine=nacre", "--transaction_db"},
                    std::vector<std::string>{"--engine=nacre", "--optimistic_transaction_db"},
                    std::vector<std::string>{"--engine=nacre", "--transaction_db", "--sharded=4"},
                    std::vector<std::string>{"--engine=nacre", "--optimistic_transaction_db",
                                             "--sharded=4"},
                    std::vector<std::string>{"--engine=rocksdb", "--transaction_db"},
                    std::vector<std::string>{"--engine=rocksdb", "--optimistic_transaction_db"}));

TEST_P(TransactionsTest, AddAndMeet) {
  std::vector<std::string> arguments = GetParam();
  // Few counters, so that transactions meet.
  arguments.insert(arguments.end(),
                   {"--num=30", "--readwrites=2000", "--threads=3", "--transaction_sets=3",
                    "--transaction_set_snapshot", "--benchmarks=randomtransaction"});
  const ToolRun run = RunToolOk(arguments);
  ASSERT_EQ(run.lines.size(), 1u) << run.output;
  EXPECT_EQ(run.lines[0].ops, 6000u);
  uint64_t transactions = 0;
  uint64_t aborts = 0;
  ASSERT_EQ(std::sscanf(run.lines[0].note.c_str(), "( transactions:%lu aborts:%lu)", &transactions,
                        &aborts),
            2)
      << run.lines[0].note;
  EXPECT_EQ(transactions, 6000u);
  EXPECT_LT(aborts, 6000u);
}

TEST(TransactionFlagsTest, MistakesAreNamed) {
  const struct {
    std::vector<std::string> flags;
    std::string message;
  } kCases[] = {
      {{}, "randomtransaction needs --transaction_db or --optimistic_transaction_db"},
      {{"--transaction_db", "--optimistic_transaction_db"}, "exclude one another"},
      {{"--transaction_db", "--engine=leveldb"}, "--engine=nacre and rocksdb"},
      {{"--transaction_db", "--transaction_sets=11"}, "--transaction_sets must be in [1, --num]"},
      {{"--transaction_db", "--transaction_lock_timeout=-1"}, "must not be negative"},
  };
  for (const auto& [flags, message] : kCases) {
    std::vector<std::string> arguments = flags;
    arguments.insert(arguments.end(), {"--num=10", "--benchmarks=randomtransaction"});
    const ToolRun run = RunTool(arguments);
    EXPECT_NE(run.exit_code, 0);
    EXPECT_NE(run.output.find(message), std::string::npos) << run.output;
  }
}

TEST(TransactionSumsTest, ThatAreNotEqualAreFound) {
  BenchConfig config;
  config.pool = "embedded:?nodes=1&size=256MiB";
  config.options.redundancy = "none";
  config.num = 10;
  config.key_size = 16;
  config.transaction_sets = 2;
  const std::unique_ptr<Engine> engine = NewNacreEngine(config);
  ASSERT_TRUE(IsOk(engine->OpenFresh()));
  const std::unique_ptr<Session> session = engine->NewSession();
  KeyGenerator keys(config.key_size);
  ASSERT_TRUE(IsOk(session->Put(keys.Set(4), "7")));
  ASSERT_TRUE(IsOk(session->Put(keys.Set(5), "3")));
  EXPECT_TRUE(IsFailure(VerifyTransactions(config, session.get()), Status::Code::kCorruption,
                        "set 1 add up to 3, those of set 0 to 7"));
  ASSERT_TRUE(IsOk(session->Put(keys.Set(9), "4")));
  EXPECT_TRUE(IsOk(VerifyTransactions(config, session.get())));
  ASSERT_TRUE(IsOk(session->Put(keys.Set(9), "four")));
  EXPECT_TRUE(IsFailure(VerifyTransactions(config, session.get()), Status::Code::kCorruption,
                        "'four' is no counter"));
}

}  // namespace
}  // namespace nacre::bench
