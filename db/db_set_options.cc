#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "db/database_parts.h"
#include "db/options/options_check.h"
#include "db/owner_controls.h"
#include "nacre/convenience.h"
#include "util/log.h"

namespace nacre {

namespace {

constexpr std::string_view kOfFamilies[] = {
    "write_buffer_size",
    "max_write_buffer_number",
    "level0_file_num_compaction_trigger",
    "level0_slowdown_writes_trigger",
    "level0_stop_writes_trigger",
    "target_file_size_base",
    "target_file_size_multiplier",
    "max_bytes_for_level_base",
    "max_bytes_for_level_multiplier",
    "soft_pending_compaction_bytes_limit",
    "hard_pending_compaction_bytes_limit",
    "disable_auto_compactions",
};
constexpr std::string_view kOfDatabases[] = {
    "delayed_write_rate",      "max_background_jobs",      "max_subcompactions",
    "repair_bytes_per_second", "near_data_flush",          "compaction",
    "allow_degraded_writes",   "slow_operation_threshold",
};

/// Checks that the options exist.
Status CheckChangeable(std::span<const std::string_view> changeable,
                       const std::unordered_map<std::string, std::string>& changes) {
  for (const auto& [name, value] : changes) {
    if (std::find(changeable.begin(), changeable.end(), name) == changeable.end()) {
      return Status::InvalidArgument("Option not changeable: " + name);
    }
  }
  return Status::OK();
}

std::string TextOf(const std::unordered_map<std::string, std::string>& changes) {
  std::string text;
  for (const auto& [name, value] : changes) text += " " + name + "=" + value;
  return text;
}

}  // namespace

Options OwnerControls::GetOptions(ColumnFamilyHandle* handle) const {
  ColumnFamily* family = nullptr;
  if (!parts_->state.FindFamily(handle, &family).ok())
    return Options(GetDBOptions(), ColumnFamilyOptions());
  return Options(GetDBOptions(), family->options());
}

DBOptions OwnerControls::GetDBOptions() const {
  DBOptions options = parts_->context.options;
  parts_->context.live.PutInto(&options);
  return options;
}

Status OwnerControls::SetOptions(ColumnFamilyHandle* handle,
                                 const std::unordered_map<std::string, std::string>& changes) {
  ColumnFamily* family = nullptr;
  NACRE_RETURN_IF_ERROR(parts_->state.FindFamily(handle, &family, DatabaseState::Use::kWrite));
  if (changes.empty()) return Status::InvalidArgument("SetOptions: there is nothing to be set");
  MutexLock lock(&parts_->state.mutex);
  ColumnFamilyOptions options;
  NACRE_RETURN_IF_ERROR(
      GetColumnFamilyOptionsFromMap(ConfigOptions(), family->options(), changes, &options));
  NACRE_RETURN_IF_ERROR(CheckChangeable(kOfFamilies, changes));
  std::vector<std::string> notes;
  options = SanitizeFamilyOptions(options, family->name(), &notes);
  NACRE_RETURN_IF_ERROR(CheckFamilyOptions(options, family->name()));
  LogNotes(parts_->context.options.info_log.get(), parts_->context.name, notes);
  family->SetOptions(options);
  // What was full may not be so any more; what became so is when it is written next.
  parts_->generations.SwitchIfThereIsRoom();
  parts_->write_controller.Update();
  parts_->state.MaybeSchedule();
  parts_->state.changed.SignalAll();
  Log(parts_->context.options.info_log, LogLevel::kInfo, "{}: options of column family {} set:{}",
      parts_->context.name, family->name(), TextOf(changes));
  return Status::OK();
}

Status OwnerControls::SetDBOptions(const std::unordered_map<std::string, std::string>& changes) {
  if (changes.empty()) return Status::InvalidArgument("SetDBOptions: there is nothing to be set");
  MutexLock lock(&parts_->state.mutex);  // One change after the other.
  DBOptions options;
  NACRE_RETURN_IF_ERROR(GetDBOptionsFromMap(ConfigOptions(), GetDBOptions(), changes, &options));
  NACRE_RETURN_IF_ERROR(CheckChangeable(kOfDatabases, changes));
  std::vector<std::string> notes;
  options = SanitizeDBOptions(options, &notes);
  LogNotes(parts_->context.options.info_log.get(), parts_->context.name, notes);
  RedundancyPolicy redundancy;
  NACRE_RETURN_IF_ERROR(CheckOptions(Options(options, parts_->state.default_family->options()),
                                     parts_->context.name, &redundancy));
  parts_->context.live.Take(options);
  parts_->compactions.Grow(parts_->context.live.most_compactions());
  parts_->state.MaybeSchedule();
  parts_->state.changed.SignalAll();
  Log(parts_->context.options.info_log, LogLevel::kInfo, "{}: options set:{}", parts_->context.name,
      TextOf(changes));
  return Status::OK();
}

Status OwnerControls::EnableAutoCompaction(const std::vector<ColumnFamilyHandle*>& families) {
  for (ColumnFamilyHandle* family : families) {
    NACRE_RETURN_IF_ERROR(SetOptions(family, {{"disable_auto_compactions", "false"}}));
  }
  return Status::OK();
}

}  // namespace nacre
