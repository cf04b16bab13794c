#include "ctl/checkpoint_command.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "ctl/ctl_report.h"
#include "ctl/database_view.h"
#include "ctl/terminal/progress_line.h"
#include "nacre/archive.h"
#include "nacre/checkpoint.h"
#include "nacre/column_family.h"
#include "pool/reports.h"
#include "pool/wire/node_stats.h"
#include "util/clock.h"
#include "util/json_text.h"
#include "util/uri.h"

namespace nacre::ctl {
namespace {

/// Tells on standard error how far what `title` says has come.
CheckpointCallback TellProgress(const CheckpointRequest& request, const std::string& title) {
  if (request.json) return nullptr;
  auto line =
      std::make_shared<ProgressLine>(stderr, Clock::System(), title, ProgressLine::Plain::kTenths);
  return [line = std::move(line)](const CheckpointProgress& progress) {
    const std::string tables =
        fmt::format("{} of {} tables", progress.tables_done, progress.tables);
    line->Show(progress.bytes_done, progress.bytes, tables,
               fmt::format("{} of {}, {}", FormatBytes(progress.bytes_done),
                           FormatBytes(progress.bytes), tables));
    return true;
  };
}

CheckpointOptions OptionsOf(const CheckpointRequest& request, const std::string& title) {
  return {.threads = request.threads == 0 ? CheckpointOptions().threads : request.threads,
          .bytes_per_second = request.bytes_per_second,
          .progress = TellProgress(request, title),
          .encryption = request.encryption};
}

/// What a database that is opened only for this needs.
Status MakeOptions(pool::PoolClient* client, const CheckpointRequest& request, Options* options) {
  options->pool_uri = request.pool_uri;
  options->redundancy = request.redundancy;
  options->encryption_key_file = request.database_key_file;
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

/// An empty ID is that of files that are not encrypted.
std::string KeysJson(const std::map<std::string, uint64_t>& files) {
  std::string json;
  for (const auto& [id, count] : files) {
    json += fmt::format("{}{}: {}", json.empty() ? "" : ", ", JsonString(id), count);
  }
  return json;
}

/// Nothing, if nothing is encrypted.
void PrintKeys(const std::map<std::string, uint64_t>& files) {
  for (const auto& [id, count] : files) {
    const char* const many = count == 1 ? "" : "s";
    if (!id.empty()) {
      fmt::print("encrypted with key {}: {} file{}\n", id, count, many);
    } else if (files.size() > 1) {
      fmt::print("not encrypted: {} file{}\n", count, many);
    }
  }
}

constexpr uint64_t kMicros = 1'000'000;

std::string TimeText(uint64_t micros) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S}.{:03}",
                     fmt::gmtime(static_cast<std::time_t>(micros / kMicros)),
                     micros % kMicros / 1000);
}

/// Microseconds since 1970, to the end of the second that `text` names.
Status ParseTime(const std::string& text, uint64_t* micros) {
  std::tm time = {};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%d %H:%M:%S", &time);
  if (end == nullptr || *end != '\0') {
    return Status::InvalidArgument("--to_time: '" + text +
                                   "' is no time such as '2026-11-28 10:30:00' (UTC)");
  }
  *micros = (static_cast<uint64_t>(::timegm(&time)) + 1) * kMicros - 1;
  return Status::OK();
}

Status RestoreFromArchive(const Options& options, const RestoreOptions& restore,
                          const CheckpointRequest& request, uint64_t* sequence) {
  if (request.checkpoint != 0) {
    return Status::InvalidArgument(request.dir +
                                   " is an archive: --to_sequence and --to_time say "
                                   "what is restored, not --checkpoint");
  }
  ArchiveRestoreOptions archive{.to_sequence = request.to_sequence, .restore = restore};
  if (!request.to_time.empty()) {
    NACRE_RETURN_IF_ERROR(ParseTime(request.to_time, &archive.to_micros));
  }
  return RestoreArchive(options, request.database, request.dir, archive, sequence);
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
  status = checkpoint->CreateCheckpoint(
      request.dir, OptionsOf(request, "checkpoint " + request.database), &info);
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
  restore.progress = TellProgress(request, "restore " + request.database);
  restore.encryption = request.encryption;
  // As many levels as it had: what opens it has its own options.
  constexpr int kLevelsMax = 16;
  options.num_levels = kLevelsMax;
  ArchiveInfo info;
  const Status found = GetArchive(request.dir, &info, request.encryption.key_file);
  uint64_t sequence = 0;
  if (found.IsNotFound()) {
    if (request.to_sequence != UINT64_MAX || !request.to_time.empty()) {
      return Status::InvalidArgument(request.dir +
                                     " is no archive: there is no log to go on with "
                                     "to a sequence or a time");
    }
    NACRE_RETURN_IF_ERROR(RestoreDB(options, request.database, request.dir, restore));
  } else {
    NACRE_RETURN_IF_ERROR(found);
    NACRE_RETURN_IF_ERROR(RestoreFromArchive(options, restore, request, &sequence));
  }
  restore.progress = nullptr;  // Its line leaves the terminal before the next one comes.
  if (request.json) {
    fmt::print("{{\"restored\": {}{}}}\n", JsonString(request.database),
               sequence == 0 ? "" : fmt::format(", \"sequence\": {}", sequence));
  } else {
    fmt::print("database {} is restored{}\n", request.database,
               sequence == 0 ? "" : fmt::format(", up to sequence {}", sequence));
  }
  return Status::OK();
}

Status ShowArchive(const CheckpointRequest& request, bool verify) {
  if (verify) {
    NACRE_RETURN_IF_ERROR(VerifyArchive(request.dir, OptionsOf(request, "archive")));
  }
  ArchiveInfo info;
  NACRE_RETURN_IF_ERROR(GetArchive(request.dir, &info, request.encryption.key_file));
  std::string bases;
  std::string ranges;
  for (const CheckpointInfo& base : info.bases) {
    if (request.json) {
      bases += fmt::format("{}{}}}", bases.empty() ? "" : ",\n  ", InfoJson(base));
    } else {
      PrintInfo(base, "");
    }
  }
  for (const ArchivedRange& range : info.log) {
    if (request.json) {
      ranges += fmt::format(
          R"({}{{"after": {}, "last": {}, "first_micros": {}, "last_micros": {}, "bytes": {}}})",
          ranges.empty() ? "" : ",\n  ", range.after, range.last, range.first_micros,
          range.last_micros, range.bytes);
    } else {
      fmt::print("log of sequences {} to {}, {} to {} UTC, {}\n", range.after + 1, range.last,
                 TimeText(range.first_micros), TimeText(range.last_micros),
                 FormatBytes(range.bytes));
    }
  }
  if (request.json) {
    fmt::print("{{\"database\": {}, \"bases\": [{}], \"log\": [{}], \"files_by_key\": {{{}}}}}\n",
               JsonString(info.database), bases, ranges, KeysJson(info.files_by_key));
  } else {
    PrintKeys(info.files_by_key);
  }
  return Status::OK();
}

Status ShowCheckpoints(const CheckpointRequest& request, bool verify, bool* fine) {
  std::vector<CheckpointInfo> infos;
  const Status listed = GetCheckpoints(request.dir, &infos, request.encryption);
  if (!listed.ok() && !listed.IsCorruption() && !listed.IsNotSupported()) return listed;
  *fine = listed.ok();
  std::string json;
  for (const CheckpointInfo& info : infos) {
    Status checked;
    if (verify) {
      checked = VerifyCheckpoint(request.dir, info.number,
                                 OptionsOf(request, fmt::format("checkpoint {}", info.number)));
    }
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
