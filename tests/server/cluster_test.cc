// Goal: servers that share a keyspace are a Redis Cluster to clients: each key is at one server,
// the others say at which, what spans slots is refused, and what waits for keys is told when these
// go to another server, which has all that was acknowledged. Method: two processes over nodes that
// are processes and an etcd; SIGTERM drains one. cluster_test.py kills, and has stock clients.

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "server/store/slots.h"
#include "tests/server/redis_client.h"
#include "tests/server/server_process.h"
#include "tests/support/process/etcd_process.h"
#include "tests/support/process/memnode_process.h"

namespace nacre::server {
namespace {

constexpr int kKeysInAll = 200;
constexpr int kShards = 6;

std::string KeyAt(int number) { return "key" + std::to_string(number); }

class ClusterTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
    etcd_ = std::make_unique<EtcdProcess>();
    one_ = Start();
    other_ = Start();
    ASSERT_NO_FATAL_FAILURE(Spread());
  }

  std::unique_ptr<ServerProcess> Start() const {
    return std::make_unique<ServerProcess>(std::vector<std::string>{
        "--pool=shm:" + first_node_.socket_path() + "," + second_node_.socket_path(),
        "--redundancy=rep(2)", "--coordinator=etcd:" + etcd_->endpoint(),
        "--shards=" + std::to_string(kShards), "--slab_size=1048576", "--write_buffer_size=1048576",
        "--proxy_listen=127.0.0.1:0"});
  }
  ServerProcess& one() const { return *one_; }
  ServerProcess& other() const { return *other_; }

  ProcessResult Ctl(std::vector<std::string> words) const {
    words.push_back("--coordinator=etcd:" + etcd_->endpoint());
    return RunBinary("nacre-ctl", words);
  }

  static std::string MemberOf(const ServerProcess& server) {
    RedisClient client(server.address());
    return std::to_string(std::stoll(client("CLUSTER MYID").substr(1), nullptr, 16));
  }

