// Goal: scripts see what they declare, run as a whole or as far as they get, reach nothing outside,
// and can be ended; their values and errors are those of Redis.
// Method: a server in this process over an embedded pool, and clients with sockets.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nacre/pool.h"
#include "server/scripts/script_library.h"
#include "server/server.h"
#include "tests/server/redis_client.h"
#include "tests/support/status_assert.h"

namespace nacre::server {
namespace {

using Words = std::vector<std::string>;

class ScriptCommandsTest : public testing::Test {
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
  std::string Eval(const std::string& script, const Words& keys = {}, const Words& others = {}) {
    return client_->Do(CommandOf(script, keys, others));
  }
  static Words CommandOf(const std::string& script, const Words& keys, const Words& others) {
    Words words = {"EVAL", script, std::to_string(keys.size())};
    words.insert(words.end(), keys.begin(), keys.end());
    words.insert(words.end(), others.begin(), others.end());
    return words;
  }

  std::unique_ptr<Server> server_;
  std::unique_ptr<RedisClient> client_;
};

TEST_F(ScriptCommandsTest, ValuesAreTurnedAsRedisDoes) {
  EXPECT_EQ(Eval("return 3.99"), ":3");
  EXPECT_EQ(Eval("return 'text'"), "$text");
  EXPECT_EQ(Eval("return true"), ":1");
  EXPECT_EQ(Eval("return false"), "$nil");
  EXPECT_EQ(Eval("return"), "$nil");
  EXPECT_EQ(Eval("return {1, 'b', {3}, nil, 5}"), "*[:1 $b *[:3]]");
  EXPECT_EQ(Eval("return {ok='fine'}"), "+fine");
  EXPECT_EQ(Eval("return {err='MINE of my own'}"), "-MINE of my own");
  EXPECT_EQ(Eval("return redis.error_reply('plain')"), "-ERR plain");
  EXPECT_EQ(Eval("return {KEYS[1], ARGV[1], ARGV[2], #KEYS, #ARGV}", {"k"}, {"a", "b"}),
            "*[$k $a $b :1 :2]");
  Do("MSET a 1 b two");
  Do("RPUSH list x y");
  EXPECT_EQ(Eval("return redis.call('GET', 'a')", {"a"}), "$1");
  EXPECT_EQ(Eval("return redis.call('GET', 'none') == false", {"none"}), ":1");
  EXPECT_EQ(Eval("return redis.call('LRANGE', KEYS[1], 0, -1)", {"list"}), "*[$x $y]");
  EXPECT_EQ(Eval("return redis.call('SET', KEYS[1], 12.5)", {"a"}), "+OK");
  EXPECT_EQ(Eval("return type(redis.call('SET', KEYS[1], 7)['ok'])", {"a"}), "$string");
  EXPECT_EQ(Eval("return redis.call('INCRBY', KEYS[1], 3) + 1", {"a"}), ":11");
  EXPECT_EQ(Eval("return {redis.sha1hex('')}"), "*[$da39a3ee5e6b4b0d3255bfef95601890afd80709]");
}

TEST_F(ScriptCommandsTest, TypesOfResp3) {
  Do("HSET hash f v");
  EXPECT_EQ(Eval("redis.setresp(3); return redis.call('HGETALL', KEYS[1]).map.f", {"hash"}), "$v");
  EXPECT_EQ(Eval("redis.setresp(3); return redis.call('GET', KEYS[1]) == nil", {"no"}), ":1");
  EXPECT_EQ(Eval("redis.setresp(4)"), "-ERR user_script:1: RESP version must be 2 or 3. script: " +
                                          ScriptLibrary::Sha1("redis.setresp(4)") +
                                          ", on @user_script:1.");
  Do("HELLO 3");
  EXPECT_EQ(Eval("redis.setresp(3); return {map={f=true}}"), "%[$f #t]");
  EXPECT_EQ(Eval("return {double=1.5}"), ",1.5");
}

TEST_F(ScriptCommandsTest, ErrorsTellWhere) {
  const std::string unknown = "\nlocal n = redis.call('NOSUCH')";
  EXPECT_EQ(Eval(unknown), "-ERR Unknown Redis command called from script script: " +
                               ScriptLibrary::Sha1(unknown) + ", on @user_script:2.");
  EXPECT_EQ(Eval("return redis.pcall('NOSUCH').err"),
            "$ERR Unknown Redis command called from script");
  Do("SET text abc");
  EXPECT_EQ(Eval("return redis.pcall('INCR', KEYS[1])", {"text"}),
            "-ERR value is not an integer or out of range");
  EXPECT_EQ(Eval("local ok, e = pcall(redis.call, 'INCR', KEYS[1]); return {ok, e.err}", {"text"}),
            "*[$nil $ERR value is not an integer or out of range]");
  EXPECT_EQ(Eval("return this is no Lua").substr(0, 35), "-ERR Error compiling script (new fu");
  EXPECT_EQ(Eval("return redis.call()").substr(0, 31), "-ERR Please specify at least on");
  EXPECT_EQ(Eval("return redis.call({})").substr(0, 30), "-ERR Lua redis lib command arg");
  EXPECT_EQ(Do("EVAL x -1"), "-ERR Number of keys can't be negative");
  EXPECT_EQ(Do("EVAL x 2 a"), "-ERR Number of keys can't be greater than number of args");
  EXPECT_EQ(Do("EVALSHA 0123 0"), "-NOSCRIPT No matching script. Please use EVAL.");
}

TEST_F(ScriptCommandsTest, WhatAScriptChangesIsOneWrite) {
  EXPECT_EQ(Eval("redis.call('SET', KEYS[1], 1); redis.call('INCR', KEYS[1]);"
                 "redis.call('RPUSH', KEYS[2], 'x'); return redis.call('GET', KEYS[1])",
                 {"n", "l"}),
            "$2");
  EXPECT_EQ(Do("GET n"), "$2");
  // As with Redis, what it did before an error stays.
  Eval("redis.call('SET', KEYS[1], 5); error('late')", {"n"});
  EXPECT_EQ(Do("GET n"), "$5");
  // Clients that watch the key see the script's write.
  Do("WATCH n");
  (*Connect())("EVAL return(redis.call('INCR',KEYS[1])) 1 n");
  Do("MULTI");
  Do("GET n");
  EXPECT_EQ(Do("EXEC"), "*nil");
  Do("MULTI");
  Do("SET n 1");
  Do("EVAL return(redis.call('INCR','n')) 0");
  Do("GET n");
  EXPECT_EQ(Do("EXEC"), "*[+OK :2 $2]");
}

TEST_F(ScriptCommandsTest, SelectIsTheScriptsOwn) {
  EXPECT_EQ(Do("SELECT 3"), "+OK");
  EXPECT_EQ(Do("SELECT 0"), "+OK");
  EXPECT_EQ(Eval("redis.call('SELECT', 3); redis.call('SET', 'k', 'three'); return 1"), ":1");
  EXPECT_EQ(Do("GET k"), "$nil");
  EXPECT_EQ(Do("SELECT 3"), "+OK");
  EXPECT_EQ(Do("GET k"), "$three");
}

TEST_F(ScriptCommandsTest, KeysThatAreNotDeclaredAreLockedAllTheSame) {
  // Many clients move amounts between keys that the scripts do not declare: the sum stays.
  constexpr int kKeys = 8;
  constexpr int kMoves = 200;
  for (int i = 0; i < kKeys; ++i) Do("SET a" + std::to_string(i) + " 100");
  const std::string move =
      "local from, to = 'a' .. ARGV[1], 'a' .. ARGV[2];"
      "local n = tonumber(redis.call('GET', from)); redis.call('SET', from, n - 1);"
      "redis.call('SET', to, tonumber(redis.call('GET', to)) + 1); return n";
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const std::unique_ptr<RedisClient> client = Connect();
      for (int i = 0; i < kMoves; ++i) {
        const std::string from = std::to_string((i + t) % kKeys);
        const std::string to = std::to_string((i * 3 + t + 1) % kKeys);
        // Half of them declare one of the keys.
        const Words keys = i % 2 == 0 ? Words{} : Words{"a" + from};
        ASSERT_EQ(client->Do(CommandOf(move, keys, {from, to}))[0], ':');
        if (i % 50 == 0) client->Do({"SCRIPT", "FLUSH"});
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Eval("local sum = 0; for i = 0, 7 do sum = sum + redis.call('GET', 'a' .. i) end;"
                 "return sum"),
            ":800");
}

TEST_F(ScriptCommandsTest, ScriptsThatDeclareTheirKeysRunBesideOthers) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const std::unique_ptr<RedisClient> client = Connect();
      for (int i = 0; i < 500; ++i) {
        ASSERT_EQ(client->Do(CommandOf("local n = redis.call('GET', KEYS[1]) or 0;"
                                       "return redis.call('SET', KEYS[1], n + 1)",
                                       {"n"}, {})),
                  "+OK");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Do("GET n"), "$2000");
}

TEST_F(ScriptCommandsTest, ScriptsAreKeptByTheirSha) {
  const std::string sha = ScriptLibrary::Sha1("return 7");
  EXPECT_EQ(client_->Do({"SCRIPT", "LOAD", "return 7"}), "$" + sha);
  EXPECT_EQ(Do("EVALSHA " + sha + " 0"), ":7");
  EXPECT_EQ(Do("SCRIPT EXISTS " + sha + " 00"), "*[:1 :0]");
  EXPECT_EQ(Do("SCRIPT FLUSH SYNC"), "+OK");
  EXPECT_EQ(Do("SCRIPT EXISTS " + sha), "*[:0]");
  EXPECT_EQ(client_->Do({"SCRIPT", "LOAD", "no Lua"}).substr(0, 28),
            "-ERR Error compiling script ");
  EXPECT_EQ(Do("SCRIPT NOSUCH"), "-ERR unknown subcommand 'NOSUCH'. Try SCRIPT HELP.");
}

TEST_F(ScriptCommandsTest, AScriptReachesNothingOutside) {
  for (const char* const name :
       {"io", "debug", "package", "require", "dofile", "loadfile", "module", "getfenv", "setfenv",
        "newproxy", "jit", "ffi", "coroutine", "print"}) {
    EXPECT_NE(Eval(std::string("return ") + name + " == nil").find("nonexistent global variable"),
              std::string::npos)
        << name;
  }
  EXPECT_EQ(Eval("return os.execute == nil"), ":1");
  EXPECT_EQ(Eval("return string.dump == nil"), ":1");
  for (const char* const change :
       {"string.rep = 1", "redis.call = 1", "x = 1", "_G.x = 1", "rawset(string, 'rep', 1)",
        "rawset(_G, 'x', 1)", "math.random = 1", "setmetatable(_G, {})",
        "getmetatable(_G).__index = 1"}) {
    EXPECT_NE(Eval(change).find("Attempt to modify a readonly table"), std::string::npos) << change;
  }
  EXPECT_NE(Eval("getmetatable('').__index = 1")[0], ':');
  // What is compiled already is not loaded.
  EXPECT_EQ(Eval("return loadstring('\\27LJ') == nil"), ":1");
  // What is loaded has the script's variables, and no others.
  EXPECT_EQ(Eval("return loadstring('return KEYS[1]')()", {"k"}), "$k");
  EXPECT_NE(Eval("return loadstring('return io')()").find("nonexistent"), std::string::npos);
  EXPECT_EQ(Eval("collectgarbage('stop'); return collectgarbage('count') > 0"), ":1");
  EXPECT_EQ(Eval("return ('x'):rep(3)"), "$xxx");
  EXPECT_NE(Eval("error(setmetatable({}, {__index = error}))")[0], ':');
}

TEST_F(ScriptCommandsTest, OnlySomeCommandsAreForScripts) {
  for (const char* const command :
       {"MULTI", "EVAL', 'return 1', 0, '", "SUBSCRIBE', 'c", "CONFIG', 'GET', '*", "AUTH', 'x",
        "CLIENT', 'ID", "QUIT", "BLPOP', 'k', '0", "WATCH', 'k", "SCRIPT', 'FLUSH"}) {
    const std::string answer = Eval(std::string("return redis.pcall('") + command + "')");
    EXPECT_EQ(answer, "-ERR This Redis command is not allowed from script") << command;
  }
  Do("SET k v");
  EXPECT_EQ(Do("EVAL_RO return(redis.call('GET',KEYS[1])) 1 k"), "$v");
  EXPECT_EQ(Do("EVAL_RO return(redis.pcall('SET',KEYS[1],1)) 1 k"),
            "-ERR Write commands are not allowed from read-only scripts.");
}

TEST_F(ScriptCommandsTest, AScriptWithoutAnEndIsKilledAndHoldsUpNobody) {
  EXPECT_EQ(Do("SCRIPT KILL"), "-NOTBUSY No scripts in execution right now.");
  client_->Send(CommandOf("while true do end", {"k"}, {}));
  // All loops serve others meanwhile.
  std::vector<std::unique_ptr<RedisClient>> others;
  for (int i = 0; i < 8; ++i) {
    others.push_back(Connect());
    EXPECT_EQ((*others.back())("SET other" + std::to_string(i) + " 1"), "+OK");
  }
  std::string killed;
  while (killed != "+OK") killed = (*others.front())("SCRIPT KILL");
  EXPECT_EQ(client_->Read(), "-ERR Error running script: Script killed by user with SCRIPT KILL.");

  client_->Send(
      CommandOf("redis.call('SET', KEYS[1], 1); for i = 1, 3e7 do end; return 2", {"k"}, {}));
  std::string refused;
  while (!refused.starts_with("-UNKILLABLE") && !refused.starts_with("+")) {
    refused = (*others.front())("SCRIPT KILL");
    if ((*others.front())("EXISTS other1") != ":1") break;
  }
  const std::string answer = client_->Read();
  EXPECT_TRUE(answer == ":2" || refused == "+OK") << answer;
}

TEST_F(ScriptCommandsTest, AServerThatStopsCutsScriptsOff) {
  const std::unique_ptr<RedisClient> in_callback = Connect();
  client_->Send(CommandOf("redis.call('SET', KEYS[1], 1); while true do end", {"k"}, {}));
  in_callback->Send(CommandOf("('x'):gsub('x', function() while true do end end)", {}, {}));
  // Whether they have begun or not.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(IsOk(server_->Stop(std::chrono::milliseconds(100))));
}

TEST_F(ScriptCommandsTest, TheFirstLineMaySayWhatItNeeds) {
  EXPECT_EQ(Eval("#!lua flags=no-writes,allow-oom\nreturn 1"), ":1");
  EXPECT_EQ(Eval("#!lua\nredis.call('SET', KEYS[1], 1) return 2", {"k"}), ":2");
  EXPECT_EQ(Eval("#!lua flags=no-writes\nreturn redis.pcall('SET', KEYS[1], 1)", {"k"}),
            "-ERR Write commands are not allowed from read-only scripts.");
  EXPECT_EQ(Eval("#!js\nreturn 1"), "-ERR Unexpected engine in script shebang: js");
  EXPECT_EQ(Eval("#!lua name=x\nreturn 1"), "-ERR Unknown lua shebang option: name=x");
  EXPECT_EQ(Eval("#!lua flags=x\nreturn 1"), "-ERR Unexpected flag in script shebang: x");
  EXPECT_EQ(Eval("#!lua"), "-ERR Invalid script shebang");
  EXPECT_EQ(client_->Do({"SCRIPT", "LOAD", "#!js\n"}),
            "-ERR Unexpected engine in script shebang: js");
}

TEST_F(ScriptCommandsTest, LibrariesAreThere) {
  EXPECT_EQ(Eval("return bit.band(12, 10)"), ":8");
  EXPECT_EQ(Eval("return table.concat({'a', 'b'}, '-')"), "$a-b");
  const std::string json = Eval("return cjson.encode({1, {a = 'b'}})");
  // It is Debian's lua-cjson, which need not be installed.
  if (json.find("nonexistent global variable 'cjson'") == std::string::npos) {
    EXPECT_EQ(json, "$[1,{\"a\":\"b\"}]");
  }
}

}  // namespace
}  // namespace nacre::server
