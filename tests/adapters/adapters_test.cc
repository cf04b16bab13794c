// Goal: the C APIs do what their headers say, over nodes inside the process and over others, and a
// program that was written for LevelDB answers the same with Nacre in LevelDB's place.
//
// Method: programs in C that call each function run as processes of their own. Those of nacre/c.h
// check what they are answered. leveldb_program.c prints it, and the output with LevelDB's library
// is the yardstick for that with ours.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/process/etcd_process.h"
#include "tests/support/process/memnode_process.h"
#include "tests/support/temp_folder.h"

namespace nacre {
namespace {

constexpr int kSeconds = 300;
constexpr const char* kEmbedded = "embedded:?nodes=3&size=1GiB";

std::string LibraryPath(const std::string& name) {
  return std::filesystem::path(NACRE_TEST_BIN_DIR).parent_path().string() + "/lib/" + name;
}

MemnodeProcessOptions Nodes() { return {.size = "1GiB", .slab_size = "64MiB"}; }

TEST(CApiTest, EachFunctionOverAnEmbeddedPool) {
  const TempFolder folder;
  const ProcessResult result =
      RunBinary("c_api_program", {kEmbedded, folder.File("checkpoints")}, kSeconds);
  EXPECT_EQ(0, result.exit_code) << result.output;
}

TEST(CApiTest, EachFunctionOverNodesOfThisHost) {
  const MemnodeProcesses nodes(3, Nodes());
  const TempFolder folder;
  const ProcessResult result =
      RunBinary("c_api_program", {nodes.pool_uri(), folder.File("checkpoints")}, kSeconds);
  EXPECT_EQ(0, result.exit_code) << result.output;
}

/// Runs the program over nodes inside the process and over others.
void ExpectToEndWell(const std::string& program) {
  const ProcessResult embedded = RunBinary(program, {kEmbedded}, kSeconds);
  EXPECT_EQ(0, embedded.exit_code) << embedded.output;
  const MemnodeProcesses nodes(3, Nodes());
  const ProcessResult others = RunBinary(program, {nodes.pool_uri()}, kSeconds);
  EXPECT_EQ(0, others.exit_code) << others.output;
}

TEST(CApiTest, FamiliesAndKindsOfUpdates) { ExpectToEndWell("c_families_program"); }

TEST(CApiTest, Callbacks) { ExpectToEndWell("c_callbacks_program"); }

TEST(CApiTest, CallbacksThatThrow) { ExpectToEndWell("c_exceptions_program"); }

TEST(CApiTest, Transactions) { ExpectToEndWell("c_transactions_program"); }

TEST(CApiTest, Keyspaces) {
  ExpectToEndWell("c_keyspaces_program");
  if (!EtcdProcess::Installed()) GTEST_SKIP() << "etcd is not installed";
  const EtcdProcess etcd;
  const MemnodeProcesses nodes(3, Nodes());
  const ProcessResult result =
      RunBinary("c_keyspaces_program", {nodes.pool_uri(), "etcd:" + etcd.endpoint()}, kSeconds);
  EXPECT_EQ(0, result.exit_code) << result.output;
}

TEST(CApiTest, EndsWithADatabaseOpen) { ExpectToEndWell("c_exit_program"); }

// This process holds Nacre itself, and each library has a copy of its own: message types that are
// registered twice, or one's functions taken for the other's, would end it.
TEST(LibrariesTest, MayMeetInOneProcess) {
  for (const auto& [name, function] : {std::pair("libnacre_c.so", "nacre_error_code"),
                                       std::pair("libnacre_c_etcd.so", "nacre_use_etcd"),
                                       std::pair("libnacre_leveldb.so", "leveldb_open")}) {
    void* const library = ::dlopen(LibraryPath(name).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    EXPECT_NE(::dlsym(library, function), nullptr);
  }
}

TEST(LibrariesTest, AProgramMayLoadTheExtensionOfSqlite) {
  const MemnodeProcesses nodes(3, Nodes());
  const std::string extension = std::string(NACRE_TEST_BIN_DIR) + "/nacre_sqlite.so";
  const ProcessResult result =
      RunBinary("c_beside_sqlite", {nodes.pool_uri(), extension}, kSeconds);
  EXPECT_EQ(0, result.exit_code) << result.output;
}

/// Runs leveldb_program with each of the libraries.
class LevelDBTest : public testing::Test {
 protected:
  /// The programs must not see what is set in the environment of this test.
  void SetUp() override {
    for (const char* name : {"NACRE_POOL", "NACRE_REDUNDANCY", "NACRE_SLAB_SIZE"}) ::unsetenv(name);
  }
  std::string Run(const std::string& program, std::vector<std::string> environment) {
    environment.push_back("TEST_TMPDIR=" + folder_.path());
    // An embedded pool stays as long as its process, on purpose; others do not, and are looked at.
    const bool stays = environment.front() == std::string("NACRE_POOL=") + kEmbedded;
    if (stays) environment.push_back("ASAN_OPTIONS=detect_leaks=0");
    const ProcessResult result = RunBinary(program, {folder_.File("db")}, kSeconds, environment);
    EXPECT_EQ(0, result.exit_code) << result.output;
    return result.output;
  }
  std::string RunOnLevelDB() { return Run("leveldb_program_leveldb", {}); }

  const TempFolder folder_;
};

TEST_F(LevelDBTest, AnswersTheSameOverAnEmbeddedPool) {
  const std::string answers =
      Run("leveldb_program_nacre", {std::string("NACRE_POOL=") + kEmbedded});
  EXPECT_FALSE(std::filesystem::exists(folder_.File("db")));
  EXPECT_NE(answers.find("twice: IO error: lock "), std::string::npos) << answers;
  EXPECT_EQ(RunOnLevelDB(), answers);
}

TEST_F(LevelDBTest, AnswersTheSameOverNodesOfThisHost) {
  const MemnodeProcesses nodes(3, {.size = "256MiB", .slab_size = "1MiB"});
  EXPECT_EQ(RunOnLevelDB(),
            Run("leveldb_program_nacre", {"NACRE_POOL=" + nodes.pool_uri(),
                                          "NACRE_REDUNDANCY=rep(2)", "NACRE_SLAB_SIZE=1MiB"}));
}

// The run-time of a sanitizer wants to be loaded before all else.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(LevelDBTest, TakesThePlaceOfTheLibraryThatAProgramWasBuiltAgainst) {
  const std::string answers = Run(
      "leveldb_program_leveldb",
      {"LD_PRELOAD=" + LibraryPath("libnacre_leveldb.so"), std::string("NACRE_POOL=") + kEmbedded});
  EXPECT_FALSE(std::filesystem::exists(folder_.File("db")));
  EXPECT_EQ(RunOnLevelDB(), answers);
}
#endif

TEST_F(LevelDBTest, SaysWhatIsWrongWithItsEnvironment) {
  const struct {
    std::vector<std::string> environment;
    std::string message;
  } kCases[] = {
      {{"NACRE_POOL="}, "Invalid argument: NACRE_POOL is not set"},
      {{"NACRE_POOL=nonsense"}, "Invalid argument: "},
      {{"NACRE_POOL=shm:/nonexistent.sock"}, "IO error: Unavailable: "},
      {{std::string("NACRE_POOL=") + kEmbedded, "NACRE_SLAB_SIZE=huge"}, "NACRE_SLAB_SIZE: "},
      {{std::string("NACRE_POOL=") + kEmbedded, "NACRE_REDUNDANCY=rep(9)"}, "rep(9) needs 9 nodes"},
  };
  for (const auto& [environment, message] : kCases) {
    const ProcessResult result =
        RunBinary("leveldb_program_nacre", {folder_.File("db")}, kSeconds, environment);
    EXPECT_EQ(1, result.exit_code);
    EXPECT_NE(result.output.find("open: "), std::string::npos) << result.output;
    EXPECT_NE(result.output.find(message), std::string::npos) << result.output;
  }
}

}  // namespace
}  // namespace nacre
