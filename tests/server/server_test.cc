// Goal: what the server promises beyond the results of single commands, which Redis's own suite
// checks (redis_suite.py): order, atomicity, transactions, waiting, channels, expiry, clients.
// Method: a server in this process over an embedded pool, on two loops, and clients with sockets.

#include "server/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/db.h"
#include "nacre/pool.h"
#include "tests/server/redis_client.h"
#include "tests/support/seed.h"
#include "tests/support/status_assert.h"
#include "util/random.h"

namespace nacre::server {
namespace {

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(IsOk(Pool::Open("embedded:?nodes=1&size=256MiB&slab_size=8MiB", &pool_)));
    options_.database.pool = pool_;
    options_.database.create_if_missing = true;
    options_.database.slab_size = 8 << 20;
    options_.database.write_buffer_size = 4 << 20;
    options_.listen = "127.0.0.1:0";
    options_.sweep_interval = std::chrono::milliseconds(5);
    Start();
  }
  void Start() { ASSERT_TRUE(IsOk(Server::Start(options_, &server_))); }
  std::unique_ptr<RedisClient> Connect() const {
    return std::make_unique<RedisClient>(server_->address());
  }
  /// How many rows the database has in all, seen once the server is stopped.
  size_t StopAndCountRows() {
    EXPECT_TRUE(IsOk(server_->Stop(std::chrono::seconds(10))));
    server_ = nullptr;
    std::unique_ptr<DB> db;
    EXPECT_TRUE(IsOk(DB::Open(options_.database, "redis", &db)));
    const std::unique_ptr<Iterator> iterator = db->NewIterator({});
    size_t rows = 0;
    for (iterator->SeekToFirst(); iterator->Valid(); iterator->Next()) ++rows;
    EXPECT_TRUE(IsOk(iterator->status()));
    return rows;
  }
  /// Asks until the answer is `expected`, or a minute has passed.
  static std::string Await(RedisClient* client, const std::string& line,
                           const std::string& expected) {
    std::string answer;
    for (int i = 0; i < 6000; ++i) {
      answer = (*client)(line);
      if (answer == expected) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return answer;
  }

  /// Returns when so many clients wait for keys, or a minute has passed.
  static void AwaitBlocked(RedisClient* client, int count) {
    const std::string expected = "blocked_clients:" + std::to_string(count) + "\r\n";
    for (int i = 0; i < 60'000; ++i) {
      if ((*client)("INFO clients").find(expected) != std::string::npos) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  /// How many keys were removed since they had expired, once there are `count` or a minute has
  /// passed.
  static int AwaitRemoved(RedisClient* client, int count) {
    int removed = 0;
    for (int i = 0; i < 6000 && removed < count; ++i) {
      if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const std::string info = (*client)("INFO stats");
      const std::string name = "expired_keys:";
      const size_t at = info.find(name);
      if (at == std::string::npos) break;
      removed = std::stoi(info.substr(at + name.size()));
    }
    return removed;
  }

  std::shared_ptr<Pool> pool_;
  ServerOptions options_;
  std::unique_ptr<Server> server_;
};

TEST_F(ServerTest, AnswersPipelinesInOrderAndSeesItsOwnWrites) {
  const auto client = Connect();
  std::string bytes;
  std::vector<std::string> expected;
  Random random(TestSeed(1));
  std::map<std::string, int> model;
  for (int i = 0; i < 5000; ++i) {
    const std::string key = "k" + std::to_string(random.Uniform(50));
    switch (random.Uniform(4)) {
      case 0:
        bytes += RedisClient::Encode({"SET", key, std::to_string(i)});
        expected.emplace_back("+OK");
        model[key] = i;
        break;
      case 1:
        bytes += RedisClient::Encode({"INCR", key});
        expected.push_back(":" + std::to_string(++model[key]));
        break;
      case 2:
        bytes += RedisClient::Encode({"DEL", key});
        expected.push_back(":" + std::to_string(model.erase(key)));
        break;
      default:
        bytes += RedisClient::Encode({"GET", key});
        expected.push_back(model.contains(key) ? "$" + std::to_string(model[key]) : "$nil");
    }
  }
  std::thread sender([&] { client->SendBytes(bytes); });
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(client->Read(), expected[i]) << "answer " << i;
  }
  sender.join();
}

TEST_F(ServerTest, PipelinesAnswerWhatTheirCommandsAnswerAlone) {
  // Commands that are run together, in one unit of work, and some that are not, on few keys.
  const std::vector<std::string> lines = {"SET K V",         "SET K V NX",
                                          "SET K V XX GET",  "SET K V EX 100",
                                          "SETEX K 100 V",   "SETNX K V",
                                          "GETSET K V",      "GETDEL K",
                                          "GETEX K PERSIST", "MSET K V L V",
                                          "MSETNX K V L V",  "MGET K L K",
                                          "APPEND K V",      "STRLEN K",
                                          "SETRANGE K 2 V",  "GETRANGE K 0 3",
                                          "SETBIT K 9 1",    "GETBIT K 9",
                                          "BITCOUNT K",      "INCR K",
                                          "DECRBY K 3",      "INCRBYFLOAT K 1.5",
                                          "DEL K L",         "UNLINK K",
                                          "EXISTS K L K",    "TYPE K",
                                          "EXPIRE K 1000",   "EXPIRE K -1",
                                          "PERSIST K",       "SCARD K",
                                          "SADD K V",        "SREM K V",
                                          "HSET K V V",      "HGET K V",
                                          "HLEN K",          "RPUSH K V",
                                          "LPOP K",          "LLEN K",
                                          "ZADD K 1 V",      "ZCARD K",
                                          "GET K",           "GET K",
                                          "SET K V",         "SET K 5",
                                          "SORT K",          "GET",
                                          "RENAME K L",      "PING",
                                          "NOSUCHCOMMAND K"};
  Random random(TestSeed(2));
  const auto together = Connect();
  const auto alone = Connect();
  ASSERT_EQ((*alone)("SELECT 1"), "+OK");
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<std::string>> commands;
    std::string bytes;
    for (uint64_t i = 1 + random.Uniform(300); i > 0; --i) {
      std::vector<std::string> words = RedisClient::Words(lines[random.Uniform(lines.size())]);
      for (std::string& word : words) {
        if (word == "K" || word == "L") word = "key" + std::to_string(random.Uniform(6));
        if (word == "V") word = std::to_string(random.Uniform(20));
      }
      bytes += RedisClient::Encode(words);
      commands.push_back(std::move(words));
    }
    together->SendBytes(bytes);
    for (size_t i = 0; i < commands.size(); ++i) {
      ASSERT_EQ(together->Read(), alone->Do(commands[i]))
          << "round " << round << ", command " << i << ": " << commands[i][0];
    }
  }
}

TEST_F(ServerTest, LargePipelinesAreCutIntoWritesOfBoundedSize) {
  const auto client = Connect();
  const std::string value(100'000, 'v');
  std::string bytes;
  constexpr int kCommands = 60;
  for (int i = 0; i < kCommands; ++i) {
    bytes += RedisClient::Encode({"SET", "large" + std::to_string(i), value});
    bytes += RedisClient::Encode({"STRLEN", "large" + std::to_string(i)});
  }
  std::thread sender([&] { client->SendBytes(bytes); });
  for (int i = 0; i < kCommands; ++i) {
    EXPECT_EQ(client->Read(), "+OK");
    EXPECT_EQ(client->Read(), ":100000");
  }
  sender.join();
}

TEST_F(ServerTest, ChangesOfManyClientsAreAtomic) {
  constexpr int kClients = 8;
  constexpr int kRounds = 200;
  std::vector<std::thread> threads;
  for (int c = 0; c < kClients; ++c) {
    threads.emplace_back([&, c] {
      const auto client = Connect();
      for (int i = 0; i < kRounds; ++i) {
        const std::string own = std::to_string(c) + "." + std::to_string(i);
        (*client)("INCR counter");
        (*client)("HINCRBY hash field 1");
        (*client)("RPUSH list " + own);
        (*client)("SADD set " + own);
        (*client)("ZINCRBY zset 1 member");
        (*client)("APPEND text x");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto client = Connect();
  const std::string total = std::to_string(kClients * kRounds);
  EXPECT_EQ((*client)("GET counter"), "$" + total);
  EXPECT_EQ((*client)("HGET hash field"), "$" + total);
  EXPECT_EQ((*client)("LLEN list"), ":" + total);
  EXPECT_EQ((*client)("SCARD set"), ":" + total);
  EXPECT_EQ((*client)("ZSCORE zset member"), "$" + total);
  EXPECT_EQ((*client)("STRLEN text"), ":" + total);
}

/// Money that is moved by transactions is never seen to be more or less.
TEST_F(ServerTest, TransactionsAreSeenWholeAndFailIfWhatTheyWatchedChanged) {
  std::atomic<int> done{0};
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  (*Connect())("MSET a 1000 b 1000");
  for (int c = 0; c < 4; ++c) {
    threads.emplace_back([&] {
      const auto client = Connect();
      for (int i = 0; i < 100; ++i) {
        (*client)("WATCH a b");
        const int a = std::stoi((*client)("GET a").substr(1));
        const int b = std::stoi((*client)("GET b").substr(1));
        EXPECT_EQ((*client)("MULTI"), "+OK");
        EXPECT_EQ((*client)("SET a " + std::to_string(a - 1)), "+QUEUED");
        EXPECT_EQ((*client)("SET b " + std::to_string(b + 1)), "+QUEUED");
        const std::string answer = (*client)("EXEC");
        ASSERT_TRUE(answer == "*nil" || answer == "*[+OK +OK]") << answer;
        ++(answer == "*nil" ? refused : done);
      }
    });
  }
  threads.emplace_back([&] {
    const auto client = Connect();
    while (done + refused < 400) {
      const std::string both = (*client)("MGET a b");
      int a = 0;
      int b = 0;
      ASSERT_EQ(std::sscanf(both.c_str(), "*[$%d $%d]", &a, &b), 2) << both;
      ASSERT_EQ(a + b, 2000);
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ((*Connect())("GET b"), "$" + std::to_string(1000 + done));
  EXPECT_GT(done.load(), 0);
}

TEST_F(ServerTest, TransactionsSeeTheirOwnChanges) {
  const auto client = Connect();
  (*client)("RPUSH list a b c");
  (*client)("MULTI");
  for (const char* line : {"LPOP list", "LRANGE list 0 -1", "FLUSHDB", "EXISTS list", "SET s 1",
                           "DBSIZE", "KEYS *", "LPUSH s x", "INCR s"}) {
    EXPECT_EQ((*client)(line), "+QUEUED");
  }
  EXPECT_EQ((*client)("EXEC"),
            "*[$a *[$b $c] +OK :0 +OK :1 *[$s] -WRONGTYPE Operation against a key holding the "
            "wrong kind of value :2]");
  (*client)("MULTI");
  EXPECT_EQ((*client)("NOSUCH").substr(0, 20), "-ERR unknown command");
  EXPECT_EQ((*client)("EXEC"), "-EXECABORT Transaction discarded because of previous errors.");
}

/// Where the compiler makes no tail calls the stack must not grow with each key and command.
TEST_F(ServerTest, CommandsMayHaveManyKeysAndTransactionsManyCommands) {
  const auto client = Connect();
  (*client)("HSET hash f v");
  constexpr int kMany = 20'000;
  std::vector<std::string> set = {"MSET"};
  std::vector<std::string> del = {"DEL"};
  for (int i = 0; i < kMany; ++i) {
    set.insert(set.end(), {"k" + std::to_string(i), "v"});
    del.push_back("k" + std::to_string(i));
  }
  EXPECT_EQ(client->Do(set), "+OK");
  EXPECT_EQ(client->Do(del), ":" + std::to_string(kMany));
  (*client)("MULTI");
  for (int i = 0; i < kMany; ++i) ASSERT_EQ((*client)("PING"), "+QUEUED");
  EXPECT_EQ((*client)("EXEC").size(), sizeof("*[") + size_t{kMany} * sizeof("+PONG") - 1);
}

TEST_F(ServerTest, WaitingClientsHaveTheirTurnInOrder) {
  std::vector<std::unique_ptr<RedisClient>> waiting;
  const auto client = Connect();
  for (int i = 0; i < 6; ++i) {
    waiting.push_back(Connect());
    waiting.back()->Send({"BLPOP", "queue", "other", "0"});
    AwaitBlocked(client.get(), i + 1);  // It waits before the next one begins to.
  }
  EXPECT_EQ((*client)("RPUSH queue 0 1 2 3"), ":4");
  EXPECT_EQ(Await(client.get(), "LLEN queue", ":0"), ":0");
  EXPECT_EQ((*client)("RPUSH other 4"), ":1");
  for (int i = 0; i < 5; ++i) {
    const std::string key = i < 4 ? "queue" : "other";
    EXPECT_EQ(waiting[static_cast<size_t>(i)]->Read(),
              "*[$" + key + " $" + std::to_string(i) + "]");
  }
  EXPECT_EQ((*waiting[0])("BLPOP queue 0.01"), "*nil");
  waiting[5] = nullptr;  // It goes away while it waits.
  EXPECT_EQ((*client)("RPUSH queue last"), ":1");
  EXPECT_EQ(Await(client.get(), "LRANGE queue 0 -1", "*[$last]"), "*[$last]");
}

TEST_F(ServerTest, WhatIsWokenForOneKeyLeavesTheOthersToThoseThatWaitLonger) {
  const auto client = Connect();
  for (int round = 0; round < 200; ++round) {
    const std::string first = "first" + std::to_string(round);
    const std::string second = "second" + std::to_string(round);
    const auto one = Connect();
    const auto both = Connect();
    one->Send({"BLPOP", first, "0"});
    AwaitBlocked(client.get(), 1);
    both->Send({"BLPOP", first, second, "0"});
    AwaitBlocked(client.get(), 2);
    // The second one is woken, perhaps before the first has taken what it was woken for.
    client->SendBytes(RedisClient::Encode({"RPUSH", first, "a"}) +
                      RedisClient::Encode({"RPUSH", second, "b"}));
    EXPECT_EQ(one->Read(), "*[$" + first + " $a]");
    EXPECT_EQ(both->Read(), "*[$" + second + " $b]");
    EXPECT_EQ(client->Read(), ":1");
    EXPECT_EQ(client->Read(), ":1");
  }
}

TEST_F(ServerTest, MessagesReachSubscribersInOrder) {
  const auto subscriber = Connect();
  const auto modern = Connect();
  const auto publisher = Connect();
  EXPECT_EQ((*subscriber)("SUBSCRIBE news"), "*[$subscribe $news :1]");
  (*modern)("HELLO 3");
  EXPECT_EQ((*modern)("PSUBSCRIBE n*"), ">[$psubscribe $n* :1]");
  EXPECT_EQ((*modern)("GET a"), "_");
  EXPECT_EQ((*subscriber)("GET a").substr(0, 27), "-ERR Can't execute 'get': o");
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ((*publisher)("PUBLISH news m" + std::to_string(i)), ":2");
  }
  for (int i = 0; i < 100; ++i) {
    const std::string message = "m" + std::to_string(i);
    EXPECT_EQ(subscriber->Read(), "*[$message $news $" + message + "]");
    EXPECT_EQ(modern->Read(), ">[$pmessage $n* $news $" + message + "]");
  }
  EXPECT_EQ((*subscriber)("UNSUBSCRIBE"), "*[$unsubscribe $news :0]");
  EXPECT_EQ((*publisher)("PUBSUB NUMSUB news"), "*[$news :0]");
}

TEST_F(ServerTest, WhatHasExpiredOrIsDeletedLeavesNoRows) {
  const auto client = Connect();
  for (int i = 0; i < 300; ++i) {
    const std::string key = std::to_string(i);
    (*client)("SET s" + key + " v PX 1");
    (*client)("HSET h" + key + " a 1 b 2");
    (*client)("PEXPIRE h" + key + " 1");
  }
  for (int i = 0; i < 1000; ++i) (*client)("SADD big " + std::to_string(i));
  (*client)("ZADD z 1 a 2 b");
  (*client)("SET stays v");
  EXPECT_EQ((*client)("DEL big z"), ":2");
  EXPECT_EQ(Await(client.get(), "DBSIZE", ":1"), ":1");
  // What the sweeper has not come to by the end of one server is left for the next one.
  size_t rows = 0;
  for (int i = 0; i < 100; ++i) {
    rows = StopAndCountRows();
    if (rows == 1) break;
    Start();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(rows, 1U);
}

TEST_F(ServerTest, EachKeyIsRemovedWhenItsTimeHasCome) {
  const auto client = Connect();
  // Nothing reads these keys. The sweeper has looked at later ones before it learns of each.
  (*client)("SET never v");
  (*client)("SET far v EX 1000");
  (*client)("SET near v PX 300");
  EXPECT_EQ(AwaitRemoved(client.get(), 1), 1);
  (*client)("SET nearer v PX 1");
  (*client)("RPUSH list a b c");
  (*client)("PEXPIRE list 200");
  EXPECT_EQ(AwaitRemoved(client.get(), 3), 3);
  (*client)("RPUSH gone a b c");
  (*client)("DEL gone");
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  // Two strings, the expiry of one of them, and no elements.
  EXPECT_EQ(StopAndCountRows(), 3U);
}

TEST_F(ServerTest, KeysAreRemovedFromEachDatabase) {
  const auto client = Connect();
  for (const char* database : {"SELECT 0", "SELECT 3"}) {
    (*client)(database);
    (*client)("SET soon v PX 1");
    (*client)("SET later v PX 100");
  }
  EXPECT_EQ(AwaitRemoved(client.get(), 4), 4);
  EXPECT_EQ((*client)("DBSIZE"), ":0");
}

TEST_F(ServerTest, AnotherServerFindsAllTypes) {
  const auto client = Connect();
  (*client)("SET text value");
  (*client)("HSET hash f 1 g 2");
  (*client)("RPUSH list a b c");
  (*client)("LPUSH list z");
  (*client)("SADD set x y");
  (*client)("ZADD zset 2 two 1 one -inf none");
  (*client)("SELECT 3");
  (*client)("SET elsewhere yes");
  ASSERT_TRUE(IsOk(server_->Stop(std::chrono::seconds(10))));
  server_ = nullptr;
  Start();
  const auto next = Connect();
  EXPECT_EQ((*next)("GET text"), "$value");
  EXPECT_EQ((*next)("HGETALL hash"), "*[$f $1 $g $2]");
  EXPECT_EQ((*next)("LRANGE list 0 -1"), "*[$z $a $b $c]");
  EXPECT_EQ((*next)("SMEMBERS set"), "*[$x $y]");
  EXPECT_EQ((*next)("ZRANGE zset 0 -1 WITHSCORES"), "*[$none $-inf $one $1 $two $2]");
  EXPECT_EQ((*next)("DBSIZE"), ":5");
  (*next)("SELECT 3");
  EXPECT_EQ((*next)("GET elsewhere"), "$yes");
  // It replaces a collection, of which nothing is left.
  (*next)("SELECT 0");
  EXPECT_EQ((*next)("SET hash plain"), "+OK");
  EXPECT_EQ((*next)("HGET hash f"),
            "-WRONGTYPE Operation against a key holding the wrong kind of value");
  EXPECT_EQ((*next)("GET hash"), "$plain");
}

TEST_F(ServerTest, ScansReturnAllThatStays) {
  const auto client = Connect();
  for (int i = 0; i < 500; ++i) (*client)("SET key:" + std::to_string(i) + " v");
  std::string cursor = "0";
  std::map<std::string, int> seen;
  do {
    const std::string answer = (*client)("SCAN " + cursor + " COUNT 7 MATCH key:*");
    cursor = answer.substr(3, answer.find(' ') - 3);
    std::string keys = answer.substr(answer.find(" *[") + 3);
    for (size_t at = 0; (at = keys.find('$', at)) != std::string::npos; ++at) {
      ++seen[keys.substr(at + 1, keys.find_first_of(" ]", at) - at - 1)];
    }
  } while (cursor != "0");
  EXPECT_EQ(seen.size(), 500U);
  EXPECT_EQ((*client)("SCAN 12345678"), "-ERR invalid cursor");
}

TEST_F(ServerTest, ClientsAreListedAndClosed) {
  const auto client = Connect();
  const auto other = Connect();
  EXPECT_EQ((*other)("CLIENT SETNAME worker"), "+OK");
  const std::string id = (*other)("CLIENT ID").substr(1);
  EXPECT_NE((*client)("CLIENT LIST").find(" name=worker "), std::string::npos);
  EXPECT_EQ((*client)("CLIENT KILL ID " + id), ":1");
  EXPECT_TRUE(other->AwaitClosed());
  EXPECT_EQ((*client)("CONFIG SET maxclients 1"), "+OK");
  const auto third = Connect();
  EXPECT_EQ(third->Read(), "-ERR max number of clients reached");
  EXPECT_TRUE(third->AwaitClosed());
  client->SendBytes("*1\r\n$x\r\n");
  EXPECT_EQ(client->Read(), "-ERR Protocol error: invalid bulk length");
  EXPECT_TRUE(client->AwaitClosed());
}

TEST_F(ServerTest, PagesOfBrowsersCannotGiveCommands) {
  const auto browser = Connect();
  browser->SendBytes("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nSET by browser\r\n");
  EXPECT_TRUE(browser->AwaitClosed());
  const auto other = Connect();
  other->SendBytes("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nSET by browser\r\n");
  EXPECT_EQ(other->Read(), "-ERR wrong number of arguments for 'get' command");
  EXPECT_TRUE(other->AwaitClosed());
  EXPECT_EQ((*Connect())("EXISTS by"), ":0");
}

TEST_F(ServerTest, StopAnswersWhatWasBegun) {
  const auto client = Connect();
  const auto waiting = Connect();
  waiting->Send({"BLPOP", "never", "0"});
  EXPECT_EQ((*client)("SET a 1"), "+OK");
  ASSERT_TRUE(IsOk(server_->Stop(std::chrono::seconds(10))));
  EXPECT_TRUE(client->AwaitClosed());
}

TEST_F(ServerTest, LargeValuesAndSlowReadersAreServed) {
  const auto client = Connect();
  const std::string large(5 << 20, 'x');
  EXPECT_EQ(client->Do({"SET", "large", large}), "+OK");
  // More answers than the server keeps for a client that does not read.
  constexpr int kReads = 40;
  for (int i = 0; i < kReads; ++i) client->Send({"GET", "large"});
  for (int i = 0; i < kReads; ++i) ASSERT_EQ(client->Read().size(), large.size() + 1);
  EXPECT_EQ((*client)("PING"), "+PONG");
}

}  // namespace
}  // namespace nacre::server
