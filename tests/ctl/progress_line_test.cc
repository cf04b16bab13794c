// Goal: what a long command shows of its progress is right, and fits the terminal; elsewhere it is
// plain lines, no more than asked for.
// Method: the text for many widths; the line on a pseudo terminal and on a file, with a clock that
// the test moves on.

#include "ctl/terminal/progress_line.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <limits>
#include <string>

#include "ctl/terminal/progress_text.h"
#include "ctl/terminal/shown_text.h"
#include "tests/ctl/pseudo_terminal.h"
#include "tests/support/manual_clock.h"

namespace nacre::ctl {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();

TEST(ShownTextTest, NothingSteersTheTerminal) {
  EXPECT_EQ(Printable("orders"), "orders");
  EXPECT_EQ(Printable("a\033[2Jb\r\n\x7f\t"), "a?[2Jb????");
  EXPECT_EQ(Printable("gr\xC3\xBC\xC3\x9F"
                      "e"),
            "gr\xC3\xBC\xC3\x9F"
            "e");
  EXPECT_EQ(Printable("\xC2\x9B"
                      "2J"),
            "??2J")
      << "a control character of Latin-1";
  EXPECT_EQ(Printable("\xC3"), "?") << "cut short";
  EXPECT_EQ(Printable("\xFF\xFE"), "??");
}

TEST(ShownTextTest, ColumnsAreCodePoints) {
  const std::string word =
      "gr\xC3\xBC\xC3\x9F"
      "e";
  EXPECT_EQ(ColumnsOf(word), 5u);
  EXPECT_EQ(Clip(word, 5), word);
  EXPECT_EQ(Clip(word, 4), "gr\xC3\xBC~");
  EXPECT_EQ(Clip(word, 1), "~");
  EXPECT_EQ(Clip(word, 0), "");
  EXPECT_EQ(PadLeft(word, 7), "  " + word);
  EXPECT_EQ(PadRight(word, 3), word);
}

TEST(ProgressTextTest, BarsAreFullOnlyWhenAllIsDone) {
  EXPECT_EQ(BarText(0, 100, 10), "[----------]");
  EXPECT_EQ(BarText(45, 100, 10), "[####------]");
  EXPECT_EQ(BarText(99, 100, 10), "[#########-]");
  EXPECT_EQ(BarText(100, 100, 10), "[##########]");
  EXPECT_EQ(BarText(300, 100, 10), "[##########]");
  EXPECT_EQ(BarText(0, 0, 4), "[----]");
  EXPECT_EQ(BarText(kMost - 1, kMost, 4), "[###-]");
  EXPECT_EQ(PercentOf(999, 1000), 99u);
  EXPECT_EQ(PercentOf(kMost - 1, kMost), 99u);
  EXPECT_EQ(PercentOf(0, 0), 100u);
}

TEST(ProgressTextTest, DurationsHaveTwoUnits) {
  EXPECT_EQ(DurationText(0), "0 s");
  EXPECT_EQ(DurationText(59), "59 s");
  EXPECT_EQ(DurationText(187), "3 min 07 s");
  EXPECT_EQ(DurationText(7500), "2 h 05 min");
  EXPECT_EQ(DurationText(86400 + 3600), "1 d 01 h");
}

TEST(ProgressTextTest, EveryWidthIsKept) {
  const ProgressFigures figures{.title = "restore orders",
                                .done = 25 * kMiB,
                                .total = 100 * kMiB,
                                .bytes_per_second = 10 * kMiB,
                                .detail = "3 of 9 tables"};
  const std::string wide = ProgressText(figures, 200);
  EXPECT_EQ(wide,
            "restore orders [#######-----------------------]  25 %  25.0 MiB of 100.0 MiB  "
            "10.0 MiB/s  8 s left  3 of 9 tables");
  for (size_t columns = 0; columns < 200; ++columns) {
    const std::string text = ProgressText(figures, columns);
    EXPECT_LE(ColumnsOf(text), columns);
    EXPECT_TRUE(text.empty() || text.back() == '~' || text.ends_with("tables")) << text;
  }
  EXPECT_EQ(ProgressText(figures, 45), "restore orders [#----]  25 %  25.0 MiB of 10~");
}

TEST(ProgressTextTest, WhatIsNotKnownIsNotSaid) {
  const std::string begin = ProgressText({.title = "drain", .total = kMiB}, 100);
  EXPECT_EQ(begin.find("left"), std::string::npos) << begin;
  EXPECT_EQ(begin.find("/s"), std::string::npos) << begin;
  const std::string end =
      ProgressText({.title = "drain", .done = kMiB, .total = kMiB, .bytes_per_second = 1}, 100);
  EXPECT_EQ(end.find("left"), std::string::npos) << end;
}

/// A stream that is a terminal, and what it has been sent.
class LineOnTerminal {
 public:
  LineOnTerminal() {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    char name[64] = {};
    EXPECT_EQ(::grantpt(master_), 0);
    EXPECT_EQ(::unlockpt(master_), 0);
    EXPECT_EQ(::ptsname_r(master_, name, sizeof(name)), 0);
    stream_ = std::fopen(name, "w");
    EXPECT_NE(stream_, nullptr);
  }
  ~LineOnTerminal() {
    std::fclose(stream_);
    ::close(master_);
  }
  LineOnTerminal(const LineOnTerminal&) = delete;
  LineOnTerminal& operator=(const LineOnTerminal&) = delete;

