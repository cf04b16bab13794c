// Goal: a pool's file says which nodes it has, whichever transports these use, and what is wrong
// with it is named by its line.
// Method: texts, and files as a pool is opened with them.

#include "pool/pool_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "pool/connect/lane.h"
#include "pool/pool_impl.h"
#include "tests/support/status_assert.h"
#include "tests/support/temp_folder.h"
#include "util/clock.h"

namespace nacre::pool {
namespace {

Status Parse(const std::string& text, Uri* pool) { return ParsePoolFile(text, "hall3", pool); }

TEST(PoolFileTest, NodesOfOneTransport) {
  Uri pool;
  pool.parameters["tls"] = "1";
  ASSERT_TRUE(
      IsOk(Parse("# The pool of hall 3.\n"
                 "\n"
                 "tcp:10.0.0.1:7000\n"
                 "  tcp:[fd00::2]:7000  # in the corner\r\n"
                 "?timeout_ms=3000&secret_file=/etc/a#b\n"
                 "tcp:10.0.0.3:7000",
                 &pool)));
  EXPECT_EQ(pool.ToString(),
            "tcp:10.0.0.1:7000,[fd00::2]:7000,10.0.0.3:7000"
            "?secret_file=/etc/a#b&timeout_ms=3000&tls=1");
}

TEST(PoolFileTest, NodesOfSeveralTransports) {
  Uri pool;
  ASSERT_TRUE(IsOk(Parse("shm:/run/n0.sock\ntcp:mn2:7000\n", &pool)));
  EXPECT_EQ(pool.ToString(), "mixed:shm:/run/n0.sock,tcp:mn2:7000");
}

TEST(PoolFileTest, WhatIsWrongIsNamedByItsLine) {
  const auto expect = [](const std::string& text, const std::string& message) {
    Uri pool;
    EXPECT_TRUE(IsFailure(Parse(text, &pool), Status::Code::kInvalidArgument, message)) << text;
  };
  expect("", "hall3 names no nodes");
  expect("# tcp:a:1\n\n", "hall3 names no nodes");
  expect("tcp:a:1\n10.0.0.2\n", "hall3:2");
  expect("tcp:a:1\n\ntcp:a:1\n", "hall3:3: 'tcp:a:1' is there already");
  expect("tcp:a:1,b:1\n", "hall3:1");
  expect("tcp:a:1?tls=1\n", "hall3:1");
  expect("tcp:a:1\n?tls\n", "hall3:2");
  expect("?tls=1\ntcp:a:1\n?tls=0\n", "hall3:3: parameter 'tls' is there already");
  expect("embedded:\n", "hall3:1");
  expect("tcp:\n", "hall3:1");
  expect("file:other\n", "hall3:1");
}

TEST(PoolFileTest, APoolIsOpenedWithIt) {
  const TempFolder folder;
  const std::string path = folder.path() + "/pool";
  const auto open = [&](const std::string& text) {
    std::ofstream(path, std::ios::trunc) << text;
    std::shared_ptr<PoolImpl> pool;
    return OpenPool("file:" + path, {}, Clock::System(), &pool);
  };
  EXPECT_TRUE(IsFailure(open("shm:" + folder.path() + "/nobody.sock\n"), Status::Code::kUnavailable,
                        "nobody.sock"));
  EXPECT_TRUE(IsFailure(open("nonsense\n"), Status::Code::kInvalidArgument, path + ":1"));
  std::string many;
  for (size_t i = 0; i <= kMaxLifelines; ++i) many += fmt::format("tcp:node{}:7000\n", i);
  EXPECT_TRUE(IsFailure(open(many), Status::Code::kInvalidArgument, "1025 nodes, more than 1024"));
  std::shared_ptr<PoolImpl> pool;
  EXPECT_TRUE(IsFailure(OpenPool("file:" + path + ".gone", {}, Clock::System(), &pool),
                        Status::Code::kIOError, ".gone"));
}

}  // namespace
}  // namespace nacre::pool
