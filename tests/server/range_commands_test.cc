// Goal: NRANGE lists keys in order, within its bounds, both ways and as of one moment; snapshots
// stay as they were, and are given up with their clients and when they are old.
// Method: a server in this process over an embedded pool, clients with sockets, and a model of the
// keys in memory.

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/pool.h"
#include "server/server.h"
#include "server/session/snapshot_table.h"
#include "tests/server/redis_client.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre::server {
namespace {

class RangeCommandsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::shared_ptr<Pool> pool;
    ASSERT_TRUE(IsOk(Pool::Open("embedded:?nodes=1&size=256MiB&slab_size=8MiB", &pool)));
    ServerOptions options;
    options.database.pool = pool;
    options.database.create_if_missing = true;
    options.database.slab_size = 8 << 20;
    options.database.write_buffer_size = 1 << 20;
    options.listen = "127.0.0.1:0";
    ASSERT_TRUE(IsOk(Server::Start(options, &server_)));
    client_ = Connect();
  }
  std::unique_ptr<RedisClient> Connect() const {
    return std::make_unique<RedisClient>(server_->address());
  }
  std::string Do(const std::string& line) { return (*client_)(line); }
  /// Asks until the answer is `expected`, or a minute has passed.
  std::string Await(const std::string& line, const std::string& expected) {
    std::string answer;
    for (int i = 0; i < 6000; ++i) {
      answer = Do(line);
      if (answer == expected) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return answer;
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<RedisClient> client_;
};

TEST_F(RangeCommandsTest, TakesBoundsLimitsAndBothWays) {
  EXPECT_EQ(Do("NRANGE - +"), "*[]");
  EXPECT_EQ(Do("MSET a 1 b 2 c 3 d 4"), "+OK");
  EXPECT_EQ(Do("NRANGE - +"), "*[$a $b $c $d]");
  EXPECT_EQ(Do("NRANGE [b (d"), "*[$b $c]");
  EXPECT_EQ(Do("NRANGE (b [d"), "*[$c $d]");
  EXPECT_EQ(Do("NRANGE (d (a"), "*[]");
  EXPECT_EQ(Do("NRANGE - + LIMIT 2"), "*[$a $b]");
  EXPECT_EQ(Do("NRANGE + - LIMIT 2 REV"), "*[$d $c]");
  EXPECT_EQ(Do("NRANGE (d [b REV"), "*[$c $b]");
  EXPECT_EQ(Do("NRANGE - + LIMIT 0"), "*[]");
  EXPECT_EQ(Do("NRANGE - + LIMIT -1"), "*[$a $b $c $d]");
  EXPECT_EQ(Do("NRANGE [c + WITHVALUES"), "*[$c $3 $d $4]");
  EXPECT_EQ(Do("NRANGE a +"), "-ERR min or max not valid string range item");
  EXPECT_EQ(Do("NRANGE - + SIDEWAYS"), "-ERR syntax error");
  EXPECT_EQ(Do("NRANGE - + LIMIT"), "-ERR syntax error");
  EXPECT_EQ(Do("NRANGE - + LIMIT x"), "-ERR value is not an integer or out of range");
  EXPECT_EQ(Do("NRANGE -"), "-ERR wrong number of arguments for 'nrange' command");
}

TEST_F(RangeCommandsTest, ShowsOtherTypesWithoutValuesAndHidesWhatHasExpired) {
  Do("SET string s");
  Do("RPUSH list x");
  Do("SET soon gone PX 1");
  Do("SET later there PX 1000000");
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(Do("NRANGE - + WITHVALUES"), "*[$later $there $list $nil $string $s]");
  EXPECT_EQ(Do("NRANGE - + LIMIT 3"), "*[$later $list $string]");
  Do("SELECT 3");
  EXPECT_EQ(Do("NRANGE - +"), "*[]");
  Do("SET other 1");
  EXPECT_EQ(Do("NRANGE - +"), "*[$other]");
  Do("HELLO 3");
  EXPECT_EQ(Do("NRANGE - + WITHVALUES"), "*[*[$other $1]]");
}

TEST_F(RangeCommandsTest, AgreesWithAModelOverManyBatches) {
  Random random(TestSeed(1));
  std::map<std::string, std::string> model;
  const std::string filler(300, 'v');
  for (int i = 0; i < 6000; ++i) {
    const std::string key = "k" + std::to_string(random.Uniform(9000));
    if (random.OneIn(4)) {
      client_->Send({"DEL", key});
      model.erase(key);
    } else {
      client_->Send({"SET", key, filler + std::to_string(i)});
      model[key] = filler + std::to_string(i);
    }
    client_->Read();
  }
  for (int i = 0; i < 60; ++i) {
    std::string low = "k" + std::to_string(random.Uniform(9000));
    std::string high = "k" + std::to_string(random.Uniform(9000));
    if (high < low) std::swap(low, high);
    const bool reverse = random.OneIn(2);
    const bool values = random.OneIn(2);
    const uint64_t limit = 1 + random.Uniform(random.OneIn(2) ? 20 : 5000);
    std::vector<std::string> expected;
    for (auto each = model.lower_bound(low); each != model.end() && each->first <= high; ++each) {
      std::string text = "$" + each->first;
      if (values) text += " $" + each->second;
      expected.push_back(text);
    }
    if (reverse) std::reverse(expected.begin(), expected.end());
    if (expected.size() > limit) expected.resize(limit);
    std::string text;
    for (const std::string& each : expected) text += (text.empty() ? "" : " ") + each;
    std::vector<std::string> words = {"NRANGE", "[" + (reverse ? high : low),
                                      "[" + (reverse ? low : high), "LIMIT", std::to_string(limit)};
    if (reverse) words.emplace_back("REV");
    if (values) words.emplace_back("WITHVALUES");
    ASSERT_EQ(client_->Do(words), "*[" + text + "]") << low << " " << high << " " << limit;
  }
}

TEST_F(RangeCommandsTest, IsOfOneMoment) {
  // Each transaction moves all keys from one letter to the other.
  const auto move = [](RedisClient* client, const std::string& to, const std::string& from) {
    client->Send({"MULTI"});
    for (int i = 0; i < 2000; i += 500) {
      client->Send({"SET", to + std::to_string(1000 + i), "v"});
      client->Send({"DEL", from + std::to_string(1000 + i)});
    }
    client->Send({"EXEC"});
    for (int i = 0; i < 9; ++i) client->Read();
    return client->Read();
  };
  for (int i = 0; i < 3000; ++i) Do("SET m" + std::to_string(i) + " filler");
  const auto mover = Connect();
  move(mover.get(), "a", "z");
  std::atomic<bool> stop{false};
  std::thread moving([&] {
    while (!stop.load()) {
      move(mover.get(), "z", "a");
      move(mover.get(), "a", "z");
    }
  });
  for (int i = 0; i < 30; ++i) {
    const std::string all = Do("NRANGE - +");
    const auto count = [&](const std::string& letter) {
      int found = 0;
      for (size_t at = 0; (at = all.find("$" + letter, at)) != std::string::npos; ++at) ++found;
      return found;
    };
    EXPECT_EQ(count("a") + count("z"), 4);
    EXPECT_TRUE(count("a") == 0 || count("z") == 0);
    EXPECT_EQ(count("m"), 3000);
  }
  stop.store(true);
  moving.join();
}

TEST_F(RangeCommandsTest, TransactionsSeeTheirOwnChanges) {
  Do("MSET a 1 b 2 c 3");
  Do("MULTI");
  Do("SET bb 22");
  Do("DEL a");
  Do("NRANGE - + WITHVALUES");
  Do("NRANGE + - REV LIMIT 2");
  EXPECT_EQ(Do("EXEC"), "*[+OK :1 *[$b $2 $bb $22 $c $3] *[$c $bb]]");
  EXPECT_EQ(Do("NRANGE - +"), "*[$b $bb $c]");
}

TEST_F(RangeCommandsTest, SnapshotsStayAsTheyWere) {
  Do("MSET a 1 b 2");
  Do("RPUSH list x");
  std::string id;
  do {
    Do("SET short lived PX 200");
    id = Do("NSNAPSHOT CREATE").substr(1);
  } while (Do("EXISTS short") == ":0");
  Do("SET a changed");
  Do("DEL b list");
  Do("SET c new");
  EXPECT_EQ(Await("GET short", "$nil"), "$nil");
  EXPECT_EQ(Do("NRANGE - + WITHVALUES"), "*[$a $changed $c $new]");
  // What had not expired then is there.
  EXPECT_EQ(Do("NRANGE - + WITHVALUES SNAPSHOT " + id), "*[$a $1 $b $2 $list $nil $short $lived]");
  EXPECT_EQ(Do("NRANGE + - REV LIMIT 1 SNAPSHOT " + id), "*[$short]");
  EXPECT_EQ(Do("NGET a SNAPSHOT " + id), "$1");
  EXPECT_EQ(Do("NGET c SNAPSHOT " + id), "$nil");
  EXPECT_EQ(Do("NGET short SNAPSHOT " + id), "$lived");
  EXPECT_EQ(Do("NGET list SNAPSHOT " + id),
            "-WRONGTYPE Operation against a key holding the wrong kind of value");
  EXPECT_EQ(Do("FLUSHALL"), "+OK");
  EXPECT_EQ((*Connect())("NGET a SNAPSHOT " + id), "$1");
  EXPECT_EQ(Do("NSNAPSHOT RELEASE " + id), "+OK");
  EXPECT_EQ(Do("NSNAPSHOT RELEASE " + id), "-ERR no such snapshot");
  EXPECT_EQ(Do("NRANGE - + SNAPSHOT " + id), "-ERR no such snapshot");
  EXPECT_EQ(Do("NGET a SNAPSHOT " + id), "-ERR no such snapshot");
}

TEST_F(RangeCommandsTest, SnapshotsOfAllDatabasesAreOfOneMoment) {
  Do("SET a zero");
  Do("SELECT 1");
  Do("SET a one");
  const std::string id = Do("NSNAPSHOT CREATE").substr(1);
  Do("SET a changed");
  Do("SELECT 0");
  Do("SET a changed");
  EXPECT_EQ(Do("NGET a SNAPSHOT " + id), "$zero");
  Do("SELECT 1");
  EXPECT_EQ(Do("NGET a SNAPSHOT " + id), "$one");
  Do("SELECT 7");  // It was made after the snapshot.
  Do("SET a new");
  EXPECT_EQ(Do("NRANGE - + SNAPSHOT " + id), "*[]");
}

TEST_F(RangeCommandsTest, TellsWhatIsWrongWithSnapshots) {
  EXPECT_EQ(Do("NSNAPSHOT DROP"), "-ERR unknown subcommand 'DROP'. Try NSNAPSHOT HELP.");
  EXPECT_EQ(Do("NSNAPSHOT RELEASE"),
            "-ERR wrong number of arguments for 'nsnapshot|release' command");
  EXPECT_EQ(Do("NSNAPSHOT RELEASE x"), "-ERR value is not an integer or out of range");
  EXPECT_EQ(Do("NGET a BEFORE 1"), "-ERR syntax error");
  Do("MULTI");
  EXPECT_EQ(Do("NSNAPSHOT CREATE"), "-ERR Command not allowed inside a transaction");
  Do("DISCARD");
}

TEST_F(RangeCommandsTest, SnapshotsAreBoundedAndEndWithTheirClients) {
  auto other = Connect();
  const std::string client_id = (*other)("CLIENT ID").substr(1);
  for (size_t i = 0; i < SnapshotTable::kSnapshotsMax; ++i) {
    ASSERT_EQ((*other)("NSNAPSHOT CREATE"), ":" + std::to_string(i + 1));
  }
  EXPECT_EQ(Do("NSNAPSHOT CREATE"), "-ERR max number of snapshots reached");
  EXPECT_NE(Do("NSNAPSHOT LIST").find("*[$id :1 $client :" + client_id + " $age :"),
            std::string::npos);
  other.reset();
  EXPECT_EQ(Await("NSNAPSHOT LIST", "*[]"), "*[]");
  EXPECT_EQ(Do("NSNAPSHOT CREATE"), ":" + std::to_string(SnapshotTable::kSnapshotsMax + 1));
}

TEST_F(RangeCommandsTest, SnapshotsDoNotKeepAServerFromStopping) {
  Do("NSNAPSHOT CREATE");
  ASSERT_TRUE(IsOk(server_->Stop(std::chrono::seconds(10))));
}

TEST(SnapshotTableTest, GivesUpWhatIsTooOldOrOfAClientThatHasGone) {
  SnapshotTable table;
  const auto hour = static_cast<uint64_t>(std::chrono::nanoseconds(SnapshotTable::kAgeMax).count());
  const uint64_t first = table.Add(nullptr, 7, 1000);
  const uint64_t second = table.Add(nullptr, 7, 2000);
  table.Add(nullptr, 8, 3000);
  table.RemoveOld(hour + 1000);
  EXPECT_EQ(table.List().size(), 3U);
  table.RemoveOld(hour + 1001);
  ASSERT_EQ(table.List().size(), 2U);
  EXPECT_EQ(table.List()[0].id, second);
  EXPECT_FALSE(table.Remove(first));
  table.RemoveOf(7);
  ASSERT_EQ(table.List().size(), 1U);
  EXPECT_EQ(table.List()[0].client, 8U);
}

}  // namespace
}  // namespace nacre::server
