#include "ctl/checkpoint_command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <vector>

#include "ctl/ctl_report.h"
#include "ctl/database_view.h"
#include "nacre/checkpoint.h"
#include "nacre/column_family.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "util/json_text.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

/// Tells on standard error of each tenth.
CheckpointCallback TellProgress(const CheckpointRequest& request) {
  if (request.json) return nullptr;
  return [told = uint64_t{0}](const CheckpointProgress& progress) mutable {
    constexpr uint64_t kParts = 10;
    const uint64_t parts = progress.bytes == 0 ? 0 : progress.bytes_done * kParts / progress.bytes;
    if (parts > told) {
      told = parts;
      fmt::print(stderr, "{:3} %: {} of {}, {} of {} tables\n", parts * 100 / kParts,
                 FormatBytes(progress.bytes_done), FormatBytes(progress.bytes),
                 progress.tables_done, progress.tables);
    }
    return true;
  };
}

CheckpointOptions OptionsOf(const CheckpointRequest& request) {
  return {.threads = request.threads,
          .bytes_per_second = request.bytes_per_second,
          .progress = TellProgress(request)};
}

/// What a database that is opened only for this needs.
Status MakeOptions(pool::PoolClient* client, const CheckpointRequest& request, Options* options) {
  options->pool_uri = request.pool_uri;
  options->redundancy = request.redundancy;
  options->disable_auto_compactions = true;
  options->scrub_bytes_per_second = 0;
  options->operation_timeout = client->options().operation_timeout;
  Status status = Status::Unavailable("no node of the pool can be reached");
  for (int node = 0; node < client->node_count(); ++node) {
    pool::NodeStats stats;
    status = pool::GetStats(client, static_cast<NodeId>(node), &stats);
    if (!status.ok()) continue;
    options->slab_size = stats.slab_bytes;
    return Status::OK();
  }
  return status;
}

/// The redundancy with the most parity that a table or the log has.
std::string RedundancyOf(const ManifestState& state) {
  Redundancy most;
  const auto take = [&most](const Redundancy& other) {
    if (other.parity > most.parity) most = other;
  };
  for (const auto& [id, table] : state.tables) take(table.second.placement.redundancy);
  for (const auto& [number, segment] : state.segments) {
    take(Redundancy::Copies(std::max(1, static_cast<int>(segment.copies.size()))));
  }
  return most.ToString();
}

std::string InfoJson(const CheckpointInfo& info) {
  return fmt::format(
      R"({{"number": {}, "id": "{:016x}", "database": {}, "sequence": {}, "comparator": {}, )"
      R"("tables": {}, "bytes": {}, "created_at": {})",
      info.number, info.id, JsonString(info.database), info.sequence, JsonString(info.comparator),
      info.tables, info.bytes, info.created_at);
}

void PrintInfo(const CheckpointInfo& info, const std::string& more) {
  const std::time_t time = static_cast<std::time_t>(info.created_at);
  fmt::print(
      "checkpoint {} of {:%Y-%m-%d %H:%M:%S} UTC: database {} at sequence {}, {} tables, {}{}\n",
      info.number, fmt::gmtime(time), info.database, info.sequence, info.tables,
      FormatBytes(info.bytes), more);
}

}  // namespace

Status MakeCheckpoint(pool::PoolClient* client, const CheckpointRequest& request) {
  DatabaseView view;
  NACRE_RETURN_IF_ERROR(ViewDatabase(client, request.database, &view));
  Options options;
  NACRE_RETURN_IF_ERROR(MakeOptions(client, request, &options));
  options.num_levels = static_cast<int>(view.state.num_levels);
  if (options.redundancy.empty()) options.redundancy = RedundancyOf(view.state);
  // All families must be named.
  std::vector<ColumnFamilyDescriptor> families = {{kDefaultColumnFamilyName, options}};
  for (const auto& [id, record] : view.state.families) {
    families.emplace_back(record.name, options).options.num_levels =
        static_cast<int>(record.num_levels);
  }
  std::vector<ColumnFamilyHandle*> handles;
  std::unique_ptr<DB> db;
  Status status = DB::Open(options, request.database, families, &handles, &db);
  if (status.IsBusy()) {
    return Status::Busy("database '" + request.database +
                        "' is open, and its latest writes are in the memory of its process: have "
                        "that make the checkpoint (nacre/checkpoint.h), or close the database");
  }
  NACRE_RETURN_IF_ERROR(std::move(status));
  for (ColumnFamilyHandle* handle : handles) {
    NACRE_RETURN_IF_ERROR(db->DestroyColumnFamilyHandle(handle));
  }
  std::unique_ptr<Checkpoint> checkpoint;
  NACRE_RETURN_IF_ERROR(Checkpoint::Create(db.get(), &checkpoint));
  CheckpointInfo info;
  status = checkpoint->CreateCheckpoint(request.dir, OptionsOf(request), &info);
  const Status closed = db->Close();
  if (status.ok()) status = closed;
  NACRE_RETURN_IF_ERROR(std::move(status));
  if (request.json) {
    fmt::print("{}, \"bytes_new\": {}}}\n", InfoJson(info), info.bytes_new);
  } else {
    PrintInfo(info, fmt::format(", {} of them written now", FormatBytes(info.bytes_new)));
  }
  return Status::OK();
}

Status Restore(pool::PoolClient* client, const CheckpointRequest& request) {
  if (request.redundancy.empty()) {
    return Status::InvalidArgument("--redundancy is missing: none, rep(n) or rs(k,m)");
  }
  Options options;
  NACRE_RETURN_IF_ERROR(MakeOptions(client, request, &options));
  RestoreOptions restore;
  restore.checkpoint = request.checkpoint;
  restore.threads = request.threads;
  restore.bytes_per_second = request.bytes_per_second;
  restore.progress = TellProgress(request);
  // As many levels as it had: what opens it has its own options.
  constexpr int kLevelsMax = 16;
  options.num_levels = kLevelsMax;
  NACRE_RETURN_IF_ERROR(RestoreDB(options, request.database, request.dir, restore));
  if (request.json) {
    fmt::print("{{\"restored\": {}}}\n", JsonString(request.database));
  } else {
    fmt::print("database {} is restored\n", request.database);
  }
  return Status::OK();
}

Status ShowCheckpoints(const CheckpointRequest& request, bool verify, bool* fine) {
  std::vector<CheckpointInfo> infos;
  const Status listed = GetCheckpoints(request.dir, &infos);
  if (!listed.ok() && !listed.IsCorruption() && !listed.IsNotSupported()) return listed;
  *fine = listed.ok();
  std::string json;
  for (const CheckpointInfo& info : infos) {
    Status checked;
    if (verify) checked = VerifyCheckpoint(request.dir, info.number, OptionsOf(request));
    if (checked.IsBusy()) return checked;
    if (!checked.ok()) *fine = false;
    if (request.json) {
      json += fmt::format("{}{}", json.empty() ? "" : ",\n  ", InfoJson(info));
      if (verify) json += fmt::format(", \"verified\": {}", JsonString(checked.ToString()));
      json += "}";
    } else {
      PrintInfo(info, verify ? ": " + checked.ToString() : "");
    }
  }
  if (request.json) {
    fmt::print("{{\"checkpoints\": [{}], \"status\": {}}}\n", json, JsonString(listed.ToString()));
  } else if (!listed.ok()) {
    fmt::print("damaged: {}\n", listed.message());
  }
  return Status::OK();
}

}  // namespace nacre::ctl
