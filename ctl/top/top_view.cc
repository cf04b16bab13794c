#include "ctl/top/top_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "ctl/terminal/progress_text.h"
#include "ctl/terminal/shown_text.h"
#include "ctl/top/database_lines.h"
#include "ctl/top/node_lines.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

using RepairState = pool::RepairProgress::State;

/// A sample that is older says so.
constexpr uint64_t kOldNanos = 5 * kSecond;
constexpr size_t kPoolBarColumns = 20;

/// "2 up, 1 down", of those that there are.
class Counts {
 public:
  void Add(uint64_t count, std::string_view what) {
    if (count > 0) text_ += fmt::format("{}{} {}", text_.empty() ? "" : ", ", count, what);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

uint64_t CountNodes(const PoolSample& sample, auto counts) {
  const auto& nodes = sample.pool.nodes;
  return static_cast<uint64_t>(std::count_if(nodes.begin(), nodes.end(), counts));
}

std::string PoolText(const PoolSample& sample) {
  const PoolReport& pool = sample.pool;
  Counts nodes;
  nodes.Add(CountNodes(sample, [](const NodeReport& n) { return n.status.ok() && !n.slow; }), "up");
  nodes.Add(CountNodes(sample, [](const NodeReport& n) { return n.status.ok() && n.slow; }),
            "slow");
  nodes.Add(CountNodes(sample, [](const NodeReport& n) { return !n.status.ok(); }), "down");
  nodes.Add(CountNodes(sample, [&](const NodeReport& n) { return pool.draining(n); }), "draining");
  nodes.Add(CountNodes(sample, [&](const NodeReport& n) { return pool.maintenance(n) != nullptr; }),
            "in maintenance");
  const auto open = static_cast<uint64_t>(
      std::count_if(pool.databases.begin(), pool.databases.end(),
                    [](const pool::KnownDatabase& each) { return each.open; }));
  return fmt::format("{}: {}; {}, {} open", Counted(pool.nodes.size(), "node"), nodes.text(),
                     Counted(pool.databases.size(), "database"), open);
}

/// Empty if there is nothing to say.
std::string RepairLine(const PoolReport& pool) {
  std::string text;
  const auto say = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  Counts counts;
  for (const RepairState state :
       {RepairState::kRunning, RepairState::kWaiting, RepairState::kPaused}) {
    const auto in_state = static_cast<uint64_t>(std::count_if(
        pool.databases.begin(), pool.databases.end(), [&](const pool::KnownDatabase& each) {
          return each.reported && each.report.repair.state == state;
        }));
    counts.Add(in_state, ToString(state));
  }
  if (!counts.text().empty()) say(counts.text());
  uint64_t lost = 0;
  for (const pool::KnownDatabase& each : pool.databases) lost += SpaceFigure(each, "lost-bytes");
  if (lost > 0) say(FormatBytes(lost) + " went with nodes");
  if (pool.directions.repair_paused) say("paused by an order");
  if (pool.directions.repair_bytes_per_second > 0) {
    say("limited to " + FormatBytes(pool.directions.repair_bytes_per_second) + "/s");
  }
  return text;
}

std::vector<TopLine> Summary(const PoolSample& sample) {
  std::vector<TopLine> lines;
  const auto add = [&](std::string_view title, const std::string& text, TopColor color) {
    lines.push_back({.text = fmt::format("{:<8} {}", title, text), .color = color});
  };
  if (sample.rounds == 0) {
    add("pool", "asking its nodes", TopColor::kStrange);
    return lines;
  }
  uint64_t bytes = 0;
  uint64_t leased = 0;
  uint64_t open = 0;
  uint64_t workers = 0;
  NodeRates rates;
  bool rated = false;
  for (size_t i = 0; i < sample.pool.nodes.size(); ++i) {
    const NodeReport& node = sample.pool.nodes[i];
    if (!node.status.ok()) continue;
    bytes += node.stats.slabs_total * node.stats.slab_bytes;
    leased += node.leased_bytes();
    open += UnderWay(node.stats);
    workers += node.stats.workers;
    if (!sample.rates[i].has_value()) continue;
    rates += *sample.rates[i];
    rated = true;
  }
  const bool any = CountNodes(sample, [](const NodeReport& node) { return node.status.ok(); }) > 0;
  add("pool", PoolText(sample), any ? TopColor::kNone : TopColor::kBad);
  if (sample.age_nanos > kOldNanos) {
    add("", "as of " + DurationText(sample.age_nanos / kSecond) + " ago", TopColor::kStrange);
  }
  if (!any) {
    add("", "no node answers; they are asked again and again", TopColor::kBad);
    return lines;
  }
  add("memory",
      fmt::format("{} {:3} %  {} of {} leased", BarText(leased, bytes, kPoolBarColumns),
                  bytes == 0 ? 0 : PercentOf(leased, bytes), FormatBytes(leased),
                  FormatBytes(bytes)),
      TopColor::kNone);
  add("traffic",
      rated ? fmt::format("nodes read {}, write {}, take {:.0f} requests a second",
                          FormatBytes(static_cast<uint64_t>(rates.bytes_read)),
                          FormatBytes(static_cast<uint64_t>(rates.bytes_written)), rates.requests)
            : "not known yet",
      TopColor::kNone);
  if (rated) {
    std::string jobs = fmt::format("{} requests and jobs under way, {:.1f} jobs a second, {:.2f}",
                                   open, rates.jobs, rates.job_cores);
    jobs += workers == 0 ? " processors busy" : fmt::format(" of {} workers busy", workers);
    if (rates.rebuilt > 0) {
      jobs += fmt::format(", {}/s rebuilt", FormatBytes(static_cast<uint64_t>(rates.rebuilt)));
    }
    add("jobs", jobs, TopColor::kNone);
  }
  if (const std::string repair = RepairLine(sample.pool); !repair.empty()) {
    add("repair", repair, TopColor::kStrange);
  }
  return lines;
}

/// What has a terminal show text so; empty: nothing.
std::string_view ColorText(TopColor color) {
  switch (color) {
    case TopColor::kNone:
      return "";
    case TopColor::kTitle:
      return "\033[7m";
    case TopColor::kBad:
      return "\033[31m";
    case TopColor::kStrange:
      return "\033[33m";
  }
  return "";
}

size_t LinesOf(const std::vector<TopBlock>& blocks) {
  size_t lines = 0;
  for (const TopBlock& block : blocks) lines += block.lines.size();
  return lines;
}

/// As many blocks as fit in `room` lines, those first that need a look, and how many are left out.
void Append(TopSection section, size_t room, std::vector<TopLine>* lines) {
  lines->push_back({.text = std::move(section.titles), .color = TopColor::kTitle});
  std::vector<TopBlock>& blocks = section.blocks;
  const bool all = LinesOf(blocks) <= room;
  if (!all) {
    std::stable_sort(blocks.begin(), blocks.end(), [](const TopBlock& a, const TopBlock& b) {
      return a.needs_a_look > b.needs_a_look;
    });
    room = std::max<size_t>(room, 1) - 1;
  }
  size_t shown = 0;
  for (; shown < blocks.size() && (all || blocks[shown].lines.size() <= room); ++shown) {
    room -= std::min(room, blocks[shown].lines.size());
    for (TopLine& line : blocks[shown].lines) lines->push_back(std::move(line));
  }
  if (!all) {
    lines->push_back({.text = fmt::format("... and {} more", blocks.size() - shown)});
  }
}

}  // namespace

const char* ToString(TopOrder order) {
  switch (order) {
    case TopOrder::kGiven:
      return "as given";
    case TopOrder::kBusy:
      return "busiest first";
    case TopOrder::kFull:
      return "fullest first";
  }
  return "?";
}

TopOrder NextOrder(TopOrder order) {
  switch (order) {
    case TopOrder::kGiven:
      return TopOrder::kBusy;
    case TopOrder::kBusy:
      return TopOrder::kFull;
    case TopOrder::kFull:
      break;
  }
  return TopOrder::kGiven;
}

std::vector<TopLine> RenderTop(const PoolSample& sample, const TopFormat& format) {
  std::vector<TopLine> lines;
  if (!format.heading.empty()) lines.push_back({.text = format.heading, .color = TopColor::kTitle});
  for (TopLine& line : Summary(sample)) lines.push_back(std::move(line));
  if (sample.rounds > 0) {
    TopSection nodes = NodeSection(sample, format.width, format.order);
    TopSection databases = DatabaseSection(sample, format.width, format.order);
    size_t node_room = LinesOf(nodes.blocks);
    size_t database_room = LinesOf(databases.blocks);
    if (format.height > 0) {
      const size_t fixed = lines.size() + (databases.blocks.empty() ? 2 : 4);
      const size_t room = format.height - std::min(format.height, fixed);
      if (node_room + database_room > room) {
        database_room =
            std::min(database_room, std::max(room / 3, room - std::min(room, node_room)));
        node_room = room - database_room;
      }
    }
    lines.push_back({});
    Append(std::move(nodes), node_room, &lines);
    if (!databases.blocks.empty()) {
      lines.push_back({});
      Append(std::move(databases), database_room, &lines);
    }
  }
  if (format.height > 0 && lines.size() > format.height) lines.resize(format.height);
  for (TopLine& line : lines) {
    line.text = Printable(line.text);
    if (format.width > 0) line.text = Clip(line.text, format.width);
  }
  return lines;
}

std::string FrameText(const std::vector<TopLine>& lines, bool colored) {
  std::string text = "\033[H";
  for (size_t i = 0; i < lines.size(); ++i) {
    const std::string_view begin = colored ? ColorText(lines[i].color) : "";
    if (i > 0) text += "\r\n";
    text += begin;
    text += lines[i].text;
    if (!begin.empty()) text += "\033[0m";
    text += "\033[K";
  }
  return text + "\033[J";
}

}  // namespace nacre::ctl
