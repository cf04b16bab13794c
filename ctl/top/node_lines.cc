#include "ctl/top/node_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "ctl/terminal/progress_text.h"
#include "ctl/terminal/shown_text.h"
#include "ctl/top/text_table.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

constexpr size_t kNodeBarColumns = 10;
constexpr size_t kAddressColumns = 17;

std::vector<TextTable::Column> NodeColumns() {
  return {
      {.title = "node", .left = true, .least = kAddressColumns, .cut_above = 4, .keep_end = true},
      {.title = "state", .left = true},
      {.title = "domain", .left = true, .given_up = 10},
      {.title = "filled", .left = true, .given_up = 4},
      {.title = "%"},
      {.title = "leased", .given_up = 6},
      {.title = "of", .given_up = 5},
      {.title = "read/s", .given_up = 1},
      {.title = "written/s", .given_up = 2},
      {.title = "requests/s", .given_up = 3},
      {.title = "under way", .given_up = 11},
      {.title = "job/s", .given_up = 8},
      {.title = "cores", .given_up = 7},
      {.title = "ping us", .given_up = 9},
      {.title = "conns", .given_up = 12}};
}

uint64_t Bytes(const NodeReport& node) { return node.stats.slabs_total * node.stats.slab_bytes; }

std::string NodeState(const PoolReport& pool, const NodeReport& node) {
  const bool maintenance = pool.maintenance(node) != nullptr;
  if (!node.status.ok()) return maintenance ? "away" : "down";
  std::string state;
  const auto add = [&](bool holds, const char* word) {
    if (holds) state += (state.empty() ? "" : ", ") + std::string(word);
  };
  add(node.slow, "slow");
  add(pool.draining(node), "draining");
  add(maintenance, "maintenance");
  return state.empty() ? "up" : state;
}

std::string BytesText(double bytes) { return FormatBytes(static_cast<uint64_t>(bytes)); }

std::vector<std::string> NodeCells(const PoolSample& sample, size_t i) {
  const NodeReport& node = sample.pool.nodes[i];
  std::vector<std::string> cells = {Printable(node.address), NodeState(sample.pool, node)};
  if (!node.status.ok()) {
    cells.resize(NodeColumns().size(), "-");
    return cells;
  }
  const pool::NodeStats& stats = node.stats;
  const uint64_t leased = node.leased_bytes();
  const uint64_t bytes = Bytes(node);
  cells.push_back(stats.domain.empty() ? "-" : Printable(stats.domain));
  cells.push_back(BarText(leased, bytes, kNodeBarColumns));
  cells.push_back(std::to_string(bytes == 0 ? 0 : PercentOf(leased, bytes)));
  cells.push_back(FormatBytes(leased));
  cells.push_back(FormatBytes(bytes));
  const std::optional<NodeRates>& rates = sample.rates[i];
  const auto rate = [&](auto text) { cells.push_back(rates.has_value() ? text(*rates) : "-"); };
  rate([](const NodeRates& r) { return BytesText(r.bytes_read); });
  rate([](const NodeRates& r) { return BytesText(r.bytes_written); });
  rate([](const NodeRates& r) { return fmt::format("{:.0f}", r.requests); });
  cells.push_back(std::to_string(UnderWay(stats)));
  rate([](const NodeRates& r) { return fmt::format("{:.1f}", r.jobs); });
  rate([](const NodeRates& r) { return fmt::format("{:.2f}", r.job_cores); });
  const auto& pings = node.timing.pings;
  cells.push_back(pings.empty() ? "-" : std::to_string((pings.back().count() + 999) / 1000));
  cells.push_back(std::to_string(stats.connections));
  return cells;
}

/// By what the order sorts nodes: those with more come first.
double NodeWeight(const PoolSample& sample, size_t i, TopOrder order) {
  const NodeReport& node = sample.pool.nodes[i];
  if (!node.status.ok()) return -1;
  if (order == TopOrder::kBusy) {
    const std::optional<NodeRates>& rates = sample.rates[i];
    return rates.has_value() ? rates->bytes_read + rates->bytes_written : 0;
  }
  const uint64_t bytes = Bytes(node);
  return bytes == 0 ? 0 : static_cast<double>(node.leased_bytes()) / static_cast<double>(bytes);
}

}  // namespace

uint64_t UnderWay(const pool::NodeStats& stats) {
  return stats.requests_open - std::min<uint64_t>(stats.requests_open, 1);
}

TopSection NodeSection(const PoolSample& sample, size_t width, TopOrder order) {
  const PoolReport& pool = sample.pool;
  std::vector<size_t> places(pool.nodes.size());
  std::iota(places.begin(), places.end(), size_t{0});
  if (order != TopOrder::kGiven) {
    std::stable_sort(places.begin(), places.end(), [&](size_t a, size_t b) {
      return NodeWeight(sample, a, order) > NodeWeight(sample, b, order);
    });
  }
  TextTable table(NodeColumns());
  for (const size_t i : places) table.Add(NodeCells(sample, i));
  std::vector<std::string> lines = table.Lines(width);
  TopSection section{.titles = lines[0]};
  for (size_t at = 0; at < places.size(); ++at) {
    const NodeReport& node = pool.nodes[places[at]];
    const bool maintenance = pool.maintenance(node) != nullptr;
    const bool down = !node.status.ok() && !maintenance;
    const bool strange = node.slow || pool.draining(node) || maintenance;
    const TopColor color = down ? TopColor::kBad : strange ? TopColor::kStrange : TopColor::kNone;
    TopBlock block{.needs_a_look = down || strange};
    block.lines.push_back({.text = std::move(lines[at + 1]), .color = color});
    if (down) block.lines.push_back({.text = "  " + Explain(node.status), .color = color});
    section.blocks.push_back(std::move(block));
  }
  return section;
}

}  // namespace nacre::ctl
