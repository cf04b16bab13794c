#include "ctl/terminal/progress_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "ctl/terminal/shown_text.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

constexpr size_t kBarColumnsMax = 30;
constexpr size_t kBarColumnsMin = 5;

/// What `whole` counts of, rounded down, without overflow.
size_t ShareOf(uint64_t done, uint64_t total, size_t whole) {
  if (done >= total) return whole;
  const double share = static_cast<double>(done) / static_cast<double>(total);
  return std::min(static_cast<size_t>(share * static_cast<double>(whole)), whole - 1);
}

}  // namespace

std::string BarText(uint64_t done, uint64_t total, size_t columns) {
  if (columns == 0) return "[]";
  const size_t filled = total == 0 ? 0 : ShareOf(done, total, columns);
  return fmt::format("[{:#<{}}{:-<{}}]", "", filled, "", columns - filled);
}

uint64_t PercentOf(uint64_t done, uint64_t total) { return ShareOf(done, total, 100); }

std::string DurationText(uint64_t seconds) {
  constexpr uint64_t kMinute = 60;
  constexpr uint64_t kHour = 60 * kMinute;
  constexpr uint64_t kDay = 24 * kHour;
  if (seconds < kMinute) return fmt::format("{} s", seconds);
  if (seconds < kHour) return fmt::format("{} min {:02} s", seconds / kMinute, seconds % kMinute);
  if (seconds < kDay) {
    return fmt::format("{} h {:02} min", seconds / kHour, seconds % kHour / kMinute);
  }
  return fmt::format("{} d {:02} h", seconds / kDay, seconds % kDay / kHour);
}

std::string ProgressText(const ProgressFigures& figures, size_t columns) {
  std::string text =
      fmt::format(" {:3} %  {} of {}", PercentOf(figures.done, figures.total),
                  FormatBytes(std::min(figures.done, figures.total)), FormatBytes(figures.total));
  if (figures.bytes_per_second > 0) {
    text += fmt::format("  {}/s", FormatBytes(figures.bytes_per_second));
    if (figures.done < figures.total) {
      const uint64_t left = figures.total - figures.done;
      // Rounded up: nothing that is not done takes no time.
      text += "  " + DurationText((left - 1) / figures.bytes_per_second + 1) + " left";
    }
  }
  if (!figures.detail.empty()) text += "  " + Printable(figures.detail);
  const std::string title = Printable(figures.title);
  const size_t taken = ColumnsOf(title) + ColumnsOf(text) + 3;
  const size_t bar =
      std::clamp(columns > taken ? columns - taken : 0, kBarColumnsMin, kBarColumnsMax);
  return Clip(title + " " + BarText(figures.done, figures.total, bar) + text, columns);
}

}  // namespace nacre::ctl
