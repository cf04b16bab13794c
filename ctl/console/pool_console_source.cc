#include "ctl/console/pool_console_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "ctl/ctl_directions.h"
#include "ctl/database_view.h"
#include "ctl/doctor.h"
#include "ctl/top/node_lines.h"
#include "ctl/top/top_json.h"
#include "nacre/column_family.h"
#include "util/json_text.h"

namespace nacre::ctl {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
/// How often the epochs of owners are looked at.
constexpr std::chrono::seconds kOwnersPeriod{2};

/// In the order of Figures.
std::vector<std::string> FigureNames() {
  return {"nodes",
          "nodes_up",
          "bytes",
          "leased_bytes",
          "read_bytes_per_second",
          "written_bytes_per_second",
          "requests_per_second",
          "request_seconds",
          "jobs_per_second",
          "job_cores",
          "rebuilt_bytes_per_second",
          "under_way",
          "answer_seconds_median",
          "answer_seconds_max"};
}

std::vector<double> Figures(const PoolSample& sample) {
  double up = 0;
  double bytes = 0;
  double leased = 0;
  double under_way = 0;
  NodeRates rates;
  bool rated = false;
  std::vector<double> answers;
  for (size_t i = 0; i < sample.pool.nodes.size(); ++i) {
    const NodeReport& node = sample.pool.nodes[i];
    if (!node.status.ok()) continue;
    ++up;
    bytes += static_cast<double>(node.stats.slabs_total * node.stats.slab_bytes);
    leased += static_cast<double>(node.leased_bytes());
    under_way += static_cast<double>(UnderWay(node.stats));
    if (!node.timing.pings.empty()) {
      answers.push_back(static_cast<double>(node.timing.pings.back().count()) / 1e9);
    }
    if (!sample.rates[i].has_value()) continue;
    rates += *sample.rates[i];
    rated = true;
  }
  std::sort(answers.begin(), answers.end());
  const auto rate = [&](double value) { return rated ? value : kUnknown; };
  return {static_cast<double>(sample.pool.nodes.size()),
          up,
          bytes,
          leased,
          rate(rates.bytes_read),
          rate(rates.bytes_written),
          rate(rates.requests),
          rated && rates.requests > 0 ? rates.request_seconds / rates.requests : kUnknown,
          rate(rates.jobs),
          rate(rates.job_cores),
          rate(rates.rebuilt),
          under_way,
          answers.empty() ? kUnknown : answers[answers.size() / 2],
          answers.empty() ? kUnknown : answers.back()};
}

int64_t NowMilliseconds() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Which databases have something on a node, and how much.
std::string HomesJson(const NodeReport& node) {
  std::string json;
  for (const pool::KnownDatabase& database : node.databases) {
    if (database.leased_bytes == 0) continue;
    json += fmt::format("{}{{\"name\": {}, \"leased_bytes\": {}}}", json.empty() ? "" : ", ",
                        JsonString(database.name), database.leased_bytes);
  }
  return ", \"homes\": [" + json + "]" +
         fmt::format(", \"under_way\": {}", node.status.ok() ? UnderWay(node.stats) : 0);
}

struct LevelSum {
  uint64_t tables = 0;
  uint64_t bytes = 0;
  uint64_t user_bytes = 0;
  uint64_t entries = 0;
};

std::string LevelJson(uint32_t level, const LevelSum& sum) {
  return fmt::format(
      "{{\"level\": {}, \"tables\": {}, \"bytes\": {}, \"user_bytes\": {}, \"entries\": {}}}",
      level, sum.tables, sum.bytes, sum.user_bytes, sum.entries);
}

}  // namespace

PoolConsoleSource::PoolConsoleSource(pool::PoolClient* client, std::chrono::milliseconds interval,
                                     Examiner examine)
    : client_(client),
      examine_(std::move(examine)),
      history_(FigureNames(), kHistory),
      levels_("{\"left_out\": 0, \"databases\": []}\n", [this] { return ReadLevels(); }),
      findings_(FindingsJson({{rdma::Finding::Verdict::kWarning, "doctor",
                               "an examination is under way", "ask again in a moment"}}),
                [this] { return FindingsJson(examine_()); }),
      sampler_(client, interval, [this](const PoolSample& sample) { Hear(sample); }) {
  owners_.Start(client->PeriodicOn(&pool::Background::looks), "nacre-owners", kOwnersPeriod,
                PeriodicTask::Begin::kWithRest, [this] { LookAtOwners(); });
}

void PoolConsoleSource::Hear(const PoolSample& sample) {
  const int64_t now = NowMilliseconds();
  history_.Add(now, Figures(sample));
  MutexLock lock(&events_mutex_);
  events_.Compare(sample, now);
}

