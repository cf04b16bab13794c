#include "ctl/finding.h"

#include <fmt/format.h>

#include "ctl/ctl_report.h"
#include "util/json_text.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

std::string FindingJson(const Finding& finding) {
  std::string json = fmt::format("{{\"problem\": \"{}\"", ToString(finding.problem));
  if (!finding.database.empty()) json += ", \"database\": " + JsonString(finding.database);
  if (!finding.node.empty()) json += ", \"node\": " + JsonString(finding.node);
  if (finding.table != 0) json += fmt::format(", \"table\": {}", finding.table);
  if (finding.segment != 0) json += fmt::format(", \"segment\": {}", finding.segment);
  return json + ", \"text\": " + JsonString(finding.text) + "}";
}

std::string HealthJson(const DatabaseHealth& health) {
  std::string remarks;
  for (const std::string& remark : health.remarks) {
    remarks += (remarks.empty() ? "" : ", ") + JsonString(remark);
  }
  return fmt::format(
      "{{\"name\": {}, \"id\": \"{:016x}\", \"open\": {}, \"leaks_counted\": {}, "
      "\"manifest_version\": {}, \"manifest_copies\": {}, \"tables\": {}, \"table_bytes\": {}, "
      "\"segments\": {}, \"spare_nodes\": {}, \"bytes_checked\": {}, \"unreferenced_bytes\": {}, "
      "\"remarks\": [{}]}}",
      JsonString(health.name), health.id, health.open, !health.open, health.manifest_version,
      health.manifest_copies, health.tables, health.table_bytes, health.segments,
      health.spare_nodes, health.bytes_checked, health.unreferenced_bytes, remarks);
}

template <typename Items, typename Text>
std::string JsonList(const Items& items, const Text& text) {
  std::string list;
  for (const auto& item : items) list += (list.empty() ? "" : ",\n  ") + text(item);
  return "[" + list + "]";
}

void PrintHealth(const DatabaseHealth& health) {
  fmt::print("database {}: {}; {}, {}; {}; manifest version {} in {}; ", health.name,
             health.open ? "open" : "closed", Counted(health.tables, "table"),
             FormatBytes(health.table_bytes), Counted(health.segments, "log segment"),
             health.manifest_version,
             health.manifest_copies == 1 ? std::string("1 copy")
                                         : fmt::format("{} copies", health.manifest_copies));
  if (health.spare_nodes < 0) {
    fmt::print("data is lost");
  } else if (health.spare_nodes == 0) {
    fmt::print("no node may be lost");
  } else {
    fmt::print("any {} may be lost", Counted(static_cast<uint64_t>(health.spare_nodes), "node"));
  }
  if (health.bytes_checked > 0) fmt::print("; {} checked", FormatBytes(health.bytes_checked));
  fmt::print("\n");
  if (health.open) {
    fmt::print("  leaks are not counted: what its owner has reserved is in no manifest yet\n");
  } else {
    fmt::print("  {} of its slabs are free for what comes next\n",
               FormatBytes(health.unreferenced_bytes));
  }
  for (const std::string& remark : health.remarks) fmt::print("  {}\n", remark);
}

}  // namespace

const char* ToString(Problem problem) {
  switch (problem) {
    case Problem::kNode:
      return "node";
    case Problem::kRoot:
      return "root";
    case Problem::kManifest:
      return "manifest";
    case Problem::kDegraded:
      return "degraded";
    case Problem::kLost:
      return "lost";
    case Problem::kDamage:
      return "damage";
    case Problem::kDangling:
      return "dangling";
    case Problem::kOverlap:
      return "overlap";
    case Problem::kLeak:
      return "leak";
  }
  return "unknown";
}

std::string ToString(const Finding& finding) {
  std::string line = std::string(ToString(finding.problem)) + ": ";
  if (!finding.database.empty()) line += "database " + finding.database + ": ";
  if (!finding.node.empty()) line += finding.node + ": ";
  if (finding.table != 0) line += fmt::format("table {}: ", finding.table);
  if (finding.segment != 0) line += fmt::format("log segment {}: ", finding.segment);
  return line + finding.text;
}

void PrintFsck(const FsckReport& report, bool json) {
  if (json) {
    fmt::print(
        "{{\"clean\": {}, \"complete\": {},\n \"databases\": {},\n \"findings\": {},\n"
        " \"failures\": {}}}\n",
        report.findings.empty(), report.failures.empty(), JsonList(report.databases, HealthJson),
        JsonList(report.findings, FindingJson),
        JsonList(report.failures, [](const Status& s) { return JsonString(Explain(s)); }));
    return;
  }
  for (const DatabaseHealth& health : report.databases) PrintHealth(health);
  for (const Finding& finding : report.findings) fmt::print("{}\n", ToString(finding));
  for (const Status& failure : report.failures) {
    fmt::print("could not look: {}\n", Explain(failure));
  }
  if (report.exit_status() == 0) {
    fmt::print("clean\n");
  } else {
    fmt::print("{} found{}\n", report.findings.size(),
               report.failures.empty() ? "" : ", and not everything could be looked at");
  }
}

}  // namespace nacre::ctl
