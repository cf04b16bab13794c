#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "tests/db_bench/json_value.h"
#include "tests/support/process/memnode_process.h"

namespace nacre::bench {

/// A line of the report, taken apart.
struct ResultLine {
  std::string name;
  double micros_per_op = 0;
  uint64_t ops_per_second = 0;
  double seconds = 0;
  uint64_t ops = 0;
  bool has_rate = false;
  std::string note;
};

/// Lines of exactly RocksDB's form: printf's "%-12s : %11.3f micros/op %ld ops/sec %.3f seconds
/// %d operations;%s%s", where the tail is a rate of "%6.1f MB/s", a note in brackets, or both.
inline std::vector<ResultLine> ParseResultLines(const std::string& output) {
  static const std::regex kLine(
      R"(^(\S+) *: {1,12}(\d+\.\d{3}) micros/op (\d+) ops/sec (\d+\.\d{3}) seconds )"
      R"((\d+) operations;( {1,6}\d+\.\d MB/s)?( \(.*\))?$)");
  std::vector<ResultLine> lines;
  std::istringstream stream(output);
  for (std::string line; std::getline(stream, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, kLine)) continue;
    lines.push_back({.name = match[1],
                     .micros_per_op = std::stod(match[2]),
                     .ops_per_second = std::stoull(match[3]),
                     .seconds = std::stod(match[4]),
                     .ops = std::stoull(match[5]),
                     .has_rate = match[6].matched,
                     .note = match[7].matched ? match[7].str().substr(1) : ""});
  }
  return lines;
}

/// One run of the tool.
struct ToolRun {
  int exit_code = -1;
  std::string output;  ///< Standard output and standard error.
  std::vector<ResultLine> lines;
};

inline ToolRun RunTool(const std::vector<std::string>& arguments) {
  constexpr int kSecondsMax = 300;
  ProcessResult result = RunBinary("db_bench", arguments, kSecondsMax);
  return {.exit_code = result.exit_code,
          .output = result.output,
          .lines = ParseResultLines(result.output)};
}

/// A run that has to succeed.
inline ToolRun RunToolOk(const std::vector<std::string>& arguments) {
  ToolRun run = RunTool(arguments);
  EXPECT_EQ(run.exit_code, 0) << run.output;
  return run;
}

/// A path of this object's own, removed with it.
class TemporaryPath {
 public:
  explicit TemporaryPath(const std::string& name)
      : path_(std::filesystem::temp_directory_path() /
              ("nacre_db_bench_test." + std::to_string(getpid()) + "." + name)) {
    std::filesystem::remove_all(path_);
  }
  ~TemporaryPath() { std::filesystem::remove_all(path_); }
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;
  std::string str() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline JsonValue ReadJson(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return JsonValue::Parse(text.str());
}

}  // namespace nacre::bench