std::string PoolConsoleSource::PoolJson() const {
  const PoolSample sample = sampler_.Latest();
  const PoolReport& pool = sample.pool;
  std::string nodes;
  for (size_t i = 0; i < pool.nodes.size(); ++i) {
    nodes += (nodes.empty() ? "" : ",\n  ") + TopNodeJson(sample, i, HomesJson(pool.nodes[i]));
  }
  std::string databases;
  for (const pool::KnownDatabase& database : pool.databases) {
    databases += (databases.empty() ? "" : ",\n  ") + TopDatabaseJson(database);
  }
  std::string events;
  {
    MutexLock lock(&events_mutex_);
    events = events_.Json();
  }
  return fmt::format(
      "{{\"samples\": {}, \"age_seconds\": {:.3f}, \"milliseconds\": {},\n"
      " \"repair_paused\": {}, \"repair_bytes_per_second\": {},\n"
      " \"nodes\": [\n  {}],\n \"databases\": [\n  {}],\n \"events\": {}}}",
      sample.rounds, static_cast<double>(sample.age_nanos) / 1e9, NowMilliseconds(),
      pool.directions.repair_paused, pool.directions.repair_bytes_per_second, nodes, databases,
      events);
}

std::string PoolConsoleSource::Kept::Get(Clock* clock) {
  {
    MutexLock lock(&mutex_);
    if (making_ || clock->NowNanos() < fresh_until_nanos_) return json_;
    making_ = true;
  }
  std::string made;
  try {
    made = make_();
  } catch (...) {
    MutexLock lock(&mutex_);
    making_ = false;
    throw;
  }
  MutexLock lock(&mutex_);
  json_ = std::move(made);
  making_ = false;
  fresh_until_nanos_ =
      clock->NowNanos() + static_cast<uint64_t>(std::chrono::nanoseconds(kFresh).count());
  return json_;
}

std::string PoolConsoleSource::LevelsOf(const pool::KnownDatabase& database) {
  DatabaseView view;
  if (const Status status = ViewDatabase(client_, database.name, &view); !status.ok()) {
    return fmt::format("{{\"name\": {}, \"error\": {}}}", JsonString(database.name),
                       JsonString(Explain(status)));
  }
  const ManifestState& state = view.state;
  std::map<uint32_t, std::vector<LevelSum>> families;  // By id.
  families[0].resize(state.num_levels);
  for (const auto& [id, family] : state.families) families[id].resize(family.num_levels);
  for (const auto& [id, table] : state.tables) {
    const auto& [level, meta] = table;
    std::vector<LevelSum>& levels = families[meta.family];
    if (level >= levels.size()) levels.resize(level + 1);
    ++levels[level].tables;
    levels[level].bytes += meta.size;
    levels[level].user_bytes += meta.user_bytes;
    levels[level].entries += meta.entries;
  }
  std::string json;
  for (const auto& [id, levels] : families) {
    const auto record = state.families.find(id);
    const std::string& name =
        record != state.families.end() ? record->second.name : kDefaultColumnFamilyName;
    json +=
        fmt::format("{}{{\"name\": {}, \"levels\": [", json.empty() ? "" : ", ", JsonString(name));
    for (uint32_t level = 0; level < levels.size(); ++level) {
      json += (level > 0 ? ", " : "") + LevelJson(level, levels[level]);
    }
    json += "]}";
  }
  return fmt::format("{{\"name\": {}, \"epoch\": {}, \"sequence\": {}, \"families\": [{}]}}",
                     JsonString(database.name), view.root.epoch, state.last_sequence, json);
}

std::string PoolConsoleSource::ReadLevels() {
  const std::vector<pool::KnownDatabase> databases = sampler_.Latest().pool.databases;
  std::string json;
  for (size_t i = 0; i < std::min(databases.size(), kDatabasesMax); ++i) {
    json += (i > 0 ? ",\n  " : "") + LevelsOf(databases[i]);
  }
  return fmt::format("{{\"left_out\": {}, \"databases\": [\n  {}]}}\n",
                     databases.size() - std::min(databases.size(), kDatabasesMax), json);
}

Status PoolConsoleSource::Carry(const console::Order& order) {
  using Kind = console::Order::Kind;
  if (order.kind == Kind::kPauseRepair || order.kind == Kind::kResumeRepair) {
    return ChangeDirections(client_, [&](pool::Directions* directions) {
      directions->repair_paused = order.kind == Kind::kPauseRepair;
    });
  }
  const PoolSample sample = sampler_.Latest();
  for (const NodeReport& node : sample.pool.nodes) {
    if (node.address != order.node) continue;
    NACRE_RETURN_IF_ERROR(node.status);
    return SetDraining(client_, node.stats, order.kind == Kind::kDrain);
  }
  return Status::InvalidArgument(fmt::format("the pool has no node '{}'", order.node));
}

void PoolConsoleSource::LookAtOwners() {
  const std::vector<pool::KnownDatabase> databases = sampler_.Latest().pool.databases;
  for (size_t i = 0; i < std::min(databases.size(), kDatabasesMax) && !owners_.stopping(); ++i) {
    pool::DatabaseRoot root;
    // What cannot be read now is looked at again soon, and its node is shown as what it is.
    if (!client_->databases()->Find(databases[i].name, &root).ok() || !root.exists) continue;
    MutexLock lock(&events_mutex_);
    events_.CompareEpoch(databases[i].name, root.database_id, root.epoch, NowMilliseconds());
  }
}

}  // namespace nacre::ctl
