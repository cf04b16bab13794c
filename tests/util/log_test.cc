// Goal: log lines reach their file whole and at once, formatted as written, from several threads;
// no logger means no work; a file that cannot be opened is an error with a name.
// Method: files in the test's folder, read back.

#include "util/log.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "util/clock.h"

namespace nacre {
namespace {

std::vector<std::string> LinesOf(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

class LogTest : public testing::Test {
 protected:
  std::string path_ = testing::TempDir() + "nacre_log_test_" +
                      testing::UnitTest::GetInstance()->current_test_info()->name();
  LogTest() { std::remove(path_.c_str()); }
  ~LogTest() override { std::remove(path_.c_str()); }
};

TEST_F(LogTest, LinesAreFormattedAndThereAtOnce) {
  Status status;
  const std::shared_ptr<Logger> logger = NewFileLogger(path_, &status);
  ASSERT_NE(nullptr, logger) << status.ToString();
  Log(logger, LogLevel::kInfo, "table {} at {:#x}", 7, 255);
  Log(logger.get(), LogLevel::kError, "{} {{}}", std::string("lost"));
  const std::vector<std::string> lines = LinesOf(path_);
  ASSERT_EQ(2U, lines.size());
  EXPECT_TRUE(lines[0].ends_with("info table 7 at 0xff")) << lines[0];
  EXPECT_TRUE(lines[1].ends_with("error lost {}")) << lines[1];
}

TEST_F(LogTest, MessagesAreNotFormats) {
  const std::shared_ptr<Logger> logger = NewFileLogger(path_);
  ASSERT_NE(nullptr, logger);
  logger->Log(LogLevel::kWarn, "100 % {} %s {1}");
  EXPECT_TRUE(LinesOf(path_).at(0).ends_with("100 % {} %s {1}"));
}

TEST_F(LogTest, Appends) {
  for (int i = 0; i < 2; ++i) {
    const std::shared_ptr<Logger> logger = NewFileLogger(path_);
    ASSERT_NE(nullptr, logger);
    Log(logger, LogLevel::kInfo, "opened {}", i);
  }
  EXPECT_EQ(2U, LinesOf(path_).size());
}

TEST_F(LogTest, LinesOfSeveralThreadsStayWhole) {
  const std::shared_ptr<Logger> logger = NewFileLogger(path_);
  ASSERT_NE(nullptr, logger);
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&logger, t] {
      for (int i = 0; i < 100; ++i) Log(logger, LogLevel::kInfo, "{}", std::string(200, 'a' + t));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> lines = LinesOf(path_);
  ASSERT_EQ(400U, lines.size());
  for (const std::string& line : lines) {
    EXPECT_TRUE(line.ends_with(" " + std::string(200, line.back()))) << line;
  }
}

TEST(LogWithoutFileTest, NullLoggerIsSilence) {
  Logger* const none = nullptr;
  Log(none, LogLevel::kError, "{}", 1);
  Log(std::shared_ptr<Logger>(), LogLevel::kError, "{}", 1);
}

TEST(LogWithoutFileTest, UnopenableFileIsNamed) {
  Status status;
  // A folder cannot be a file.
  EXPECT_EQ(nullptr, NewFileLogger(testing::TempDir(), &status));
  EXPECT_TRUE(status.IsIOError());
  EXPECT_NE(std::string::npos, status.ToString().find(testing::TempDir())) << status.ToString();
  EXPECT_EQ(nullptr, NewFileLogger(testing::TempDir()));
}

TEST(LogWithoutFileTest, StderrKeepsToItsLevel) {
  testing::internal::CaptureStderr();
  const std::shared_ptr<Logger> logger = NewStderrLogger(LogLevel::kWarn);
  Log(logger, LogLevel::kDebug, "quiet");
  Log(logger, LogLevel::kInfo, "quiet");
  Log(logger, LogLevel::kWarn, "loud");
  Log(logger, LogLevel::kError, "louder");
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::string::npos, text.find("quiet"));
  EXPECT_NE(std::string::npos, text.find("loud\n"));
  EXPECT_NE(std::string::npos, text.find("louder\n"));
}

class RollingLogTest : public testing::Test {
 protected:
  RollingLogTest() {
    options_.directory = testing::TempDir() + "nacre_rolling_log_test_" +
                         testing::UnitTest::GetInstance()->current_test_info()->name();
    options_.name = "a/b c";
    std::filesystem::remove_all(options_.directory);
  }
  ~RollingLogTest() override { std::filesystem::remove_all(options_.directory); }

  std::shared_ptr<Logger> Open() {
    std::shared_ptr<Logger> logger;
    const Status status = NewRollingLogger(options_, Clock::System(), &logger);
    EXPECT_TRUE(status.ok()) << status.ToString();
    return logger;
  }
  std::string Current() const { return options_.directory + "/a_b_c_LOG"; }
  /// Oldest first.
  std::vector<std::string> Old() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(options_.directory)) {
      if (entry.path() != Current()) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  RollingLogOptions options_;
};

TEST_F(RollingLogTest, OpeningBeginsAnother) {
  for (int i = 0; i < 3; ++i) Log(Open(), LogLevel::kInfo, "opened {}", i);
  ASSERT_EQ(2U, Old().size());
  EXPECT_TRUE(LinesOf(Old()[0]).at(0).ends_with("opened 0"));
  EXPECT_TRUE(LinesOf(Old()[1]).at(0).ends_with("opened 1"));
  EXPECT_TRUE(LinesOf(Current()).at(0).ends_with("opened 2"));
}

TEST_F(RollingLogTest, AFullOneIsPutAsideAndTheOldestGo) {
  options_.max_file_bytes = 1000;
  options_.keep_files = 3;
  const std::shared_ptr<Logger> logger = Open();
  for (int i = 0; i < 100; ++i) Log(logger, LogLevel::kInfo, "line {} {}", i, std::string(70, 'x'));
  ASSERT_EQ(2U, Old().size());
  std::vector<std::string> lines;
  for (const std::string& path : {Old()[0], Old()[1], Current()}) {
    const std::vector<std::string> more = LinesOf(path);
    EXPECT_LE(more.size(), 10U) << path;
    lines.insert(lines.end(), more.begin(), more.end());
  }
  // Those that are left follow one another.
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string wanted = "line " + std::to_string(100 - lines.size() + i) + " ";
    EXPECT_NE(std::string::npos, lines[i].find(wanted)) << lines[i];
  }
}

TEST_F(RollingLogTest, LevelsBelowAreLeftOut) {
  options_.level = LogLevel::kWarn;
  const std::shared_ptr<Logger> logger = Open();
  Log(logger, LogLevel::kInfo, "quiet");
  Log(logger, LogLevel::kWarn, "loud");
  ASSERT_EQ(1U, LinesOf(Current()).size());
}

TEST_F(RollingLogTest, ADirectoryThatCannotBeIsNamed) {
  options_.directory = "/proc/no/such";
  std::shared_ptr<Logger> logger;
  const Status status = NewRollingLogger(options_, Clock::System(), &logger);
  EXPECT_TRUE(status.IsIOError());
  EXPECT_NE(std::string::npos, status.ToString().find("/proc/no/such")) << status.ToString();
}

}  // namespace
}  // namespace nacre
