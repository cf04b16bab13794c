// Goal: of several servers with --standby one serves, clients find it by any of them as by Redis
// Sentinel, and another one takes over what was acknowledged when it is killed, told to end, or
// stands still; one that comes back changes nothing. Method: processes over nodes that are
// processes; kill -9, SIGTERM, SIGSTOP.

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/redis_client.h"
#include "tests/server/server_process.h"
#include "tests/support/process/memnode_process.h"

namespace nacre::server {
namespace {

class StandbyTest : public testing::Test {
 protected:
  std::vector<std::string> Flags() const {
    return {"--pool=shm:" + one_.socket_path() + "," + two_.socket_path(),
            "--redundancy=rep(2)",
            "--slab_size=1048576",
            "--write_buffer_size=1048576",
            "--standby",
            "--down_after_ms=1000"};
  }
  static std::string PortOf(const ServerProcess& server) {
    return server.address().substr(server.address().rfind(':') + 1);
  }
  static std::string AddressIn(const ServerProcess& server) {
    return "*[$127.0.0.1 $" + PortOf(server) + "]";
  }
  /// Asks until the answer is `expected`, or a minute has passed.
  static void Await(const ServerProcess& server, const std::string& line,
                    const std::string& expected) {
    RedisClient client(server.address());
    std::string answer;
    for (int i = 0; i < 3000; ++i) {
      answer = client(line);
      if (answer == expected) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    ADD_FAILURE() << line << " answers " << answer;
  }
  static void AwaitServing(const ServerProcess& server) {
    Await(server, "ROLE", "*[$master :0 *[]]");
    Await(server, "SENTINEL GET-MASTER-ADDR-BY-NAME redis", AddressIn(server));
  }
  static void AwaitKnown(const ServerProcess& server, const ServerProcess& master) {
    Await(server, "SENTINEL GET-MASTER-ADDR-BY-NAME redis", AddressIn(master));
  }

 private:
  const MemnodeProcess one_;
  const MemnodeProcess two_;
};

TEST_F(StandbyTest, OneThatWaitsAnswersWhatNeedsNoKeysAndWhoServes) {
  ServerProcess serves(Flags());
  AwaitServing(serves);
  ServerProcess waits(Flags());
  AwaitKnown(waits, serves);
  RedisClient client(waits.address());
  EXPECT_EQ(client("PING"), "+PONG");
  EXPECT_EQ(client("ROLE"), "*[$slave $127.0.0.1 :" + PortOf(serves) + " $connect :0]");
  EXPECT_TRUE(client("GET a").starts_with("-LOADING ")) << client("GET a");
  EXPECT_TRUE(client("SELECT 1").starts_with("-LOADING "));
  EXPECT_EQ(client("MULTI").substr(0, 9), "-LOADING ");
  EXPECT_NE(
      client("INFO").find("role:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:" + PortOf(serves)),
      std::string::npos);
  EXPECT_EQ(client("SENTINEL GET-MASTER-ADDR-BY-NAME other"), "*nil");
  EXPECT_EQ(client("SENTINEL REPLICAS redis"), "*[]");
  EXPECT_TRUE(client("SENTINEL MASTER other").starts_with("-ERR No such master"));
  EXPECT_NE(client("SENTINEL MASTERS").find("$flags $master"), std::string::npos);
  // The name has a port for each server.
  EXPECT_NE(client("SENTINEL MASTER redis").find("$port $" + PortOf(serves)), std::string::npos);
}

TEST_F(StandbyTest, WhatWasAcknowledgedIsServedByTheNextOne) {
  auto serves = std::make_unique<ServerProcess>(Flags());
  AwaitServing(*serves);
  int acknowledged = 0;
  for (int life = 0; life < 3; ++life) {
    auto next = std::make_unique<ServerProcess>(Flags());
    AwaitKnown(*next, *serves);
    RedisClient told(next->address());
    told("SUBSCRIBE +switch-master");
    {
      RedisClient client(serves->address());
      for (int i = 0; i < 100; ++i, ++acknowledged) {
        const std::string number = std::to_string(acknowledged);
        ASSERT_EQ(client("SET key" + number + " value" + number), "+OK");
      }
    }
    serves->process().Signal(life == 1 ? SIGTERM : SIGKILL);
    EXPECT_EQ(told.Read(), "*[$message $+switch-master $redis 127.0.0.1 " + PortOf(*serves) +
                               " 127.0.0.1 " + PortOf(*next) + "]");
    AwaitServing(*next);
    RedisClient client(next->address());
    for (int i = 0; i < acknowledged; ++i) {
      ASSERT_EQ(client("GET key" + std::to_string(i)), "$value" + std::to_string(i));
    }
    serves = std::move(next);
  }
}

TEST_F(StandbyTest, OneThatStandsStillIsReplacedAndEnds) {
  ServerProcess frozen(Flags());
  AwaitServing(frozen);
  ServerProcess next(Flags());
  AwaitKnown(next, frozen);
  RedisClient client(frozen.address());
  EXPECT_EQ(client("SET a 1"), "+OK");
  frozen.process().Signal(SIGSTOP);
  AwaitServing(next);
  RedisClient other(next.address());
  EXPECT_EQ(other("GET a"), "$1");
  EXPECT_EQ(other("SET a 2"), "+OK");
  frozen.process().Signal(SIGCONT);
  EXPECT_EQ(frozen.process().AwaitExit(kPatienceSeconds), 1);
  EXPECT_EQ(other("GET a"), "$2");
}

}  // namespace
}  // namespace nacre::server
