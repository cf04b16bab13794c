// Goal: several processes with SQLite write the same tables at once, and these stay sound and lose
// nothing that was committed, whatever happens to one of the processes.
// Method: tables in a keyspace that two members own, over memory nodes and an etcd, all real. Each
// process moves money between accounts, in transactions that change rows and an index in several
// shards; one is killed.

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "nacre/pool.h"
#include "nacre/utilities/etcd.h"
#include "nacre/utilities/sharded_db.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/sql/sql_connection.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre {
namespace {

using Rows = std::vector<std::string>;

constexpr int kAccounts = 20;
constexpr int kTransfers = 300;
constexpr double kPatienceSeconds = 120;
constexpr char kOptionsVariable[] = "NACRE_TEST_SQL_MEMBER_OPTIONS";
constexpr char kSeedVariable[] = "NACRE_TEST_SQL_MEMBER_SEED";

std::string CreateAccounts(const std::string& options) {
  return "CREATE VIRTUAL TABLE accounts USING nacre(" + options +
         "id INTEGER PRIMARY KEY, money INT, INDEX(money))";
}
std::string CreateDone(const std::string& options) {
  return "CREATE VIRTUAL TABLE done USING nacre(" + options + "process INT, number INT)";
}

/// Runs the statements as one transaction, anew as long as others are faster with the rows.
void Transact(SqlConnection* connection, const std::vector<std::string>& statements) {
  for (;;) {
    SqlOutcome outcome = connection->Run("BEGIN");
    for (const std::string& sql : statements) {
      if (outcome.code == SQLITE_OK) outcome = connection->Run(sql);
    }
    if (outcome.code == SQLITE_OK) outcome = connection->Run("COMMIT");
    if (outcome.code == SQLITE_OK) return;
    ASSERT_EQ(outcome.code, SQLITE_BUSY) << outcome.message;
    if (sqlite3_get_autocommit(connection->get()) == 0) connection->Query("ROLLBACK");
  }
}

/// A process that moves money. It says "ready", and "done" when it has ended.
TEST(SqlMemberChild, Run) {
  const char* const options = std::getenv(kOptionsVariable);
  if (options == nullptr) GTEST_SKIP() << "started by others";
  const std::string seed = std::getenv(kSeedVariable);
  UseEtcd();
  SqlConnection connection(SqlTables::kNacre);
  connection.Query(CreateAccounts(options));
  connection.Query(CreateDone(options));
  std::cout << "ready" << std::endl;
  Random random(std::stoull(seed));
  for (int i = 0; i < kTransfers; ++i) {
    const std::string from = std::to_string(random.Uniform(kAccounts));
    const std::string to = std::to_string(random.Uniform(kAccounts));
    ASSERT_NO_FATAL_FAILURE(Transact(
        &connection, {"UPDATE accounts SET money = money - 7 WHERE id = " + from,
                      "UPDATE accounts SET money = money + 7 WHERE id = " + to,
                      "INSERT INTO done VALUES(" + seed + ", " + std::to_string(i) + ")"}));
    std::cout << "committed " << i << std::endl;
  }
  connection.Query("CREATE VIRTUAL TABLE of" + seed + " USING nacre(" + options + "id INT)");
  connection.Query("INSERT INTO of" + seed + " VALUES(" + seed + ")");
  std::cout << "done" << std::endl;
}

class SqlMembersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
    UseEtcd();
    etcd_ = std::make_unique<EtcdProcess>();
    nodes_ = std::make_unique<MemnodeProcesses>(3, MemnodeProcessOptions{.size = "512MiB"});
    ASSERT_TRUE(IsOk(Pool::Open(nodes_->pool_uri(), &keyspace_.pool)));
    keyspace_.coordinator = "etcd:" + etcd_->endpoint();
    client_ = "pool='" + nodes_->pool_uri() +
              "', redundancy='rep(2)', sharded='on', coordinator='" + keyspace_.coordinator + "', ";
    member_ = client_ + "member_address='shm:@', ";
  }

  std::unique_ptr<ChildProcess> NewMember(int seed) const {
    return std::make_unique<ChildProcess>(
        "keyspace_tests", std::vector<std::string>{"--gtest_filter=SqlMemberChild.Run"},
        std::vector<std::string>{std::string(kOptionsVariable) + '=' + member_,
                                 std::string(kSeedVariable) + '=' + std::to_string(seed)});
  }

  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<MemnodeProcesses> nodes_;
  ShardedOptions keyspace_;
  std::string client_;
  std::string member_;
};

TEST_F(SqlMembersTest, WriteTheSameTablesAndLoseNothing) {
  // A member stays from the beginning to the end, so that there is always one.
  SqlConnection connection(SqlTables::kNacre);
  connection.Query(CreateAccounts(member_));
  connection.Query(CreateDone(member_));
  for (int i = 0; i < kAccounts; ++i) {
    connection.Query("INSERT INTO accounts VALUES(" + std::to_string(i) + ", 1000)");
  }
  // Rows and the index in different shards.
  std::unique_ptr<ShardedDB> keyspace;
  ASSERT_TRUE(IsOk(ShardedDB::Open(keyspace_, "sqlite", &keyspace)));
  ASSERT_TRUE(IsOk(keyspace->SplitShard(keyspace->GetShards()[0].id, Slice("\0\0\0\2", 4))));

  const auto lives = NewMember(1);
  const auto dies = NewMember(2);
  lives->AwaitOutput("ready", kPatienceSeconds);
  dies->AwaitOutput("committed 9\n", kPatienceSeconds);
  const std::vector<ShardInfo> shards = keyspace->GetShards();
  ASSERT_EQ(shards.size(), 2u);
  dies->Kill();
  lives->AwaitOutput("done", kPatienceSeconds);
  EXPECT_EQ(lives->AwaitExit(kPatienceSeconds), 0);

  EXPECT_EQ(
      connection.Query("SELECT sum(money), count(*) FROM accounts"),
      Rows{"i:" + std::to_string(kAccounts * 1000) + "|i:" + std::to_string(kAccounts) + "|"});
  EXPECT_EQ(connection.Query("SELECT * FROM nacre_integrity_check('accounts')"), Rows{"t:ok|"});
  EXPECT_EQ(connection.Query("SELECT count(DISTINCT number), count(*) FROM done WHERE process = 1"),
            Rows{"i:" + std::to_string(kTransfers) + "|i:" + std::to_string(kTransfers) + "|"});
  EXPECT_EQ(connection.Query("SELECT count(*) FROM done WHERE process = 2 AND number < 10"),
            Rows{"i:10|"});
  // What another process has made.
  connection.Query("CREATE VIRTUAL TABLE of1 USING nacre(" + member_ + "id INT)");
  EXPECT_EQ(connection.Query("SELECT id FROM of1"), Rows{"i:1|"});
  ASSERT_TRUE(IsOk(keyspace->Close()));
}

}  // namespace
}  // namespace nacre
