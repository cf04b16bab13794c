// Goal: what `nacre-ctl top` shows is what nodes have told, fits any terminal, and loses what
// matters least first; a node that was restarted has no rates from before.
// Method: the renderer, on samples that the test makes up.

#include "ctl/top/top_view.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "ctl/terminal/shown_text.h"
#include "ctl/top/node_rates.h"
#include "ctl/top/text_table.h"
#include "ctl/top/top_json.h"

namespace nacre::ctl {
namespace {

using std::chrono::microseconds;
using RepairState = pool::RepairProgress::State;

constexpr uint64_t kMebibyte = 1 << 20;
constexpr uint64_t kSecond = 1'000'000'000;

NodeReport ReportOf(const std::string& address, uint64_t leased) {
  NodeReport node;
  node.address = address;
  node.stats.instance_id = std::hash<std::string>()(address);
  node.stats.slab_bytes = kMebibyte;
  node.stats.slabs_total = 1000;
  node.stats.slabs_leased = leased;
  node.stats.connections = 17;
  node.stats.workers = 4;
  node.stats.requests_open = 4;
  node.stats.uptime_nanos = 5 * kSecond;
  node.stats.domain = "rack7";
  node.timing.pings = {microseconds(123)};
  return node;
}

pool::KnownDatabase Database(const std::string& name) {
  pool::KnownDatabase database;
  database.name = name;
  database.database_id = 7;
  database.open = true;
  database.leased_bytes = 900 * kMebibyte;
  database.reported = true;
  database.report.redundancy = "rs(4,2)";
  database.report.space = {
      {"user-bytes", 400 * kMebibyte}, {"stored-bytes", 600 * kMebibyte}, {"lost-bytes", 0}};
  return database;
}

/// Three nodes, of which the last is down, and a database.
PoolSample Sample() {
  std::vector<NodeReport> nodes = {ReportOf("tcp:10.0.0.1:7000", 400),
                                   ReportOf("tcp:10.0.0.2:7000", 250), NodeReport()};
  nodes[2].address = "tcp:10.0.0.3:7000";
  nodes[2].status = Status::Unavailable("tcp:10.0.0.3:7000: the peer did not answer in time");
  PoolSample sample;
  sample.pool = Summarize(std::move(nodes));
  sample.pool.databases = {Database("orders")};
  sample.rates.resize(3);
  sample.rates[0] = NodeRates{.seconds = 1,
                              .bytes_read = 12.0 * kMebibyte,
                              .bytes_written = 34.0 * kMebibyte,
                              .requests = 56,
                              .jobs = 1.5,
                              .job_cores = 0.75};
  sample.rates[1] = NodeRates{.seconds = 1, .bytes_read = 100.0 * kMebibyte, .requests = 4};
  sample.rounds = 2;
  return sample;
}

std::string Text(const std::vector<TopLine>& lines) {
  std::string text;
  for (const TopLine& line : lines) text += line.text + "\n";
  return text;
}
std::string Rendered(const PoolSample& sample, const TopFormat& format = {}) {
  return Text(RenderTop(sample, format));
}
bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
#define EXPECT_HAS(text, part) EXPECT_TRUE(Has(text, part)) << (part) << "\n" << (text)
#define EXPECT_HAS_NOT(text, part) EXPECT_FALSE(Has(text, part)) << (part) << "\n" << (text)

TEST(TopViewTest, AllIsShownWhereThereIsRoom) {
  const std::string text = Rendered(Sample(), {.width = 200, .height = 50});
  for (const char* part :
       {"pool     3 nodes: 2 up, 1 down; 1 database, 1 open",
        "memory   [######--------------]  32 %  650.0 MiB of 2.0 GiB leased",
        "traffic  nodes read 112.0 MiB, write 34.0 MiB, take 60 requests a second",
        "6 requests and jobs under way, 1.5 jobs a second, 0.75 of 8 workers busy",
        "node              state domain filled        %    leased         of    read/s written/s "
        "requests/s under way job/s cores ping us conns\n",
        "tcp:10.0.0.1:7000 up    rack7  [####------] 40 400.0 MiB 1000.0 MiB  12.0 MiB  34.0 MiB "
        "        56         3   1.5  0.75     123    17\n",
        "tcp:10.0.0.2:7000 up    rack7  [##--------] 25 250.0 MiB 1000.0 MiB 100.0 MiB       0 B "
        "         4         3   0.0  0.00     123    17\n",
        "tcp:10.0.0.3:7000 down  -",
        "  Unavailable: tcp:10.0.0.3:7000: the peer did not answer in time\n",
        "database owner redundancy      user    stored per user    leased repair\n",
        "orders   open  rs(4,2)    400.0 MiB 600.0 MiB     1.50 900.0 MiB idle\n"}) {
    EXPECT_HAS(text, part);
  }
  EXPECT_HAS_NOT(text, "repair   ");
}

TEST(TopViewTest, NoLineIsWiderOrLowerThanTheTerminal) {
  PoolSample sample = Sample();
  sample.pool.databases[0].report.notice = std::string(300, 'n');
  sample.pool.databases[0].log_readers = {{.reader = 1, .sequence = 2}};
  for (size_t width = 1; width < 210; ++width) {
    for (const size_t height : {1u, 2u, 5u, 9u, 12u, 24u}) {
      const std::vector<TopLine> lines =
          RenderTop(sample, {.width = width, .height = height, .heading = "nacre-ctl top"});
      EXPECT_LE(lines.size(), height) << width;
      for (const TopLine& line : lines) EXPECT_LE(ColumnsOf(line.text), width) << line.text;
    }
  }
}

TEST(TopViewTest, NarrowTerminalsLoseWhatMattersLeast) {
  const std::string eighty = Rendered(Sample(), {.width = 80});
  for (const char* part : {"tcp:10.0.0.1:7000 up", "[####------] 40", "12.0 MiB  34.0 MiB",
                           "requests/s", "orders   open  rs(4,2)", "idle"}) {
    EXPECT_HAS(eighty, part);
  }
  for (const char* part : {"conns", "domain", "under way  "}) EXPECT_HAS_NOT(eighty, part);

  const std::string forty = Rendered(Sample(), {.width = 40});
  for (const char* part : {"tcp:10.0.0.1:7000 up    40", "tcp:10.0.0.3:7000 down", "read/s",
                           "orders   open", "idle"}) {
    EXPECT_HAS(forty, part);
  }
  for (const char* part : {"written/s", "requests/s", "[####------]", "per user"}) {
    EXPECT_HAS_NOT(forty, part);
  }
}

TEST(TopViewTest, LongAddressesKeepTheirEnds) {
  PoolSample sample = Sample();
  sample.pool.nodes[0].address = "shm:/var/lib/nacre/pools/blue/node-with-a-name/n0.sock";
  const std::string text = Rendered(sample, {.width = 60});
  EXPECT_HAS(text, "ith-a-name/n0.sock");
  EXPECT_HAS(text, "read/s");
}

TEST(TopViewTest, StatesAreNamed) {
  PoolSample sample = Sample();
  sample.pool.nodes[0].slow = true;
  sample.pool.directions.draining = {sample.pool.nodes[1].stats.instance_id};
  std::string text = Rendered(sample);
  EXPECT_HAS(text, "3 nodes: 1 up, 1 slow, 1 down, 1 draining;");
  EXPECT_HAS(text, "tcp:10.0.0.1:7000 slow ");
  EXPECT_HAS(text, "tcp:10.0.0.2:7000 draining ");
  sample.pool.directions.draining = {sample.pool.nodes[0].stats.instance_id};
  text = Rendered(sample);
  EXPECT_HAS(text, "tcp:10.0.0.1:7000 slow, draining ");
}

TEST(TopViewTest, NodesInMaintenanceAreThereOrAway) {
  PoolSample sample = Sample();
  const pool::NodeStats& there = sample.pool.nodes[0].stats;
  sample.pool.nodes[0].start_id = 9;
  sample.pool.directions.maintenance = {
      {.instance_id = there.instance_id, .start_id = 9, .left_nanos = 60 * kSecond},
      {.instance_id = 77, .address = sample.pool.nodes[2].address, .left_nanos = 60 * kSecond}};
  std::string text = Rendered(sample);
  EXPECT_HAS(text, "3 nodes: 2 up, 1 down, 2 in maintenance;");
  EXPECT_HAS(text, "tcp:10.0.0.1:7000 maintenance ");
  EXPECT_HAS(text, sample.pool.nodes[2].address + " away ");
  // The first was started anew, and the time of the other is up.
  sample.pool.nodes[0].start_id = 11;
  sample.pool.directions.maintenance[1].left_nanos = 0;
  text = Rendered(sample);
  EXPECT_HAS(text, "3 nodes: 2 up, 1 down;");
  EXPECT_HAS_NOT(text, "maintenance");
}

TEST(TopViewTest, RepairHasABarAndTheTimeThatIsLeft) {
  PoolSample sample = Sample();
  pool::DatabaseReport& report = sample.pool.databases[0].report;
  report.repair = {.state = RepairState::kRunning,
                   .bytes_done = 25 * kMebibyte,
                   .bytes_total = 100 * kMebibyte,
                   .bytes_per_second = 5 * kMebibyte,
                   .seconds_left = 75};
  report.space.back().second = 30 * kMebibyte;
  std::string text = Rendered(sample);
  EXPECT_HAS(text, "[##--------]  25 % 1 min 15 s left, 5.0 MiB/s");
  EXPECT_HAS(text, "repair   1 running; 30.0 MiB went with nodes\n");
  report.repair.state = RepairState::kWaiting;
  sample.pool.directions.repair_paused = true;
  sample.pool.directions.repair_bytes_per_second = 7 * kMebibyte;
  text = Rendered(sample);
  EXPECT_HAS(text, "[##--------]  25 % waiting");
  EXPECT_HAS(text, "1 waiting; 30.0 MiB went with nodes; paused by an order; limited to 7.0 MiB/s");
}

TEST(TopViewTest, OwnersNoticesAndReadersAreShown) {
  PoolSample sample = Sample();
  pool::KnownDatabase closed;
  closed.name = "old";
  sample.pool.databases.push_back(closed);
  sample.pool.databases.push_back(Database("stuck"));
  sample.pool.databases[2].report_age_nanos = 9 * kSecond;
  sample.pool.databases[2].report.notice = "a node cannot join: NoSpace";
  sample.pool.databases[0].log_readers = {
      {.reader = 0xab, .sequence = 900, .restorable = 800, .age_nanos = 3 * kSecond},
      {.reader = 0xcd, .sequence = 1000, .age_nanos = 90 * kSecond}};
  const std::string text = Rendered(sample);
  EXPECT_HAS(text, "3 databases, 2 open");
  EXPECT_HAS(text, "old      none   -");
  EXPECT_HAS(text, "stuck    silent rs(4,2)");
  EXPECT_HAS(text, "  a node cannot join: NoSpace\n");
  EXPECT_HAS(text,
             "  log reader 00000000000000ab: has all up to 900, restorable up to 800, "
             "100 behind another one, heard of 3 s ago\n");
  EXPECT_HAS(text, "  log reader 00000000000000cd: has all up to 1000, heard of 1 min 30 s ago\n");
}

TEST(TopViewTest, WhatTookLongIsShownForAMinute) {
  PoolSample sample = Sample();
  pool::DatabaseReport& report = sample.pool.databases[0].report;
  EXPECT_HAS_NOT(Rendered(sample), "micros");
  report.times = {{.operation = "get", .count = 10, .median_micros = 3.25, .p99_micros = 80},
                  {.operation = "write", .count = 10, .median_micros = 12, .p99_micros = 900.5}};
  report.latest_slow = {{.age_nanos = 59 * kSecond, .text = "Get of 'k' took 40 ms"},
                        {.age_nanos = 61 * kSecond, .text = "Write took 50 ms"}};
  const std::string text = Rendered(sample);
  EXPECT_HAS(text, "  micros, median and p99: get 3.2 and 80.0, write 12.0 and 900.5\n");
  EXPECT_HAS(text, "  slow: Get of 'k' took 40 ms\n");
  EXPECT_HAS_NOT(text, "Write took");
}

TEST(TopViewTest, APoolThatDoesNotAnswerIsSaidToBeSo) {
  EXPECT_EQ(Rendered(PoolSample()), "pool     asking its nodes\n");
  PoolSample sample = Sample();
  for (NodeReport& node : sample.pool.nodes) node.status = Status::Unavailable("gone");
  sample.pool.databases.clear();
  sample.age_nanos = 61 * kSecond;
  const std::string text = Rendered(sample, {.width = 80, .height = 24});
  EXPECT_HAS(text, "3 nodes: 3 down; 0 databases, 0 open");
  EXPECT_HAS(text, "no node answers");
  EXPECT_HAS(text, "as of 1 min 01 s ago");
  EXPECT_HAS(text, "tcp:10.0.0.2:7000 down");
  EXPECT_HAS_NOT(text, "memory");
}

TEST(TopViewTest, WhatIsNotKnownYetIsADash) {
  PoolSample sample = Sample();
  sample.rates.assign(3, std::nullopt);
  const std::string text = Rendered(sample);
  EXPECT_HAS(text, "traffic  not known yet");
  EXPECT_HAS(text, "1000.0 MiB      -         -          -         3");
}

TEST(TopViewTest, NamesDoNotSteerTheTerminal) {
  PoolSample sample = Sample();
  sample.pool.databases[0].name = "x\033[2Jy\n";
  sample.pool.databases[0].report.notice = "\033]0;title\a";
  sample.pool.nodes[0].stats.domain = "\r\r";
  for (const TopLine& line : RenderTop(sample, {})) {
    for (const char byte : line.text) EXPECT_GE(static_cast<unsigned char>(byte), 0x20);
  }
  EXPECT_HAS(Rendered(sample), "x?[2Jy?");
}

TEST(TopViewTest, LowTerminalsShowWhatNeedsALook) {
  PoolSample sample = Sample();
  std::vector<NodeReport> nodes;
  nodes.reserve(100);
  for (int i = 0; i < 100; ++i) nodes.push_back(ReportOf("shm:n" + std::to_string(i), 1));
  nodes[77].status = Status::Unavailable("gone");
  nodes[88].slow = true;
  sample.pool = Summarize(std::move(nodes));
  sample.rates.assign(100, std::nullopt);
  for (int i = 0; i < 50; ++i) sample.pool.databases.push_back(Database("db" + std::to_string(i)));
  sample.pool.databases[44].report.repair.state = RepairState::kWaiting;
  const std::vector<TopLine> lines = RenderTop(sample, {.width = 80, .height = 24});
  EXPECT_EQ(lines.size(), 24u);
  const std::string text = Text(lines);
  for (const char* part : {"shm:n77 down", "shm:n88 slow", "shm:n0  up", "db44", "db0 "}) {
    EXPECT_HAS(text, part);
  }
  size_t shown = 0;
  size_t left_out = 0;
  for (const TopLine& line : lines) {
    shown += line.text.starts_with("shm:n");
    if (left_out == 0 && line.text.starts_with("... and "))
      left_out = std::stoul(line.text.substr(8));
  }
  EXPECT_EQ(shown + left_out, 100u) << text;
}

TEST(TopViewTest, OrdersSort) {
  const PoolSample sample = Sample();
  const auto first_of = [&](TopOrder order) {
    const std::string text = Rendered(sample, {.order = order});
    return text.find("tcp:10.0.0.1:7000 ") < text.find("tcp:10.0.0.2:7000 ") ? 1 : 2;
  };
  EXPECT_EQ(first_of(TopOrder::kGiven), 1);
  EXPECT_EQ(first_of(TopOrder::kBusy), 2);
  EXPECT_EQ(first_of(TopOrder::kFull), 1);
  EXPECT_EQ(NextOrder(NextOrder(NextOrder(TopOrder::kGiven))), TopOrder::kGiven);
}

TEST(TopViewTest, ColorsAreInFramesOnly) {
  std::vector<TopLine> lines = RenderTop(Sample(), {});
  EXPECT_HAS_NOT(Text(lines), "\033");
  lines = {{.text = "one"}, {.text = "two", .color = TopColor::kBad}};
  EXPECT_EQ(FrameText(lines, /*colored=*/false), "\033[Hone\033[K\r\ntwo\033[K\033[J");
  EXPECT_EQ(FrameText(lines, /*colored=*/true),
            "\033[Hone\033[K\r\n\033[31mtwo\033[0m\033[K\033[J");
}

TEST(TopJsonTest, RatesAndReadersAreIn) {
  PoolSample sample = Sample();
  sample.rates[1].reset();
  sample.pool.databases[0].log_readers = {{.reader = 0xab, .sequence = 900, .restorable = 800}};
  const std::string json = TopJson(sample);
  const std::string reader = R"({"reader": "00000000000000ab", "sequence": 900, "restorable": 800)";
  for (const std::string& part :
       {std::string(R"("per_second": {"seconds": 1.000, "bytes_read": 12582912, )"),
        std::string(R"("per_second": null)"), std::string(R"("answer_seconds": 0.000123)"),
        std::string(R"("state": "down", "error": )"), std::string(R"("name": "orders")"),
        R"("log_readers": [)" + reader}) {
    EXPECT_HAS(json, part);
  }
}

pool::NodeStats StatsAt(uint64_t uptime_nanos) {
  pool::NodeStats stats;
  stats.instance_id = 5;
  stats.bytes_read = 1000;
  stats.requests = 10;
  stats.uptime_nanos = uptime_nanos;
  return stats;
}

TEST(RateMeterTest, RatesAreDifferencesByTheNodesOwnTime) {
  RateMeter meter;
  pool::NodeStats stats = StatsAt(10 * kSecond);
  EXPECT_FALSE(meter.Take(stats).has_value());
  stats.bytes_read += 600;
  stats.compactions = 3;
  stats.flushes = 1;
  stats.compaction_cpu_nanos = kSecond;
  stats.uptime_nanos += 2 * kSecond;
  const std::optional<NodeRates> rates = meter.Take(stats);
  ASSERT_TRUE(rates.has_value());
  EXPECT_DOUBLE_EQ(rates->seconds, 2);
  EXPECT_DOUBLE_EQ(rates->bytes_read, 300);
  EXPECT_DOUBLE_EQ(rates->jobs, 2);
  EXPECT_DOUBLE_EQ(rates->job_cores, 0.5);
  EXPECT_DOUBLE_EQ(rates->bytes_written, 0);
}

TEST(RateMeterTest, ARestartedNodeBeginsAnew) {
  const pool::NodeStats before = StatsAt(10 * kSecond);
  // Another instance, that had more time; the same one, that keeps its memory, with less time or,
  // by a clock that is no good, with more.
  pool::NodeStats other = before;
  other.instance_id = 6;
  other.bytes_read = 2000;
  other.uptime_nanos = 20 * kSecond;
  pool::NodeStats warm = before;
  warm.bytes_read = 5000;
  warm.uptime_nanos = kSecond;
  pool::NodeStats fewer = before;
  fewer.requests = 9;
  fewer.uptime_nanos = 11 * kSecond;
  for (const pool::NodeStats& now : {other, warm, fewer, before}) {
    RateMeter meter;
    EXPECT_FALSE(meter.Take(before).has_value());
    EXPECT_FALSE(meter.Take(now).has_value());
    pool::NodeStats next = now;
    next.bytes_read += 100;
    next.uptime_nanos += kSecond;
    const std::optional<NodeRates> rates = meter.Take(next);
    ASSERT_TRUE(rates.has_value());
    EXPECT_DOUBLE_EQ(rates->bytes_read, 100);
  }
}

TEST(TextTableTest, ColumnsGoInTheirOrderAndTextIsCutBeforeTheLastOnes) {
  TextTable table({{.title = "name", .left = true, .least = 3, .cut_above = 1},
                   {.title = "a", .given_up = 2},
                   {.title = "b", .given_up = 1},
                   {.title = "c"}});
  table.Add({"longname", "11", "22", "33"});
  EXPECT_EQ(table.Lines(0)[1], "longname 11 22 33");
  EXPECT_EQ(table.Lines(17)[1], "longname 11 22 33");
  EXPECT_EQ(table.Lines(16)[1], "longname 22 33");
  EXPECT_EQ(table.Lines(13)[1], "longna~ 22 33");
  EXPECT_EQ(table.Lines(9)[1], "lo~ 22 33");
  EXPECT_EQ(table.Lines(8)[1], "long~ 33");
  EXPECT_EQ(table.Lines(4)[1], "lo~~");
}

}  // namespace
}  // namespace nacre::ctl
