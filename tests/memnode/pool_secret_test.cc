// Goal: the members of a pool take its secret from a file or the environment, serve peers that know
// it and no others, and never tell it. Method: files good and bad; nacre-memnode processes with
// clients and nacre-ctl that have the right secret, another one, or none.

#include "pool/connect/pool_secret.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "jobs/job_client.h"
#include "pool/pool_impl.h"
#include "tests/support/pool_fixture.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/temp_folder.h"

namespace nacre::pool {
namespace {

constexpr char kSecret[] = "tell-nobody-4711";

class Recorder final : public Logger {
 public:
  void Log(LogLevel /*level*/, std::string_view message) override { text += message; }
  std::string text;
};

class PoolSecretTest : public ::testing::Test {
 protected:
  std::string File(const std::string& name, const std::string& content, mode_t mode = 0600) {
    const std::string path = folder_.File(name);
    std::ofstream(path, std::ios::binary) << content;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  static Status Take(const std::string& path, std::string* secret,
                     const std::shared_ptr<Logger>& logger = nullptr) {
    Uri uri;
    EXPECT_TRUE(ParseUri("shm:@x?rtt_us=2&secret_file=" + path, &uri).ok());
    const Status status = TakeSecret(&uri, logger, secret);
    EXPECT_FALSE(uri.parameters.contains("secret_file"));
    EXPECT_TRUE(uri.parameters.contains("rtt_us"));
    return status;
  }

  const TempFolder folder_;
};

TEST_F(PoolSecretTest, AFileIsTakenWithoutItsLastNewline) {
  std::string secret;
  for (const std::string& end : {std::string(), std::string("\n"), std::string("\r\n")}) {
    ASSERT_TRUE(Take(File("secret", kSecret + end), &secret).ok());
    EXPECT_EQ(secret, kSecret);
  }
  ASSERT_TRUE(Take(File("secret", "two\nlines\n\n"), &secret).ok());
  EXPECT_EQ(secret, "two\nlines\n");
  const std::string bytes("\0\xff\x01 ", 4);
  ASSERT_TRUE(Take(File("secret", bytes), &secret).ok());
  EXPECT_EQ(secret, bytes);
  ASSERT_TRUE(Take(File("secret", std::string(kMaxSecretBytes, 's') + "\r\n"), &secret).ok());
  EXPECT_EQ(secret.size(), kMaxSecretBytes);
}

TEST_F(PoolSecretTest, WhatIsNoSecretIsNamed) {
  std::string secret;
  for (const std::string& content :
       {std::string(), std::string("\n"), std::string("\r\n"),
        std::string(kMaxSecretBytes + 1, 's'), std::string(1 << 20, 's')}) {
    const std::string path = File("bad", content);
    const Status status = Take(path, &secret);
    EXPECT_TRUE(status.IsInvalidArgument()) << status.ToString();
    EXPECT_NE(status.message().find(path), std::string_view::npos) << status.ToString();
  }
  for (const std::string& path : {folder_.File("missing"), folder_.path()}) {
    const Status status = Take(path, &secret);
    EXPECT_TRUE(status.IsIOError()) << status.ToString();
    EXPECT_NE(status.message().find(path), std::string_view::npos) << status.ToString();
  }
}

TEST_F(PoolSecretTest, AFileForEverybodysEyesIsWarnedOf) {
  const auto recorder = std::make_shared<Recorder>();
  std::string secret;
  ASSERT_TRUE(Take(File("mine", kSecret, 0640), &secret, recorder).ok());
  EXPECT_EQ(recorder->text, "");
  const std::string path = File("everybodys", kSecret, 0644);
  ASSERT_TRUE(Take(path, &secret, recorder).ok());
  EXPECT_EQ(secret, kSecret);
  EXPECT_NE(recorder->text.find(path), std::string::npos) << recorder->text;
  EXPECT_EQ(recorder->text.find(kSecret), std::string::npos) << recorder->text;
}

TEST_F(PoolSecretTest, AnEmbeddedPoolHasOneToo) {
  std::shared_ptr<Pool> pool;
  const std::string uri = "embedded:?nodes=2&size=4MiB&secret_file=" + File("secret", kSecret);
  PoolOpenOptions options;
  options.slab_bytes = 1 << 20;
  std::shared_ptr<PoolImpl> opened;
  const Status status = OpenPool(uri, options, Clock::System(), &opened);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(opened->client()->Ping(1).ok());
}

/// What each side of a connection was started with.
struct Given {
  std::string parameters{};
  std::vector<std::string> environment{};
};

TEST_F(PoolSecretTest, ANodeServesWhoKnowsIt) {
  const std::string right = "?secret_file=" + File("right", std::string(kSecret) + "\n");
  const std::string wrong = "?secret_file=" + File("wrong", "something else");
  const std::vector<Given> sources = {
      {.parameters = right},
      {.environment = {"NACRE_SECRET_FILE=" + folder_.File("right")}},
      {.environment = {std::string("NACRE_SECRET=") + kSecret}},
  };
  MemnodeProcess node({.parameters = right});
  for (const Given& given : sources) {
    const ProcessResult result =
        RunBinary("nacre-ctl", {"status", "--pool=" + node.address() + given.parameters}, 20,
                  given.environment);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    EXPECT_NE(result.output.find("1 of 1 reachable"), std::string::npos) << result.output;
  }
  const std::vector<Given> strangers = {
      {},
      {.parameters = wrong},
      {.environment = {"NACRE_SECRET=something else"}},
      {.parameters = wrong, .environment = {std::string("NACRE_SECRET=") + kSecret}},
  };
  for (const Given& given : strangers) {
    const ProcessResult result =
        RunBinary("nacre-ctl", {"nodes", "--pool=" + node.address() + given.parameters}, 20,
                  given.environment);
    EXPECT_EQ(result.exit_code, 1) << result.output;
    EXPECT_NE(result.output.find(node.address()), std::string::npos) << result.output;
    EXPECT_NE(result.output.find("does not know the pool's secret"), std::string::npos)
        << result.output;
    EXPECT_NE(result.output.find("NACRE_SECRET_FILE"), std::string::npos) << result.output;
    EXPECT_EQ(result.output.find(kSecret), std::string::npos) << result.output;

    PoolOpenOptions options;
    options.slab_bytes = 1 << 20;
    options.pool.secret = "not this one either";
    std::shared_ptr<PoolImpl> pool;
    const Status status = OpenPool(node.address(), options, Clock::System(), &pool);
    EXPECT_TRUE(status.IsUnavailable()) << status.ToString();
    EXPECT_NE(status.message().find("secret"), std::string_view::npos) << status.ToString();
  }
  const ProcessResult counted =
      RunBinary("nacre-ctl", {"nodes", "--json", "--pool=" + node.address() + right});
  EXPECT_EQ(counted.exit_code, 0) << counted.output;
  EXPECT_EQ(counted.output.find("\"peers_refused\": 0,"), std::string::npos) << counted.output;
  EXPECT_NE(counted.output.find("\"frames_malformed\": 0,"), std::string::npos) << counted.output;

  PoolOptions options;
  options.secret = kSecret;
  PoolOpenOptions open_options;
  open_options.slab_bytes = 1 << 20;
  open_options.pool = options;
  std::shared_ptr<PoolImpl> pool;
  const Status status = OpenPool(node.address(), open_options, Clock::System(), &pool);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_TRUE(pool->client()->Ping(0).ok());
}

TEST_F(PoolSecretTest, ANodeWithoutOneServesNobodyWhoHasOne) {
  const MemnodeProcess node;
  EXPECT_EQ(RunBinary("nacre-ctl", {"status", "--pool=" + node.address()}).exit_code, 0);
  const ProcessResult result = RunBinary("nacre-ctl", {"status", "--pool=" + node.address()}, 20,
                                         {std::string("NACRE_SECRET=") + kSecret});
  EXPECT_EQ(result.exit_code, 1) << result.output;
  EXPECT_NE(result.output.find("secret"), std::string::npos) << result.output;
}

TEST_F(PoolSecretTest, NothingStartsWithABadOne) {
  const std::string empty = File("empty", "\n");
  const std::vector<Given> cases = {
      {.parameters = "?secret_file=" + empty},
      {.parameters = "?secret_file=" + folder_.File("missing")},
      {.environment = {"NACRE_SECRET_FILE=" + empty}},
      {.environment = {"NACRE_SECRET_FILE="}},
      {.environment = {"NACRE_SECRET="}},
  };
  for (const Given& given : cases) {
    const ProcessResult started = RunBinary(
        "nacre-memnode",
        {"--listen=shm:@nacre-secret-test" + given.parameters, "--size=1MiB", "--slab_size=1MiB"},
        20, given.environment);
    EXPECT_EQ(started.exit_code, 1) << started.output;
    EXPECT_NE(started.output.find("secret"), std::string::npos) << started.output;
    const ProcessResult asked =
        RunBinary("nacre-ctl", {"status", "--pool=shm:@nacre-secret-test" + given.parameters}, 20,
                  given.environment);
    EXPECT_EQ(asked.exit_code, 1) << asked.output;
    EXPECT_NE(asked.output.find("secret"), std::string::npos) << asked.output;
  }
}

class PoolSecretCompactionTest : public PoolFixture {};

TEST_F(PoolSecretCompactionTest, NodesThatKnowItWriteToOneAnother) {
  const std::string path = testing::TempDir() + "nacre-secret-" + std::to_string(getpid());
  std::ofstream(path) << kSecret;
  EXPECT_EQ(chmod(path.c_str(), 0600), 0);
  const std::string parameters = "?secret_file=" + path;
  {
    const MemnodeProcess first({.parameters = parameters});
    const MemnodeProcess second({.parameters = parameters});
    OpenPoolAt(first.address() + "," + second.socket_path() + parameters);
    CreateDatabase();
    std::vector<TestEntry> entries;
    for (uint64_t i = 0; i < 20'000; ++i) {
      entries.push_back({.user_key = std::to_string(1'000'000 + i),
                         .tag = PackTag(i + 1, ValueType::kValue),
                         .value = std::string(100, 'v')});
    }
    std::shared_ptr<const TableMeta> table;
    ASSERT_TRUE(WriteTable(entries, 1, 0, &table).ok());
    // Two copies of the output: one where it is made, the other at the executor's peer.
    const CompactionJob job = MakeJob({{table}}, 2, 3, 3'000'000);
    CompactionResult result;
    const Status status = pool::RunOnNode(client_, 0, job, nullptr, &result);
    ASSERT_TRUE(status.ok()) << status.ToString();
    std::vector<TestEntry> compacted;
    for (const TableMeta& output : result.tables) {
      ASSERT_EQ(output.placement.fragments.size(), 2u);
      std::vector<TestEntry> part;
      ASSERT_TRUE(ReadTable(std::make_shared<const TableMeta>(output), &part).ok());
      compacted.insert(compacted.end(), part.begin(), part.end());
    }
    EXPECT_EQ(compacted.size(), entries.size());
    ClosePool();
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace nacre::pool
