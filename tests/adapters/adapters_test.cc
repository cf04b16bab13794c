// Goal: the C APIs do what their headers say, over nodes inside the process and over others, and a
// program that was written for LevelDB answers the same with Nacre in LevelDB's place.
//
// Method: programs in C that call each function (c_api_program.c, leveldb_program.c) run as
// processes of their own. The first checks what it is answered. The second prints it, and the
// output with LevelDB's library is the yardstick for that with ours.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/memnode_process.h"
#include "tests/support/temp_folder.h"

namespace nacre {
namespace {

constexpr int kSeconds = 300;
constexpr const char* kEmbedded = "embedded:?nodes=3&size=1GiB";

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

/// Runs leveldb_program with each of the libraries.
class LevelDBTest : public testing::Test {
 protected:
  std::string Run(const std::string& program, std::vector<std::string> environment) {
    environment.push_back("TEST_TMPDIR=" + folder_.path());
    const ProcessResult result = RunBinary(program, {folder_.File("db")}, kSeconds, environment);
    EXPECT_EQ(0, result.exit_code) << result.output;
    return result.output;
  }
  std::string RunOnLevelDB() { return Run("leveldb_program_leveldb", {}); }
  std::string RunOnNacre(const std::string& pool, const std::string& redundancy) {
    return Run("leveldb_program_nacre", {"NACRE_POOL=" + pool, "NACRE_REDUNDANCY=" + redundancy});
  }

  const TempFolder folder_;
};

TEST_F(LevelDBTest, AnswersTheSameOverAnEmbeddedPool) {
  const std::string answers = RunOnNacre(kEmbedded, "none");
  EXPECT_FALSE(std::filesystem::exists(folder_.File("db")));
  EXPECT_NE(answers.find("twice: IO error: lock "), std::string::npos) << answers;
  EXPECT_EQ(RunOnLevelDB(), answers);
}

TEST_F(LevelDBTest, AnswersTheSameOverNodesOfThisHost) {
  const MemnodeProcesses nodes(3, Nodes());
  EXPECT_EQ(RunOnLevelDB(), RunOnNacre(nodes.pool_uri(), "rep(2)"));
}

// The run-time of a sanitizer wants to be loaded before all else.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(LevelDBTest, TakesThePlaceOfTheLibraryThatAProgramWasBuiltAgainst) {
  const std::string library =
      std::filesystem::path(NACRE_TEST_BIN_DIR).parent_path().string() + "/lib/libnacre_leveldb.so";
  const std::string expected = RunOnLevelDB();
  EXPECT_EQ(expected, Run("leveldb_program_leveldb",
                          {"LD_PRELOAD=" + library, std::string("NACRE_POOL=") + kEmbedded}));
  EXPECT_FALSE(std::filesystem::exists(folder_.File("db")));
}
#endif

TEST_F(LevelDBTest, SaysThatItWantsAPool) {
  const ProcessResult result =
      RunBinary("leveldb_program_nacre", {folder_.File("db")}, kSeconds, {"NACRE_POOL="});
  EXPECT_NE(result.output.find("Invalid argument: NACRE_POOL is not set"), std::string::npos)
      << result.output;
}

}  // namespace
}  // namespace nacre
