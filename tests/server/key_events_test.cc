// Goal: clients hear of each change of a key that they ask for, by Redis's names and in their
// order, once it has taken effect; and of nothing else. Method: a server in this process over an
// embedded pool, and a client that has subscribed to all events. Redis's own tests of them run too
// (redis_suite.py).

#include "server/session/key_events.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "nacre/pool.h"
#include "server/server.h"
#include "tests/server/redis_client.h"
#include "tests/support/status_assert.h"

namespace nacre::server {
namespace {

class KeyEventsTest : public testing::Test {
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
    client_ = std::make_unique<RedisClient>(server_->address());
    listener_ = std::make_unique<RedisClient>(server_->address());
    (*listener_)("PSUBSCRIBE __keyevent@*");
    marker_ = std::make_unique<RedisClient>(server_->address());
  }
  std::string Do(const std::string& line) { return (*client_)(line); }
  /// The events that come until one that this makes, such as "del k".
  std::vector<std::string> Events() {
    (*marker_)("PUBLISH __keyevent@0__:end .");
    std::vector<std::string> events;
    const std::string prefix = "*[$pmessage $__keyevent@* $__keyevent@";
    for (;;) {
      std::string event = listener_->Read();
      EXPECT_TRUE(event.starts_with(prefix)) << event;
      if (!event.starts_with(prefix)) return events;
      event = event.substr(prefix.size());
      if (event == "0__:end $.]") return events;
      const size_t name = event.find(':') + 1;
      const size_t key = event.find(" $", name);
      // Another database is shown by its number.
      const std::string database = event[0] == '0' ? "" : event.substr(0, 1) + "/";
      events.push_back(database + event.substr(name, key - name) + " " +
                       event.substr(key + 2, event.size() - key - 3));
    }
  }

  using Expected = std::vector<std::string>;
  std::unique_ptr<Server> server_;
  std::unique_ptr<RedisClient> client_;
  std::unique_ptr<RedisClient> listener_;
  std::unique_ptr<RedisClient> marker_;
};

TEST_F(KeyEventsTest, EachChangeHasItsName) {
  EXPECT_EQ(Do("CONFIG SET notify-keyspace-events EA"), "+OK");
  const std::vector<std::pair<std::string, Expected>> cases = {
      {"SET k v", {"set k"}},
      {"SET k v EX 100", {"set k", "expire k"}},
      {"GET k", {}},
      {"EXPIRE k 10", {"expire k"}},
      {"PERSIST k", {"persist k"}},
      {"PERSIST k", {}},
      {"SET k v NX", {}},
      {"APPEND k w", {"append k"}},
      {"GETEX k EX 10", {"expire k"}},
      {"GETEX k PERSIST", {"persist k"}},
      {"COPY k j", {"copy_to j"}},
      {"MSET a 1 b 2", {"set a", "set b"}},
      {"INCR a", {"incrby a"}},
      {"RENAME a c", {"rename_from a", "rename_to c"}},
      {"MOVE c 1", {"move_from c", "1/move_to c"}},
      {"DEL j k missing", {"del j", "del k"}},
      {"EXPIRE b -1", {"del b"}},
      {"RPUSH l 1 2 3", {"rpush l"}},
      {"LMOVE l m LEFT RIGHT", {"lpop l", "rpush m"}},
      {"RPOPLPUSH m l", {"rpop m", "lpush l", "del m"}},
      {"LPOP l", {"lpop l"}},
      {"LTRIM l 5 6", {"ltrim l", "del l"}},
      {"SADD s a b", {"sadd s"}},
      {"SADD s a", {}},
      {"SMOVE s t a", {"srem s", "sadd t"}},
      {"SUNIONSTORE u s t", {"sunionstore u"}},
      {"SINTERSTORE u s t", {"del u"}},
      {"SREM s b", {"srem s", "del s"}},
      {"SET EX v KEEPTTL", {"set EX"}},
      {"RPUSH RIGHT 1 2", {"rpush RIGHT"}},
      {"LMPOP 1 RIGHT LEFT", {"lpop RIGHT"}},
      {"LMPOP 1 RIGHT RIGHT", {"rpop RIGHT", "del RIGHT"}},
      {"SET t text", {"set t"}},
      {"HSET h f v", {"hset h"}},
      {"HSET h f w", {"hset h"}},
      {"HDEL h f", {"hdel h", "del h"}},
      {"ZADD z 1 a", {"zadd z"}},
      {"ZINCRBY z 1 a", {"zincr z"}},
      {"ZPOPMAX z", {"zpopmax z", "del z"}},
      {"GETDEL t", {"del t"}},
  };
  for (const auto& [command, expected] : cases) {
    Do(command);
    EXPECT_EQ(Events(), expected) << command;
  }
}

TEST_F(KeyEventsTest, TheyComeWhenAllHasTakenEffect) {
  EXPECT_EQ(Do("CONFIG SET notify-keyspace-events EA"), "+OK");
  Do("MULTI");
  Do("SET k 1");
  Do("DEL k");
  EXPECT_EQ(Events(), Expected());
  Do("EXEC");
  EXPECT_EQ(Events(), Expected({"set k", "del k"}));
  client_->Do({"EVAL", "redis.call('set', 'k', 1); redis.call('rpush', 'l', 1)", "0"});
  EXPECT_EQ(Events(), Expected({"set k", "rpush l"}));
  // One that waits takes what another one brings.
  RedisClient waiting(server_->address());
  waiting.Send({"BLPOP", "queue", "0"});
  while (Do("INFO clients").find("blocked_clients:1") == std::string::npos) {
  }
  Do("RPUSH queue x");
  EXPECT_EQ(waiting.Read(), "*[$queue $x]");
  EXPECT_EQ(Events(), Expected({"rpush queue", "lpop queue", "del queue"}));
  Do("PSETEX k 1 v");
  EXPECT_EQ(Events(), Expected({"set k", "expire k"}));
  EXPECT_EQ(listener_->Read(), "*[$pmessage $__keyevent@* $__keyevent@0__:expired $k]");
}

TEST_F(KeyEventsTest, OnlyThoseThatAreAskedFor) {
  Do("SET k v");
  EXPECT_EQ(Events(), Expected());
  EXPECT_EQ(Do("CONFIG SET notify-keyspace-events El"), "+OK");
  Do("SET k v");
  Do("RPUSH l x");
  Do("DEL l");
  EXPECT_EQ(Events(), Expected({"rpush l"}));
  EXPECT_EQ(Do("CONFIG SET notify-keyspace-events K$"), "+OK");
  RedisClient of_key(server_->address());
  of_key("SUBSCRIBE __keyspace@0__:k");
  Do("SET k v");
  Do("SET other v");
  Do("GETSET k w");
  EXPECT_EQ(of_key.Read(), "*[$message $__keyspace@0__:k $set]");
  EXPECT_EQ(of_key.Read(), "*[$message $__keyspace@0__:k $set]");
  EXPECT_EQ(Events(), Expected());
  EXPECT_TRUE(Do("CONFIG SET notify-keyspace-events Q").starts_with("-ERR CONFIG SET failed"));
}

TEST(KeyEventClassesTest, AreWrittenAsTheyAreRead) {
  for (const char* letters : {"", "AKE", "g$K", "lshzxE", "AKEn"}) {
    uint32_t classes = 0;
    ASSERT_TRUE(ParseEventClasses(letters, &classes)) << letters;
    uint32_t again = 0;
    ASSERT_TRUE(ParseEventClasses(FormatEventClasses(classes), &again));
    EXPECT_EQ(classes, again) << letters;
  }
}

}  // namespace
}  // namespace nacre::server
