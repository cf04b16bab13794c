// Goal: `nacre-ctl nodes` tells which nodes answer and how soon, and one that does not is shown as
// down without holding up the command, which has an hour for it.
// Method: the tool as a process, over nacre-memnode processes, of which one is stopped and goes on.

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tests/support/process/memnode_process.h"

namespace nacre::ctl {
namespace {

class NodesTest : public testing::TestWithParam<std::string> {
 protected:
  /// The whole output, and the line of each node.
  ProcessResult Nodes(std::vector<std::string>* lines) {
    const std::string wait = GetParam() == "tcp" ? "?timeout_ms=3600000" : "";
    ProcessResult result = RunBinary(
        "nacre-ctl", {"nodes", "--pool=" + nodes_.pool_uri() + wait, "--timeout_ms=3600000"});
    lines->assign(nodes_.size(), "");
    std::istringstream text(result.output);
    for (std::string line; std::getline(text, line);) {
      for (size_t i = 0; i < nodes_.size(); ++i) {
        if (line.find(nodes_[i].address() + " ") != std::string::npos) (*lines)[i] = line;
      }
    }
    return result;
  }
  static bool IsDown(const std::string& line) { return line.find(" down ") != std::string::npos; }
  /// "12/85"
  static bool HasTimes(const std::string& line) {
    const size_t slash = line.find('/', line.find("MiB"));
    return slash != std::string::npos && std::isdigit(line[slash - 1]) != 0 &&
           std::isdigit(line[slash + 1]) != 0;
  }

  MemnodeProcesses nodes_{3, {.scheme = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Schemes, NodesTest, testing::Values("tcp", "shm"),
                         [](const auto& scheme) { return scheme.param; });

TEST_P(NodesTest, AStoppedNodeIsDownUntilItGoesOn) {
  std::vector<std::string> lines;
  ProcessResult result = Nodes(&lines);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(lines[i].find("   " + std::to_string(i) + " "), 0u) << lines[i];
    EXPECT_FALSE(IsDown(lines[i])) << lines[i];
    EXPECT_TRUE(HasTimes(lines[i])) << lines[i];
  }
  nodes_[1].Pause();
  result = Nodes(&lines);
  EXPECT_EQ(result.exit_code, 1) << result.output;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(IsDown(lines[i]), i == 1) << lines[i];
    EXPECT_EQ(HasTimes(lines[i]), i != 1) << lines[i];
  }
  nodes_[1].Resume();
  result = Nodes(&lines);
  EXPECT_EQ(result.exit_code, 0) << result.output;
  EXPECT_TRUE(HasTimes(lines[1])) << lines[1];
}

TEST_P(NodesTest, JsonHasAllOfThem) {
  nodes_[2].Kill();
  const ProcessResult result =
      RunBinary("nacre-ctl", {"nodes", "--json", "--pool=" + nodes_.pool_uri()});
  EXPECT_EQ(result.exit_code, 1) << result.output;
  for (const char* member : {"\"number\": 0", "\"read_seconds\": {\"p50\": 0.0",
                             "\"ping_seconds\": {\"p50\": 0.", "\"p99\": ", "\"slabs\": 64",
                             "\"number\": 2", "\"reachable\": false, \"state\": \"down\""}) {
    EXPECT_NE(result.output.find(member), std::string::npos) << member << "\n" << result.output;
  }
}

}  // namespace
}  // namespace nacre::ctl