  std::FILE* stream() { return stream_; }
  void Resize(unsigned short columns) {
    const winsize size{.ws_row = 5, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    EXPECT_EQ(::ioctl(master_, TIOCSWINSZ, &size), 0);
  }
  /// What the terminal shows.
  std::string Shown() {
    pollfd poll{.fd = master_, .events = POLLIN, .revents = 0};
    char buffer[4096];
    while (::poll(&poll, 1, 0) > 0) {
      const ssize_t n = ::read(master_, buffer, sizeof(buffer));
      if (n <= 0) break;
      screen_.Take({buffer, static_cast<size_t>(n)});
    }
    EXPECT_EQ(screen_.unknown(), "");
    return screen_.Text();
  }

 private:
  TerminalScreen screen_{5, 200};
  int master_ = -1;
  std::FILE* stream_ = nullptr;
};

TEST(ProgressLineTest, OneLineIsRewrittenOnATerminal) {
  LineOnTerminal terminal;
  terminal.Resize(120);
  ManualClock clock;
  {
    ProgressLine line(terminal.stream(), &clock, "fsck orders", ProgressLine::Plain::kTenths);
    line.Show(50 * kMiB, 150 * kMiB, "", "plain");
    EXPECT_EQ(terminal.Shown(),
              "fsck orders [##########--------------------]  33 %  50.0 MiB of "
              "150.0 MiB\n\n\n\n\n");
    line.Show(51 * kMiB, 150 * kMiB, "", "plain");
    EXPECT_NE(terminal.Shown().find("50.0 MiB of"), std::string::npos) << "too soon to rewrite it";
    clock.Advance(seconds(5));
    line.Show(100 * kMiB, 150 * kMiB, "more", "plain");
    // 50 MiB in five seconds; what was done before the first call counts for nothing.
    EXPECT_EQ(terminal.Shown(),
              "fsck orders [####################----------]  66 %  100.0 MiB of "
              "150.0 MiB  10.0 MiB/s  5 s left  more\n\n\n\n\n");
    // The rate is that of the last seconds: it stands still.
    for (int i = 0; i < 30; ++i) {
      clock.Advance(seconds(1));
      line.Show(100 * kMiB, 150 * kMiB, "", "plain");
    }
    EXPECT_EQ(terminal.Shown().find("/s"), std::string::npos);
    // It begins anew.
    clock.Advance(seconds(1));
    line.Show(0, 150 * kMiB, "", "plain");
    clock.Advance(seconds(1));
    line.Show(15 * kMiB, 150 * kMiB, "", "plain");
    EXPECT_NE(terminal.Shown().find("15.0 MiB/s  9 s left"), std::string::npos);
    terminal.Resize(40);
    clock.Advance(seconds(1));
    line.Show(30 * kMiB, 150 * kMiB, "", "plain");
    const std::string narrow = terminal.Shown();
    EXPECT_EQ(narrow.find('\n'), 39u) << narrow;
  }
  EXPECT_EQ(terminal.Shown(), "\n\n\n\n\n") << "its end removes it";
}

class PlainLines {
 public:
  std::FILE* stream() { return file_; }
  std::string Text() {
    std::rewind(file_);
    std::string text(1000, '\0');
    text.resize(std::fread(text.data(), 1, text.size(), file_));
    return text;
  }
  ~PlainLines() { std::fclose(file_); }

 private:
  std::FILE* file_ = std::tmpfile();
};

TEST(ProgressLineTest, PlainLinesComeWithEachTenth) {
  PlainLines lines;
  ManualClock clock;
  ProgressLine line(lines.stream(), &clock, "restore", ProgressLine::Plain::kTenths);
  for (const uint64_t done : {0, 9, 10, 11, 19, 45, 46, 100}) {
    line.Show(done, 100, "detail", std::to_string(done) + " of 100");
  }
  line.Show(0, 0, "", "nothing");
  line.Clear();
  EXPECT_EQ(lines.Text(), " 10 %: 10 of 100\n 40 %: 45 of 100\n100 %: 100 of 100\n");
}

TEST(ProgressLineTest, RareLinesLeaveTimeBetweenThem) {
  PlainLines lines;
  ManualClock clock;
  ProgressLine line(lines.stream(), &clock, "fsck", ProgressLine::Plain::kRareTenths);
  for (uint64_t done = 0; done <= 100; ++done) {
    clock.Advance(milliseconds(500));
    line.Show(done, 100, "", std::to_string(done));
  }
  EXPECT_EQ(lines.Text(), " 10 %: 19\n 30 %: 39\n 50 %: 59\n 70 %: 79\n 90 %: 99\n");
}

TEST(ProgressLineTest, ChangesAreWrittenOnce) {
  PlainLines lines;
  ManualClock clock;
  ProgressLine line(lines.stream(), &clock, "drain", ProgressLine::Plain::kChanges);
  line.Show(0, 3, "", "3 to go");
  line.Show(0, 3, "", "3 to go");
  line.Show(1, 3, "", "2 to go");
  EXPECT_EQ(lines.Text(), "3 to go\n2 to go\n");
}

}  // namespace
}  // namespace nacre::ctl
