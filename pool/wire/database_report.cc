#include "pool/wire/database_report.h"

#include "pool/wire/control.pb.h"

namespace nacre::pool {

const char* ToString(RepairProgress::State state) {
  switch (state) {
    case RepairProgress::State::kIdle:
      return "idle";
    case RepairProgress::State::kRunning:
      return "running";
    case RepairProgress::State::kPaused:
      return "paused";
    case RepairProgress::State::kWaiting:
      return "waiting";
  }
  return "?";  // A later version has sent it.
}

void EncodeReport(const DatabaseReport& report, control::ReportDatabase* message) {
  message->set_database_id(report.database_id);
  message->set_redundancy(report.redundancy);
  for (const auto& [name, bytes] : report.space) {
    control::SpaceFigure* figure = message->add_space();
    figure->set_name(name);
    figure->set_bytes(bytes);
  }
  control::RepairProgress* repair = message->mutable_repair();
  repair->set_state(static_cast<uint32_t>(report.repair.state));
  repair->set_bytes_done(report.repair.bytes_done);
  repair->set_bytes_total(report.repair.bytes_total);
  repair->set_bytes_per_second(report.repair.bytes_per_second);
  repair->set_seconds_left(report.repair.seconds_left);
  message->set_notice(report.notice);
  for (const LeavingNode& node : report.leaving) {
    control::LeavingNode* const leaving = message->add_leaving();
    leaving->set_instance_id(node.instance_id);
    leaving->set_state(static_cast<uint32_t>(node.state));
  }
  message->set_features_on(report.features_on);
  message->set_slow_operations(report.slow_operations);
  for (const SlowOperation& operation : report.latest_slow) {
    control::SlowOperation* const slow = message->add_latest_slow();
    slow->set_age_nanos(operation.age_nanos);
    slow->set_text(operation.text);
  }
  for (const ReportedTimes& times : report.times) {
    control::OperationTimes* const of_kind = message->add_times();
    of_kind->set_operation(times.operation);
    of_kind->set_count(times.count);
    of_kind->set_median_micros(times.median_micros);
    of_kind->set_p99_micros(times.p99_micros);
  }
}

void DecodeReport(const control::ReportDatabase& message, DatabaseReport* report) {
  report->database_id = message.database_id();
  report->redundancy = message.redundancy();
  report->notice = message.notice();
  report->space.clear();
  for (const control::SpaceFigure& figure : message.space()) {
    report->space.emplace_back(figure.name(), figure.bytes());
  }
  const control::RepairProgress& repair = message.repair();
  report->repair = {.state = static_cast<RepairProgress::State>(repair.state()),
                    .bytes_done = repair.bytes_done(),
                    .bytes_total = repair.bytes_total(),
                    .bytes_per_second = repair.bytes_per_second(),
                    .seconds_left = repair.seconds_left()};
  report->leaving.clear();
  for (const control::LeavingNode& node : message.leaving()) {
    report->leaving.push_back({.instance_id = node.instance_id(),
                               .state = static_cast<LeavingNode::State>(node.state())});
  }
  report->features_on = message.features_on();
  report->slow_operations = message.slow_operations();
  report->latest_slow.clear();
  for (const control::SlowOperation& slow : message.latest_slow()) {
    report->latest_slow.push_back({.age_nanos = slow.age_nanos(), .text = slow.text()});
  }
  report->times.clear();
  for (const control::OperationTimes& times : message.times()) {
    report->times.push_back({.operation = times.operation(),
                             .count = times.count(),
                             .median_micros = times.median_micros(),
                             .p99_micros = times.p99_micros()});
  }
}

void EncodeDirections(const Directions& directions, control::Directions* message) {
  message->Clear();
  message->set_version(directions.version);
  for (const uint64_t instance : directions.draining) message->add_draining(instance);
  message->set_repair_paused(directions.repair_paused);
  message->set_repair_bytes_per_second(directions.repair_bytes_per_second);
  for (const std::string& address : directions.added_addresses) {
    message->add_added_addresses(address);
  }
  for (const Maintenance& each : directions.maintenance) {
    control::Maintenance* const maintenance = message->add_maintenance();
    maintenance->set_instance_id(each.instance_id);
    maintenance->set_start_id(each.start_id);
    maintenance->set_address(each.address);
    maintenance->set_left_nanos(each.left_nanos);
  }
  message->set_features_on(directions.features_on);
}

void DecodeDirections(const control::Directions& message, Directions* directions) {
  directions->version = message.version();
  directions->draining = {message.draining().begin(), message.draining().end()};
  directions->repair_paused = message.repair_paused();
  directions->repair_bytes_per_second = message.repair_bytes_per_second();
  directions->added_addresses = {message.added_addresses().begin(),
                                 message.added_addresses().end()};
  directions->maintenance.clear();
  for (const control::Maintenance& each : message.maintenance()) {
    directions->maintenance.push_back({.instance_id = each.instance_id(),
                                       .start_id = each.start_id(),
                                       .address = each.address(),
                                       .left_nanos = each.left_nanos()});
  }
  directions->features_on = message.features_on();
}

LogReader DecodeLogReader(const control::LogReader& message) {
  return {.reader = message.reader(),
          .sequence = message.sequence(),
          .restorable = message.restorable(),
          .age_nanos = message.age_nanos()};
}

void DecodeKnownDatabase(const control::KnownDatabase& message, KnownDatabase* database) {
  database->name = message.name();
  database->database_id = message.database_id();
  database->open = message.open();
  database->leased_bytes = message.leased_bytes();
  database->reported = message.has_report();
  database->report_age_nanos = message.report_age_nanos();
  DecodeReport(message.report(), &database->report);
  database->log_readers.clear();
  for (const control::LogReader& reader : message.log_readers()) {
    database->log_readers.push_back(DecodeLogReader(reader));
  }
}

void EncodeConnectedClient(const ConnectedClient& client, control::ConnectedClient* message) {
  message->set_client_id(client.client_id);
  message->set_protocol_oldest(client.protocol.range.oldest);
  message->set_protocol_newest(client.protocol.range.newest);
  message->set_features(client.protocol.features);
  for (const std::string& name : client.owned) message->add_owned(name);
}

ConnectedClient DecodeConnectedClient(const control::ConnectedClient& message) {
  return {.client_id = message.client_id(),
          .protocol = {.range = DecodeRange(message.protocol_oldest(), message.protocol_newest()),
                       .features = message.features()},
          .owned = {message.owned().begin(), message.owned().end()}};
}

}  // namespace nacre::pool
