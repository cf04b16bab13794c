// Goal: nacre-server serves what it promises as a process of its own, ends when it is told to, and
// what it acknowledged is there for the next one. Method: the program over an embedded pool, and
// over nodes that are processes; SIGTERM and kill -9.

#include "tests/server/server_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/server/redis_client.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/temp_folder.h"

namespace nacre::server {
namespace {

TEST(ServerProcessTest, ServesAnEmbeddedPoolUntilItIsToldToEnd) {
  ServerProcess server({"--pool=embedded:?nodes=1&size=256MiB", "--slab_size=8388608"});
  RedisClient client(server.address());
  EXPECT_EQ(client("PING"), "+PONG");
  EXPECT_EQ(client("SET greeting hello"), "+OK");
  EXPECT_EQ(client("GET greeting"), "$hello");
  EXPECT_EQ(client("GET other"), "$nil");
  EXPECT_EQ(client("NOSUCH a b"),
            "-ERR unknown command 'NOSUCH', with args beginning with: 'a' 'b' ");
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().AwaitExit(kPatienceSeconds), 0);
  EXPECT_TRUE(client.AwaitClosed());
}

TEST(ServerProcessTest, TellsWhatIsWrongWithItsFlags) {
  const auto output = [](const std::vector<std::string>& flags) {
    const ProcessResult result = RunBinary("nacre-server", flags, kPatienceSeconds);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    return result.output;
  };
  EXPECT_NE(output({}).find("--pool is missing"), std::string::npos);
  const std::string pool = "--pool=embedded:?nodes=1&size=128MiB";
  EXPECT_NE(output({pool, "--listen=nowhere"}).find("'nowhere' is not HOST:PORT"),
            std::string::npos);
  EXPECT_NE(output({pool, "--threads=0"}).find("the number of threads is 0"), std::string::npos);
  EXPECT_NE(output({pool, "--standby", "--listen=0.0.0.0:0"}).find("--announce"),
            std::string::npos);
  EXPECT_NE(output({pool, "--standby", "--take_over"}).find("--standby waits"), std::string::npos);
  EXPECT_NE(output({pool, "serve"}).find("'serve' is no flag"), std::string::npos);
  EXPECT_NE(output({pool, "--requirepass_file=/nonexistent/file"}).find("--requirepass_file"),
            std::string::npos);
}

TEST(ServerProcessTest, WhatWasAcknowledgedOutlivesTheProcess) {
  const MemnodeProcess one;
  const MemnodeProcess two;
  const std::vector<std::string> flags = {
      "--pool=shm:" + one.socket_path() + "," + two.socket_path(), "--redundancy=rep(2)",
      "--slab_size=1048576", "--write_buffer_size=1048576"};
  int acknowledged = 0;
  {
    ServerProcess server(flags);
    RedisClient client(server.address());
    for (; acknowledged < 500; ++acknowledged) {
      const std::string number = std::to_string(acknowledged);
      ASSERT_EQ(client("SET key" + number + " value" + number), "+OK");
    }
    server.process().Kill();
  }
  ServerProcess next(flags);
  RedisClient client(next.address());
  for (int i = 0; i < acknowledged; ++i) {
    ASSERT_EQ(client("GET key" + std::to_string(i)), "$value" + std::to_string(i));
  }
  EXPECT_EQ(client("SET more 1"), "+OK");
  next.process().Signal(SIGTERM);
  EXPECT_EQ(next.process().AwaitExit(kPatienceSeconds), 0);
  ServerProcess last(flags);
  RedisClient again(last.address());
  EXPECT_EQ(again("GET more"), "$1");
}

TEST(ServerProcessTest, AsksForThePasswordOfItsFile) {
  const TempFolder folder;
  const std::string path = folder.File("password");
  std::FILE* const file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs("secret word\n", file);
  std::fclose(file);
  ServerProcess server({"--pool=embedded:?nodes=1&size=256MiB", "--slab_size=8388608",
                        "--requirepass_file=" + path});
  RedisClient client(server.address());
  EXPECT_EQ(client("GET a"), "-NOAUTH Authentication required.");
  EXPECT_EQ(client("AUTH wrong"), "-WRONGPASS invalid username-password pair or user is disabled.");
  EXPECT_EQ(client.Do({"AUTH", "secret word"}), "+OK");
  EXPECT_EQ(client("GET a"), "$nil");
}

}  // namespace
}  // namespace nacre::server
