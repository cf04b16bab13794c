#include "adapters/python/core_options.h"

#include <chrono>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <type_traits>

#include "adapters/python/core_error.h"
#include "adapters/python/core_merge.h"
#include "nacre/comparator.h"
#include "nacre/merge_operator.h"
#include "nacre/statistics.h"

namespace nacre::python {

namespace py = pybind11;

namespace {

using Setter = std::function<void(const std::string& name, const py::handle&, Options*)>;

[[noreturn]] void ThrowType(const std::string& name, const char* wanted, const py::handle& value) {
  throw py::type_error("option '" + name + "' wants " + wanted + ", not " +
                       std::string(py::str(py::type::handle_of(value).attr("__name__"))));
}

/// A number or a boolean. A Python bool is no number here, although it is one in Python.
template <typename Part, typename Field>
Setter Plain(Field Part::*field) {
  return [field](const std::string& name, const py::handle& value, Options* options) {
    if constexpr (std::is_same_v<Field, bool>) {
      if (!py::isinstance<py::bool_>(value)) ThrowType(name, "bool", value);
    } else {
      const bool is_int = py::isinstance<py::int_>(value) && !py::isinstance<py::bool_>(value);
      const bool is_number =
          is_int || (std::is_floating_point_v<Field> && PyFloat_Check(value.ptr()));
      if (!is_number) ThrowType(name, std::is_floating_point_v<Field> ? "float" : "int", value);
    }
    try {
      options->*field = py::cast<Field>(value);
    } catch (const py::cast_error&) {
      throw StatusFailure(Status::InvalidArgument(
          "option '" + name + "' is out of range: " + std::string(py::str(value))));
    }
  };
}

Setter Text(std::string Options::*field) {
  return [field](const std::string& name, const py::handle& value, Options* options) {
    if (!py::isinstance<py::str>(value)) ThrowType(name, "str", value);
    options->*field = py::cast<std::string>(value);
  };
}

template <typename Struct, typename Duration>
Setter Seconds(Duration Struct::*field) {
  return [field](const std::string& name, const py::handle& value, Options* options) {
    if (!PyFloat_Check(value.ptr()) && !PyLong_Check(value.ptr())) {
      ThrowType(name, "seconds as a number", value);
    }
    const double seconds = py::cast<double>(value);
    constexpr double kMost = 1e9;  // What a duration can hold; opening has narrower bounds.
    if (!(seconds >= -kMost && seconds <= kMost)) {
      throw StatusFailure(Status::InvalidArgument("option '" + name + "' is out of range"));
    }
    constexpr double kASecond = Duration::period::den;
    options->*field = Duration(std::llround(seconds * kASecond));
  };
}

template <typename Field, typename Part>
Setter Choice(Field Part::*field, std::map<std::string, Field> choices) {
  return [field, choices](const std::string& name, const py::handle& value, Options* options) {
    if (!py::isinstance<py::str>(value)) ThrowType(name, "str", value);
    const auto found = choices.find(py::cast<std::string>(value));
    if (found == choices.end()) {
      std::string known;
      for (const auto& [choice, meaning] : choices) known += (known.empty() ? "" : ", ") + choice;
      throw StatusFailure(Status::InvalidArgument("option '" + name + "' is '" +
                                                  py::cast<std::string>(value) +
                                                  "', must be one of: " + known));
    }
    options->*field = found->second;
  };
}

/// One of Nacre's own, by its name, or a function.
Setter Merge() {
  return [](const std::string& name, const py::handle& value, Options* options) {
    if (PyCallable_Check(value.ptr()) != 0) {
      options->merge_operator = MakePythonMerge(py::reinterpret_borrow<py::object>(value));
      return;
    }
    if (!py::isinstance<py::str>(value)) ThrowType(name, "str or a function", value);
    const Status status =
        MergeOperator::CreateFromString(py::cast<std::string>(value), &options->merge_operator);
    if (status.ok()) return;
    throw StatusFailure(Status::InvalidArgument(
        "option 'merge_operator' is '" + py::cast<std::string>(value) +
        "', must be one of: stringappend, stringappend:SEPARATOR, uint64add"));
  };
}

Setter Counters() {
  return [](const std::string& name, const py::handle& value, Options* options) {
    if (!py::isinstance<Statistics>(value)) ThrowType(name, "nacre.Statistics", value);
    options->statistics = py::cast<std::shared_ptr<Statistics>>(value);
  };
}

using Setters = std::map<std::string, Setter>;

/// Setters for the database as a whole.
const Setters& DatabaseSetters() {
  static const Setters kSetters = {
      {"redundancy", Text(&Options::redundancy)},
      {"allow_degraded_writes", Plain(&Options::allow_degraded_writes)},
      {"allow_narrow_writes", Plain(&Options::allow_narrow_writes)},
      {"compaction",
       Choice<CompactionSite>(&Options::compaction, {{"auto", CompactionSite::kAuto},
                                                     {"compute", CompactionSite::kCompute}})},
      {"near_data_flush",
       Choice<NearDataFlush>(&Options::near_data_flush, {{"auto", NearDataFlush::kAuto},
                                                         {"on", NearDataFlush::kOn},
                                                         {"off", NearDataFlush::kOff}})},
      {"scrub_bytes_per_second", Plain(&Options::scrub_bytes_per_second)},
      {"create_if_missing", Plain(&Options::create_if_missing)},
      {"error_if_exists", Plain(&Options::error_if_exists)},
      {"take_over", Plain(&Options::take_over)},
      {"follow_interval", Seconds(&Options::follow_interval)},
      {"manual_wal_flush", Plain(&Options::manual_wal_flush)},
      {"wal_recovery_mode",
       Choice<WALRecoveryMode>(
           &Options::wal_recovery_mode,
           {{"tolerate_corrupted_tail_records", WALRecoveryMode::kTolerateCorruptedTailRecords},
            {"absolute_consistency", WALRecoveryMode::kAbsoluteConsistency},
            {"point_in_time_recovery", WALRecoveryMode::kPointInTimeRecovery},
            {"skip_any_corrupted_records", WALRecoveryMode::kSkipAnyCorruptedRecords}})},
      {"max_archive_lag_MB", Plain(&Options::max_archive_lag_MB)},
      {"manifest_image_interval", Seconds(&Options::manifest_image_interval)},
      {"manifest_image_edits", Plain(&Options::manifest_image_edits)},
      {"delayed_write_rate", Plain(&Options::delayed_write_rate)},
      {"max_background_jobs", Plain(&Options::max_background_jobs)},
      {"max_subcompactions", Plain(&Options::max_subcompactions)},
      {"db_write_buffer_size", Plain(&Options::db_write_buffer_size)},
      {"home_nodes", Plain(&Options::home_nodes)},
      {"slab_size", Plain(&Options::slab_size)},
      {"chunk_size", Plain(&Options::chunk_size)},
      {"max_queue_pairs_per_node", Plain(&Options::max_queue_pairs_per_node)},
      {"repair_bytes_per_second", Plain(&Options::repair_bytes_per_second)},
      {"operation_timeout", Seconds(&Options::operation_timeout)},
      {"slow_node_patience_min", Seconds(&Options::slow_node_patience_min)},
      {"slow_node_patience_max", Seconds(&Options::slow_node_patience_max)},
      {"hedged_reads_percent", Plain(&Options::hedged_reads_percent)},
      {"index_memory_budget", Plain(&Options::index_memory_budget)},
      {"create_missing_column_families", Plain(&Options::create_missing_column_families)},
      {"db_log_dir", Text(&Options::db_log_dir)},
      {"metrics_address", Text(&Options::metrics_address)},
      {"encryption_key_file", Text(&Options::encryption_key_file)},
      {"slow_operation_threshold", Seconds(&Options::slow_operation_threshold)},
      {"statistics", Counters()},
  };
  return kSetters;
}

/// Setters for each column family.
const Setters& FamilySetters() {
  static const Setters kSetters = {
      {"comparator",
       Choice<const Comparator*>(&Options::comparator,
                                 {{"bytewise", BytewiseComparator()},
                                  {"reverse_bytewise", ReverseBytewiseComparator()}})},
      {"write_buffer_size", Plain(&Options::write_buffer_size)},
      {"max_write_buffer_number", Plain(&Options::max_write_buffer_number)},
      {"num_levels", Plain(&Options::num_levels)},
      {"level0_file_num_compaction_trigger", Plain(&Options::level0_file_num_compaction_trigger)},
      {"level0_slowdown_writes_trigger", Plain(&Options::level0_slowdown_writes_trigger)},
      {"level0_stop_writes_trigger", Plain(&Options::level0_stop_writes_trigger)},
      {"target_file_size_base", Plain(&Options::target_file_size_base)},
      {"target_file_size_multiplier", Plain(&Options::target_file_size_multiplier)},
      {"max_bytes_for_level_base", Plain(&Options::max_bytes_for_level_base)},
      {"max_bytes_for_level_multiplier", Plain(&Options::max_bytes_for_level_multiplier)},
      {"soft_pending_compaction_bytes_limit", Plain(&Options::soft_pending_compaction_bytes_limit)},
      {"hard_pending_compaction_bytes_limit", Plain(&Options::hard_pending_compaction_bytes_limit)},
      {"disable_auto_compactions", Plain(&Options::disable_auto_compactions)},
      {"merge_operator", Merge()},
  };
  return kSetters;
}

/// Null if it is in none of `setters`.
const Setter* Find(const std::string& name, std::initializer_list<const Setters*> setters) {
  for (const Setters* some : setters) {
    if (const auto found = some->find(name); found != some->end()) return &found->second;
  }
  return nullptr;
}

}  // namespace

void SetOptions(const py::dict& named, Options* options) {
  for (const auto& [key, value] : named) {
    const std::string name = py::cast<std::string>(key);
    const Setter* const setter = Find(name, {&DatabaseSetters(), &FamilySetters()});
    if (setter == nullptr) throw py::type_error("there is no option '" + name + "'");
    (*setter)(name, value, options);
  }
}

void SetFamilyOptions(const py::dict& named, ColumnFamilyOptions* options) {
  Options all({}, *options);
  for (const auto& [key, value] : named) {
    const std::string name = py::cast<std::string>(key);
    const Setter* const setter = Find(name, {&FamilySetters()});
    if (setter == nullptr) {
      throw py::type_error("column families have no option '" + name + "'");
    }
    (*setter)(name, value, &all);
  }
  *options = all;
}

}  // namespace nacre::python
