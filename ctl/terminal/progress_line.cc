#include "ctl/terminal/progress_line.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <utility>

#include "ctl/terminal/progress_text.h"

namespace nacre::ctl {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kRewriteNanos = kSecond / 5;
/// Between plain lines that are rare.
constexpr uint64_t kRareNanos = 10 * kSecond;
/// The rate is that of so long a time.
constexpr uint64_t kRateNanos = 10 * kSecond;
constexpr size_t kColumns = 80;

size_t ColumnsOfTerminal(std::FILE* stream) {
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kColumns;
  return size.ws_col;
}

}  // namespace

ProgressLine::ProgressLine(std::FILE* stream, Clock* clock, std::string title, Plain plain)
    : stream_(stream),
      clock_(clock),
      title_(std::move(title)),
      plain_(plain),
      terminal_(::isatty(::fileno(stream)) != 0),
      shown_at_nanos_(clock->NowNanos()) {}

void ProgressLine::Show(uint64_t done, uint64_t total, const std::string& detail,
                        const std::string& plain) {
  if (terminal_) {
    ShowOnTerminal(done, total, detail);
  } else {
    ShowPlain(done, total, plain);
  }
}

void ProgressLine::ShowOnTerminal(uint64_t done, uint64_t total, const std::string& detail) {
  const uint64_t now = clock_->NowNanos();
  if (shown_ && now - shown_at_nanos_ < kRewriteNanos) return;
  shown_at_nanos_ = now;
  shown_ = true;
  const ProgressFigures figures{.title = title_,
                                .done = done,
                                .total = total,
                                .bytes_per_second = RateWith({.nanos = now, .done = done}),
                                .detail = detail};
  // The last column stays free: in it, some terminals begin the next line.
  fmt::print(stream_, "\r{}\033[K", ProgressText(figures, ColumnsOfTerminal(stream_) - 1));
  std::fflush(stream_);
}

void ProgressLine::ShowPlain(uint64_t done, uint64_t total, const std::string& plain) {
  if (plain_ != Plain::kChanges) {
    constexpr uint64_t kParts = 10;
    const uint64_t parts = total == 0 ? 0 : done * kParts / total;
    if (parts <= tenths_) return;
    const uint64_t now = clock_->NowNanos();
    if (plain_ == Plain::kRareTenths && now - shown_at_nanos_ < kRareNanos) return;
    shown_at_nanos_ = now;
    tenths_ = parts;
    fmt::print(stream_, "{:3} %: {}\n", parts * 100 / kParts, plain);
  } else {
    if (plain == last_plain_) return;
    last_plain_ = plain;
    fmt::print(stream_, "{}\n", plain);
  }
  std::fflush(stream_);
}

uint64_t ProgressLine::RateWith(const Point& point) {
  // What is undone, since it failed, makes the past useless.
  if (!points_.empty() && point.done < points_.back().done) points_.clear();
  points_.push_back(point);
  while (points_.size() > 2 && point.nanos - points_[1].nanos >= kRateNanos) points_.pop_front();
  const uint64_t nanos = point.nanos - points_.front().nanos;
  if (nanos < kSecond / 2) return 0;
  const auto bytes = static_cast<double>(point.done - points_.front().done);
  return static_cast<uint64_t>(bytes * static_cast<double>(kSecond) / static_cast<double>(nanos));
}

void ProgressLine::Clear() {
  if (!shown_) return;
  shown_ = false;
  fmt::print(stream_, "\r\033[K");
  std::fflush(stream_);
}

}  // namespace nacre::ctl
