#include "ctl/repair_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ctl/ctl_report.h"
#include "ctl/finding.h"
#include "ctl/fsck.h"
#include "ctl/read_progress.h"
#include "util/json_text.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

std::string JsonStrings(const std::vector<std::string>& list) {
  std::string json;
  for (const std::string& each : list) json += (json.empty() ? "" : ", ") + JsonString(each);
  return "[" + json + "]";
}

void PrintRepairJson(const std::string& name, const SalvageReport& report) {
  const SalvagePlan& plan = report.plan;
  fmt::print(
      "{{\"name\": {}, \"database_id\": \"{:016x}\", \"repaired\": {}, \"manifest\": {},\n"
      " \"bytes_scanned\": {}, \"tables\": {}, \"records\": {}, \"table_bytes\": {}, "
      "\"dead_tables\": {},\n \"log_segments\": {}, \"log_records\": {}, \"log_bytes\": {}, "
      "\"sequence_in_tables\": {},\n \"comparator\": {}, \"num_levels\": {}, \"lost\": [{}],\n"
      " \"incomplete\": {},\n \"notes\": {}}}\n",
      JsonString(name), report.database_id, report.salvaged,
      JsonString(report.manifest.empty() ? "can be read" : report.manifest), plan.bytes_scanned,
      plan.state.tables.size(), plan.records, plan.table_bytes, plan.dead_tables,
      plan.state.segments.size(), plan.log_records, plan.log_bytes, plan.state.last_sequence,
      JsonString(plan.state.comparator), plan.state.num_levels, fmt::join(plan.lost, ", "),
      JsonStrings(plan.incomplete), JsonStrings(plan.notes));
}

void PrintText(const std::string& name, const SalvageReport& report) {
  const SalvagePlan& plan = report.plan;
  fmt::print("database {} ({:016x}); its manifest: {}\n", name, report.database_id,
             report.manifest.empty() ? "can be read" : report.manifest);
  fmt::print("scanned {}: {} tables with {} records, {}; {} further tables are dead\n",
             FormatBytes(plan.bytes_scanned), plan.state.tables.size(), plan.records,
             FormatBytes(plan.table_bytes), plan.dead_tables);
  fmt::print("log: {} segments, {} records beyond sequence {}, {}\n", plan.state.segments.size(),
             plan.log_records, plan.state.last_sequence, FormatBytes(plan.log_bytes));
  fmt::print("comparator {}, {} levels\n", plan.state.comparator, plan.state.num_levels);
  for (const std::string& each : plan.incomplete) fmt::print("  not used: {}\n", each);
  for (const std::string& note : plan.notes) fmt::print("  {}\n", note);
  if (!plan.lost.empty()) fmt::print("  lost: tables {}\n", fmt::join(plan.lost, ", "));
  if (report.salvaged)
    fmt::print("a new manifest is in place; opening the database replays its log\n");
}

/// A scan reads all memory that the database has, and what is in tables there a second time.
uint64_t MostToRead(pool::PoolClient* client, const std::string& name) {
  for (const pool::KnownDatabase& database : AskPool(client).databases) {
    if (database.name == name) return 2 * database.leased_bytes;
  }
  return 0;
}

}  // namespace

Status Repair(pool::PoolClient* client, const std::string& name, const SalvageOptions& options,
              bool json, int* exit_status) {
  SalvageReport report;
  Status status;
  {
    std::unique_ptr<ReadProgress> progress;
    const uint64_t most = MostToRead(client, name);
    if (!json && most > 0) {
      progress = std::make_unique<ReadProgress>(client, "repair " + name, most);
    }
    status = SalvageDatabase(client, name, options, &report);
  }
  if (report.database_id != 0) json ? PrintRepairJson(name, report) : PrintText(name, report);
  NACRE_RETURN_IF_ERROR(status);
  *exit_status = report.plan.lost.empty() ? 0 : 1;
  if (options.dry_run) return Status::OK();
  const FsckReport check = Fsck(client, {.database = name});
  PrintFsck(check, json);
  *exit_status = std::max(*exit_status, check.exit_status());
  return Status::OK();
}

}  // namespace nacre::ctl
