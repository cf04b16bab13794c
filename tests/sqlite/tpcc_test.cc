// Goal: transactions of several connections keep what they must keep together.
// Method: the five transactions of TPC-C (tests/support/sql/sql_tpcc.h) from four connections at
// once, each in a thread; what meets a conflict is run again. Afterwards the consistency conditions
// of clause 3.3.2 are checked, and that no order was lost.

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/support/seed.h"
#include "tests/support/sql/sql_tpcc.h"
#include "util/threads/thread.h"

namespace nacre {
namespace {

constexpr char kPool[] = "embedded:?nodes=2&size=128MiB";
constexpr int kClients = 4;
constexpr int kTransactions = 150;  // For each client.

/// With the options of the database.
class TpccTest : public testing::TestWithParam<const char*> {};

TEST_P(TpccTest, FourConnectionsStayConsistent) {
  const uint64_t seed = TestSeed(1);
  TpccClient::Scale scale;
  scale.options = GetParam();
  std::vector<std::unique_ptr<TpccClient>> clients;
  for (uint64_t i = 0; i < kClients; ++i) {
    clients.push_back(
        std::make_unique<TpccClient>(SqlTables::kNacre, kPool, scale, seed * kClients + i));
  }
  clients[0]->Load();
  RunTogether("tpcc", kClients, [&clients](size_t client) {
    for (int i = 0; i < kTransactions && clients[client]->RunOne(); ++i) {
    }
  });
  clients[0]->CheckConsistency();
  int64_t orders = 0;
  for (const auto& client : clients) orders += client->new_orders();
  EXPECT_GE(orders, 1);
  EXPECT_EQ(clients[1]->connection().Query("SELECT count(*) FROM orders"),
            std::vector<std::string>{"i:" + std::to_string(orders) + "|"});
}

INSTANTIATE_TEST_SUITE_P(Databases, TpccTest, testing::Values("", "sharded='on', "),
                         [](const testing::TestParamInfo<const char*>& options) {
                           return *options.param == 0 ? "Owned" : "Keyspace";
                         });

}  // namespace
}  // namespace nacre
