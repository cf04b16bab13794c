#include "ctl/top/database_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "ctl/terminal/progress_text.h"
#include "ctl/terminal/shown_text.h"
#include "ctl/top/text_table.h"
#include "pool/wire/database_report.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

using pool::KnownDatabase;
using RepairState = pool::RepairProgress::State;

/// An owner that reports each second, and has not for so long, is in trouble.
constexpr uint64_t kSilentNanos = 5 * kSecond;
/// A slow operation is shown for so long.
constexpr uint64_t kSlowShownNanos = 60 * kSecond;
constexpr size_t kDatabaseBarColumns = 10;
constexpr size_t kNameColumns = 12;

std::vector<TextTable::Column> DatabaseColumns() {
  return {{.title = "database", .left = true, .least = kNameColumns, .cut_above = 3},
          {.title = "owner", .left = true},
          {.title = "redundancy", .left = true, .given_up = 3},
          {.title = "user", .given_up = 2},
          {.title = "stored", .given_up = 1},
          {.title = "per user", .given_up = 5},
          {.title = "leased", .given_up = 4},
          {.title = "repair", .left = true}};
}

bool IsSilent(const KnownDatabase& database) {
  return database.reported && database.report_age_nanos > kSilentNanos;
}

std::string OwnerText(const KnownDatabase& database) {
  if (!database.open) return "none";
  return IsSilent(database) ? "silent" : "open";
}

std::string RepairCell(const pool::RepairProgress& repair) {
  if (repair.state == RepairState::kIdle) return "idle";
  std::string text =
      fmt::format("{} {:3} %", BarText(repair.bytes_done, repair.bytes_total, kDatabaseBarColumns),
                  repair.bytes_total == 0 ? 0 : PercentOf(repair.bytes_done, repair.bytes_total));
  if (repair.state != RepairState::kRunning) {
    return fmt::format("{} {}", text, ToString(repair.state));
  }
  // Owners may be done with all that they knew of, and go on.
  const bool known = repair.seconds_left > 0 && repair.bytes_done < repair.bytes_total;
  if (known) text += fmt::format(" {} left", DurationText(repair.seconds_left));
  return fmt::format("{}, {}/s", text, FormatBytes(repair.bytes_per_second));
}

std::vector<std::string> DatabaseCells(const KnownDatabase& database) {
  std::vector<std::string> cells = {Printable(database.name), OwnerText(database)};
  const std::string leased = FormatBytes(database.leased_bytes);
  if (!database.reported) {
    for (const std::string& cell : {std::string("-"), std::string("-"), std::string("-"),
                                    std::string("-"), leased, std::string("-")}) {
      cells.push_back(cell);
    }
    return cells;
  }
  const uint64_t user = SpaceFigure(database, "user-bytes");
  const uint64_t stored = SpaceFigure(database, "stored-bytes");
  cells.push_back(Printable(database.report.redundancy));
  cells.push_back(FormatBytes(user));
  cells.push_back(FormatBytes(stored));
  cells.push_back(
      user == 0 ? "-"
                : fmt::format("{:.2f}", static_cast<double>(stored) / static_cast<double>(user)));
  cells.push_back(leased);
  cells.push_back(RepairCell(database.report.repair));
  return cells;
}

std::string ReaderText(const KnownDatabase& database, const pool::LogReader& reader) {
  uint64_t furthest = 0;
  for (const pool::LogReader& each : database.log_readers) {
    furthest = std::max(furthest, each.sequence);
  }
  std::string text =
      fmt::format("  log reader {:016x}: has all up to {}", reader.reader, reader.sequence);
  if (reader.restorable > 0) text += fmt::format(", restorable up to {}", reader.restorable);
  if (reader.sequence < furthest) {
    text += fmt::format(", {} behind another one", furthest - reader.sequence);
  }
  return text + fmt::format(", heard of {} ago", DurationText(reader.age_nanos / kSecond));
}

/// Empty: the owner does not count.
std::string OperationTimesText(const pool::DatabaseReport& report) {
  std::string text;
  for (const pool::ReportedTimes& times : report.times) {
    text += fmt::format("{} {} {:.1f} and {:.1f}", text.empty() ? "  micros, median and p99:" : ",",
                        Printable(times.operation), times.median_micros, times.p99_micros);
  }
  return text;
}

/// By what the order sorts databases: those with more come first.
uint64_t DatabaseWeight(const KnownDatabase& database, TopOrder order) {
  return order == TopOrder::kFull ? database.leased_bytes : SpaceFigure(database, "stored-bytes");
}

}  // namespace

TopSection DatabaseSection(const PoolSample& sample, size_t width, TopOrder order) {
  std::vector<const KnownDatabase*> databases;
  for (const KnownDatabase& database : sample.pool.databases) databases.push_back(&database);
  if (order != TopOrder::kGiven) {
    std::stable_sort(databases.begin(), databases.end(),
                     [&](const KnownDatabase* a, const KnownDatabase* b) {
                       return DatabaseWeight(*a, order) > DatabaseWeight(*b, order);
                     });
  }
  TextTable table(DatabaseColumns());
  for (const KnownDatabase* database : databases) table.Add(DatabaseCells(*database));
  std::vector<std::string> lines = table.Lines(width);
  TopSection section{.titles = lines[0]};
  for (size_t at = 0; at < databases.size(); ++at) {
    const KnownDatabase& database = *databases[at];
    const bool repairs = database.reported && database.report.repair.state != RepairState::kIdle;
    const bool strange = repairs || IsSilent(database) || !database.report.notice.empty();
    TopBlock block{.needs_a_look = strange};
    block.lines.push_back({.text = std::move(lines[at + 1]),
                           .color = strange ? TopColor::kStrange : TopColor::kNone});
    if (!database.report.notice.empty()) {
      block.lines.push_back({.text = "  " + database.report.notice, .color = TopColor::kBad});
    }
    if (std::string times = OperationTimesText(database.report); !times.empty()) {
      block.lines.push_back({.text = std::move(times)});
    }
    for (const pool::SlowOperation& slow : database.report.latest_slow) {
      if (slow.age_nanos + database.report_age_nanos > kSlowShownNanos) continue;
      block.needs_a_look = true;
      block.lines.push_back(
          {.text = "  slow: " + Printable(slow.text), .color = TopColor::kStrange});
    }
    for (const pool::LogReader& reader : database.log_readers) {
      block.lines.push_back({.text = ReaderText(database, reader)});
    }
    section.blocks.push_back(std::move(block));
  }
  return section;
}

}  // namespace nacre::ctl