  /// Whether the server has the key: true, or false where it says that the other one has it.
  static bool Has(const ServerProcess& server, const std::string& key) {
    RedisClient client(server.address());
    const std::string answer = client("EXISTS " + key);
    EXPECT_TRUE(answer.starts_with(":") || answer.starts_with("-MOVED ")) << answer;
    return answer.starts_with(":");
  }
  static std::string KeyOf(const ServerProcess& server, int from = 0) {
    while (!Has(server, KeyAt(from))) ++from;
    return KeyAt(from);
  }
  /// Stores all keys where they belong. Answers how many are at `one()`.
  int StoreAll() const {
    RedisClient first(one().address());
    RedisClient second(other().address());
    int at_one = 0;
    for (int i = 0; i < kKeysInAll; ++i) {
      const std::string set = "SET " + KeyAt(i) + " value" + std::to_string(i);
      const std::string answer = first(set);
      if (answer == "+OK") {
        ++at_one;
        continue;
      }
      EXPECT_EQ(answer, "-MOVED " + std::to_string(SlotOfKey(KeyAt(i))) + " " + other().address());
      EXPECT_EQ(second(set), "+OK");
    }
    return at_one;
  }
  /// Has each shard go back and forth a few times.
  void MoveShards() const {
    const std::string ids[] = {MemberOf(one()), MemberOf(other())};
    for (int move = 0; move < 6; ++move) {
      for (int shard = 0; shard < kShards; ++shard) {
        Ctl({"move", "redis", std::to_string(shard), ids[(move + shard) % 2]});
      }
    }
  }
  template <typename Done>
  static void Await(const std::string& what, const Done& done) {
    for (int i = 0; i < 3000; ++i) {
      if (done()) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    FAIL() << "not within a minute: " << what;
  }

 private:
  /// Gives half of the shards to the second server: by itself the cluster would do it when the
  /// first one has had them for a while.
  void Spread() const {
    const std::string member = MemberOf(other());
    for (int shard = 1; shard < kShards; shard += 2) {
      const ProcessResult moved = Ctl({"move", "redis", std::to_string(shard), member});
      ASSERT_EQ(moved.exit_code, 0) << moved.output;
    }
  }

  MemnodeProcess first_node_;
  MemnodeProcess second_node_;
  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<ServerProcess> one_;
  std::unique_ptr<ServerProcess> other_;
};

TEST_F(ClusterTest, EachKeyIsAtOneServer) {
  const int at_one = StoreAll();
  EXPECT_GT(at_one, 0);
  EXPECT_LT(at_one, kKeysInAll);
  RedisClient client(one().address());
  EXPECT_EQ(client("DBSIZE"), ":" + std::to_string(at_one));
  RedisClient second(other().address());
  EXPECT_EQ(second("DBSIZE"), ":" + std::to_string(kKeysInAll - at_one));
  EXPECT_EQ(client("CLUSTER KEYSLOT foo"), ":12182");
  EXPECT_NE(client("CLUSTER INFO").find("cluster_state:ok"), std::string::npos);
  EXPECT_NE(client("INFO").find("cluster_enabled:1"), std::string::npos);
  const std::string key = KeyOf(one());
  const std::string slot = std::to_string(SlotOfKey(key));
  EXPECT_EQ(client("CLUSTER COUNTKEYSINSLOT " + slot), ":1");
  EXPECT_EQ(client("CLUSTER GETKEYSINSLOT " + slot + " 10"), "*[$" + key + "]");
  EXPECT_TRUE(second("CLUSTER COUNTKEYSINSLOT " + slot).starts_with("-ERR "));
  // By these shards are moved.
  const ProcessResult told = Ctl({"shards", "redis", "--json"});
  EXPECT_EQ(told.output.find("\"operations\": 0,"), std::string::npos) << told.output;
  EXPECT_EQ(client("SELECT 0"), "+OK");
  EXPECT_EQ(client("SELECT 1"), "-ERR SELECT is not allowed in cluster mode");
  EXPECT_TRUE(client("NRANGE - +").starts_with("-ERR "));
}

TEST_F(ClusterTest, CommandsOnAllKeysAreAboutThoseOfTheServer) {
  const int at_one = StoreAll();
  RedisClient client(one().address());
  std::set<std::string> scanned;
  std::string cursor = "0";
  do {
    client.Send({"SCAN", cursor, "COUNT", "7"});
    const std::string answer = client.Read();
    const size_t end = answer.find(' ');
    cursor = answer.substr(3, end - 3);
    for (std::string word : RedisClient::Words(answer.substr(end + 3))) {
      while (word.ends_with(']')) word.pop_back();
      if (word.empty()) continue;
      EXPECT_TRUE(scanned.insert(word).second) << word << " came twice";
    }
  } while (cursor != "0");
  EXPECT_EQ(scanned.size(), static_cast<size_t>(at_one));
  EXPECT_TRUE(scanned.contains("$" + KeyOf(one())));
  EXPECT_TRUE(scanned.contains(client("RANDOMKEY")));
  EXPECT_EQ(client("FLUSHALL"), "+OK");
  EXPECT_EQ(client("DBSIZE"), ":0");
  EXPECT_EQ(client("RANDOMKEY"), "$nil");
  RedisClient second(other().address());
  EXPECT_EQ(second("DBSIZE"), ":" + std::to_string(kKeysInAll - at_one));
}

TEST_F(ClusterTest, WhatSpansSlotsIsRefused) {
  RedisClient client(one().address());
  const std::string key = KeyOf(one());
  const std::string beside = "{" + key + "}2";
  const std::string crossed = "-CROSSSLOT Keys in request don't hash to the same slot";
  EXPECT_EQ(client("MSET " + key + " 1 " + beside + " 2"), "+OK");
  EXPECT_EQ(client("MGET " + key + " " + beside), "*[$1 $2]");
  std::string elsewhere = KeyAt(0);
  while (SlotOfKey(elsewhere) == SlotOfKey(key)) elsewhere += "x";
  EXPECT_EQ(client("MGET " + key + " " + elsewhere), crossed);
  // All commands of a transaction are in one slot.
  EXPECT_EQ(client("MULTI"), "+OK");
  EXPECT_EQ(client("INCR " + key), "+QUEUED");
  EXPECT_EQ(client("INCR " + beside), "+QUEUED");
  EXPECT_EQ(client("EXEC"), "*[:2 :3]");
  EXPECT_EQ(client("MULTI"), "+OK");
  EXPECT_EQ(client("MGET " + key + " " + elsewhere), crossed);
  EXPECT_TRUE(client("EXEC").starts_with("-EXECABORT "));
  std::string second_key = KeyOf(one(), 1);
  for (int i = 2; SlotOfKey(second_key) == SlotOfKey(key); ++i) second_key = KeyOf(one(), i);
  EXPECT_EQ(client("MULTI"), "+OK");
  EXPECT_EQ(client("INCR " + key), "+QUEUED");
  EXPECT_EQ(client("INCR " + second_key), "+QUEUED");
  EXPECT_EQ(client("EXEC"), crossed);
  EXPECT_EQ(client("DISCARD"), "+OK");
  EXPECT_TRUE(client("MULTI") == "+OK" && client("DBSIZE").starts_with("-ERR 'dbsize' is not"));
  EXPECT_EQ(client("DISCARD"), "+OK");
  EXPECT_EQ(client("GET " + key), "$2");
  // A script has the slots of its shard.
  EXPECT_EQ(client.Do({"EVAL", "return redis.call('incr', KEYS[1])", "1", key}), ":3");
  const std::string at_other = KeyOf(other());
  const std::string refused =
      client.Do({"EVAL", "return redis.call('get', '" + at_other + "')", "1", key});
  EXPECT_TRUE(refused.starts_with("-ERR Script attempted to access keys")) << refused;
  EXPECT_TRUE(client.Do({"EVAL", "return redis.call('get', '" + key + "')", "0"})
                  .starts_with("-ERR Script attempted to access keys"));
  EXPECT_EQ(client.Do({"EVAL", "return redis.call('ping')", "0"}), "+PONG");
}

TEST_F(ClusterTest, APipelineOverManyShardsIsAnsweredInItsOrder) {
  RedisClient client(one().address());
  std::string bytes;
  std::vector<std::string> expected;
  for (int i = 0; i < 2 * kKeysInAll; ++i) {
    const std::string key = KeyAt(i % kKeysInAll);
    const std::string number = std::to_string(i / kKeysInAll + 1);
    bytes += RedisClient::Encode({"INCR", key});
    bytes += RedisClient::Encode({"GET", key});
    const bool here = Has(one(), key);
    const std::string moved = "-MOVED " + std::to_string(SlotOfKey(key)) + " " + other().address();
    expected.push_back(here ? ":" + number : moved);
    expected.push_back(here ? "$" + number : moved);
  }
  client.SendBytes(bytes);
  for (const std::string& answer : expected) EXPECT_EQ(client.Read(), answer);
}

TEST_F(ClusterTest, APipelineKeepsItsOrderWhileSlotsMove) {
  const std::string key = KeyOf(one());
  const std::string beside = KeyOf(one(), 50);
  std::atomic<bool> stop{false};
  std::atomic<int> whole{0};
  std::thread writer([&] {
    RedisClient client(one().address());
    std::string bytes;
    for (const std::string& each : {key, beside}) {
      for (const char* word : {"SET", "APPEND", "APPEND"}) {
        bytes += RedisClient::Encode({word, each, *word == 'S' ? "a" : "b"});
      }
      bytes += RedisClient::Encode({"GET", each});
    }
    while (!stop.load()) {
      client.SendBytes(bytes);
      for (int i = 0; i < 2; ++i) {
        std::vector<std::string> answers;
        for (int of_key = 0; of_key < 4; ++of_key) answers.push_back(client.Read());
        if (std::ranges::any_of(answers, [](const auto& each) { return each[0] == '-'; })) continue;
        EXPECT_EQ(answers, (std::vector<std::string>{"+OK", ":2", ":3", "$abb"}));
        ++whole;
      }
    }
  });
  MoveShards();
  stop = true;
  writer.join();
  EXPECT_GT(whole, 0);
}

TEST_F(ClusterTest, AnyServerReadsTheKeysOfOthersIfItIsTold) {
  StoreAll();
  RedisClient client(one().address());
  const std::string key = KeyOf(other());
  EXPECT_TRUE(client("GET " + key).starts_with("-MOVED "));
  EXPECT_EQ(client("READONLY"), "+OK");
  Await("the value is seen", [&] { return client("EXISTS " + key) == ":1"; });
  EXPECT_TRUE(client("GET " + key).starts_with("$value"));
  EXPECT_TRUE(client("SET " + key + " x").starts_with("-MOVED "));
  EXPECT_EQ(client("READWRITE"), "+OK");
  EXPECT_TRUE(client("GET " + key).starts_with("-MOVED "));
}

TEST_F(ClusterTest, MessagesReachTheClientsOfAllServers) {
  constexpr int kMessages = 300;
  RedisClient first(one().address());
  RedisClient second(other().address());
  RedisClient pattern(other().address());
  EXPECT_EQ(first("SUBSCRIBE news"), "*[$subscribe $news :1]");
  EXPECT_EQ(second("SUBSCRIBE news"), "*[$subscribe $news :1]");
  EXPECT_EQ(pattern("PSUBSCRIBE n*"), "*[$psubscribe $n* :1]");
  RedisClient publisher(one().address());
  std::string bytes;
  for (int i = 0; i < kMessages; ++i) {
    bytes += RedisClient::Encode({"PUBLISH", "news", std::to_string(i)});
  }
  publisher.SendBytes(bytes);
  // It answers how many of its own clients have got it.
  for (int i = 0; i < kMessages; ++i) EXPECT_EQ(publisher.Read(), ":1");
  for (int i = 0; i < kMessages; ++i) {
    const std::string message = "$news $" + std::to_string(i) + "]";
    EXPECT_EQ(first.Read(), "*[$message " + message);
    EXPECT_EQ(second.Read(), "*[$message " + message);
    EXPECT_EQ(pattern.Read(), "*[$pmessage $n* " + message);
  }
  EXPECT_EQ(publisher.Do({"EVAL", "return redis.call('publish', 'news', 'by a script')", "0"}),
            ":1");
  EXPECT_EQ(second.Read(), "*[$message $news $by a script]");
}

TEST_F(ClusterTest, AProxyRunsCommandsWhereTheirKeysAre) {
  RedisClient client(one().proxy_address());
  std::string bytes;
  for (int i = 0; i < kKeysInAll; ++i) {
    bytes += RedisClient::Encode({"SET", KeyAt(i), "value" + std::to_string(i)});
    bytes += RedisClient::Encode({"APPEND", KeyAt(i), "+"});
    bytes += RedisClient::Encode({"GET", KeyAt(i)});
  }
  client.SendBytes(bytes);
  for (int i = 0; i < kKeysInAll; ++i) {
    const std::string value = "value" + std::to_string(i) + "+";
    EXPECT_EQ(client.Read(), "+OK");
    EXPECT_EQ(client.Read(), ":" + std::to_string(value.size()));
    EXPECT_EQ(client.Read(), "$" + value);
  }
  const std::string here = KeyOf(one());
  const std::string there = KeyOf(other());
  RedisClient owner(other().address());
  EXPECT_EQ(owner("GET " + there), client("GET " + there));
  EXPECT_EQ(client("LPUSH " + there + " a"), owner("LPUSH " + there + " a"));
  EXPECT_EQ(client("HSET {" + there + "}hash a 1"), ":1");
  EXPECT_EQ(client("HGETALL {" + there + "}hash"), "*[$a $1]");
  EXPECT_EQ(client("HELLO 3").substr(0, 2), "%[");
  EXPECT_EQ(client("HGETALL {" + there + "}hash"), "%[$a $1]");
  EXPECT_EQ(client("MGET " + here + " " + there),
            "-CROSSSLOT Keys in request don't hash to the same slot");
  EXPECT_EQ(client.Do({"EVAL", "return redis.call('strlen', KEYS[1])", "1", there}),
            owner("STRLEN " + there));
  // Whole transactions.
  for (const std::string& key : {here, there}) {
    EXPECT_EQ(client("MULTI"), "+OK");
    EXPECT_EQ(client("SET " + key + " 1"), "+QUEUED");
    EXPECT_EQ(client("INCR " + key), "+QUEUED");
    EXPECT_EQ(client("LPUSH " + key + " a"), "+QUEUED");
    EXPECT_TRUE(client("EXEC").starts_with("*[+OK :2 -WRONGTYPE "));
    EXPECT_EQ(client("GET " + key), "$2");
  }
  EXPECT_EQ(client("MULTI"), "+OK");
  EXPECT_EQ(client("INCR " + there), "+QUEUED");
  EXPECT_TRUE(client("NOSUCHCOMMAND").starts_with("-ERR unknown command"));
  EXPECT_TRUE(client("EXEC").starts_with("-EXECABORT "));
  EXPECT_EQ(client("GET " + there), "$2");
  // What a connection would have to remember is refused, and says so.
  for (const std::string refused : {"WATCH ", "BLPOP "}) {
    const std::string answer = client(refused + there + (refused == "BLPOP " ? " 1" : ""));
    EXPECT_NE(answer.find("is not forwarded to another server"), std::string::npos) << answer;
  }
  EXPECT_EQ(client("WATCH " + here), "+OK");
  EXPECT_EQ(client("UNWATCH"), "+OK");
  // Sharded channels are heard where their slot is.
  EXPECT_TRUE(owner("SSUBSCRIBE " + there).starts_with("*[$ssubscribe "));
  EXPECT_EQ(client("SPUBLISH " + there + " hello"), ":1");
  EXPECT_EQ(owner.Read(), "*[$smessage $" + there + " $hello]");
  EXPECT_NE(client("SSUBSCRIBE " + there).find("is not forwarded"), std::string::npos);
  // Other clients are sent there.
  RedisClient direct(one().address());
  EXPECT_TRUE(direct("GET " + there).starts_with("-MOVED "));
}

TEST_F(ClusterTest, UsersOfAProxyMayDoWhatTheyMay) {
  const std::string there = KeyOf(other());
  for (const std::string& address : {one().address(), other().address()}) {
    RedisClient client(address);
    EXPECT_EQ(client("ACL SETUSER reader on >secret ~* +get +eval"), "+OK");
  }
  RedisClient client(one().proxy_address());
  EXPECT_EQ(client("SET " + there + " value"), "+OK");
  EXPECT_EQ(client("AUTH reader secret"), "+OK");
  EXPECT_EQ(client("GET " + there), "$value");
  EXPECT_TRUE(client("SET " + there + " other").starts_with("-NOPERM "));
  const std::string refused =
      client.Do({"EVAL", "return redis.call('set', KEYS[1], 'other')", "1", there});
  EXPECT_NE(refused.find("ACL failure in script"), std::string::npos) << refused;
  EXPECT_EQ(client.Do({"EVAL", "return redis.call('get', KEYS[1])", "1", there}), "$value");
}

TEST_F(ClusterTest, AProxyAnswersThroughoutWhileSlotsMove) {
  const std::string key = KeyOf(one());
  const std::string beside = KeyOf(other());
  std::atomic<bool> stop{false};
  int written = 0;
  std::thread writer([&] {
    RedisClient client(one().proxy_address());
    std::string bytes;
    for (const std::string& each : {key, beside}) {
      for (const char* word : {"SET", "APPEND", "APPEND"}) {
        bytes += RedisClient::Encode({word, each, *word == 'S' ? "a" : "b"});
      }
      bytes += RedisClient::Encode({"GET", each});
      bytes += RedisClient::Encode({"INCR", "{" + each + "}count"});
    }
    while (!stop.load()) {
      client.SendBytes(bytes);
      ++written;
      for (int i = 0; i < 2; ++i) {
        for (const std::string expected : {"+OK", ":2", ":3", "$abb"}) {
          EXPECT_EQ(client.Read(), expected);
        }
        EXPECT_EQ(client.Read(), ":" + std::to_string(written));
      }
    }
  });
  MoveShards();
  stop = true;
  writer.join();
  EXPECT_GT(written, 0);
}

TEST_F(ClusterTest, WhatWaitsIsToldWhenItsSlotsGo) {
  StoreAll();
  const std::string key = KeyOf(other());
  RedisClient watches(other().address());
  RedisClient waits(other().address());
  RedisClient hears(other().address());
  RedisClient writes(other().address());
  EXPECT_EQ(writes("HSET {" + key + "}hash a 1 b 2"), ":2");
  EXPECT_EQ(writes("RPUSH {" + key + "}filled x y"), ":2");
  EXPECT_EQ(writes("SET {" + key + "}short 1 PX 3000"), "+OK");
  EXPECT_EQ(watches("WATCH " + key), "+OK");
  EXPECT_EQ(watches("MULTI"), "+OK");
  EXPECT_EQ(watches("SET " + key + " changed"), "+QUEUED");
  EXPECT_EQ(hears("SSUBSCRIBE {" + key + "}news"), "*[$ssubscribe ${" + key + "}news :1]");
  waits.Send({"BLPOP", "{" + key + "}empty", "0"});
  const std::string info = "blocked_clients:1";
  Await("a client waits", [&] { return writes("INFO").find(info) != std::string::npos; });
  other().process().Signal(SIGTERM);
  const std::string told = waits.Read();
  EXPECT_TRUE(told.starts_with("-MOVED ") || told.starts_with("-TRYAGAIN ")) << told;
  EXPECT_EQ(hears.Read(), "*[$sunsubscribe ${" + key + "}news :0]");
  // Where the connection was not closed before.
  const std::string done = watches("EXEC");
  EXPECT_TRUE(done == "*nil" || done == "closed" || done.starts_with("-")) << done;
  Await("the first server has all slots", [&] {
    RedisClient client(one().address());
    return client("CLUSTER SLOTS").starts_with("*[*[:0 :16383 ");
  });
  RedisClient client(one().address());
  for (int i = 0; i < kKeysInAll; ++i) {
    EXPECT_EQ(client("GET " + KeyAt(i)), "$value" + std::to_string(i));
  }
  EXPECT_EQ(client("HGETALL {" + key + "}hash"), "*[$a $1 $b $2]");
  EXPECT_EQ(client("LRANGE {" + key + "}filled 0 -1"), "*[$x $y]");
  // The server that has it now removes what expires.
  const std::string size = ":" + std::to_string(kKeysInAll + 2);
  Await("the key has expired", [&] { return client("DBSIZE") == size; });
  Await("it was removed",
        [&] { return client("INFO stats").find("expired_keys:0\r\n") == std::string::npos; });
}

}  // namespace
}  // namespace nacre::server
