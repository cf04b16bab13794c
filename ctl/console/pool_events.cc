#include "ctl/console/pool_events.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "util/json_text.h"

namespace nacre::ctl {
namespace {

using Kind = PoolEvent::Kind;

const char* NameOf(Kind kind) {
  switch (kind) {
    case Kind::kGood:
      return "good";
    case Kind::kNote:
      return "note";
    case Kind::kStrange:
      return "strange";
    case Kind::kBad:
      return "bad";
  }
  return "?";
}

Kind KindOfState(const std::string& state) {
  return state == "down" ? Kind::kBad : state == "well" ? Kind::kGood : Kind::kStrange;
}

}  // namespace

void PoolEvents::Add(int64_t milliseconds, Kind kind, std::string text) {
  events_.push_back({.milliseconds = milliseconds, .kind = kind, .text = std::move(text)});
  if (events_.size() > capacity_) events_.pop_front();
}

void PoolEvents::CompareNode(const NodeReport& node, bool draining, int64_t milliseconds) {
  std::string state = StateText(node);
  if (draining) state += ", draining";
  const auto [known, is_new] = nodes_.try_emplace(node.address);
  Node& before = known->second;
  if (is_new ? state != "well" : state != before.state) {
    Add(milliseconds, KindOfState(state), fmt::format("node {}: {}", node.address, state));
  }
  before.state = std::move(state);
  if (!node.status.ok()) return;
  if (before.instance_id != 0 && before.instance_id != node.stats.instance_id) {
    Add(milliseconds, Kind::kStrange,
        fmt::format("node {}: has come back without what it held", node.address));
  } else if (node.stats.uptime_nanos < before.uptime_nanos) {
    Add(milliseconds, Kind::kStrange,
        fmt::format("node {}: was started anew, and kept what it held", node.address));
  }
  before.instance_id = node.stats.instance_id;
  before.uptime_nanos = node.stats.uptime_nanos;
}

void PoolEvents::CompareDatabase(const pool::KnownDatabase& database, int64_t milliseconds) {
  const auto [known, is_new] = databases_.try_emplace(database.name);
  Database& before = known->second;
  const auto add = [&](Kind kind, const std::string& what) {
    Add(milliseconds, kind, fmt::format("database {}: {}", database.name, what));
  };
  if (!is_new && before.database_id != database.database_id) add(Kind::kNote, "was made anew");
  if (!is_new && before.open != database.open) {
    add(Kind::kNote, database.open ? "has an owner" : "has no owner any more");
  }
  before.open = database.open;
  before.database_id = database.database_id;
  // Without a report nothing is known of these.
  if (!database.reported) return;
  const std::string repair = ToString(database.report.repair.state);
  if (repair != (before.repair.empty() ? "idle" : before.repair)) {
    add(repair == "idle" ? Kind::kGood : Kind::kStrange, "repair is " + repair);
  }
  before.repair = repair;
  if (database.report.notice != before.notice && !database.report.notice.empty()) {
    add(Kind::kBad, database.report.notice);
  }
  before.notice = database.report.notice;
  // What was slow before this began to look is no news, nor is what an earlier owner counted.
  const uint64_t slow = database.report.slow_operations;
  if (!is_new && slow > before.slow_operations) {
    const uint64_t more = slow - before.slow_operations;
    add(Kind::kStrange, database.report.latest_slow.empty()
                            ? fmt::format("{} slow operations", more)
                            : fmt::format("{} slow, such as {}", Counted(more, "operation"),
                                          database.report.latest_slow.back().text));
  }
  before.slow_operations = slow;
}

void PoolEvents::Compare(const PoolSample& sample, int64_t milliseconds) {
  bool any = false;
  for (const NodeReport& node : sample.pool.nodes) {
    CompareNode(node, sample.pool.draining(node), milliseconds);
    any = any || node.status.ok();
  }
  for (const pool::KnownDatabase& database : sample.pool.databases) {
    CompareDatabase(database, milliseconds);
  }
  // While nodes are away, the databases that only they know are no news.
  if (!sample.pool.complete() || !any) return;
  std::set<std::string> names;
  for (const pool::KnownDatabase& database : sample.pool.databases) names.insert(database.name);
  std::erase_if(databases_, [&](const auto& known) {
    if (names.contains(known.first)) return false;
    Add(milliseconds, Kind::kNote, fmt::format("database {}: is no longer there", known.first));
    owners_.erase(known.first);
    return true;
  });
}

void PoolEvents::CompareEpoch(const std::string& database, uint64_t database_id, uint64_t epoch,
                              int64_t milliseconds) {
  Owner& owner = owners_[database];
  if (owner.epoch != 0 && owner.database_id == database_id && owner.epoch < epoch) {
    Add(milliseconds, Kind::kNote,
        fmt::format("database {}: was taken over by its owner of epoch {}", database, epoch));
  }
  owner = {.database_id = database_id, .epoch = epoch};
}

std::string PoolEvents::Json() const {
  std::string json;
  for (const PoolEvent& event : events_) {
    json += fmt::format("{}{{\"milliseconds\": {}, \"kind\": \"{}\", \"text\": {}}}",
                        json.empty() ? "" : ",\n  ", event.milliseconds, NameOf(event.kind),
                        JsonString(event.text));
  }
  return "[" + json + "]";
}

}  // namespace nacre::ctl
