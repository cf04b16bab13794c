// Goal: log lines reach their file whole and at once, formatted as written, from several threads;
// no logger means no work; a file that cannot be opened is an error with a name.
// Method: files in the test's folder, read back.

#include "util/log.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

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

}  // namespace
}  // namespace nacre
